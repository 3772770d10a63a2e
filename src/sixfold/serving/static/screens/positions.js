/** Positions: the table that tells a model the order of its pieces, and what the products of its rows depend on. */

import { fetchExplorer, fetchTensors } from "../api.js";
import { h, replaceContent, s } from "../dom.js";
import { heatMapCsv, heatMapSvg, toCsv } from "../export.js";
import { HeatMap } from "../heat_map.js";
import { latestRequest } from "../latest_request.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { optionRadioGroup } from "../radio_group.js";
import { lineChart, linePath, ResponsiveDiagram, standaloneSvg } from "../svg_diagram.js";
import { getState, onStateChange, setState, stateIndex } from "../url_state.js";
import { frequenciesOf, positionTable, productsByDistance, rotaryTable } from "./position_encodings.js";

export const TITLE = { en: "Positions", zh: "位置" };

const TEXTS = {
  sinusoidal: {
    en: "Attention by itself knows no order. So a row of waves is added to each piece: every position has its own pattern, and how alike two patterns are tells how far apart they stand.",
    zh: "注意力本身不知道顺序。因此给每个子词加上一行波形：每个位置有自己的图案，两个图案有多相似，就说明它们相距多远。",
  },
  learned: {
    en: "Attention by itself knows no order. This model adds a row of numbers to each piece, one row a position, all learned in training as words are.",
    zh: "注意力本身不知道顺序。这个模型给每个子词加上一行数，每个位置一行，和词向量一样都是训练得到的。",
  },
  rotary: {
    en: "Attention by itself knows no order. This model adds nothing to its pieces; in each head it turns every pair of a query's and a key's numbers by an angle that grows with the position. The table shows cosine and sine of these angles.",
    zh: "注意力本身不知道顺序。这个模型不给子词加任何东西，而是在每个头中把查询和键的每一对数旋转一个角度，角度随位置增大。下表是这些角度的余弦和正弦。",
  },
  none: {
    en: "This model has no positions: its encoder sees a bag of pieces, in no order. Only the causal mask of a decoder, which lets each place see what comes before it, tells early from late.",
    zh: "这个模型没有位置信息：编码器看到的只是一袋没有顺序的子词。只有解码器的因果掩码让每个位置看到它之前的内容，由此区分先后。",
  },
  length: { en: "Positions shown", zh: "显示的位置数" },
  table: { en: "Table of positions", zh: "位置表" },
  tableNote: {
    en: "A row for each position, a column for each of {0} dimensions; blue is positive, orange negative.",
    zh: "每个位置一行，{0} 个维度每个一列；蓝色为正，橙色为负。",
  },
  products: { en: "Inner products of all pairs", zh: "两两内积" },
  productsNote: { en: "How alike any two positions are.", zh: "任意两个位置有多相似。" },
  distance: { en: "Inner product against distance", zh: "内积与距离" },
  same: {
    en: "It depends on the distance alone: between pairs equally far apart it differs by at most {0}, which is rounding.",
    zh: "它只取决于距离：距离相同的各对之间最多相差 {0}，这只是舍入误差。",
  },
  differs: {
    en: "The line is the mean, the band goes from the least to the most of pairs equally far apart. They differ by up to {0}.",
    zh: "线是平均值，色带从距离相同的各对中的最小值到最大值。它们最多相差 {0}。",
  },
  apart: { en: "distance", zh: "距离" },
  least: { en: "least", zh: "最小" },
  mean: { en: "mean", zh: "平均" },
  most: { en: "most", zh: "最大" },
  curves: { en: "A pair of dimensions", zh: "一对维度" },
  pair: { en: "Pair", zh: "维度对" },
  wave: {
    en: "Pair {0}: dimension {1} is the sine (solid), dimension {2} the cosine (dashed). One wave takes {3} positions.",
    zh: "第 {0} 对：维度 {1} 是正弦（实线），维度 {2} 是余弦（虚线）。一个波长是 {3} 个位置。",
  },
  turn: {
    en: "Pair {0}: dimensions {1} (solid) and {2} (dashed) of a head. One full turn takes {3} positions.",
    zh: "第 {0} 对：一个头的维度 {1}（实线）和 {2}（虚线）。转一整圈需要 {3} 个位置。",
  },
  free: { en: "Pair {0}: dimensions {1} (solid) and {2} (dashed), as they were learned.", zh: "第 {0} 对：维度 {1}（实线）和 {2}（虚线），由训练得到。" },
  position: { en: "position", zh: "位置" },
  dimension: { en: "dimension {0}", zh: "维度 {0}" },
};

/** @typedef {import("./position_encodings.js").PositionTable} PositionTable */

const LENGTHS = ["32", "64", "128", "256"];

/** @returns {Promise<PositionTable | null>} */
async function fetchTable() {
  const model = getState("model") ? { model: getState("model") } : {};
  const { config } = await fetchExplorer("shapes", model);
  const chosenLength = Number(LENGTHS.includes(getState("view")) ? getState("view") : "128");
  const length = config.positions === "learned" ? Math.min(chosenLength, config.max_length) : chosenLength;
  if (config.positions === "none") return null;
  if (config.positions === "rotary") return rotaryTable(config, length);
  return positionTable(config, await fetchTensors("positions", { length, ...model }));
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const [lead, body] = [h("div", {}), h("div", { class: "parts" })];
  /** @type {() => void} */
  let redraw = () => {};
  const tableRequest = latestRequest(fetchTable, (table) => (redraw = showTable(lead, body, table)));
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), lead, tableRequest.status), body);
  const stopListening = onStateChange((changed) => {
    if (changed.has("view") || changed.has("model")) tableRequest.request();
    else if (changed.has("row") || changed.has("column")) redraw();
  });
  tableRequest.request();
  return () => {
    stopListening();
    tableRequest.dispose();
  };
}

/**
 * @param {HTMLElement} lead
 * @param {HTMLElement} body
 * @param {PositionTable | null} table
 * @returns {() => void} draws anew what depends on the choice
 */
function showTable(lead, body, table) {
  replaceContent(lead, h("p", { class: "lead" }, t(TEXTS[table?.kind ?? "none"])), table && equation(table.kind));
  if (!table) {
    replaceContent(body);
    return () => {};
  }
  const lengths = LENGTHS.map((length) => /** @type {[string, string]} */ ([length, length]));
  const hadFocus = document.activeElement?.closest(".switcher");
  const [tableView, productsView, curvesView] = [tablePanel(table), productsPanel(table), curvesPanel(table)];
  replaceContent(body,
    h("div", { class: "controls" }, h("label", {}, t(TEXTS.length)),
      optionRadioGroup(t(TEXTS.length), lengths, LENGTHS.includes(getState("view")) ? getState("view") : "128", (view) => setState({ view }))),
    tableView.element, h("div", { class: "columns" }, productsView, distancePanel(table)), curvesView.element);
  if (hadFocus) /** @type {HTMLElement} */ (body.querySelector(".switcher [aria-checked=true]")).focus();
  const redraw = () => [tableView, curvesView].forEach((length) => length.show());
  redraw();
  return redraw;
}

/** @param {PositionTable["kind"]} kind */
function equation(kind) {
  const power = () => h("sup", {}, "2", h("i", {}, "i"), "/", h("i", {}, "d"));
  const line = (/** @type {string} */ dimension, /** @type {string} */ name) =>
    h("p", { class: "equation" }, "PE(", h("i", {}, "pos"), ", ", h("i", {}, dimension), ") = ", name, "(", h("i", {}, "pos"), " / 10000", power(), ")");
  if (kind === "sinusoidal") return h("div", {}, line("2i", "sin"), line("2i + 1", "cos"));
  return kind === "rotary" ? h("p", { class: "equation" }, h("i", {}, "angle"), " = ", h("i", {}, "pos"), " / base", power()) : null;
}

/** @param {PositionTable} table */
function tablePanel(table) {
  const { length, width } = table;
  /** @type {import("../heat_map.js").HeatMapData} */
  const data = {
    rows: numberLabels(length, table.first), columns: numberLabels(width), values: table.values, isSigned: true, label: t(TEXTS.table),
  };
  const heatMap = new HeatMap({ onSelect: (row, column) => setState({ row, column: pairOf(table, column) }) });
  const element = panel(t(TEXTS.table), [heatMap.element], { svg: () => heatMapSvg(data), data: () => heatMapCsv(data) },
    t(TEXTS.tableNote, width));
  // the column that was clicked stays, where it is one of the pair
  const column = () => (pairOf(table, heatMap.selected[1]) === selectedPair(table) ? heatMap.selected[1] : table.pairs[selectedPair(table)][0]);
  return { element, show: () => heatMap.show(data, [stateIndex("row", 0, length), column()]) };
}

/** @param {PositionTable} table */
function productsPanel(table) {
  const names = numberLabels(table.length, table.first);
  /** @type {import("../heat_map.js").HeatMapData} */
  const data = { rows: names, columns: names, values: table.products, isSigned: true, label: t(TEXTS.products) };
  const heatMap = new HeatMap();
  heatMap.show(data);
  return panel(t(TEXTS.products), [heatMap.element], { svg: () => heatMapSvg(data), data: () => heatMapCsv(data) }, t(TEXTS.productsNote));
}

/** @param {PositionTable} table */
function distancePanel(table) {
  const rowsByDistance = productsByDistance(table.products, table.length);
  const spread = Math.max(...rowsByDistance.map(({ min, max }) => max - min));
  const isConstant = spread < 1e-5 * Math.max(...rowsByDistance.map(({ max }) => Math.abs(max)));
  const [min, mean, max] = [rowsByDistance.map((item) => item.min), rowsByDistance.map((item) => item.mean), rowsByDistance.map((item) => item.max)];
  const title = t(TEXTS.distance);
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => lineChart({
    xRange: [0, rowsByDistance.length - 1], yRange: [Math.min(0, ...min), Math.max(...max)], label: title, xLabel: t(TEXTS.apart), height: 360,
  }, width, colours, (x, y) => [
    s("path", { d: `${linePath(max, x, y)}${linePath([...min].reverse(), (distance) => x(rowsByDistance.length - 1 - distance), y).replace("M", "L")}Z`, fill: colours.accentSoft, class: "band" }),
    s("path", { d: linePath(mean, x, y), fill: "none", stroke: colours.accent, "stroke-width": 2, class: "mean" }),
  ]);
  const rows = [[t(TEXTS.apart), t(TEXTS.least), t(TEXTS.mean), t(TEXTS.most)], ...rowsByDistance.map((item, distance) => [distance, item.min, item.mean, item.max])];
  return panel(title, [new ResponsiveDiagram(draw).element], { svg: () => standaloneSvg(draw, title), data: () => toCsv(rows) },
    t(isConstant ? TEXTS.same : TEXTS.differs, formatNumber(spread)));
}

/** @param {PositionTable} table */
function curvesPanel(table) {
  const slider = h("input", { type: "range", id: "pair", min: 0, max: table.pairs.length - 1, value: selectedPair(table), "aria-label": t(TEXTS.pair) });
  slider.addEventListener("input", () => setState({ column: slider.value }));
  const description = h("output", { class: "note", for: "pair" });
  const title = t(TEXTS.curves);
  const column = (/** @type {number} */ dimension) => Array.from({ length: table.length }, (_, row) => table.values[row * table.width + dimension]);
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => {
    const pair = table.pairs[selectedPair(table)];
    const values = pair.map(column);
    const max = Math.max(1e-6, ...values.flat().map(Math.abs));
    const row = stateIndex("row", 0, table.length);
    return lineChart({ xRange: [0, table.length - 1], yRange: [-max, max], label: describe(), xLabel: t(TEXTS.position), height: 260 }, width, colours, (x, y) => [
      s("line", { x1: x(row), x2: x(row), y1: y(-max), y2: y(max), stroke: colours.selected, "stroke-width": 2 }),
      ...values.map((curve, side) => s("path", {
        d: curvePath(table, side, curve, x, y), fill: "none", stroke: side ? colours.mutedInk : colours.accent, "stroke-width": 2, "stroke-dasharray": side ? "5 4" : null,
      })),
      ...(table.length > 128 ? [] : values.flatMap((curve, side) => curve.map((value, position) =>
        s("circle", { cx: x(position), cy: y(value), r: position === row ? 4 : 2.5, fill: position === row ? colours.selected : side ? colours.mutedInk : colours.accent })))),
    ]);
  };
  const diagram = new ResponsiveDiagram(draw);
  const describe = () => {
    const pair = table.pairs[selectedPair(table)];
    const text = { sinusoidal: TEXTS.wave, rotary: TEXTS.turn, learned: TEXTS.free }[table.kind];
    return t(text, selectedPair(table), pair[0], pair[1], formatNumber(2 * Math.PI / (frequenciesOf(table)[selectedPair(table)] || 1)));
  };
  const rows = () => [[t(TEXTS.position), ...table.pairs[selectedPair(table)].map((dimension) => t(TEXTS.dimension, dimension))],
    ...numberLabels(table.length, table.first).map((name, row) => [name, ...table.pairs[selectedPair(table)].map((dimension) => table.values[row * table.width + dimension])])];
  const element = panel(title, [h("div", { class: "slide" }, slider, description), diagram.element],
    { svg: () => standaloneSvg(draw, title), data: () => toCsv(rows()) });
  return {
    element,
    show: () => {
      slider.value = String(selectedPair(table));
      replaceContent(description, describe());
      slider.setAttribute("aria-valuetext", describe());
      diagram.show();
    },
  };
}

/**
 * The wave itself where there is one, else a line from number to number.
 * @param {PositionTable} table
 * @param {number} side of the pair
 * @param {number[]} values
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 */
function curvePath(table, side, values, x, y) {
  if (table.kind === "learned") return linePath(values, x, y);
  const frequency = frequenciesOf(table)[selectedPair(table)];
  const wave = table.kind === "rotary" ? [Math.cos, Math.sin][side] : [Math.sin, Math.cos][side];
  const samples = Array.from({ length: 8 * (table.length - 1) + 1 }, (_, index) => wave((table.first + index / 8) * frequency));
  return linePath(samples, (index) => x(index / 8), y);
}

/** @param {PositionTable} table */
function selectedPair(table) {
  return stateIndex("column", 32, table.pairs.length);
}

/**
 * @param {PositionTable} table
 * @param {number} dimension
 */
function pairOf(table, dimension) {
  return table.pairs.findIndex((pair) => pair.includes(dimension));
}

/**
 * @param {number} count
 * @param {number} [first]
 */
function numberLabels(count, first = 0) {
  return Array.from({ length: count }, (_, index) => String(first + index));
}
