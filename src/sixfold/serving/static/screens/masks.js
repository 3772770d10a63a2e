/** Masks: the user's own batch, what is padding in it, what lies in the future, and what both leave to look at. */

import { arrays, asked, explore, look, place } from "../api.js";
import { h, refill, settled } from "../dom.js";
import { csv, matrixCsv, matrixSvg, tableSvg } from "../export.js";
import { Matrix, shade } from "../heat_map.js";
import { asking } from "../latest_request.js";
import { cut, number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { strip } from "../radio_group.js";
import { get, index, set, watch } from "../url_state.js";

export const TITLE = { en: "Masks", zh: "掩码" };

const WORDS = {
  lead: {
    en: "A mask says which places attention may look at. A batch needs one, because its sentences differ in length; a decoder needs another, because it must not see what it is to write.",
    zh: "掩码规定注意力可以看哪些位置。一个批次需要一种掩码，因为句子长短不一；解码器还需要另一种，因为它不能看到自己将要写出的内容。",
  },
  batch: { en: "A batch: one sentence a line", zh: "一个批次：每行一句" },
  example: {
    en: "I am tired.\nThe cat sleeps on the mat.\nThe animal didn't cross the street because it was too tired",
    zh: "我累了。\n猫睡在垫子上。\n那只动物没有过马路，因为它太累了。",
  },
  chosen: { en: "Sentence to look at", zh: "选择句子" },
  padding: { en: "Padding mask", zh: "填充掩码" },
  paddingNote: {
    en: "A row for each sentence, {0} places long as the longest. What was filled up with <pad> is closed: {1} of {2} places.",
    zh: "每个句子一行，长度都与最长的句子相同，即 {0} 个位置。用 <pad> 填充的位置被关闭：{2} 个位置中有 {1} 个。",
  },
  causal: { en: "Causal mask", zh: "因果掩码" },
  causalNote: {
    en: "Place i may look at places 0 to i. In training all places are predicted at once, each from what comes before it alone.",
    zh: "位置 i 只能看位置 0 到 i。训练时所有位置同时预测，每个位置只依据它之前的内容。",
  },
  both: { en: "Both together", zh: "两者合并" },
  bothNote: {
    en: "For the chosen sentence: a cell is open where both masks are. It is what a decoder applies to this row of the batch.",
    zh: "针对所选句子：只有两种掩码都打开的格子才打开。这就是解码器对批次中这一行所用的掩码。",
  },
  may: { en: "{0} may look at {1}", zh: "{0} 可以看 {1}" },
  mayNot: { en: "{0} may not look at {1}", zh: "{0} 不可以看 {1}" },
  real: { en: "{0}, place {1}: {2}, may be looked at", zh: "{0}，位置 {1}：{2}，可以看" },
  filled: { en: "{0}, place {1}: {2}, may not be looked at", zh: "{0}，位置 {1}：{2}，不可以看" },
  why: { en: "What a mask does to a row", zh: "掩码对一行的作用" },
  whyNote: {
    en: "Real numbers of the decoder's layer 0, head 0, while it writes the translation of the chosen sentence: the score of each place, the score after the mask, the weight after softmax.",
    zh: "解码器第 0 层第 0 头翻译所选句子时的真实数值：每个位置的得分、加掩码后的得分、softmax 之后的权重。",
  },
  asks: { en: "The place that asks", zh: "提问的位置" },
  piece: { en: "piece", zh: "子词" },
  score: { en: "score", zh: "得分" },
  masked: { en: "after the mask", zh: "加掩码后" },
  weight: { en: "weight", zh: "权重" },
  zero: {
    en: "A closed score becomes −∞, and e to the power of −∞ is exactly 0: not a small weight but none. The rest still sums to 1. That is why a sentence gets from a padded batch just what it gets alone, and why training on all places at once is no cheating.",
    zh: "被关闭的得分变成 −∞，而 e 的 −∞ 次方恰好是 0：不是很小的权重，而是没有权重。其余权重之和仍为 1。所以一个句子在填充过的批次中得到的结果与单独计算时相同，同时训练所有位置也不算作弊。",
  },
};

/** @typedef {{texts: string[][], padding: boolean[][], causal: boolean[][], both: boolean[][][]}} Masks */
/** @typedef {import("../heat_map.js").MatrixData} MatrixData */

const MOST = 32; // sentences

/** @returns {string[]} */
function sentences() {
  const lines = (get("batch") || t(WORDS.example)).split("\n").map((line) => line.trim());
  return lines.filter(Boolean).slice(0, MOST);
}

/**
 * True is dark; what may not be looked at is drawn as nothing.
 * @param {boolean[][]} mask
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {string} label
 * @returns {MatrixData}
 */
function drawn(mask, rows, columns, label) {
  const values = Float32Array.from(mask.flat(), Number);
  return { rows, columns, values, label, most: 1.5, isOpen: (row, column) => mask[row][column] };
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const field = h("textarea", { id: "batch", rows: 4, spellcheck: "false" }, get("batch") || t(WORDS.example));
  field.addEventListener("input", settled(350, () => set({ batch: field.value, row: "", column: "" })));
  const [choice, note] = [h("div", {}), h("p", { class: "note" })];
  const matrices = { padding: new Matrix({ size: 44, onSelect: (row) => set({ row }) }), causal: new Matrix(), both: new Matrix() };
  /** @type {Masks | null} */
  let found = null;
  const chosen = () => index("row", 1, found?.texts.length ?? 1);
  const row = oneRow(() => sentences()[chosen()]);
  const asks = asking(() => look("masks", { texts: sentences(), ...directed() }), (/** @type {Masks} */ masks) => {
    found = masks;
    refill(choice, strip(t(WORDS.chosen), sentences().map((text) => cut(text, 40)), chosen(), (place_) => set({ row: place_ })));
    show();
  });

  /** @param {"padding" | "causal" | "both"} name */
  function data(name) {
    const masks = /** @type {Masks} */ (found);
    const pieces = masks.texts[chosen()];
    if (name === "padding") return drawn(masks.padding, sentences().map((text) => cut(text, 24)), pieces, t(WORDS.padding));
    return drawn(name === "causal" ? masks.causal : masks.both[chosen()], pieces, pieces, t(WORDS[name]));
  }

  function show() {
    if (!found) return;
    const places = found.padding.flat();
    refill(note, t(WORDS.paddingNote, found.padding[0].length, places.filter((is) => !is).length, places.length));
    for (const name of /** @type {const} */ (["padding", "causal", "both"])) matrices[name].show(data(name), name === "padding" ? [chosen(), 0] : [0, 0]);
    row.ask();
  }
  describeWith(matrices, () => /** @type {Masks} */ (found));

  const exports = (/** @type {"padding" | "causal" | "both"} */ name) => ({ svg: () => matrixSvg(data(name)), data: () => matrixCsv(data(name)) });
  refill(root,
    h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))),
    h("section", { class: "batch" }, h("label", { for: "batch" }, t(WORDS.batch)), field, asks.said, choice),
    panel(t(WORDS.padding), [note, matrices.padding.element], exports("padding")),
    h("div", { class: "columns" },
      panel(t(WORDS.causal), [matrices.causal.element], exports("causal"), t(WORDS.causalNote)),
      panel(t(WORDS.both), [matrices.both.element], exports("both"), t(WORDS.bothNote))),
    row.element);
  const end = watch((changed) => {
    if (changed.has("batch") && document.activeElement !== field) field.value = get("batch") || t(WORDS.example);
    if (["batch", "from", "to", "model"].some((name) => changed.has(/** @type {any} */ (name)))) asks.ask();
    else if (changed.has("row")) show();
    else if (changed.has("column")) row.ask();
  });
  asks.ask();
  return () => {
    end();
    asks.end();
    row.end();
  };
}

/** Languages and a model only where the address names them. */
function directed() {
  return { ...(get("from") && { source: get("from"), target: get("to") }), ...(get("model") && { model: get("model") }) };
}

/**
 * Cells told in words.
 * @param {{padding: Matrix, causal: Matrix, both: Matrix}} matrices
 * @param {() => Masks} masks
 */
function describeWith(matrices, masks) {
  matrices.padding.describe = (row, column) =>
    t(masks().padding[row][column] ? WORDS.real : WORDS.filled, sentences()[row], column, masks().texts[row][column]);
  for (const name of /** @type {const} */ (["causal", "both"]))
    matrices[name].describe = (row, column) => {
      const its = /** @type {MatrixData} */ (matrices[name].data);
      return t(its.isOpen?.(row, column) ? WORDS.may : WORDS.mayNot, its.rows[row], its.columns[column]);
    };
}

/**
 * The panel with one row of a real pass: scores, masked scores, weights.
 * @param {() => string} sentence
 */
function oneRow(sentence) {
  const body = h("div", {});
  /** @type {(string | number)[][]} */
  let table = [[]];
  const { ask, said, end } = asking(async () => {
    const what = asked({ text: sentence(), translation: null, off: [] });
    const trace = await explore(what);
    const at = index("column", Math.floor(trace.target.texts.length / 2), trace.target.texts.length);
    const names = ["scores", "masked_scores", "weights"].map((name) => `${place("decoder", 0)}.${name}`);
    const numbers = await arrays(what, names, { row: at });
    return { trace, at, columns: names.map((name) => /** @type {import("../safetensors.js").Tensor} */ (numbers.get(name)).data) };
  }, ({ trace, at, columns }) => {
    const pieces = trace.target.texts;
    table = [["piece", "score", "masked", "weight"].map((name) => t(WORDS[/** @type {"piece"} */ (name)]))];
    pieces.forEach((piece, key) => table.push([piece, ...columns.map((values) => values[key])])); // head 0 stands first
    const isHere = body.contains(document.activeElement);
    refill(body, strip(t(WORDS.asks), pieces, at, (column) => set({ column })), rowTable(table));
    if (isHere) /** @type {HTMLElement} */ (body.querySelector("[aria-checked=true]")).focus();
  });
  const told = () => table.map((line) => line.map((cell) => (typeof cell === "number" ? number(cell) : cell)));
  const element = panel(t(WORDS.why), [said, body, h("p", { class: "after" }, t(WORDS.zero))],
    { svg: () => tableSvg(t(WORDS.why), told()), data: () => csv(table) }, t(WORDS.whyNote));
  return { element, ask, end };
}

/** @param {(string | number)[][]} table the first row is the head */
function rowTable([head, ...rows]) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t(WORDS.why) }, h("table", { class: "row-table" },
    h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([piece, ...cells]) => {
      const weight = Number(cells[2]);
      const dot = h("span", { class: "amount", style: { width: `${Math.round(120 * weight)}px`, background: shade(0.3 + 0.5 * weight) } });
      return h("tr", { class: cells[1] === -Infinity ? "closed" : null },
        h("th", { scope: "row" }, piece), cells.map((cell, at) => h("td", {}, number(Number(cell)), at === 2 && dot)));
    }))));
}
