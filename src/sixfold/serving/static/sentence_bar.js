/** The sentence that is looked into, above every screen of the explorer. */

import { ApiError, EXAMPLE_SENTENCE, exploreRequest, fetchModels, fetchTrace } from "./api.js";
import { debounce, h, replaceContent } from "./dom.js";
import { languageName, t } from "./page_text.js";
import { getState, onStateChange, setState } from "./url_state.js";

const TEXTS = {
  sentence: { en: "Sentence", zh: "句子" },
  given: { en: "Translation to read", zh: "给定译文" },
  own: { en: "the model's own", zh: "模型自己的译文" },
  said: { en: "Translation", zh: "译文" },
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "by script", zh: "自动识别" },
  off: { en: "Heads switched off", zh: "已关闭的头" },
  on: { en: "Switch {0} on again", zh: "重新打开 {0}" },
  model: { en: "Model", zh: "模型" },
  wait: { en: "Working…", zh: "计算中…" },
  failed: { en: "That did not work: {0}", zh: "出错了：{0}" },
};

/** @type {import("./url_state.js").StateKey[]} */
const TRACE_KEYS = ["text", "given", "from", "to", "off", "model"];

/**
 * Whether another pass is asked for: its trace is to come, and what is shown stays until then.
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
 * The bar; `onTrace` is called with each new pass, and with null while there is none.
 * @param {(trace: import("./api.js").Trace | null) => void} onTrace
 * @returns {SentenceBar}
 */
export function sentenceBar(onTrace) {
  const text = h("input", { type: "text", value: getState("text") || EXAMPLE_SENTENCE, "aria-label": t(TEXTS.sentence), id: "sentence", autocomplete: "off" });
  const givenTranslation = h("input", { type: "text", value: getState("given"), placeholder: t(TEXTS.own), "aria-label": t(TEXTS.given), id: "given", autocomplete: "off" });
  const translation = h("output", { class: "said", id: "said", "aria-label": t(TEXTS.said) });
  const direction = h("select", { "aria-label": t(TEXTS.direction), id: "direction" }, h("option", { value: "" }, t(TEXTS.auto)));
  const model = h("select", { "aria-label": t(TEXTS.model), id: "model", hidden: true });
  const chips = h("div", { class: "chips" });
  const element = h("section", { class: "sentence", "aria-label": t(TEXTS.sentence) },
    h("div", { class: "fields" }, text, direction, model, givenTranslation), h("div", { class: "outcome" }, translation, chips));

  text.addEventListener("input", debounce(350, () => setState({ text: text.value, row: "", column: "", step: "0" })));
  givenTranslation.addEventListener("input", debounce(350, () => setState({ given: givenTranslation.value, row: "", step: "0" })));
  direction.addEventListener("change", () => {
    const [from, to] = direction.value ? direction.value.split(">") : ["", ""];
    setState({ from, to, row: "", column: "" });
  });
  model.addEventListener("change", () => setState({ model: model.value }));
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
      translation.textContent = trace.translation;
      translation.classList.remove("wrong");
      onTrace(trace);
    } catch (error) {
      if (requestNumber !== latestNumber) return;
      const message = error instanceof ApiError ? `${error.message}${error.hint ? ` (${error.hint})` : ""}` : String(error);
      translation.textContent = t(TEXTS.failed, message);
      translation.classList.add("wrong");
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
