/** The source side of the translate screen: the text field with highlighted words, the language direction and the examples. */

import { fetchModels } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { languageName, t } from "../page_text.js";
import { getState, setState } from "../url_state.js";

const TEXTS = {
  label: { en: "Text to translate", zh: "要翻译的文字" },
  placeholder: { en: "Type or paste a text", zh: "输入或粘贴文字" },
  clear: { en: "Clear the text", zh: "清空" },
  count: { en: "{0} of {1} characters", zh: "{0} / {1} 个字符" },
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "Detect language", zh: "自动识别语言" },
  detected: { en: "Detected: {0} → {1}", zh: "自动识别：{0} → {1}" },
  swap: { en: "Swap the languages and translate back", zh: "交换语言并译回" },
  examples: { en: "Try one of these", zh: "试试这些句子" },
};

/** @typedef {import("../api.js").Span} Span */

/**
 * @param {(text: string) => void} onInput
 * @param {(index: number | null) => void} onHighlight called with the index of the marked word at the pointer or caret, or null
 */
export function sourceField(onInput, onHighlight) {
  const highlightLayer = h("div", { class: "highlight-layer", "aria-hidden": "true" });
  const area = h("textarea", {
    id: "source", "aria-label": t(TEXTS.label), placeholder: t(TEXTS.placeholder), rows: 4, spellcheck: "false", autocomplete: "off",
    "aria-describedby": "count",
  });
  const count = h("span", { class: "note count", id: "count" });
  const clear = h("button", { type: "button", class: "subtle", id: "clear", "aria-label": t(TEXTS.clear), title: t(TEXTS.clear),
    onclick: () => replaceText("") }, "✕");
  let limit = 0;

  function updateCount() {
    const length = [...area.value].length;
    clear.hidden = length === 0;
    count.textContent = limit ? t(TEXTS.count, length.toLocaleString("en"), limit.toLocaleString("en")) : "";
    count.classList.toggle("error", limit > 0 && length > limit);
  }

  /** @param {string} text */
  function setText(text) {
    area.value = text;
    markWords([]);
    updateCount();
  }

  /** @param {string} text */
  function replaceText(text) {
    setText(text);
    area.focus();
    onInput(text);
  }

  /**
   * Mark words in the layer behind the field, which has the same text. The zero-width space gives an empty last line a height.
   * @param {Span[]} spans sorted and disjoint
   */
  function markWords(spans) {
    /** @type {(Node | string)[]} */
    const parts = [];
    let end = 0;
    spans.forEach(([start, spanEnd], index) => {
      parts.push(area.value.slice(end, start), h("mark", { dataset: { index } }, area.value.slice(start, spanEnd)));
      end = spanEnd;
    });
    replaceContent(highlightLayer, parts, `${area.value.slice(end)}\u200b`);
  }

  /** @param {number | null} index */
  function highlight(index) {
    for (const element of highlightLayer.querySelectorAll(".highlighted")) element.classList.remove("highlighted");
    if (index !== null) highlightLayer.querySelector(`mark[data-index="${index}"]`)?.classList.add("highlighted");
  }

  area.addEventListener("input", (event) => {
    markWords([]);
    updateCount();
    // While an input method is composing, the text is not final.
    if (!(event instanceof InputEvent && event.isComposing)) onInput(area.value);
  });
  area.addEventListener("compositionend", () => onInput(area.value));
  area.addEventListener("pointermove", (event) => {
    const mark = document.elementsFromPoint(event.clientX, event.clientY).find((element) => element.matches(".highlight-layer mark"));
    onHighlight(mark instanceof HTMLElement ? Number(mark.dataset.index) : null);
  });
  area.addEventListener("pointerleave", () => onHighlight(null));
  area.addEventListener("keyup", (event) => {
    if (!/^(Arrow|Home|End|Page)/.test(event.key)) return;
    let end = 0;
    let index = null;
    for (const node of highlightLayer.childNodes) {
      const start = end;
      end += node.textContent?.length ?? 0;
      if (node instanceof HTMLElement && start <= area.selectionStart && area.selectionStart < end) index = Number(node.dataset.index);
    }
    onHighlight(index);
  });
  area.addEventListener("blur", () => onHighlight(null));

  return {
    field: h("div", { class: "source-field" }, highlightLayer, area),
    area, clear, count, setText, replaceText, markWords, highlight,
    /** @param {number} characters */
    setLimit: (characters) => {
      limit = characters;
      updateCount();
    },
    isTooLong: () => limit > 0 && area.value.length > limit && [...area.value].length > limit,
  };
}

// --- the language direction -----------------------------------------------------------------------------------------

/** @param {() => void} onSwap */
export function directionChooser(onSwap) {
  const select = h("select", { id: "direction", "aria-label": t(TEXTS.direction), class: "borderless" }, h("option", { value: "" }, t(TEXTS.auto)));
  const swap = h("button", { type: "button", class: "swap", id: "swap", "aria-label": t(TEXTS.swap), title: t(TEXTS.swap), onclick: onSwap }, "⇄");
  /** @type {{from: string, to: string} | null} */
  let shownLanguages = null;

  /** @param {{from: string, to: string} | null} languages languages of the translation that is shown */
  function show(languages) {
    shownLanguages = languages;
    select.options[0].textContent = shownLanguages && !getState("from") ? t(TEXTS.detected, languageName(shownLanguages.from), languageName(shownLanguages.to)) : t(TEXTS.auto);
    select.value = getState("from") ? `${getState("from")}>${getState("to")}` : "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
    const reverse = `${getState("to")}>${getState("from")}`;
    swap.disabled = getState("from") ? ![...select.options].some(({ value }) => value === reverse) : !shownLanguages;
  }

  select.addEventListener("change", () => {
    const [from, to] = select.value ? select.value.split(">") : ["", ""];
    setState({ from, to });
  });
  fetchModels().then(({ directions }) => {
    for (const [from, to] of directions) select.append(h("option", { value: `${from}>${to}` }, `${languageName(from)} → ${languageName(to)}`));
    show(shownLanguages);
  }).catch(() => {});
  return { select, swap, show };
}

// --- example sentences ----------------------------------------------------------------------------------------------

const EXAMPLES = [
  { text: "机器学习很有趣，但是好的数据很难找到。", language: "zh" },
  { text: "她打开那本旧书，开始读了起来。", language: "zh" },
  { text: "Scientists have found water on the moon.", language: "en" },
  { text: "Thank you for your help. I will never forget it.", language: "en" },
];

/**
 * Return buttons with example sentences, in the languages that the models can translate.
 * @param {(text: string) => void} onPick
 */
export function exampleButtons(onPick) {
  const element = h("div", { class: "examples", hidden: true });
  fetchModels().then(({ directions }) => {
    const sourceLanguages = new Set(directions.map((/** @type {[string, string]} */ pair) => pair[0]));
    element.append(h("span", { class: "note" }, t(TEXTS.examples)), ...EXAMPLES.filter(({ language }) => sourceLanguages.has(language)).map(({ text, language }) =>
      h("button", { type: "button", class: "chip", lang: language, onclick: () => onPick(text) }, text)));
  }).catch(() => {});
  return element;
}
