/** The words of a translation as buttons: underlined where the model is unsure, and highlighted together with the source words they come from. */

import { h, replaceContent } from "../dom.js";
import { t } from "../page_text.js";
import { formatPercent } from "./translate_sentences.js";

const TEXTS = {
  label: { en: "Translation by word: arrow keys move, Enter opens", zh: "译文逐词显示：方向键移动，回车键打开" },
  word: { en: "{0}, {1}, from {2}", zh: "{0}，{1}，来自 {2}" },
  wordWithCount: { en: "{0}, {1}, from {2}, {3} alternatives", zh: "{0}，{1}，来自 {2}，{3} 个其他译法" },
  showWords: { en: "Show the words of this part", zh: "查看这一部分的词" },
};

/** @typedef {import("./translate_sentences.js").Item} Item */
/** @typedef {import("./translate_sentences.js").Sentence} Sentence */
/** @typedef {import("./translate_sentences.js").Word} Word */
/** @typedef {{button: HTMLButtonElement, sentence: Sentence, word: Word}} WordButton */

const CLOSING_PUNCTUATION = /^[\p{Pe}\p{Pf}\p{Po}]/u;
const OPENING_PUNCTUATION = /[\p{Ps}\p{Pi}]$/u;
const BREAKABLE_SCRIPT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u; // a line may break anywhere
const MAX_UNBROKEN = 24; // characters kept on one line

/**
 * @param {(wordButton: WordButton) => void} onOpen
 * @param {(wordButton: WordButton | null) => void} onHighlight
 * @param {(part: Sentence) => void} onLoadPart called to load the words of a part
 */
export function wordsPane(onOpen, onHighlight, onLoadPart) {
  const element = h("div", { class: "words", id: "words", role: "group", "aria-label": t(TEXTS.label), lang: "" });
  /** @type {WordButton[]} */
  let wordButtons = [];

  /** @param {EventTarget | null} target */
  function findWord(target) {
    const button = target instanceof Element ? target.closest(".word") : null;
    return button instanceof HTMLElement ? wordButtons[Number(button.dataset.index)] : undefined;
  }

  element.addEventListener("click", (event) => {
    const wordButton = findWord(event.target);
    if (!wordButton) return;
    setTabStop(wordButton.button);
    onOpen(wordButton);
  });
  for (const kind of ["pointerover", "focusin"]) element.addEventListener(kind, (event) => onHighlight(findWord(event.target) ?? null));
  for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, () => onHighlight(null));
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    const index = wordButtons.findIndex(({ button }) => button === event.target);
    if (!step || index < 0) return;
    event.preventDefault();
    const next = wordButtons[Math.max(0, Math.min(wordButtons.length - 1, index + step))].button;
    setTabStop(next);
    next.focus();
  });

  /** @param {HTMLButtonElement} to becomes the only stop for the Tab key */
  function setTabStop(to) {
    for (const { button } of wordButtons) if (button.tabIndex === 0) button.tabIndex = -1;
    to.tabIndex = 0;
  }

  /**
   * @param {Sentence} sentence
   * @returns {(Node | string)[]}
   */
  function sentenceNodes(sentence) {
    /** @type {(Node | string)[]} */
    const parts = [];
    /** @type {HTMLElement | null} */
    let group = null;
    let end = 0;
    for (const word of sentence.words) {
      const between = sentence.translation.slice(end, word.span[0]);
      const before = sentence.translation.slice(0, word.span[0]);
      if (between || !group || !isUnbreakable(before, word.text) || (group.textContent ?? "").length > MAX_UNBROKEN) {
        if (between) parts.push(between);
        group = h("span", { class: "unbroken" });
        parts.push(group);
      }
      const button = makeWordButton(word, sentence);
      group.append(button);
      wordButtons.push({ button, sentence, word });
      end = word.span[1];
    }
    parts.push(sentence.translation.slice(end));
    return parts;
  }

  /**
   * @param {Word} word
   * @param {Sentence} sentence
   */
  function makeWordButton(word, sentence) {
    return h("button", {
      type: "button", class: word.hasWarning ? "word has-warning" : "word", tabindex: -1, "aria-haspopup": "dialog",
      dataset: { index: wordButtons.length, probability: word.probability.toFixed(6) },
      style: { "--uncertainty": `${Math.round(100 * (1 - word.probability))}%` },
      "aria-label": t(TEXTS.word, word.text, formatPercent(word.probability), sentence.text.slice(...word.source)),
    }, word.text);
  }

  /**
   * @param {Item[]} items
   * @param {string} language
   */
  function show(items, language) {
    wordButtons = [];
    element.lang = language;
    replaceContent(element, items.flatMap((item) => {
      if (typeof item === "string") return [item];
      if (item.isClosed) return [item.translation.replace(/\n+$/, ""), " ", partButton(item), item.translation.match(/\n+$/)?.[0] ?? ""];
      return item.isChanged ? [h("span", { class: "changed" }, sentenceNodes(item))] : sentenceNodes(item);
    }));
    if (wordButtons.length) wordButtons[0].button.tabIndex = 0;
    return wordButtons;
  }

  /** @param {Sentence} part */
  function partButton(part) {
    return h("button", { type: "button", class: "load-words", "aria-label": t(TEXTS.showWords), title: t(TEXTS.showWords), onclick: (/** @type {MouseEvent} */ event) => {
      /** @type {HTMLButtonElement} */ (event.currentTarget).disabled = true;
      onLoadPart(part);
    } }, "⋯");
  }

  /** @param {WordButton[]} chosen */
  function highlight(chosen) {
    for (const highlighted of element.querySelectorAll(".highlighted")) highlighted.classList.remove("highlighted");
    for (const { button } of chosen) button.classList.add("highlighted");
  }

  /**
   * @param {WordButton} wordButton
   * @param {number} count
   */
  function labelWithCount(wordButton, count) {
    wordButton.button.setAttribute("aria-label",
      t(TEXTS.wordWithCount, wordButton.word.text, formatPercent(wordButton.word.probability), wordButton.sentence.text.slice(...wordButton.word.source), count));
  }

  return { element, show, highlight, labelWithCount };
}

/**
 * Return whether a line must not break here: inside a word, before closing or after opening punctuation.
 * @param {string} before
 * @param {string} word
 */
function isUnbreakable(before, word) {
  const last = [...before.slice(-2)].pop() ?? "";
  return CLOSING_PUNCTUATION.test(word) || OPENING_PUNCTUATION.test(last) || !(BREAKABLE_SCRIPT.test(last) || BREAKABLE_SCRIPT.test(word));
}

// --- highlights: a word and the source word it comes from, both ways ------------------------------------------------

/** @typedef {import("../api.js").Span} Span */

/**
 * @param {{markWords: (spans: Span[]) => void, highlight: (index: number | null) => void}} source
 * @param {{highlight: (wordButtons: WordButton[]) => void}} words
 */
export function connectAlignment(source, words) {
  /** @type {WordButton[]} */
  let wordButtons = [];
  /** @type {Map<number, number>} start of a source word → index of its mark */
  let markIndexes = new Map();
  /** @type {WordButton | null} */
  let pinned = null;

  /** @param {WordButton} wordButton */
  function markOf(wordButton) {
    return markIndexes.get(wordButton.sentence.offset + wordButton.word.source[0]) ?? null;
  }

  /** @param {WordButton | null} wordButton the word under the pointer or with the focus */
  function highlightWord(wordButton) {
    const current = wordButton ?? pinned;
    source.highlight(current && markOf(current));
    words.highlight(current ? [current] : []);
  }

  return {
    highlightWord,
    /** @param {number | null} index of a marked source word */
    highlightSource: (index) => {
      if (index === null) return highlightWord(null);
      source.highlight(index);
      words.highlight(wordButtons.filter((wordButton) => markOf(wordButton) === index));
    },
    /** @param {WordButton | null} wordButton stays highlighted until another word is */
    pin: (wordButton) => highlightWord((pinned = wordButton)),
    /** @param {WordButton[]} newButtons */
    setWords: (newButtons) => {
      wordButtons = newButtons;
      pinned = null;
      const spans = new Map(wordButtons.map(({ sentence, word }) => [sentence.offset + word.source[0], sentence.offset + word.source[1]]));
      const sorted = [...spans].filter(([start, end]) => start < end).sort(([first], [second]) => first - second);
      const disjoint = sorted.filter(([start], index) => index === 0 || sorted[index - 1][1] <= start);
      markIndexes = new Map(disjoint.map(([start], index) => [start, index]));
      source.markWords(disjoint);
    },
  };
}
