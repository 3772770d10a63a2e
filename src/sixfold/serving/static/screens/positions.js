/** The positions screen: the table of position encodings and the inner products of its rows. */

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
    en: "Attention alone knows nothing about order. So a row of sines and cosines is added to each token. Every position has its own pattern, and the similarity of two patterns tells how far apart they are.",
    zh: "注意力本身不知道顺序。因此给每个词元加上一行正弦和余弦值：每个位置有自己的图案，两个图案的相似程度反映它们相距多远。",
  },
  learned: {
    en: "Attention alone knows nothing about order. This model adds a row of numbers to each token, one row per position. The rows are learned in training, like word embeddings.",
    zh: "注意力本身不知道顺序。这个模型给每个词元加上一行数，每个位置一行，和词向量一样由训练得到。",
  },
  rotary: {
    en: "Attention alone knows nothing about order. This model adds nothing to its tokens. Instead, each head rotates every pair of numbers in queries and keys by an angle that grows with the position. The table shows the cosine and sine of these angles.",
    zh: "注意力本身不知道顺序。这个模型不给词元加任何东西，而是在每个头里把查询和键的每一对数旋转一个角度，角度随位置增大。下表是这些角度的余弦和正弦。",
  },
  none: {
    en: "This model has no positions: its encoder sees a set of tokens without order. Only the causal mask of the decoder, which hides later tokens, tells early from late.",
    zh: "这个模型没有位置编码：编码器看到的是一组没有顺序的词元。只有解码器的因果掩码遮住后面的词元，由此区分先后。",
  },
  length: { en: "Positions shown", zh: "显示的位置数" },
  table: { en: "Table of positions", zh: "位置表" },
  tableNote: {
    en: "One row per position, one column for each of {0} dimensions. Blue is positive, orange is negative.",
    zh: "每个位置一行，{0} 个维度各一列。蓝色为正，橙色为负。",
  },
  products: { en: "Inner products of all pairs", zh: "两两内积" },
  productsNote: { en: "How similar any two positions are.", zh: "任意两个位置有多相似。" },
  distance: { en: "Inner product by distance", zh: "内积与距离" },
  constant: {
    en: "The inner product depends on the distance alone: pairs at the same distance differ by at most {0}, which is rounding.",
    zh: "内积只取决于距离：距离相同的各对最多相差 {0}，这只是舍入误差。",
  },
  varying: {
    en: "The line is the mean; the band goes from the minimum to the maximum of pairs at the same distance. They differ by up to {0}.",
    zh: "线是平均值，色带是距离相同的各对的最小值到最大值。它们最多相差 {0}。",
  },
  distanceAxis: { en: "distance", zh: "距离" },
  min: { en: "minimum", zh: "最小值" },
  mean: { en: "mean", zh: "平均值" },
  max: { en: "maximum", zh: "最大值" },
  curves: { en: "A pair of dimensions", zh: "一对维度" },
  pair: { en: "Pair", zh: "维度对" },
  wave: {
    en: "Pair {0}: dimension {1} is the sine (solid), dimension {2} the cosine (dashed). One wave takes {3} positions.",
    zh: "第 {0} 对：维度 {1} 是正弦（实线），维度 {2} 是余弦（虚线）。一个周期是 {3} 个位置。",
  },
  rotation: {
    en: "Pair {0}: dimensions {1} (solid) and {2} (dashed) of a head. One full rotation takes {3} positions.",
    zh: "第 {0} 对：一个头的维度 {1}（实线）和 {2}（虚线）。转一整圈需要 {3} 个位置。",
  },
  learnedPair: { en: "Pair {0}: dimensions {1} (solid) and {2} (dashed), as they were learned.", zh: "第 {0} 对：维度 {1}（实线）和 {2}（虚线），由训练得到。" },
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
  const [lead, body] = [h("div", {}), h("div", { class: "panels" })];
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
 * @returns {() => void} redraws what depends on the selection
 */
function showTable(lead, body, table) {
  replaceContent(lead, h("p", { class: "lead" }, t(TEXTS[table?.kind ?? "none"])), table && equation(table.kind));
  if (!table) {
    replaceContent(body);
    return () => {};
  }
  const lengths = LENGTHS.map((length) => /** @type {[string, string]} */ ([length, length]));
  const hadFocus = document.activeElement?.closest(".option-row");
  const [tableView, productsView, curvesView] = [tablePanel(table), productsPanel(table), curvesPanel(table)];
  replaceContent(body,
    h("div", { class: "controls" }, h("label", {}, t(TEXTS.length)),
      optionRadioGroup(t(TEXTS.length), lengths, LENGTHS.includes(getState("view")) ? getState("view") : "128", (view) => setState({ view }))),
    tableView.element, h("div", { class: "columns" }, productsView, distancePanel(table)), curvesView.element);
  if (hadFocus) /** @type {HTMLElement} */ (body.querySelector(".option-row [aria-checked=true]")).focus();
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
  // keep the clicked column if it belongs to the selected pair
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
    xRange: [0, rowsByDistance.length - 1], yRange: [Math.min(0, ...min), Math.max(...max)], label: title, xLabel: t(TEXTS.distanceAxis), height: 360,
  }, width, colours, (x, y) => [
    s("path", { d: `${linePath(max, x, y)}${linePath([...min].reverse(), (distance) => x(rowsByDistance.length - 1 - distance), y).replace("M", "L")}Z`, fill: colours.accentSoft, class: "band" }),
    s("path", { d: linePath(mean, x, y), fill: "none", stroke: colours.accent, "stroke-width": 2, class: "mean" }),
  ]);
  const rows = [[t(TEXTS.distanceAxis), t(TEXTS.min), t(TEXTS.mean), t(TEXTS.max)], ...rowsByDistance.map((item, distance) => [distance, item.min, item.mean, item.max])];
  return panel(title, [new ResponsiveDiagram(draw).element], { svg: () => standaloneSvg(draw, title), data: () => toCsv(rows) },
    t(isConstant ? TEXTS.constant : TEXTS.varying, formatNumber(spread)));
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
    const text = { sinusoidal: TEXTS.wave, rotary: TEXTS.rotation, learned: TEXTS.learnedPair }[table.kind];
    return t(text, selectedPair(table), pair[0], pair[1], formatNumber(2 * Math.PI / (frequenciesOf(table)[selectedPair(table)] || 1)));
  };
  const rows = () => [[t(TEXTS.position), ...table.pairs[selectedPair(table)].map((dimension) => t(TEXTS.dimension, dimension))],
    ...numberLabels(table.length, table.first).map((name, row) => [name, ...table.pairs[selectedPair(table)].map((dimension) => table.values[row * table.width + dimension])])];
  const element = panel(title, [h("div", { class: "slider-row" }, slider, description), diagram.element],
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
 * Return a smooth curve for sines and cosines, or straight lines between learned values.
 * @param {PositionTable} table
 * @param {number} side 0 or 1: which dimension of the pair
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
