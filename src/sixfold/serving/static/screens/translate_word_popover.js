/** What there is to know of a word, and what could stand in its place. */

import { alternatives } from "../api.js";
import { announce, h, refill } from "../dom.js";
import { t } from "../page_text.js";
import { link, set } from "../url_state.js";
import { percent } from "./translate_sentences.js";

const WORDS = {
  label: { en: "About “{0}”", zh: "关于“{0}”" },
  close: { en: "Close", zh: "关闭" },
  sure: { en: "is what the model gave this word here", zh: "模型在此处给这个词的概率" },
  pieces: { en: "Its pieces", zh: "它的词片" },
  from: { en: "It looked at “{0}” most, with {1} of its attention.", zh: "它最关注“{0}”，占其注意力的 {1}。" },
  others: { en: "Say it another way from here", zh: "从这里换一种说法" },
  wait: { en: "Asking the model…", zh: "正在询问模型…" },
  none: { en: "The model knows no other way.", zh: "模型没有其他译法。" },
  now: { en: "as it is", zh: "当前" },
  mean: { en: "the mean probability of its pieces", zh: "其词片的平均概率" },
  count: { en: "{0} alternatives", zh: "{0} 个其他译法" },
  inside: { en: "Look inside this sentence", zh: "查看这句话的内部" },
};

/** @typedef {import("./translate_words.js").Shown} Shown */
/** @typedef {import("../api.js").Translation} Translation */

export const COUNT = 6; // alternatives that are asked for

/**
 * Opens below the word; Esc, a click elsewhere or leaving it closes it.
 * @param {HTMLElement} pane what it stands in
 * @param {Shown} shown
 * @param {{from: string, to: string}} languages
 * @param {{onPick: (chosen: Translation) => void, onKnown: (count: number) => void, onClose: () => void, tell: (error: unknown) => string}} calls
 * @returns {() => void} closes it
 */
export function openWord(pane, shown, languages, calls) {
  const { button, word, sentence } = shown;
  const asking = new AbortController();
  const list = h("div", { class: "others", "aria-busy": "true" }, h("p", { class: "note" }, t(WORDS.wait)));
  const element = h("div", { class: "popover", role: "dialog", id: "popover", "aria-label": t(WORDS.label, word.text), tabindex: -1 },
    h("div", { class: "popover-head" },
      h("strong", { class: "popover-word", lang: languages.to }, word.text),
      h("button", { type: "button", class: "quiet", "aria-label": t(WORDS.close), onclick: () => close(true) }, "✕")),
    h("p", { class: "sure" }, h("strong", {}, percent(word.probability)), " ", t(WORDS.sure)),
    h("div", { class: "gauge", "aria-hidden": "true" }, h("span", { style: { width: `${100 * word.probability}%` } })),
    word.pieces.length > 1 && h("div", { class: "pieces" }, h("span", { class: "note" }, t(WORDS.pieces)),
      word.pieces.map((piece) => h("span", { class: "chip" }, `${piece.text.trim() || "·"} ${percent(piece.probability)}`))),
    h("p", { class: "note" }, t(WORDS.from, sentence.text.slice(...word.source), percent(word.weight))),
    h("h3", {}, t(WORDS.others)), list,
    h("a", { class: "note", href: link(inside(sentence)), onclick: (/** @type {MouseEvent} */ event) => follow(event, sentence) }, t(WORDS.inside)));

  let isOpen = true;
  /** @param {boolean} isBack whether the focus returns to the word */
  function close(isBack) {
    if (!isOpen) return;
    isOpen = false;
    asking.abort();
    document.removeEventListener("pointerdown", outside, true);
    element.remove();
    button.removeAttribute("aria-expanded");
    calls.onClose();
    if (isBack) button.focus();
  }

  /** @param {PointerEvent} event */
  function outside(event) {
    if (event.target instanceof Node && !element.contains(event.target)) close(false);
  }

  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close(true);
      return;
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const choices = [...list.querySelectorAll("button")];
    if (!by || !choices.length) return;
    event.preventDefault();
    const here = choices.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    choices[here < 0 ? 0 : Math.max(0, Math.min(choices.length - 1, here + by))].focus();
  });
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !element.contains(relatedTarget)) close(false);
  });

  const prefix = sentence.said.slice(0, word.span[0]);
  alternatives({ text: sentence.text, prefix, count: COUNT, source: languages.from, target: languages.to }, asking.signal).then((found) => {
    const others = found.filter((each) => each.translation !== sentence.said);
    list.removeAttribute("aria-busy");
    refill(list, others.length === 0 && h("p", { class: "note" }, t(WORDS.none)),
      found.map((each) => choice(each, prefix, each.translation === sentence.said, languages.to, () => {
        close(true);
        calls.onPick(each);
      })));
    element.scrollIntoView({ block: "nearest" });
    calls.onKnown(others.length);
    announce(t(WORDS.count, others.length));
  }).catch((error) => {
    if (!asking.signal.aborted) refill(list, h("p", { class: "wrong" }, calls.tell(error)));
  });

  button.setAttribute("aria-expanded", "true");
  pane.append(element);
  put(element, button, pane);
  document.addEventListener("pointerdown", outside, true);
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
  return () => close(false);
}

/**
 * What comes next is set off from the rest, which the model translated anew.
 * @param {Translation} each
 * @param {string} prefix
 * @param {boolean} isNow
 * @param {string} language
 * @param {() => void} onPick
 */
function choice(each, prefix, isNow, language, onPick) {
  const rest = each.translation.startsWith(prefix) ? each.translation.slice(prefix.length) : each.translation;
  const next = first(rest, language);
  return h("button", { type: "button", class: "other", "aria-current": isNow ? "true" : null, onclick: onPick },
    h("span", { lang: language }, prefix.trim() && "… ", h("strong", {}, next), h("span", { class: "rest" }, rest.slice(next.length))),
    h("span", { class: "note", title: t(WORDS.mean) }, isNow ? t(WORDS.now) : percent(Math.exp(each.score))));
}

/**
 * @param {string} text
 * @param {string} language
 */
function first(text, language) {
  for (const { segment, index, isWordLike } of new Intl.Segmenter(language, { granularity: "word" }).segment(text))
    if (isWordLike) return text.slice(0, index + segment.length);
  return text;
}

/**
 * @param {HTMLElement} element
 * @param {HTMLElement} button
 * @param {HTMLElement} pane
 */
function put(element, button, pane) {
  const [word, frame] = [button.getBoundingClientRect(), pane.getBoundingClientRect()];
  const left = Math.max(8, Math.min(word.left - frame.left - 16, frame.width - element.offsetWidth - 8));
  element.style.setProperty("left", `${left}px`);
  element.style.setProperty("top", `${word.bottom - frame.top + 8}px`);
}

/**
 * The address of the Attention screen for a sentence.
 * @param {import("./translate_sentences.js").Sentence} sentence
 * @returns {import("../url_state.js").Changes}
 */
export function inside(sentence) {
  return { screen: "attention", text: sentence.text, given: sentence.isChanged ? sentence.said : "", row: "", column: "", off: "" };
}

/**
 * @param {MouseEvent} event
 * @param {import("./translate_sentences.js").Sentence} sentence
 */
export function follow(event, sentence) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  set(inside(sentence));
  document.getElementById("main")?.focus({ preventScroll: true });
}
