/** What one token looks at, as arcs between two lines of tokens: who asks on the left, what is looked at on the right. */

import { h, replaceContent, s } from "../dom.js";
import { heatMapCsv } from "../export.js";
import { formatNumber, t, textWidth, truncate } from "../page_text.js";
import { panel } from "../panel.js";
import { setState } from "../url_state.js";

/** @typedef {import("./attention_weights.js").Selection} Selection */

const TEXTS = {
  title: { en: "What it looks at", zh: "它看向哪里" },
  note: { en: "Head {0}, asked by “{1}”. Thicker and darker is more.", zh: "头 {0}，由“{1}”发问。线越粗越深，权重越大。" },
  rest: { en: "The {0} columns with the most weight, of {1}; the others have {2} together.", zh: "显示 {1} 列中权重最大的 {0} 列；其余合计 {2}。" },
  spoken: { en: "{0} looks at {1}", zh: "{0} 看向 {1}" },
  asks: { en: "asks", zh: "发问" },
  looked: { en: "is looked at", zh: "被看" },
};

const MAX_TOKENS = 40; // tokens in a line
const ROW_HEIGHT = 24;
const TOP = 34;
const MAX_LABEL_WIDTH = 22; // letters of a token
const MAX_NUMBERED_ARCS = 6; // arcs that have a number
const ON_PAGE = { ink: "var(--ink-2)", strong: "var(--ink)", arc: "var(--accent)", chosen: "var(--accent-2)" };
const ON_PAPER = { ink: "#555b6e", strong: "#191c26", arc: "#4455c7", chosen: "#c2570c" };

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function arcsPanel() {
  /** @type {Selection | null} */
  let selection = null;
  const note = h("p", { class: "note", "aria-live": "off" });
  const rest = h("p", { class: "note" });
  const frame = h("div", { class: "arcs" });
  const element = panel(t(TEXTS.title), [note, frame, rest], {
    svg: () => (selection ? new XMLSerializer().serializeToString(drawArcs(selection, ON_PAPER)) : ""),
    data: () => (selection ? heatMapCsv(selectedRow(selection)) : ""),
  });
  return {
    element,
    show(nextSelection) {
      selection = nextSelection;
      const { weights, layer, head, row } = nextSelection;
      note.textContent = t(TEXTS.note, `${weights.kind}.${layer}.${head}`, weights.rows.texts[row]);
      replaceContent(frame, drawArcs(nextSelection, ON_PAGE));
      const [columns, rowWeights] = [drawnColumns(nextSelection), weights.row(layer, head, row)];
      rest.hidden = columns.length === rowWeights.length;
      const remaining = 1 - columns.reduce((sum, column) => sum + rowWeights[column], 0);
      rest.textContent = t(TEXTS.rest, columns.length, rowWeights.length, formatNumber(Math.max(0, remaining)));
    },
  };
}

/**
 * The selected row by itself.
 * @param {Selection} shown
 * @returns {import("../heat_map.js").HeatMapData}
 */
function selectedRow({ weights, layer, head, row }) {
  const data = weights.get(layer, head);
  return { ...data, rows: [data.rows[row]], values: weights.row(layer, head, row) };
}

/**
 * Columns that are drawn, in their order: all, or those with the most weight.
 * @param {Selection} shown
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
 * Rows that are drawn: all, or those around the one that asks.
 * @param {Selection} shown
 */
function drawnRows({ weights, row }) {
  const count = weights.rows.texts.length;
  const first = Math.max(0, Math.min(count - MAX_TOKENS, row - MAX_TOKENS / 2));
  return Array.from({ length: Math.min(MAX_TOKENS, count) }, (_, offset) => first + offset);
}

/**
 * Where everything stands.
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
 * @param {typeof ON_PAGE} colours
 * @returns {SVGSVGElement}
 */
function drawArcs(selection, colours) {
  const { weights, row } = selection;
  const layout = layoutArcs(selection);
  const heading = (/** @type {Record<string, any>} */ attributes, /** @type {string} */ text) =>
    s("text", { y: 14, "font-size": 13, "dominant-baseline": "central", fill: colours.ink, ...attributes }, text);
  const heaviestText = layout.heaviest.slice(0, 3).map((column) => `${weights.columns.texts[column]} ${formatNumber(layout.rowWeights[column])}`).join(", ");
  return s("svg", {
    viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height, "font-size": 15, role: "img",
    "font-family": "ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif",
    "aria-label": t(TEXTS.spoken, weights.rows.texts[row], heaviestText),
  },
  heading({ x: layout.startX - 8, "text-anchor": "end" }, t(TEXTS.asks)), heading({ x: layout.endX + 8 }, t(TEXTS.looked)),
  ...arcPaths(selection, layout, colours), ...tokenTexts(selection, layout, colours));
}

/**
 * @param {Selection} shown
 * @param {ReturnType<typeof layoutArcs>} at
 * @param {typeof ON_PAGE} colours
 */
function arcPaths({ row, column }, { rowWeights, rows, columns, startX, endX, y }, colours) {
  const startY = y(rows.indexOf(row));
  return columns.flatMap((target, line) => rowWeights[target] <= 0.001 ? [] : [s("path", {
    d: `M${startX} ${startY}C${startX + 75} ${startY} ${endX - 75} ${y(line)} ${endX} ${y(line)}`, fill: "none",
    stroke: target === column ? colours.chosen : colours.arc, "stroke-width": (0.75 + 9 * rowWeights[target]).toFixed(2),
    "stroke-opacity": (0.2 + 0.75 * rowWeights[target]).toFixed(3), "data-column": target,
  })]);
}

/**
 * Both lines of tokens; the largest weights are written beside theirs.
 * @param {Selection} shown
 * @param {ReturnType<typeof layoutArcs>} at
 * @param {typeof ON_PAGE} colours
 */
function tokenTexts({ weights, row, column }, { rowWeights, rows, columns, startX, endX, y, numbered }, colours) {
  const text = (/** @type {Record<string, any>} */ attributes, /** @type {(string | SVGElement)[]} */ ...children) =>
    s("text", { "dominant-baseline": "central", fill: colours.ink, class: "token", ...attributes }, ...children);
  const weight = (/** @type {number} */ target) => s("tspan", {
    dx: 8, "font-size": 13, fill: colours.ink, "font-weight": 400, class: "weight", "data-column": target }, formatNumber(rowWeights[target]));
  const queries = rows.map((query, line) => text({
    x: startX - 8, y: y(line), "text-anchor": "end", onclick: () => setState({ row: query, column: "" }),
    ...(query === row && { fill: colours.strong, "font-weight": 650 }),
  }, truncate(weights.rows.texts[query], MAX_LABEL_WIDTH)));
  const keys = columns.map((key, line) => text({
    x: endX + 8, y: y(line), onclick: () => setState({ row, column: key }),
    ...(numbered.has(key) && { fill: colours.strong, "font-weight": key === column ? 650 : 400 }),
  }, truncate(weights.columns.texts[key], MAX_LABEL_WIDTH), ...(numbered.has(key) ? [weight(key)] : [])));
  return [...queries, ...keys];
}
