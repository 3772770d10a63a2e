/** A cell of a table with a number, and a bar as long as the number is large. */

import { h } from "./dom.js";
import { formatNumber } from "./page_text.js";

/**
 * @param {number} value
 * @param {number} fraction
 * @param {boolean} isNegative
 */
export function barCell(value, fraction, isNegative) {
  return h("td", { dataset: { value } }, h("div", { class: "bar-cell" },
    h("span", { class: "bar-track" }, h("span", { class: isNegative ? "bar-fill negative" : "bar-fill", style: { width: `${(100 * fraction).toFixed(2)}%` } })),
    h("span", { class: "number" }, formatNumber(value))));
}
