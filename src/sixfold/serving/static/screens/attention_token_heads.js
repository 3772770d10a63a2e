/** One token across all heads: the key with the largest weight in each head. */

import { escapeXml, h, replaceContent } from "../dom.js";
import { figureSvg } from "../export.js";
import { ARROW_STEPS } from "../heat_map.js";
import { t, truncate } from "../page_text.js";
import { panel } from "../panel.js";
import { contrastColour, cssColour, sequentialScale } from "../theme_colours.js";
import { setState } from "../url_state.js";
import { exactExport, indexOfMax } from "./attention_weights.js";

/** @typedef {import("./attention_weights.js").Selection} Selection */
/** @typedef {{layer: number, head: number, column: number, weight: number}} HeadMaximum */

const TEXTS = {
  title: { en: "One token across all heads", zh: "一个词元在全部头中" },
  note: { en: "The token that each head attends to most for the query “{0}”, and its weight.", zh: "对查询词元“{0}”，每个头最关注的词元及其权重。" },
  layer: { en: "layer", zh: "层" },
  head: { en: "head", zh: "头" },
};

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function tokenHeadsPanel() {
  /** @type {Selection | null} */
  let selection = null;
  let wasExact = false;
  /** @type {HTMLButtonElement[][]} */
  let cells = [];
  /** @type {HTMLButtonElement | null} */
  let pressed = null;
  const note = h("p", { class: "note" });
  const frame = h("div", { class: "scroll" });
  const element = panel(t(TEXTS.title), [note, frame], {
    svg: exactExport(() => selection, tokenSvg),
    data: exactExport(() => selection, tokenCsv),
  });

  /** @param {KeyboardEvent} event */
  function moveSelection(event) {
    const step = ARROW_STEPS[event.key];
    if (!step || !selection) return;
    event.preventDefault();
    const clamp = (/** @type {number} */ value, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, value));
    const [layer, head] = [clamp(selection.layer + step[0], cells.length), clamp(selection.head + step[1], cells[0].length)];
    cells[layer][head].focus();
    setState({ layer, head, row: selection.row, column: "" });
  }

  /** @param {import("./attention_weights.js").AttentionWeights} weights */
  function makeTable(weights) {
    cells = Array.from({ length: weights.layers }, (_, layer) => Array.from({ length: weights.heads }, (_, head) =>
      h("button", { type: "button", tabindex: -1, "aria-pressed": "false", dataset: { layer, head }, onclick: () => selection && setState({ layer, head, row: selection.row, column: "" }) },
        h("span", {}), " ", h("small", {}))));
    const header = h("tr", {}, h("th", { scope: "col" }, t(TEXTS.layer)), cells[0].map((_, head) => h("th", { scope: "col" }, `${t(TEXTS.head)} ${head}`)));
    return h("table", { class: "token-heads", onkeydown: moveSelection }, h("thead", {}, header),
      h("tbody", {}, cells.map((row, layer) => h("tr", {}, h("th", { scope: "row" }, layer), row.map((button) => h("td", {}, button))))));
  }

  /** @param {Selection} nextSelection */
  function fillCells(nextSelection) {
    const { weights, row } = nextSelection;
    note.textContent = t(TEXTS.note, weights.rows.texts[row]);
    const colours = sequentialScale();
    for (const { layer, head, column, weight } of headMaxima(nextSelection)) {
      const button = cells[layer][head];
      const colour = colours[Math.round(255 * Math.min(1, weight))];
      button.style.background = cssColour(colour);
      button.style.color = contrastColour(colour);
      /** @type {Element} */ (button.firstChild).textContent = truncate(weights.columns.texts[column], 9);
      /** @type {Element} */ (button.lastChild).textContent = weight.toFixed(2);
    }
  }

  return {
    element,
    show(nextSelection) {
      const { weights, row, layer, head } = nextSelection;
      if (cells.length !== weights.layers || cells[0]?.length !== weights.heads) replaceContent(frame, makeTable(weights));
      const isExact = weights.exactRows.has(row);
      if (selection?.weights !== weights || selection.row !== row || wasExact !== isExact) fillCells(nextSelection);
      [selection, wasExact] = [nextSelection, isExact];
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
 * @param {Selection} selection
 * @returns {HeadMaximum[]}
 */
function headMaxima({ weights, row }) {
  /** @type {HeadMaximum[]} */
  const maxima = [];
  for (let layer = 0; layer < weights.layers; layer++)
    for (let head = 0; head < weights.heads; head++) {
      const rowWeights = weights.row(layer, head, row);
      const column = indexOfMax(rowWeights);
      maxima.push({ layer, head, column, weight: rowWeights[column] });
    }
  return maxima;
}

/** @param {Selection} selection */
function tokenCsv(selection) {
  const { weights, row } = selection;
  const quote = (/** @type {string} */ text) => `"${text.replaceAll('"', '""')}"`;
  const lines = headMaxima(selection).map(({ layer, head, column, weight }) =>
    [quote(`${weights.kind}.${layer}.${head}`), quote(weights.rows.texts[row]), quote(weights.columns.texts[column]), weight].join(","));
  return ["head,asks,looks_at,weight", ...lines].join("\n");
}

/** @param {Selection} selection */
function tokenSvg(selection) {
  const { weights, row } = selection;
  const [cellWidth, cellHeight] = [78, 38];
  const colours = sequentialScale("light");
  const cells = headMaxima(selection).map(({ layer, head, column, weight }) => {
    const [x, y, colour] = [40 + cellWidth * head, 56 + cellHeight * layer, colours[Math.round(255 * Math.min(1, weight))]];
    return `<rect x="${x}" y="${y}" width="${cellWidth - 4}" height="${cellHeight - 4}" rx="4" fill="${cssColour(colour)}" stroke="#d9dce6"/>` +
      `<text x="${x + cellWidth / 2 - 2}" y="${y + 15}" text-anchor="middle" fill="${contrastColour(colour)}">${escapeXml(truncate(weights.columns.texts[column], 10))}</text>` +
      `<text x="${x + cellWidth / 2 - 2}" y="${y + 29}" text-anchor="middle" font-size="10" fill="${contrastColour(colour)}">${weight.toFixed(3)}</text>`;
  });
  const heads = Array.from({ length: weights.heads }, (_, head) => `<text x="${40 + cellWidth * (head + 0.5)}" y="48" text-anchor="middle">${head}</text>`);
  const layers = Array.from({ length: weights.layers }, (_, layer) => `<text x="20" y="${56 + cellHeight * (layer + 0.5)}">${layer}</text>`);
  return figureSvg(48 + cellWidth * weights.heads, 64 + cellHeight * weights.layers, t(TEXTS.note, weights.rows.texts[row]), [...cells, ...heads, ...layers].join(""));
}
