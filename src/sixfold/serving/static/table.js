/** Rows of words and numbers on the page. */

import { h } from "./dom.js";

/** @typedef {(string | number)[]} Row */

/**
 * On the page; the first row is the head, the first column names the rows.
 * @param {Row[]} rows
 * @param {string} [kind] a class of its own
 */
export function table([head, ...rows], kind = "") {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": head.join(", ") }, h("table", { class: kind },
    h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell)))))));
}
