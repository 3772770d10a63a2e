/** Compare a head on two sentences or in two models, side by side in the same colours. */

import { ApiError, exploreRequest, fetchModels, fetchTrace } from "../api.js";
import { debounce, h, replaceContent } from "../dom.js";
import { HeatMap } from "../heat_map.js";
import { t, wholePercent } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, setState } from "../url_state.js";
import { sideBySideSvg } from "./attention_heat_maps.js";
import { AttentionWeights } from "./attention_weights.js";

/** @typedef {import("./attention_weights.js").Selection} Selection */
/** @typedef {import("../heat_map.js").HeatMapData} HeatMapData */

const TEXTS = {
  title: { en: "Compare", zh: "对比" },
  note: { en: "The same head on a second sentence, in the same colours.", zh: "同一个头在第二个句子上的权重，颜色标度相同。" },
  other: { en: "Second sentence", zh: "第二个句子" },
  model: { en: "Second model", zh: "第二个模型" },
  sameModel: { en: "the same model", zh: "同一个模型" },
  clear: { en: "Clear", zh: "清除" },
  difference: { en: "First minus second", zh: "第一个减第二个" },
  differentLengths: { en: "The two sentences have different numbers of tokens, so no difference is shown.", zh: "两句的词元数不同，因此不显示差值。" },
  mostDifferent: { en: "Heads that differ most for the query “{0}”:", zh: "对查询词元“{0}”差别最大的头：" },
  showHead: { en: "Show {0}: {1} of the weight moves", zh: "查看 {0}：有 {1} 的权重发生移动" },
  failed: { en: "Something went wrong: {0}", zh: "出错了：{0}" },
};

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function comparePanel() {
  /** @type {Selection | null} */
  let selection = null;
  /** @type {AttentionWeights | null} */
  let secondWeights = null;
  /** @type {HeatMapData[]} */
  let heatMaps = [];
  let shownRequest = "";
  let latestNumber = 0;
  const errorText = h("p", { class: "error", hidden: true });
  const fields = inputs();
  const views = Array.from({ length: 3 }, () => new HeatMap({ onSelect: (row, column) => setState({ row, column }) }));
  const titles = views.map(() => h("h3", {}));
  const sides = views.map((view, index) => h("div", { id: `side-${index}` }, titles[index], view.element));
  const heads = h("div", { class: "actions", id: "most-different" });
  const lengthNote = h("p", { class: "note" }, t(TEXTS.differentLengths));
  const body = h("div", { hidden: true }, heads, lengthNote, h("div", { class: "columns side-by-side" }, sides));
  const element = panel(t(TEXTS.title), [fields.element, errorText, body], {
    svg: () => sideBySideSvg(t(TEXTS.title), heatMaps.length ? heatMaps : selection ? [selection.weights.get(selection.layer, selection.head)] : []),
    data: () => ({ sentences: [selection?.weights.trace.text, secondWeights?.trace.text], matrices: heatMaps.map(toJson) }),
  }, t(TEXTS.note));

  /** @param {Selection} selected */
  async function load(selected) {
    const requestNumber = ++latestNumber;
    const text = getState("other") || selected.weights.trace.text;
    const request = exploreRequest({ text, ...(getState("other") && { translation: null }), ...(getState("otherModel") && { model: getState("otherModel") }) });
    try {
      const trace = await fetchTrace(request);
      const weights = await AttentionWeights.load(request, trace, selected.weights.kind, selected.weights.byWord);
      if (requestNumber !== latestNumber) return;
      [secondWeights, errorText.hidden] = [weights, true];
      if (selection) draw(selection);
    } catch (error) {
      if (requestNumber !== latestNumber) return;
      [body.hidden, errorText.hidden] = [true, false];
      errorText.textContent = t(TEXTS.failed, error instanceof ApiError ? error.message : String(error));
    }
  }

  /** @param {Selection} selected */
  function draw({ weights, layer, head, row, column }) {
    if (!secondWeights) return;
    const [first, second] = [weights.get(layer, head), secondWeights.get(Math.min(layer, secondWeights.layers - 1), Math.min(head, secondWeights.heads - 1))];
    const isSameSize = first.rows.length === second.rows.length && first.columns.length === second.columns.length;
    if (heatMaps[0] !== first || heatMaps[1] !== second) heatMaps = [first, second, ...(isSameSize ? [subtract(first, second)] : [])];
    body.hidden = false;
    const names = [weights, secondWeights].map(({ trace }) => (getState("otherModel") ? `${trace.text} (${trace.model})` : trace.text));
    [...names, t(TEXTS.difference)].forEach((name, index) => (titles[index].textContent = name));
    sides[2].hidden = !isSameSize;
    lengthNote.hidden = isSameSize;
    heatMaps.forEach((data, index) => views[index].show(data, [Math.min(row, data.rows.length - 1), Math.min(column, data.columns.length - 1)]));
    replaceContent(heads, isSameSize && weights.layers === secondWeights.layers && [h("span", { class: "note" }, t(TEXTS.mostDifferent, weights.rows.texts[row])),
      ...mostDifferentHeads(weights, secondWeights, row).map(({ name, movedWeight, layer: headLayer, head: headIndex }) => h("button", {
        type: "button", class: "outlined", "aria-label": t(TEXTS.showHead, name, wholePercent(movedWeight)), dataset: { head: name },
        onclick: () => setState({ layer: headLayer, head: headIndex, row, column: "" }) }, `${name} · ${wholePercent(movedWeight)}`))]);
  }

  return {
    element,
    show(nextSelection) {
      selection = nextSelection;
      fields.show();
      const { weights } = nextSelection;
      const neededRequest = getState("other") || getState("otherModel") ? JSON.stringify([weights.request, weights.kind, weights.byWord, getState("other"), getState("otherModel")]) : "";
      if (neededRequest === shownRequest) return draw(nextSelection);
      shownRequest = neededRequest;
      [secondWeights, heatMaps] = [null, []];
      if (neededRequest) load(nextSelection);
      else [latestNumber, body.hidden, errorText.hidden] = [latestNumber + 1, true, true];
    },
  };
}

/** The second sentence, and the second model where several are open. */
function inputs() {
  const text = h("input", { type: "text", id: "other", value: getState("other"), placeholder: t(TEXTS.other), "aria-label": t(TEXTS.other), autocomplete: "off" });
  const model = h("select", { id: "other-model", "aria-label": t(TEXTS.model), hidden: true }, h("option", { value: "" }, t(TEXTS.sameModel)));
  const clear = h("button", { type: "button", class: "outlined", onclick: () => setState({ other: "", otherModel: "" }) }, t(TEXTS.clear));
  text.addEventListener("input", debounce(350, () => setState({ other: text.value })));
  model.addEventListener("change", () => setState({ otherModel: model.value }));
  fetchModels().then((available) => {
    for (const { name } of available.models) model.append(h("option", { value: name }, name));
    model.hidden = available.models.length < 2;
    model.value = getState("otherModel");
  }).catch(() => {});
  return {
    element: h("div", { class: "compare-fields" }, text, model, clear),
    show() {
      if (document.activeElement !== text) text.value = getState("other");
      model.value = getState("otherModel");
    },
  };
}

/**
 * @param {HeatMapData} first
 * @param {HeatMapData} second
 * @returns {HeatMapData}
 */
function subtract(first, second) {
  const rows = first.rows.map((text, row) => (text === second.rows[row] ? text : `${text} | ${second.rows[row]}`));
  const columns = first.columns.map((text, column) => (text === second.columns[column] ? text : `${text} | ${second.columns[column]}`));
  const values = first.values.map((value, index) => value - second.values[index]);
  return { rows, columns, values, isUnmasked: first.isUnmasked, isSigned: true, max: 1, label: t(TEXTS.difference) };
}

/**
 * Return the heads in which the weights of a row differ most, with the share of weight that moves.
 * @param {AttentionWeights} first
 * @param {AttentionWeights} second
 * @param {number} row
 */
function mostDifferentHeads(first, second, row) {
  const heads = [];
  for (let layer = 0; layer < first.layers; layer++)
    for (let head = 0; head < Math.min(first.heads, second.heads); head++) {
      const [firstRow, secondRow] = [first.row(layer, head, row), second.row(layer, head, row)];
      let movedWeight = 0;
      for (let column = 0; column < firstRow.length; column++) movedWeight += Math.abs(firstRow[column] - secondRow[column]) / 2;
      heads.push({ name: `${first.kind}.${layer}.${head}`, layer, head, movedWeight });
    }
  return heads.sort((a, b) => b.movedWeight - a.movedWeight).slice(0, 5);
}

/** @param {HeatMapData} data */
function toJson({ label, rows, columns, values }) {
  return { label, rows, columns, values: rows.map((_, row) => [...values.subarray(row * columns.length, (row + 1) * columns.length)]) };
}
