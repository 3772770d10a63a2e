/** The arcs between words: what one token attends to. Query tokens stand on the left, key tokens on the right. */

import { h, replaceContent, s } from "../dom.js";
import { FONT_FAMILY, heatMapCsv } from "../export.js";
import { formatNumber, t, textWidth, truncate } from "../page_text.js";
import { panel } from "../panel.js";
import { EXPORT_COLOURS, PAGE_COLOURS } from "../theme_colours.js";
import { setState } from "../url_state.js";
import { exactExport } from "./attention_weights.js";

/** @typedef {import("./attention_weights.js").Selection} Selection */

const TEXTS = {
  title: { en: "What it attends to", zh: "关注哪些词元" },
  note: { en: "Head {0}, query “{1}”. Thicker and darker arcs have more weight.", zh: "头 {0}，查询词元“{1}”。弧线越粗、越深，权重越大。" },
  rest: { en: "Showing the {0} columns with the most weight of {1}; the others have {2} in total.", zh: "共 {1} 列，显示权重最大的 {0} 列；其余合计 {2}。" },
  description: { en: "{0} attends to {1}", zh: "{0} 关注 {1}" },
  query: { en: "query", zh: "查询" },
  keys: { en: "keys", zh: "键" },
};

const MAX_TOKENS = 40; // tokens per side
const ROW_HEIGHT = 24;
const TOP = 34;
const MAX_LABEL_WIDTH = 22; // letters
const MAX_NUMBERED_ARCS = 6; // the heaviest arcs show their weight

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function arcsPanel() {
  /** @type {Selection | null} */
  let selection = null;
  const note = h("p", { class: "note", "aria-live": "off" });
  const remainderNote = h("p", { class: "note" });
  const frame = h("div", { class: "arcs" });
  const element = panel(t(TEXTS.title), [note, frame, remainderNote], {
    svg: exactExport(() => selection, (saved) => new XMLSerializer().serializeToString(drawArcs(saved, EXPORT_COLOURS))),
    data: exactExport(() => selection, (saved) => heatMapCsv(selectedRow(saved))),
  });
  return {
    element,
    show(nextSelection) {
      selection = nextSelection;
      const { weights, layer, head, row } = nextSelection;
      note.textContent = t(TEXTS.note, `${weights.kind}.${layer}.${head}`, weights.rows.texts[row]);
      replaceContent(frame, drawArcs(nextSelection, PAGE_COLOURS));
      const [columns, rowWeights] = [drawnColumns(nextSelection), weights.row(layer, head, row)];
      remainderNote.hidden = columns.length === rowWeights.length;
      const remaining = 1 - columns.reduce((sum, column) => sum + rowWeights[column], 0);
      remainderNote.textContent = t(TEXTS.rest, columns.length, rowWeights.length, formatNumber(Math.max(0, remaining)));
    },
  };
}

/**
 * Return the selected row as data of one row.
 * @param {Selection} selection
 * @returns {import("../heat_map.js").HeatMapData}
 */
function selectedRow({ weights, layer, head, row }) {
  const data = weights.get(layer, head);
  return { ...data, rows: [data.rows[row]], values: weights.row(layer, head, row) };
}

/**
 * Return the columns to draw, in order: all, or those with the most weight.
 * @param {Selection} selection
 */
function drawnColumns({ weights, layer, head, row, column }) {
  const rowWeights = weights.row(layer, head, row);
  const columns = [...rowWeights.keys()];
  if (columns.length <= MAX_TOKENS) return columns;
  const heaviest = columns.sort((first, second) => rowWeights[second] - rowWeights[first]).slice(0, MAX_TOKENS);
  if (!heaviest.includes(column)) heaviest[MAX_TOKENS - 1] = column;
  return heaviest.sort((first, second) => first - second);
}

/**
 * Return the rows to draw: all, or those around the selected one.
 * @param {Selection} selection
 */
function drawnRows({ weights, row }) {
  const count = weights.rows.texts.length;
  const first = Math.max(0, Math.min(count - MAX_TOKENS, row - MAX_TOKENS / 2));
  return Array.from({ length: Math.min(MAX_TOKENS, count) }, (_, offset) => first + offset);
}

/**
 * Compute the positions of tokens and arcs.
 * @param {Selection} selection
 */
function layoutArcs(selection) {
  const { weights, layer, head, row, column } = selection;
  const rowWeights = weights.row(layer, head, row);
  const [rows, columns] = [drawnRows(selection), drawnColumns(selection)];
  const labelSpace = (/** @type {string[]} */ texts) => 8 * Math.min(MAX_LABEL_WIDTH, Math.max(6, ...texts.map(textWidth)));
  const startX = 24 + labelSpace(rows.map((row) => weights.rows.texts[row]));
  const endX = startX + 150;
  const heaviest = [...columns].sort((first, second) => rowWeights[second] - rowWeights[first]).slice(0, MAX_NUMBERED_ARCS).filter((shownColumn) => rowWeights[shownColumn] >= 0.01);
  return {
    rowWeights: rowWeights, rows, columns, startX, endX, heaviest, numbered: new Set([...heaviest, column]),
    width: endX + 104 + labelSpace(columns.map((shownColumn) => weights.columns.texts[shownColumn])),
    height: TOP + ROW_HEIGHT * Math.max(rows.length, columns.length) + 8,
    y: (/** @type {number} */ line) => TOP + ROW_HEIGHT * (line + 0.5),
  };
}

/**
 * @param {Selection} selection
 * @param {import("../theme_colours.js").DiagramColours} colours
 * @returns {SVGSVGElement}
 */
function drawArcs(selection, colours) {
  const { weights, row } = selection;
  const layout = layoutArcs(selection);
  const heading = (/** @type {Record<string, any>} */ attributes, /** @type {string} */ text) =>
    s("text", { y: 14, "font-size": 13, "dominant-baseline": "central", fill: colours.mutedInk, ...attributes }, text);
  const heaviestText = layout.heaviest.slice(0, 3).map((column) => `${weights.columns.texts[column]} ${formatNumber(layout.rowWeights[column])}`).join(", ");
  return s("svg", {
    viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height, "font-size": 15, role: "img",
    "font-family": FONT_FAMILY,
    "aria-label": t(TEXTS.description, weights.rows.texts[row], heaviestText),
  },
  heading({ x: layout.startX - 8, "text-anchor": "end" }, t(TEXTS.query)), heading({ x: layout.endX + 8 }, t(TEXTS.keys)),
  ...arcPaths(selection, layout, colours), ...tokenTexts(selection, layout, colours));
}

/**
 * @param {Selection} selection
 * @param {ReturnType<typeof layoutArcs>} layout
 * @param {import("../theme_colours.js").DiagramColours} colours
 */
function arcPaths({ row, column }, { rowWeights, rows, columns, startX, endX, y }, colours) {
  const startY = y(rows.indexOf(row));
  return columns.flatMap((target, line) => rowWeights[target] <= 0.001 ? [] : [s("path", {
    d: `M${startX} ${startY}C${startX + 75} ${startY} ${endX - 75} ${y(line)} ${endX} ${y(line)}`, fill: "none",
    stroke: target === column ? colours.selected : colours.accent, "stroke-width": (0.75 + 9 * rowWeights[target]).toFixed(2),
    "stroke-opacity": (0.2 + 0.75 * rowWeights[target]).toFixed(3), "data-column": target,
  })]);
}

/**
 * Draw the tokens of both sides, with the largest weights beside their keys.
 * @param {Selection} selection
 * @param {ReturnType<typeof layoutArcs>} layout
 * @param {import("../theme_colours.js").DiagramColours} colours
 */
function tokenTexts({ weights, row, column }, { rowWeights, rows, columns, startX, endX, y, numbered }, colours) {
  const text = (/** @type {Record<string, any>} */ attributes, /** @type {(string | SVGElement)[]} */ ...children) =>
    s("text", { "dominant-baseline": "central", fill: colours.mutedInk, class: "token", ...attributes }, ...children);
  const weight = (/** @type {number} */ target) => s("tspan", {
    dx: 8, "font-size": 13, fill: colours.mutedInk, "font-weight": 400, class: "weight", "data-column": target }, formatNumber(rowWeights[target]));
  const queries = rows.map((query, line) => text({
    x: startX - 8, y: y(line), "text-anchor": "end", onclick: () => setState({ row: query, column: "" }),
    ...(query === row && { fill: colours.ink, "font-weight": 650 }),
  }, truncate(weights.rows.texts[query], MAX_LABEL_WIDTH)));
  const keys = columns.map((key, line) => text({
    x: endX + 8, y: y(line), onclick: () => setState({ row, column: key }),
    ...(numbered.has(key) && { fill: colours.ink, "font-weight": key === column ? 650 : 400 }),
  }, truncate(weights.columns.texts[key], MAX_LABEL_WIDTH), ...(numbered.has(key) ? [weight(key)] : [])));
  return [...queries, ...keys];
}
