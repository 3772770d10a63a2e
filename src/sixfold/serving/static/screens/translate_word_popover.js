/** The popover of a word: its probability, its tokens, its source word, and alternatives to choose from. */

import { fetchAlternatives } from "../api.js";
import { announce, h, replaceContent } from "../dom.js";
import { t } from "../page_text.js";
import { linkTo, setState } from "../url_state.js";
import { formatPercent } from "./translate_sentences.js";

const TEXTS = {
  label: { en: "About “{0}”", zh: "关于“{0}”" },
  close: { en: "Close", zh: "关闭" },
  probability: { en: "is the probability of this word here", zh: "是模型在此处给这个词的概率" },
  tokens: { en: "Tokens", zh: "词元" },
  from: { en: "Its strongest attention is on “{0}”: {1}.", zh: "它最关注“{0}”，占其注意力的 {1}。" },
  alternatives: { en: "Continue differently from here", zh: "从这里换一种译法" },
  wait: { en: "Loading alternatives…", zh: "正在获取其他译法…" },
  none: { en: "The model found no alternative.", zh: "模型没有找到其他译法。" },
  current: { en: "current", zh: "当前" },
  mean: { en: "mean probability per token", zh: "每个词元的平均概率" },
  count: { en: "{0} alternatives", zh: "{0} 个其他译法" },
  explore: { en: "Explore this sentence", zh: "查看这句话的内部计算" },
};

/** @typedef {import("./translate_words.js").WordButton} WordButton */
/** @typedef {import("../api.js").Translation} Translation */

export const ALTERNATIVE_COUNT = 6; // alternatives per request

/**
 * Open the popover below a word. Escape, a click outside or moving the focus out closes it.
 * @param {HTMLElement} pane the pane that contains it
 * @param {WordButton} wordButton
 * @param {{from: string, to: string}} languages
 * @param {{onPick: (chosen: Translation) => void, onLoaded: (count: number) => void, onClose: () => void, describeError: (error: unknown) => string}} handlers
 * @returns {() => void} closes it
 */
export function openWordPopover(pane, wordButton, languages, handlers) {
  const { button, word, sentence } = wordButton;
  const abortController = new AbortController();
  const list = h("div", { class: "alternatives", "aria-busy": "true" }, h("p", { class: "note" }, t(TEXTS.wait)));
  const element = h("div", { class: "popover", role: "dialog", id: "popover", "aria-label": t(TEXTS.label, word.text), tabindex: -1 },
    h("div", { class: "popover-head" },
      h("strong", { class: "popover-word", lang: languages.to }, word.text),
      h("button", { type: "button", class: "subtle", "aria-label": t(TEXTS.close), onclick: () => close(true) }, "✕")),
    h("p", { class: "word-probability" }, h("strong", {}, formatPercent(word.probability)), " ", t(TEXTS.probability)),
    h("div", { class: "gauge", "aria-hidden": "true" }, h("span", { style: { width: `${100 * word.probability}%` } })),
    word.pieces.length > 1 && h("div", { class: "word-tokens" }, h("span", { class: "note" }, t(TEXTS.tokens)),
      word.pieces.map((token) => h("span", { class: "chip" }, `${token.text.trim() || "·"} ${formatPercent(token.probability)}`))),
    h("p", { class: "note" }, t(TEXTS.from, sentence.text.slice(...word.source), formatPercent(word.weight))),
    h("h3", {}, t(TEXTS.alternatives)), list,
    h("a", { class: "note", href: linkTo(attentionState(sentence)), onclick: (/** @type {MouseEvent} */ event) => openAttention(event, sentence) }, t(TEXTS.explore)));

  let isOpen = true;
  /** @param {boolean} returnsFocus whether the focus returns to the word */
  function close(returnsFocus) {
    if (!isOpen) return;
    isOpen = false;
    abortController.abort();
    document.removeEventListener("pointerdown", closeOnOutsideClick, true);
    element.remove();
    button.removeAttribute("aria-expanded");
    handlers.onClose();
    if (returnsFocus) button.focus();
  }

  /** @param {PointerEvent} event */
  function closeOnOutsideClick(event) {
    if (event.target instanceof Node && !element.contains(event.target)) close(false);
  }

  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close(true);
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const choices = [...list.querySelectorAll("button")];
    if (!step || !choices.length) return;
    event.preventDefault();
    const index = choices.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    choices[index < 0 ? 0 : Math.max(0, Math.min(choices.length - 1, index + step))].focus();
  });
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !element.contains(relatedTarget)) close(false);
  });

  const prefix = sentence.translation.slice(0, word.span[0]);
  fetchAlternatives({ text: sentence.text, prefix, count: ALTERNATIVE_COUNT, source: languages.from, target: languages.to }, abortController.signal).then((alternatives) => {
    const others = alternatives.filter((alternative) => alternative.translation !== sentence.translation);
    list.removeAttribute("aria-busy");
    replaceContent(list, others.length === 0 && h("p", { class: "note" }, t(TEXTS.none)),
      alternatives.map((alternative) => alternativeButton(alternative, prefix, alternative.translation === sentence.translation, languages.to, () => {
        close(true);
        handlers.onPick(alternative);
      })));
    element.scrollIntoView({ block: "nearest" });
    handlers.onLoaded(others.length);
    announce(t(TEXTS.count, others.length));
  }).catch((error) => {
    if (!abortController.signal.aborted) replaceContent(list, h("p", { class: "error" }, handlers.describeError(error)));
  });

  button.setAttribute("aria-expanded", "true");
  pane.append(element);
  placePopover(element, button, pane);
  document.addEventListener("pointerdown", closeOnOutsideClick, true);
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
  return () => close(false);
}

/**
 * A button for one alternative: the next word in bold, then the rest, which the model translated again.
 * @param {Translation} alternative
 * @param {string} prefix
 * @param {boolean} isCurrent
 * @param {string} language
 * @param {() => void} onPick
 */
function alternativeButton(alternative, prefix, isCurrent, language, onPick) {
  const rest = alternative.translation.startsWith(prefix) ? alternative.translation.slice(prefix.length) : alternative.translation;
  const changedWord = firstWord(rest, language);
  return h("button", { type: "button", class: "alternative", "aria-current": isCurrent ? "true" : null, onclick: onPick },
    h("span", { lang: language }, prefix.trim() && "… ", h("strong", {}, changedWord), h("span", { class: "rest" }, rest.slice(changedWord.length))),
    h("span", { class: "note", title: t(TEXTS.mean) }, isCurrent ? t(TEXTS.current) : formatPercent(Math.exp(alternative.score))));
}

/**
 * @param {string} text
 * @param {string} language
 */
function firstWord(text, language) {
  for (const { segment, index, isWordLike } of new Intl.Segmenter(language, { granularity: "word" }).segment(text))
    if (isWordLike) return text.slice(0, index + segment.length);
  return text;
}

/**
 * @param {HTMLElement} element
 * @param {HTMLElement} button
 * @param {HTMLElement} pane
 */
function placePopover(element, button, pane) {
  const [word, frame] = [button.getBoundingClientRect(), pane.getBoundingClientRect()];
  const left = Math.max(8, Math.min(word.left - frame.left - 16, frame.width - element.offsetWidth - 8));
  element.style.setProperty("left", `${left}px`);
  element.style.setProperty("top", `${word.bottom - frame.top + 8}px`);
}

/**
 * Return the state that opens a sentence in the attention screen.
 * @param {import("./translate_sentences.js").Sentence} sentence
 * @returns {import("../url_state.js").StateChanges}
 */
export function attentionState(sentence) {
  return { screen: "attention", text: sentence.text, given: sentence.isChanged ? sentence.translation : "", row: "", column: "", off: "" };
}

/**
 * @param {MouseEvent} event
 * @param {import("./translate_sentences.js").Sentence} sentence
 */
export function openAttention(event, sentence) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  setState(attentionState(sentence));
  document.getElementById("main")?.focus({ preventScroll: true });
}
