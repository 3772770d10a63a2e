/** Positions: the table that tells a model the order of its pieces, and what the products of its rows depend on. */

import { binary, look } from "../api.js";
import { h, refill, s } from "../dom.js";
import { csv, matrixCsv, matrixSvg } from "../export.js";
import { Matrix } from "../heat_map.js";
import { asking } from "../latest_request.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { switcher } from "../radio_group.js";
import { alone, chart, path, Picture } from "../svg_diagram.js";
import { get, index, set, watch } from "../url_state.js";
import { byDistance, rotations, table, waves } from "./position_encodings.js";

export const TITLE = { en: "Positions", zh: "位置" };

const WORDS = {
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

/** @typedef {import("./position_encodings.js").Positions} Positions */

const LENGTHS = ["32", "64", "128", "256"];

/** @returns {Promise<Positions | null>} */
async function ask() {
  const model = get("model") ? { model: get("model") } : {};
  const { config } = await look("shapes", model);
  const wanted = Number(LENGTHS.includes(get("view")) ? get("view") : "128");
  const length = config.positions === "learned" ? Math.min(wanted, config.max_length) : wanted;
  if (config.positions === "none") return null;
  if (config.positions === "rotary") return rotations(config, length);
  return table(config, await binary("positions", { length, ...model }));
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const [lead, body] = [h("div", {}), h("div", { class: "parts" })];
  /** @type {() => void} */
  let redraw = () => {};
  const asks = asking(ask, (found) => (redraw = show(lead, body, found)));
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), lead, asks.said), body);
  const end = watch((changed) => {
    if (changed.has("view") || changed.has("model")) asks.ask();
    else if (changed.has("row") || changed.has("column")) redraw();
  });
  asks.ask();
  return () => {
    end();
    asks.end();
  };
}

/**
 * @param {HTMLElement} lead
 * @param {HTMLElement} body
 * @param {Positions | null} found
 * @returns {() => void} draws anew what depends on the choice
 */
function show(lead, body, found) {
  refill(lead, h("p", { class: "lead" }, t(WORDS[found?.kind ?? "none"])), found && equation(found.kind));
  if (!found) {
    refill(body);
    return () => {};
  }
  const lengths = LENGTHS.map((each) => /** @type {[string, string]} */ ([each, each]));
  const isHere = document.activeElement?.closest(".switcher");
  const [heat, alike, pair] = [heatMap(found), products(found), curves(found)];
  refill(body,
    h("div", { class: "controls" }, h("label", {}, t(WORDS.length)),
      switcher(t(WORDS.length), lengths, LENGTHS.includes(get("view")) ? get("view") : "128", (view) => set({ view }))),
    heat.element, h("div", { class: "columns" }, alike, distances(found)), pair.element);
  if (isHere) /** @type {HTMLElement} */ (body.querySelector(".switcher [aria-checked=true]")).focus();
  const redraw = () => [heat, pair].forEach((each) => each.show());
  redraw();
  return redraw;
}

/** @param {Positions["kind"]} kind */
function equation(kind) {
  const power = () => h("sup", {}, "2", h("i", {}, "i"), "/", h("i", {}, "d"));
  const line = (/** @type {string} */ left, /** @type {string} */ name) =>
    h("p", { class: "equation" }, "PE(", h("i", {}, "pos"), ", ", h("i", {}, left), ") = ", name, "(", h("i", {}, "pos"), " / 10000", power(), ")");
  if (kind === "sinusoidal") return h("div", {}, line("2i", "sin"), line("2i + 1", "cos"));
  return kind === "rotary" ? h("p", { class: "equation" }, h("i", {}, "angle"), " = ", h("i", {}, "pos"), " / base", power()) : null;
}

/** @param {Positions} found */
function heatMap(found) {
  const { length, width } = found;
  /** @type {import("../heat_map.js").MatrixData} */
  const data = {
    rows: numbers(length, found.first), columns: numbers(width), values: found.values, isSigned: true, label: t(WORDS.table),
  };
  const matrix = new Matrix({ onSelect: (row, column) => set({ row, column: pairOf(found, column) }) });
  const element = panel(t(WORDS.table), [matrix.element], { svg: () => matrixSvg(data), data: () => matrixCsv(data) },
    t(WORDS.tableNote, width));
  // the column that was clicked stays, where it is one of the pair
  const column = () => (pairOf(found, matrix.selected[1]) === chosen(found) ? matrix.selected[1] : found.pairs[chosen(found)][0]);
  return { element, show: () => matrix.show(data, [index("row", 0, length), column()]) };
}

/** @param {Positions} found */
function products(found) {
  const names = numbers(found.length, found.first);
  /** @type {import("../heat_map.js").MatrixData} */
  const data = { rows: names, columns: names, values: found.products, isSigned: true, label: t(WORDS.products) };
  const matrix = new Matrix();
  matrix.show(data);
  return panel(t(WORDS.products), [matrix.element], { svg: () => matrixSvg(data), data: () => matrixCsv(data) }, t(WORDS.productsNote));
}

/** @param {Positions} found */
function distances(found) {
  const each = byDistance(found.products, found.length);
  const spread = Math.max(...each.map(({ least, most }) => most - least));
  const isSame = spread < 1e-5 * Math.max(...each.map(({ most }) => Math.abs(most)));
  const [least, mean, most] = [each.map((its) => its.least), each.map((its) => its.mean), each.map((its) => its.most)];
  const title = t(WORDS.distance);
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => chart({
    across: [0, each.length - 1], up: [Math.min(0, ...least), Math.max(...most)], label: title, below: t(WORDS.apart), height: 360,
  }, width, paints, (x, y) => [
    s("path", { d: `${path(most, x, y)}${path([...least].reverse(), (at) => x(each.length - 1 - at), y).replace("M", "L")}Z`, fill: paints.accentSoft, class: "band" }),
    s("path", { d: path(mean, x, y), fill: "none", stroke: paints.accent, "stroke-width": 2, class: "mean" }),
  ]);
  const rows = [[t(WORDS.apart), t(WORDS.least), t(WORDS.mean), t(WORDS.most)], ...each.map((its, at) => [at, its.least, its.mean, its.most])];
  return panel(title, [new Picture(draw).element], { svg: () => alone(draw, title), data: () => csv(rows) },
    t(isSame ? WORDS.same : WORDS.differs, number(spread)));
}

/** @param {Positions} found */
function curves(found) {
  const slider = h("input", { type: "range", id: "pair", min: 0, max: found.pairs.length - 1, value: chosen(found), "aria-label": t(WORDS.pair) });
  slider.addEventListener("input", () => set({ column: slider.value }));
  const told = h("output", { class: "note", for: "pair" });
  const title = t(WORDS.curves);
  const column = (/** @type {number} */ dimension) => Array.from({ length: found.length }, (_, row) => found.values[row * found.width + dimension]);
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => {
    const two = found.pairs[chosen(found)];
    const values = two.map(column);
    const most = Math.max(1e-6, ...values.flat().map(Math.abs));
    const row = index("row", 0, found.length);
    return chart({ across: [0, found.length - 1], up: [-most, most], label: describe(), below: t(WORDS.position), height: 260 }, width, paints, (x, y) => [
      s("line", { x1: x(row), x2: x(row), y1: y(-most), y2: y(most), stroke: paints.chosen, "stroke-width": 2 }),
      ...values.map((its, which) => s("path", {
        d: smooth(found, which, its, x, y), fill: "none", stroke: which ? paints.soft : paints.accent, "stroke-width": 2, "stroke-dasharray": which ? "5 4" : null,
      })),
      ...(found.length > 128 ? [] : values.flatMap((its, which) => its.map((value, at) =>
        s("circle", { cx: x(at), cy: y(value), r: at === row ? 4 : 2.5, fill: at === row ? paints.chosen : which ? paints.soft : paints.accent })))),
    ]);
  };
  const picture = new Picture(draw);
  const describe = () => {
    const two = found.pairs[chosen(found)];
    const words = { sinusoidal: WORDS.wave, rotary: WORDS.turn, learned: WORDS.free }[found.kind];
    return t(words, chosen(found), two[0], two[1], number(2 * Math.PI / (waves(found)[chosen(found)] || 1)));
  };
  const rows = () => [[t(WORDS.position), ...found.pairs[chosen(found)].map((each) => t(WORDS.dimension, each))],
    ...numbers(found.length, found.first).map((name, row) => [name, ...found.pairs[chosen(found)].map((each) => found.values[row * found.width + each])])];
  const element = panel(title, [h("div", { class: "slide" }, slider, told), picture.element],
    { svg: () => alone(draw, title), data: () => csv(rows()) });
  return {
    element,
    show: () => {
      slider.value = String(chosen(found));
      refill(told, describe());
      slider.setAttribute("aria-valuetext", describe());
      picture.show();
    },
  };
}

/**
 * The wave itself where there is one, else a line from number to number.
 * @param {Positions} found
 * @param {number} which of the pair
 * @param {number[]} values
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 */
function smooth(found, which, values, x, y) {
  if (found.kind === "learned") return path(values, x, y);
  const speed = waves(found)[chosen(found)];
  const wave = found.kind === "rotary" ? [Math.cos, Math.sin][which] : [Math.sin, Math.cos][which];
  const fine = Array.from({ length: 8 * (found.length - 1) + 1 }, (_, at) => wave((found.first + at / 8) * speed));
  return path(fine, (at) => x(at / 8), y);
}

/** @param {Positions} found */
function chosen(found) {
  return index("column", 32, found.pairs.length);
}

/**
 * @param {Positions} found
 * @param {number} dimension
 */
function pairOf(found, dimension) {
  return found.pairs.findIndex((two) => two.includes(dimension));
}

/**
 * @param {number} count
 * @param {number} [first]
 */
function numbers(count, first = 0) {
  return Array.from({ length: count }, (_, at) => String(first + at));
}
