/** One token across all heads: what each head of each layer looks at most when it asks. */

import { escape, h, refill } from "../dom.js";
import { svgFrame } from "../export.js";
import { STEPS } from "../heat_map.js";
import { cut, t } from "../page_text.js";
import { panel } from "../panel.js";
import { css, ink, sequence } from "../theme_colours.js";
import { set } from "../url_state.js";
import { largestPlace } from "./attention_weights.js";

/** @typedef {import("./attention_weights.js").Shown} Shown */
/** @typedef {{layer: number, head: number, column: number, weight: number}} Most */

const WORDS = {
  title: { en: "One token across all heads", zh: "一个词元，全部的头" },
  note: { en: "What each head looks at most when “{0}” asks, and with which weight.", zh: "当“{0}”发问时，每个头看得最多的是什么，权重多大。" },
  layer: { en: "layer", zh: "层" },
  head: { en: "head", zh: "头" },
};

/** @returns {import("./attention_weights.js").Part} */
export function tokenPart() {
  /** @type {Shown | null} */
  let now = null;
  let wasExact = false;
  /** @type {HTMLButtonElement[][]} */
  let cells = [];
  /** @type {HTMLButtonElement | null} */
  let pressed = null;
  const note = h("p", { class: "note" });
  const frame = h("div", { class: "scroll" });
  const element = panel(t(WORDS.title), [note, frame], {
    svg: () => (now ? tokenSvg(now) : ""),
    data: () => (now ? tokenCsv(now) : ""),
  });

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const step = STEPS[event.key];
    if (!step || !now) return;
    event.preventDefault();
    const fit = (/** @type {number} */ value, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, value));
    const [layer, head] = [fit(now.layer + step[0], cells.length), fit(now.head + step[1], cells[0].length)];
    cells[layer][head].focus();
    set({ layer, head, row: now.row, column: "" });
  }

  /** @param {import("./attention_weights.js").Weights} weights */
  function table(weights) {
    cells = Array.from({ length: weights.layers }, (_, layer) => Array.from({ length: weights.heads }, (_, head) =>
      h("button", { type: "button", tabindex: -1, "aria-pressed": "false", dataset: { layer, head }, onclick: () => now && set({ layer, head, row: now.row, column: "" }) },
        h("span", {}), " ", h("small", {}))));
    const top = h("tr", {}, h("th", { scope: "col" }, t(WORDS.layer)), cells[0].map((_, head) => h("th", { scope: "col" }, `${t(WORDS.head)} ${head}`)));
    return h("table", { class: "most", onkeydown: walk }, h("thead", {}, top),
      h("tbody", {}, cells.map((row, layer) => h("tr", {}, h("th", { scope: "row" }, layer), row.map((button) => h("td", {}, button))))));
  }

  /** @param {Shown} shown */
  function write(shown) {
    const { weights, row } = shown;
    note.textContent = t(WORDS.note, weights.rows.texts[row]);
    const colours = sequence();
    for (const { layer, head, column, weight } of mosts(shown)) {
      const button = cells[layer][head];
      const colour = colours[Math.round(255 * Math.min(1, weight))];
      button.style.background = css(colour);
      button.style.color = ink(colour);
      /** @type {Element} */ (button.firstChild).textContent = cut(weights.columns.texts[column], 9);
      /** @type {Element} */ (button.lastChild).textContent = weight.toFixed(2);
    }
  }

  return {
    element,
    show(shown) {
      const { weights, row, layer, head } = shown;
      if (cells.length !== weights.layers || cells[0]?.length !== weights.heads) refill(frame, table(weights));
      const isExact = weights.exact.has(row);
      if (now?.weights !== weights || now.row !== row || wasExact !== isExact) write(shown);
      [now, wasExact] = [shown, isExact];
      const next = cells[layer][head];
      if (next === pressed) return;
      for (const button of [pressed, next]) {
        button?.setAttribute("aria-pressed", String(button === next));
        if (button) button.tabIndex = button === next ? 0 : -1;
      }
      pressed = next;
    },
  };
}

/**
 * @param {Shown} shown
 * @returns {Most[]}
 */
function mosts({ weights, row }) {
  /** @type {Most[]} */
  const found = [];
  for (let layer = 0; layer < weights.layers; layer++)
    for (let head = 0; head < weights.heads; head++) {
      const numbers = weights.row(layer, head, row);
      const column = largestPlace(numbers);
      found.push({ layer, head, column, weight: numbers[column] });
    }
  return found;
}

/** @param {Shown} shown */
function tokenCsv(shown) {
  const { weights, row } = shown;
  const quoted = (/** @type {string} */ text) => `"${text.replaceAll('"', '""')}"`;
  const lines = mosts(shown).map(({ layer, head, column, weight }) =>
    [quoted(`${weights.kind}.${layer}.${head}`), quoted(weights.rows.texts[row]), quoted(weights.columns.texts[column]), weight].join(","));
  return ["head,asks,looks_at,weight", ...lines].join("\n");
}

/** @param {Shown} shown */
function tokenSvg(shown) {
  const { weights, row } = shown;
  const [wide, tall] = [78, 38];
  const colours = sequence("light");
  const cells = mosts(shown).map(({ layer, head, column, weight }) => {
    const [x, y, colour] = [40 + wide * head, 56 + tall * layer, colours[Math.round(255 * Math.min(1, weight))]];
    return `<rect x="${x}" y="${y}" width="${wide - 4}" height="${tall - 4}" rx="4" fill="${css(colour)}" stroke="#d9dce6"/>` +
      `<text x="${x + wide / 2 - 2}" y="${y + 15}" text-anchor="middle" fill="${ink(colour)}">${escape(cut(weights.columns.texts[column], 10))}</text>` +
      `<text x="${x + wide / 2 - 2}" y="${y + 29}" text-anchor="middle" font-size="10" fill="${ink(colour)}">${weight.toFixed(3)}</text>`;
  });
  const heads = Array.from({ length: weights.heads }, (_, head) => `<text x="${40 + wide * (head + 0.5)}" y="48" text-anchor="middle">${head}</text>`);
  const layers = Array.from({ length: weights.layers }, (_, layer) => `<text x="20" y="${56 + tall * (layer + 0.5)}">${layer}</text>`);
  return svgFrame(48 + wide * weights.heads, 64 + tall * weights.layers, t(WORDS.note, weights.rows.texts[row]), [...cells, ...heads, ...layers].join(""));
}
