/** The walk screen: the whole computation, number by number, from the text to the probability of the next token. */

import { axisLabels, exploreRequest, fetchArrays, isTextModel } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { formatNumber, t } from "../page_text.js";
import { optionRadioGroup, tokenRadioGroup } from "../radio_group.js";
import { needsNewTrace, sentenceBar } from "../sentence_bar.js";
import { getState, onStateChange, setState } from "../url_state.js";
import { stageCard } from "./walk_card.js";
import { STAGE_TITLES } from "./walk_stage_texts.js";
import { stages, stageValues, walkPosition } from "./walk_stages.js";
import { tokenizationCards } from "./walk_tokenization.js";

export const TITLE = { en: "Walk", zh: "逐步计算" };

const TEXTS = {
  lead: {
    en: "Choose a token, a layer and a head. The page shows every number from the text to the probability, its equation, and Python code that computes it again.",
    zh: "选择一个词元、一层和一个头。这里列出从文本到概率的每一个数、它的公式，以及能重新算出它的 Python 代码。",
  },
  kind: { en: "Attention", zh: "注意力" },
  encoder: { en: "Encoder", zh: "编码器" },
  decoder: { en: "Decoder", zh: "解码器" },
  cross: { en: "Cross", zh: "交叉" },
  layer: { en: "Layer", zh: "层" },
  head: { en: "Head", zh: "头" },
  row: { en: "Query token", zh: "查询词元" },
  column: { en: "Key token", zh: "键词元" },
  stages: { en: "Stages", zh: "阶段" },
  text: { en: "Text", zh: "文本" },
  input: { en: "Embedding", zh: "词嵌入" },
  attention: { en: "Attention, layer {0}", zh: "注意力，第 {0} 层" },
  feedForward: { en: "Feed-forward, layer {0}", zh: "前馈网络，第 {0} 层" },
  output: { en: "Output", zh: "输出" },
};

/** @typedef {import("../api.js").AttentionKind} AttentionKind */

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Map<string, import("./walk_card.js").StageCard>} */
  let cards = new Map();
  /** @type {Map<string, number>} */
  const selectedComponents = new Map();
  /** @type {Map<string, () => void>} */
  const redrawCard = new Map();
  let [latestNumber, traceCount, isFirst, drawnControls] = [0, 0, true, ""];
  const controls = h("div", { class: "walk-controls" });
  const stageList = h("nav", { class: "stages", "aria-label": t(TEXTS.stages) });
  const body = h("div", { class: "cards" });
  const textCards = tokenizationCards();
  const bar = sentenceBar((newTrace) => {
    trace = newTrace;
    traceCount++;
    draw();
  });
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))), bar.element, controls, h("div", { class: "walk" }, stageList, body));
  readStage();

  function readStage() {
    const [id, index] = getState("stage").split(".");
    if (index && Number.isInteger(Number(index))) selectedComponents.set(id, Number(index));
  }

  /** @returns {AttentionKind} */
  function kind() {
    const chosenKind = /** @type {AttentionKind} */ (getState("kind"));
    if (trace && chosenKind in trace.kinds) return chosenKind;
    return trace && isTextModel(trace) ? "decoder" : "cross";
  }

  async function draw() {
    const requestNumber = ++latestNumber;
    if (!trace) return replaceContent(controls), replaceContent(stageList), replaceContent(body);
    const position = walkPosition(trace, kind(), Boolean(getState("given")));
    const groups = stages(position);
    const allStages = Object.values(groups).flat();
    const tensors = await fetchArrays(exploreRequest(), [...new Set(allStages.map((stage) => stage.name))], { row: position.row }).catch(() => null);
    if (requestNumber !== latestNumber || !tensors) return;
    if (getState("column") === "") position.column = indexOfMax(stageValues(position, allStages.filter((stage) => stage.id === "weights")[0], tensors));
    if (drawnControls !== `${traceCount} ${position.kind}`) drawControls(position);
    drawnControls = `${traceCount} ${position.kind}`;
    checkControls(position);
    textCards.show(position);
    if (String([...cards.keys()]) !== String(allStages.map((stage) => stage.id))) buildCards(groups);
    for (const heading of body.querySelectorAll("[data-group]")) heading.textContent = groupTitle(/** @type {HTMLElement} */ (heading).dataset.group ?? "", position);
    if (stageList.childElementCount !== allStages.length + 2) drawList(["text", "id", ...allStages.map((stage) => stage.id)]);
    for (const stage of allStages) showCard(position, stage, stageValues(position, stage, tensors));
    body.dataset.ready = `${position.attention}.${position.head}.${position.row}.${position.column}`;
    if (isFirst && getState("stage")) document.getElementById(`stage-${getState("stage").split(".")[0]}`)?.scrollIntoView();
    isFirst = false;
  }

  /**
   * @param {import("./walk_python.js").WalkPosition} position
   * @param {import("./walk_stages.js").Stage} stage
   * @param {Float32Array} values
   */
  function showCard(position, stage, values) {
    const index = Math.min(values.length - 1, stage.axis === "keys" ? position.column : (selectedComponents.get(stage.id) ?? defaultIndex(position, stage)));
    const names = stage.axis === "keys" ? axisLabels(position.trace, position.kind)[1] : null;
    cards.get(stage.id)?.show({ position, stage, values, index, names, nameOf: componentNames(position, stage), expression: pythonExpression(position, stage, index) });
    redrawCard.set(stage.id, () => showCard(position, stage, values));
    replaceContent(/** @type {Element} */ (stageList.querySelector(`[data-to=${stage.id}] .number`)), formatNumber(values[index]));
  }

  /** @param {ReturnType<typeof stages>} groups */
  function buildCards(groups) {
    cards.forEach((item) => item.dispose());
    cards = new Map();
    const heading = (/** @type {string} */ group) => h("h2", { class: "stage-group", dataset: { group } });
    replaceContent(body, heading("text"), h("div", { class: "columns" }, textCards.elements), Object.entries(groups).filter(([, groupStages]) => groupStages.length).flatMap(([group, groupStages]) => [
      heading(group),
      h("div", { class: "columns" }, groupStages.map((stage) => {
        const card = stageCard(stage, (index) => {
          if (stage.axis === "keys") return setState({ column: index, stage: stage.id });
          selectedComponents.set(stage.id, index);
          setState({ stage: `${stage.id}.${index}` });
          redrawCard.get(stage.id)?.();
        });
        cards.set(stage.id, card);
        return card.element;
      })),
    ]));
  }

  /** @param {import("./walk_python.js").WalkPosition} position */
  function drawControls(position) {
    const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, index) => /** @type {[string, string]} */ ([String(index), String(index)]));
    const kinds = /** @type {AttentionKind[]} */ (Object.keys(position.trace.kinds));
    const [rows, columns] = axisLabels(position.trace, position.kind);
    const layer = position.attention.split(".")[2];
    replaceContent(controls,
      control("kind", t(TEXTS.kind), optionRadioGroup(t(TEXTS.kind), kinds.map((item) => [item, t(TEXTS[item])]), position.kind, (value) =>
        setState({ kind: value, layer: "", column: "", ...(position.stack === (value === "encoder" ? "encoder" : "decoder") ? {} : { row: "" }) }))),
      control("layer", t(TEXTS.layer), optionRadioGroup(t(TEXTS.layer), numbers(position.trace.kinds[position.kind] ?? 1), layer, (value) => setState({ layer: value }))),
      control("head", t(TEXTS.head), optionRadioGroup(t(TEXTS.head), numbers(position.trace.heads), String(position.head), (value) => setState({ head: value }))),
      control("row", t(TEXTS.row), tokenRadioGroup(t(TEXTS.row), rows, position.row, (row) => setState({ row }))),
      control("column", t(TEXTS.column), tokenRadioGroup(t(TEXTS.column), columns, position.column, (column) => setState({ column }))));
  }

  /**
   * Check the current selection. The buttons are not created again: a long sentence has too many.
   * @param {import("./walk_python.js").WalkPosition} position
   */
  function checkControls(position) {
    const indexes = { layer: Number(position.attention.split(".")[2]), head: position.head, row: position.row, column: position.column };
    for (const [name, index] of Object.entries(indexes))
      for (const button of /** @type {NodeListOf<HTMLElement>} */ (controls.querySelectorAll(`[data-control=${name}] [role=radio]`))) {
        const isSelected = Number(button.dataset.index) === index;
        button.setAttribute("aria-checked", String(isSelected));
        button.tabIndex = isSelected ? 0 : -1;
      }
  }

  /** @param {string[]} ids */
  function drawList(ids) {
    const currentStage = getState("stage").split(".")[0];
    replaceContent(stageList, ids.map((id) =>
      h("button", { type: "button", dataset: { to: id }, "aria-current": id === currentStage ? "step" : null, onclick: () => {
        setState({ stage: selectedComponents.has(id) ? `${id}.${selectedComponents.get(id)}` : id });
        document.getElementById(`stage-${id}`)?.scrollIntoView({ block: "start" });
      } }, h("span", {}, t(STAGE_TITLES[id])), h("span", { class: "number" }))));
  }

  const stopListening = onStateChange((changed) => {
    if (needsNewTrace(changed)) return;
    if (["kind", "layer", "head", "row", "column"].some((name) => changed.has(/** @type {any} */ (name)))) draw();
    else if (changed.has("stage")) for (const item of stageList.children)
      if (item.getAttribute("data-to") === getState("stage").split(".")[0]) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
  });
  return () => {
    latestNumber++;
    stopListening();
    bar.dispose();
    cards.forEach((item) => item.dispose());
  };
}

/**
 * @param {string} group
 * @param {import("./walk_python.js").WalkPosition} position
 */
function groupTitle(group, position) {
  return t(TEXTS[/** @type {keyof typeof TEXTS} */ (group)], position.attention.split(".")[2]);
}

/**
 * @param {string} name
 * @param {string} label
 * @param {HTMLElement} element
 */
function control(name, label, element) {
  return h("div", { dataset: { control: name } }, h("span", { class: "note" }, label), element);
}

/** @param {Float32Array} values */
function indexOfMax(values) {
  return values.reduce((best, value, index) => (value > values[best] ? index : best), 0);
}

/**
 * Return the component to select first: in the vocabulary, the token that comes next.
 * @param {import("./walk_python.js").WalkPosition} position
 * @param {import("./walk_stages.js").Stage} stage
 */
function defaultIndex(position, stage) {
  return ["logits", "probabilities"].includes(stage.id) ? position.trace.predicted.ids[position.row] : 0;
}

/**
 * Return a function that names components: key tokens, or likely next tokens.
 * @param {import("./walk_python.js").WalkPosition} position
 * @param {import("./walk_stages.js").Stage} stage
 * @returns {(index: number) => string}
 */
function componentNames(position, stage) {
  if (stage.axis === "keys") return (index) => axisLabels(position.trace, position.kind)[1][index] ?? "";
  if (!["logits", "probabilities"].includes(stage.id)) return () => "";
  return (index) => (index === position.trace.predicted.ids[position.row] ? position.trace.predicted.texts[position.row]
    : position.trace.steps[position.row].choices.find((choice) => choice.id === index)?.text ?? "");
}

/**
 * Return the Python expression of the number.
 * @param {import("./walk_python.js").WalkPosition} position
 * @param {import("./walk_stages.js").Stage} stage
 * @param {number} index
 */
function pythonExpression(position, stage, index) {
  if (stage.id === "product") return "q · k";
  const indexes = { row: [position.row, index], head: [position.head, position.row, index], keys: [position.head, position.row, index], key: [position.keyHead, position.column, index] };
  return `trace["${stage.name}"][${indexes[stage.axis].join(", ")}]`;
}
