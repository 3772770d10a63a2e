/** The bar above the explorer screens: the sentence, an optional translation, direction, model and disabled heads. */

import { describeError, EXAMPLE_SENTENCE, exploreRequest, fetchModels, fetchTrace, isTextModel } from "./api.js";
import { debounce, h, replaceContent } from "./dom.js";
import { languageName, t } from "./page_text.js";
import { getState, onStateChange, setState } from "./url_state.js";

const TEXTS = {
  sentence: { en: "Sentence", zh: "句子" },
  givenTranslation: { en: "Translation to use (optional)", zh: "指定译文（可选）" },
  modelTranslation: { en: "translation by the model", zh: "默认用模型的译文" },
  translation: { en: "Translation", zh: "译文" },
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "detect language", zh: "自动识别语言" },
  off: { en: "Heads switched off", zh: "已关闭的头" },
  on: { en: "Switch {0} back on", zh: "重新打开 {0}" },
  model: { en: "Model", zh: "模型" },
  next: { en: "likeliest next token: {0}", zh: "最可能的下一个词元：{0}" },
  wait: { en: "Working…", zh: "正在计算…" },
  failed: { en: "Something went wrong: {0}", zh: "出错了：{0}" },
};

/** @type {import("./url_state.js").StateKey[]} */
const TRACE_KEYS = ["text", "given", "from", "to", "off", "model"];

/**
 * Return whether a change needs a new trace. The screens keep showing the old one until it arrives.
 * @param {Set<import("./url_state.js").StateKey>} changed
 */
export function needsNewTrace(changed) {
  return TRACE_KEYS.some((name) => changed.has(name));
}

/**
 * @typedef {object} SentenceBar
 * @property {HTMLElement} element
 * @property {() => void} dispose
 */

/**
 * Create the bar. `onTrace` is called with each new trace, and with null after an error.
 * @param {(trace: import("./api.js").Trace | null) => void} onTrace
 * @returns {SentenceBar}
 */
export function sentenceBar(onTrace) {
  const text = h("input", { type: "text", value: getState("text") || EXAMPLE_SENTENCE, "aria-label": t(TEXTS.sentence), id: "sentence", autocomplete: "off" });
  const givenTranslation = h("input", { type: "text", value: getState("given"), placeholder: t(TEXTS.modelTranslation), "aria-label": t(TEXTS.givenTranslation), id: "given", autocomplete: "off" });
  const translation = h("output", { class: "translation-text", id: "translation", "aria-label": t(TEXTS.translation) });
  const direction = h("select", { "aria-label": t(TEXTS.direction), id: "direction" }, h("option", { value: "" }, t(TEXTS.auto)));
  const model = h("select", { "aria-label": t(TEXTS.model), id: "model", hidden: true });
  const chips = h("div", { class: "chips" });
  const element = h("section", { class: "sentence", "aria-label": t(TEXTS.sentence) },
    h("div", { class: "fields" }, text, direction, model, givenTranslation), h("div", { class: "result-row" }, translation, chips));

  text.addEventListener("input", debounce(350, () => setState({ text: text.value, row: "", column: "", step: "0" })));
  givenTranslation.addEventListener("input", debounce(350, () => setState({ given: givenTranslation.value, row: "", step: "0" })));
  direction.addEventListener("change", () => {
    const [from, to] = direction.value ? direction.value.split(">") : ["", ""];
    setState({ from, to, row: "", column: "" });
  });
  model.addEventListener("change", () => setState({ model: model.value, given: "", from: "", to: "", kind: "", layer: "", head: "", row: "", column: "" }));
  fetchModels().then((available) => {
    for (const [from, to] of available.directions)
      direction.append(h("option", { value: `${from}>${to}` }, `${languageName(from)} → ${languageName(to)}`));
    direction.value = getState("from") ? `${getState("from")}>${getState("to")}` : "";
    for (const item of available.models) model.append(h("option", { value: item.name }, item.name));
    model.hidden = available.models.length < 2;
    model.value = getState("model") || available.models[0].name;
  }).catch(() => {});

  let latestNumber = 0;
  async function loadTrace() {
    const requestNumber = ++latestNumber;
    element.setAttribute("aria-busy", "true");
    const waitTimer = setTimeout(() => requestNumber === latestNumber && (translation.textContent = t(TEXTS.wait)), 300);
    try {
      const trace = await fetchTrace(exploreRequest());
      if (requestNumber !== latestNumber) return;
      translation.textContent = isTextModel(trace) ? t(TEXTS.next, trace.predicted.texts[trace.predicted.texts.length - 1]) : trace.translation;
      direction.hidden = givenTranslation.hidden = isTextModel(trace);
      translation.classList.remove("error");
      onTrace(trace);
    } catch (error) {
      if (requestNumber !== latestNumber) return;
      translation.textContent = t(TEXTS.failed, describeError(error));
      translation.classList.add("error");
      onTrace(null);
    } finally {
      clearTimeout(waitTimer);
      if (requestNumber === latestNumber) element.removeAttribute("aria-busy");
    }
  }

  function showDisabledHeads() {
    const disabled = getState("off") ? getState("off").split(",") : [];
    replaceContent(chips, disabled.length > 0 && h("span", { class: "note" }, t(TEXTS.off)), disabled.map((name) =>
      h("button", { type: "button", class: "chip", "aria-label": t(TEXTS.on, name),
        onclick: () => setState({ off: disabled.filter((item) => item !== name).join(",") }) }, `${name} ×`)));
  }

  const dispose = onStateChange((changed) => {
    if (changed.has("text") && document.activeElement !== text) text.value = getState("text") || EXAMPLE_SENTENCE;
    if (changed.has("given") && document.activeElement !== givenTranslation) givenTranslation.value = getState("given");
    if (changed.has("off")) showDisabledHeads();
    if (needsNewTrace(changed)) loadTrace();
  });
  showDisabledHeads();
  loadTrace();
  return { element, dispose };
}
