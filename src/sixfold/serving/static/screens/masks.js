/** Masks: the user's own batch, what is padding in it, what lies in the future, and what both leave to look at. */

import { attentionPath, exploreRequest, fetchArrays, fetchExplorer, fetchTrace } from "../api.js";
import { debounce, h, replaceContent } from "../dom.js";
import { heatMapCsv, heatMapSvg, tableSvg, toCsv } from "../export.js";
import { HeatMap, sequentialColour } from "../heat_map.js";
import { latestRequest } from "../latest_request.js";
import { formatNumber, t, truncate } from "../page_text.js";
import { panel } from "../panel.js";
import { tokenRadioGroup } from "../radio_group.js";
import { getState, onStateChange, setState, stateIndex } from "../url_state.js";

export const TITLE = { en: "Masks", zh: "掩码" };

const TEXTS = {
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
/** @typedef {import("../heat_map.js").HeatMapData} MatrixData */

const MAX_SENTENCES = 32; // sentences

/** @returns {string[]} */
function sentences() {
  const lines = (getState("batch") || t(TEXTS.example)).split("\n").map((line) => line.trim());
  return lines.filter(Boolean).slice(0, MAX_SENTENCES);
}

/**
 * True is dark; what may not be looked at is drawn as nothing.
 * @param {boolean[][]} mask
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {string} label
 * @returns {MatrixData}
 */
function maskHeatMap(mask, rows, columns, label) {
  const values = Float32Array.from(mask.flat(), Number);
  return { rows, columns, values, label, max: 1.5, isUnmasked: (row, column) => mask[row][column] };
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const field = h("textarea", { id: "batch", rows: 4, spellcheck: "false" }, getState("batch") || t(TEXTS.example));
  field.addEventListener("input", debounce(350, () => setState({ batch: field.value, row: "", column: "" })));
  const [choice, note] = [h("div", {}), h("p", { class: "note" })];
  const heatMaps = { padding: new HeatMap({ size: 44, onSelect: (row) => setState({ row }) }), causal: new HeatMap(), both: new HeatMap() };
  /** @type {Masks | null} */
  let masks = null;
  const selectedSentence = () => stateIndex("row", 1, masks?.texts.length ?? 1);
  const weightsPanel = weightsRowPanel(() => sentences()[selectedSentence()]);
  const masksRequest = latestRequest(() => fetchExplorer("masks", { texts: sentences(), ...requestOptions() }), (/** @type {Masks} */ newMasks) => {
    masks = newMasks;
    replaceContent(choice, tokenRadioGroup(t(TEXTS.chosen), sentences().map((text) => truncate(text, 40)), selectedSentence(), (row) => setState({ row })));
    showMasks();
  });

  /** @param {"padding" | "causal" | "both"} name */
  function heatMapData(name) {
    const { texts, padding, causal, both } = /** @type {Masks} */ (masks);
    const tokens = texts[selectedSentence()];
    if (name === "padding") return maskHeatMap(padding, sentences().map((text) => truncate(text, 24)), tokens, t(TEXTS.padding));
    return maskHeatMap(name === "causal" ? causal : both[selectedSentence()], tokens, tokens, t(TEXTS[name]));
  }

  function showMasks() {
    if (!masks) return;
    const cells = masks.padding.flat();
    replaceContent(note, t(TEXTS.paddingNote, masks.padding[0].length, cells.filter((isOpen) => !isOpen).length, cells.length));
    for (const name of /** @type {const} */ (["padding", "causal", "both"])) heatMaps[name].show(heatMapData(name), name === "padding" ? [selectedSentence(), 0] : [0, 0]);
    weightsPanel.request();
  }
  describeCells(heatMaps, () => /** @type {Masks} */ (masks));

  const exports = (/** @type {"padding" | "causal" | "both"} */ name) => ({ svg: () => heatMapSvg(heatMapData(name)), data: () => heatMapCsv(heatMapData(name)) });
  replaceContent(root,
    h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))),
    h("section", { class: "batch" }, h("label", { for: "batch" }, t(TEXTS.batch)), field, masksRequest.status, choice),
    panel(t(TEXTS.padding), [note, heatMaps.padding.element], exports("padding")),
    h("div", { class: "columns" },
      panel(t(TEXTS.causal), [heatMaps.causal.element], exports("causal"), t(TEXTS.causalNote)),
      panel(t(TEXTS.both), [heatMaps.both.element], exports("both"), t(TEXTS.bothNote))),
    weightsPanel.element);
  const stopListening = onStateChange((changed) => {
    if (changed.has("batch") && document.activeElement !== field) field.value = getState("batch") || t(TEXTS.example);
    if (["batch", "from", "to", "model"].some((name) => changed.has(/** @type {any} */ (name)))) masksRequest.request();
    else if (changed.has("row")) showMasks();
    else if (changed.has("column")) weightsPanel.request();
  });
  masksRequest.request();
  return () => {
    stopListening();
    masksRequest.dispose();
    weightsPanel.dispose();
  };
}

/** Languages and a model only where the address names them. */
function requestOptions() {
  return { ...(getState("from") && { source: getState("from"), target: getState("to") }), ...(getState("model") && { model: getState("model") }) };
}

/**
 * Cells told in words.
 * @param {{padding: HeatMap, causal: HeatMap, both: HeatMap}} heatMaps
 * @param {() => Masks} masks
 */
function describeCells(heatMaps, masks) {
  heatMaps.padding.describe = (row, column) =>
    t(masks().padding[row][column] ? TEXTS.real : TEXTS.filled, sentences()[row], column, masks().texts[row][column]);
  for (const name of /** @type {const} */ (["causal", "both"]))
    heatMaps[name].describe = (row, column) => {
      const data = /** @type {MatrixData} */ (heatMaps[name].data);
      return t(data.isUnmasked?.(row, column) ? TEXTS.may : TEXTS.mayNot, data.rows[row], data.columns[column]);
    };
}

/**
 * The panel with one row of a real pass: scores, masked scores, weights.
 * @param {() => string} sentence
 */
function weightsRowPanel(sentence) {
  const body = h("div", {});
  /** @type {(string | number)[][]} */
  let rows = [[]];
  const { request, status, dispose } = latestRequest(async () => {
    const traceRequest = exploreRequest({ text: sentence(), translation: null, off: [] });
    const trace = await fetchTrace(traceRequest);
    const position = stateIndex("column", Math.floor(trace.target.texts.length / 2), trace.target.texts.length);
    const names = ["scores", "masked_scores", "weights"].map((name) => `${attentionPath("decoder", 0)}.${name}`);
    const numbers = await fetchArrays(traceRequest, names, { row: position });
    return { trace, position, columns: names.map((name) => /** @type {import("../safetensors.js").Tensor} */ (numbers.get(name)).data) };
  }, ({ trace, position, columns }) => {
    const tokens = trace.target.texts;
    rows = [["piece", "score", "masked", "weight"].map((name) => t(TEXTS[/** @type {"piece"} */ (name)]))];
    tokens.forEach((token, key) => rows.push([token, ...columns.map((values) => values[key])])); // head 0 stands first
    const hadFocus = body.contains(document.activeElement);
    replaceContent(body, tokenRadioGroup(t(TEXTS.asks), tokens, position, (column) => setState({ column })), weightsTable(rows));
    if (hadFocus) /** @type {HTMLElement} */ (body.querySelector("[aria-checked=true]")).focus();
  });
  const textRows = () => rows.map((row) => row.map((cell) => (typeof cell === "number" ? formatNumber(cell) : cell)));
  const element = panel(t(TEXTS.why), [status, body, h("p", { class: "after" }, t(TEXTS.zero))],
    { svg: () => tableSvg(t(TEXTS.why), textRows()), data: () => toCsv(rows) }, t(TEXTS.whyNote));
  return { element, request, dispose };
}

/** @param {(string | number)[][]} table the first row is the head */
function weightsTable([header, ...rows]) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t(TEXTS.why) }, h("table", { class: "row-table" },
    h("thead", {}, h("tr", {}, header.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([token, ...cells]) => {
      const weight = Number(cells[2]);
      const bar = h("span", { class: "amount", style: { width: `${Math.round(120 * weight)}px`, background: sequentialColour(0.3 + 0.5 * weight) } });
      return h("tr", { class: cells[1] === -Infinity ? "closed" : null },
        h("th", { scope: "row" }, token), cells.map((cell, column) => h("td", {}, formatNumber(Number(cell)), column === 2 && bar)));
    }))));
}
