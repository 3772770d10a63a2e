/** What one token looks at, as arcs between two lines of tokens: who asks on the left, what is looked at on the right. */

import { h, refill, s } from "../dom.js";
import { matrixCsv } from "../export.js";
import { breadth, cut, number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { set } from "../url_state.js";

/** @typedef {import("./attention_weights.js").Shown} Shown */

const WORDS = {
  title: { en: "What it looks at", zh: "它看向哪里" },
  note: { en: "Head {0}, asked by “{1}”. Thicker and darker is more.", zh: "头 {0}，由“{1}”发问。线越粗越深，权重越大。" },
  rest: { en: "The {0} columns with the most weight, of {1}; the others have {2} together.", zh: "显示 {1} 列中权重最大的 {0} 列；其余合计 {2}。" },
  spoken: { en: "{0} looks at {1}", zh: "{0} 看向 {1}" },
  asks: { en: "asks", zh: "发问" },
  looked: { en: "is looked at", zh: "被看" },
};

const MOST = 40; // tokens in a line
const STEP = 24;
const TOP = 34;
const LONGEST = 22; // letters of a token
const NAMED = 6; // arcs that have a number
const ON_PAGE = { ink: "var(--ink-2)", strong: "var(--ink)", arc: "var(--accent)", chosen: "var(--accent-2)" };
const ON_PAPER = { ink: "#555b6e", strong: "#191c26", arc: "#4455c7", chosen: "#c2570c" };

/** @returns {import("./attention_weights.js").Part} */
export function arcsPart() {
  /** @type {Shown | null} */
  let now = null;
  const note = h("p", { class: "note", "aria-live": "off" });
  const rest = h("p", { class: "note" });
  const frame = h("div", { class: "arcs" });
  const element = panel(t(WORDS.title), [note, frame, rest], {
    svg: () => (now ? new XMLSerializer().serializeToString(drawn(now, ON_PAPER)) : ""),
    data: () => (now ? matrixCsv(rowOf(now)) : ""),
  });
  return {
    element,
    show(shown) {
      now = shown;
      const { weights, layer, head, row } = shown;
      note.textContent = t(WORDS.note, `${weights.kind}.${layer}.${head}`, weights.rows.texts[row]);
      refill(frame, drawn(shown, ON_PAGE));
      const [kept, numbers] = [looked(shown), weights.row(layer, head, row)];
      rest.hidden = kept.length === numbers.length;
      const left = 1 - kept.reduce((sum, place) => sum + numbers[place], 0);
      rest.textContent = t(WORDS.rest, kept.length, numbers.length, number(Math.max(0, left)));
    },
  };
}

/**
 * The selected row by itself.
 * @param {Shown} shown
 * @returns {import("../heat_map.js").MatrixData}
 */
function rowOf({ weights, layer, head, row }) {
  const data = weights.get(layer, head);
  return { ...data, rows: [data.rows[row]], values: weights.row(layer, head, row) };
}

/**
 * Columns that are drawn, in their order: all, or those with the most weight.
 * @param {Shown} shown
 */
function looked({ weights, layer, head, row, column }) {
  const numbers = weights.row(layer, head, row);
  const places = [...numbers.keys()];
  if (places.length <= MOST) return places;
  const best = places.sort((one, other) => numbers[other] - numbers[one]).slice(0, MOST);
  if (!best.includes(column)) best[MOST - 1] = column;
  return best.sort((one, other) => one - other);
}

/**
 * Rows that are drawn: all, or those around the one that asks.
 * @param {Shown} shown
 */
function asking({ weights, row }) {
  const count = weights.rows.texts.length;
  const first = Math.max(0, Math.min(count - MOST, row - MOST / 2));
  return Array.from({ length: Math.min(MOST, count) }, (_, place) => first + place);
}

/**
 * Where everything stands.
 * @param {Shown} shown
 */
function layout(shown) {
  const { weights, layer, head, row, column } = shown;
  const numbers = weights.row(layer, head, row);
  const [left, right] = [asking(shown), looked(shown)];
  const room = (/** @type {string[]} */ texts) => 8 * Math.min(LONGEST, Math.max(6, ...texts.map(breadth)));
  const from = 24 + room(left.map((place) => weights.rows.texts[place]));
  const to = from + 150;
  const best = [...right].sort((one, other) => numbers[other] - numbers[one]).slice(0, NAMED).filter((place) => numbers[place] >= 0.01);
  return {
    numbers, left, right, from, to, best, named: new Set([...best, column]),
    width: to + 104 + room(right.map((place) => weights.columns.texts[place])),
    height: TOP + STEP * Math.max(left.length, right.length) + 8,
    y: (/** @type {number} */ place) => TOP + STEP * (place + 0.5),
  };
}

/**
 * @param {Shown} shown
 * @param {typeof ON_PAGE} colours
 * @returns {SVGSVGElement}
 */
function drawn(shown, colours) {
  const { weights, row } = shown;
  const at = layout(shown);
  const heading = (/** @type {Record<string, any>} */ about, /** @type {string} */ text) =>
    s("text", { y: 14, "font-size": 13, "dominant-baseline": "central", fill: colours.ink, ...about }, text);
  const spoken = at.best.slice(0, 3).map((place) => `${weights.columns.texts[place]} ${number(at.numbers[place])}`).join(", ");
  return s("svg", {
    viewBox: `0 0 ${at.width} ${at.height}`, width: at.width, height: at.height, "font-size": 15, role: "img",
    "font-family": "ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif",
    "aria-label": t(WORDS.spoken, weights.rows.texts[row], spoken),
  },
  heading({ x: at.from - 8, "text-anchor": "end" }, t(WORDS.asks)), heading({ x: at.to + 8 }, t(WORDS.looked)),
  ...curves(shown, at, colours), ...tokens(shown, at, colours));
}

/**
 * @param {Shown} shown
 * @param {ReturnType<typeof layout>} at
 * @param {typeof ON_PAGE} colours
 */
function curves({ row, column }, { numbers, left, right, from, to, y }, colours) {
  const begin = y(left.indexOf(row));
  return right.flatMap((place, each) => numbers[place] <= 0.001 ? [] : [s("path", {
    d: `M${from} ${begin}C${from + 75} ${begin} ${to - 75} ${y(each)} ${to} ${y(each)}`, fill: "none",
    stroke: place === column ? colours.chosen : colours.arc, "stroke-width": (0.75 + 9 * numbers[place]).toFixed(2),
    "stroke-opacity": (0.2 + 0.75 * numbers[place]).toFixed(3), "data-column": place,
  })]);
}

/**
 * Both lines of tokens; the largest weights are written beside theirs.
 * @param {Shown} shown
 * @param {ReturnType<typeof layout>} at
 * @param {typeof ON_PAGE} colours
 */
function tokens({ weights, row, column }, { numbers, left, right, from, to, y, named }, colours) {
  const text = (/** @type {Record<string, any>} */ about, /** @type {(string | SVGElement)[]} */ ...inside) =>
    s("text", { "dominant-baseline": "central", fill: colours.ink, class: "token", ...about }, ...inside);
  const weight = (/** @type {number} */ place) => s("tspan", {
    dx: 8, "font-size": 13, fill: colours.ink, "font-weight": 400, class: "weight", "data-column": place }, number(numbers[place]));
  const asks = left.map((place, each) => text({
    x: from - 8, y: y(each), "text-anchor": "end", onclick: () => set({ row: place, column: "" }),
    ...(place === row && { fill: colours.strong, "font-weight": 650 }),
  }, cut(weights.rows.texts[place], LONGEST)));
  const answers = right.map((place, each) => text({
    x: to + 8, y: y(each), onclick: () => set({ row, column: place }),
    ...(named.has(place) && { fill: colours.strong, "font-weight": place === column ? 650 : 400 }),
  }, cut(weights.columns.texts[place], LONGEST), ...(named.has(place) ? [weight(place)] : [])));
  return [...asks, ...answers];
}
