/** The masks screen: padding mask, causal mask and both combined, for a batch that the user types. */

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
    en: "A mask tells attention which positions it may use. A batch needs a padding mask, because its sentences differ in length. A decoder also needs a causal mask, because it must not see the tokens that it has yet to write.",
    zh: "掩码规定注意力可以使用哪些位置。一个批次里的句子长短不一，所以需要填充掩码；解码器不能看到还没写出的词元，所以还需要因果掩码。",
  },
  batch: { en: "A batch, one sentence per line", zh: "一个批次，每行一句" },
  example: {
    en: "I am tired.\nThe cat sleeps on the mat.\nThe animal didn't cross the street because it was too tired",
    zh: "我累了。\n猫睡在垫子上。\n那只动物没有过马路，因为它太累了。",
  },
  selectedSentence: { en: "Selected sentence", zh: "选择句子" },
  padding: { en: "Padding mask", zh: "填充掩码" },
  paddingNote: {
    en: "One row per sentence, as long as the longest: {0} positions. Positions filled with <pad> are masked: {1} of {2}.",
    zh: "每个句子一行，都补齐到最长句子的长度，即 {0} 个位置。用 <pad> 填充的位置被遮住：{2} 个位置中有 {1} 个。",
  },
  causal: { en: "Causal mask", zh: "因果掩码" },
  causalNote: {
    en: "Position i may attend to positions 0 to i. In training, all positions are predicted at once, each from the tokens before it only.",
    zh: "位置 i 只能关注位置 0 到 i。训练时所有位置同时预测，每个位置只依据它前面的词元。",
  },
  both: { en: "Both combined", zh: "两者合并" },
  bothNote: {
    en: "For the selected sentence: a cell is open if both masks allow it. A decoder uses this mask for this row of the batch.",
    zh: "针对所选句子：两种掩码都允许的格子才是打开的。解码器对批次中的这一行使用的就是这个掩码。",
  },
  may: { en: "{0} may attend to {1}", zh: "{0} 可以关注 {1}" },
  mayNot: { en: "{0} may not attend to {1}", zh: "{0} 不可以关注 {1}" },
  tokenCell: { en: "{0}, position {1}: {2}, allowed", zh: "{0}，位置 {1}：{2}，允许关注" },
  paddingCell: { en: "{0}, position {1}: {2}, masked", zh: "{0}，位置 {1}：{2}，被遮住" },
  why: { en: "What a mask does to one row", zh: "掩码对一行的作用" },
  whyNote: {
    en: "Real numbers from layer 0, head 0 of the decoder for the selected sentence: the score of each position, the score after the mask, and the weight after softmax.",
    zh: "解码器第 0 层第 0 个头在所选句子上的真实数值：每个位置的得分、加掩码后的得分、softmax 后的权重。",
  },
  queryPosition: { en: "Query position", zh: "查询位置" },
  token: { en: "token", zh: "词元" },
  score: { en: "score", zh: "得分" },
  masked: { en: "after the mask", zh: "加掩码后" },
  weight: { en: "weight", zh: "权重" },
  zero: {
    en: "A masked score becomes −∞, and e to the power of −∞ is exactly 0: not a small weight, but none. The other weights still sum to 1. So a sentence gives the same result in a padded batch as alone, and the model can be trained on all positions at once without seeing the answers.",
    zh: "被遮住的得分变成 −∞，而 e 的 −∞ 次方恰好是 0：不是很小的权重，而是没有权重。其余权重之和仍为 1。因此一个句子在填充过的批次里和单独计算时结果相同，同时训练所有位置时模型也看不到答案。",
  },
};

/** @typedef {{texts: string[][], padding: boolean[][], causal: boolean[][], both: boolean[][][]}} Masks */
/** @typedef {import("../heat_map.js").HeatMapData} HeatMapData */

const MAX_SENTENCES = 32; // per batch

/** @returns {string[]} */
function sentences() {
  const lines = (getState("batch") || t(TEXTS.example)).split("\n").map((line) => line.trim());
  return lines.filter(Boolean).slice(0, MAX_SENTENCES);
}

/**
 * Return a mask as heat map data: allowed cells are dark, masked cells are empty.
 * @param {boolean[][]} mask
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {string} label
 * @returns {HeatMapData}
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
    replaceContent(choice, tokenRadioGroup(t(TEXTS.selectedSentence), sentences().map((text) => truncate(text, 40)), selectedSentence(), (row) => setState({ row })));
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

/** Return languages and model of the request, if the address names them. */
function requestOptions() {
  return { ...(getState("from") && { source: getState("from"), target: getState("to") }), ...(getState("model") && { model: getState("model") }) };
}

/**
 * Describe the cells in words, for tooltips and screen readers.
 * @param {{padding: HeatMap, causal: HeatMap, both: HeatMap}} heatMaps
 * @param {() => Masks} masks
 */
function describeCells(heatMaps, masks) {
  heatMaps.padding.describe = (row, column) =>
    t(masks().padding[row][column] ? TEXTS.tokenCell : TEXTS.paddingCell, sentences()[row], column, masks().texts[row][column]);
  for (const name of /** @type {const} */ (["causal", "both"]))
    heatMaps[name].describe = (row, column) => {
      const data = /** @type {HeatMapData} */ (heatMaps[name].data);
      return t(data.isUnmasked?.(row, column) ? TEXTS.may : TEXTS.mayNot, data.rows[row], data.columns[column]);
    };
}

/**
 * A panel with one row of a real forward pass: scores, masked scores and weights.
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
    rows = [["token", "score", "masked", "weight"].map((name) => t(TEXTS[/** @type {"token"} */ (name)]))];
    tokens.forEach((token, key) => rows.push([token, ...columns.map((values) => values[key])])); // the numbers of head 0 come first
    const hadFocus = body.contains(document.activeElement);
    replaceContent(body, tokenRadioGroup(t(TEXTS.queryPosition), tokens, position, (column) => setState({ column })), weightsTable(rows));
    if (hadFocus) /** @type {HTMLElement} */ (body.querySelector("[aria-checked=true]")).focus();
  });
  const textRows = () => rows.map((row) => row.map((cell) => (typeof cell === "number" ? formatNumber(cell) : cell)));
  const element = panel(t(TEXTS.why), [status, body, h("p", { class: "below-figure" }, t(TEXTS.zero))],
    { svg: () => tableSvg(t(TEXTS.why), textRows()), data: () => toCsv(rows) }, t(TEXTS.whyNote));
  return { element, request, dispose };
}

/** @param {(string | number)[][]} table the first row is the header */
function weightsTable([header, ...rows]) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t(TEXTS.why) }, h("table", { class: "row-table" },
    h("thead", {}, h("tr", {}, header.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([token, ...cells]) => {
      const weight = Number(cells[2]);
      const bar = h("span", { class: "weight-bar", style: { width: `${Math.round(120 * weight)}px`, background: sequentialColour(0.3 + 0.5 * weight) } });
      return h("tr", { class: cells[1] === -Infinity ? "closed" : null },
        h("th", { scope: "row" }, token), cells.map((cell, column) => h("td", {}, formatNumber(Number(cell)), column === 2 && bar)));
    }))));
}
