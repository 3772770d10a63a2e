/** The words of a translation as buttons: underlined where the model was unsure, arrows lead from one to the next. */

import { h, refill } from "../dom.js";
import { t } from "../page_text.js";
import { percent } from "./translate_sentences.js";

const WORDS = {
  label: { en: "Translation, word by word: arrows move, Enter opens", zh: "译文逐词：方向键移动，回车键打开" },
  word: { en: "{0}, {1}, from {2}", zh: "{0}，{1}，来自 {2}" },
  known: { en: "{0}, {1}, from {2}, {3} alternatives", zh: "{0}，{1}，来自 {2}，{3} 个其他译法" },
  open: { en: "Show the words of this part", zh: "查看这一部分的词" },
};

/** @typedef {import("./translate_sentences.js").Item} Item */
/** @typedef {import("./translate_sentences.js").Sentence} Sentence */
/** @typedef {import("./translate_sentences.js").Word} Word */
/** @typedef {{button: HTMLButtonElement, sentence: Sentence, word: Word}} Shown */

const CLOSES = /^[\p{Pe}\p{Pf}\p{Po}]/u;
const OPENS = /[\p{Ps}\p{Pi}]$/u;
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u; // a line may end anywhere
const LONGEST = 24; // characters that no line may end between

/**
 * @param {(shown: Shown) => void} onOpen
 * @param {(shown: Shown | null) => void} onLook
 * @param {(part: Sentence) => void} onAsk for the words of a part
 */
export function wordsPane(onOpen, onLook, onAsk) {
  const element = h("div", { class: "words", id: "words", role: "group", "aria-label": t(WORDS.label), lang: "" });
  /** @type {Shown[]} */
  let shown = [];

  /** @param {EventTarget | null} target */
  function find(target) {
    const button = target instanceof Element ? target.closest(".word") : null;
    return button instanceof HTMLElement ? shown[Number(button.dataset.place)] : undefined;
  }

  element.addEventListener("click", (event) => {
    const found = find(event.target);
    if (!found) return;
    step(found.button);
    onOpen(found);
  });
  for (const kind of ["pointerover", "focusin"]) element.addEventListener(kind, (event) => onLook(find(event.target) ?? null));
  for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, () => onLook(null));
  element.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    const here = shown.findIndex(({ button }) => button === event.target);
    if (!by || here < 0) return;
    event.preventDefault();
    const next = shown[Math.max(0, Math.min(shown.length - 1, here + by))].button;
    step(next);
    next.focus();
  });

  /** @param {HTMLButtonElement} to the one stop for the Tab key */
  function step(to) {
    for (const { button } of shown) if (button.tabIndex === 0) button.tabIndex = -1;
    to.tabIndex = 0;
  }

  /**
   * @param {Sentence} sentence
   * @returns {(Node | string)[]}
   */
  function spelt(sentence) {
    /** @type {(Node | string)[]} */
    const parts = [];
    /** @type {HTMLElement | null} */
    let group = null;
    let end = 0;
    for (const word of sentence.words) {
      const between = sentence.said.slice(end, word.span[0]);
      const before = sentence.said.slice(0, word.span[0]);
      if (between || !group || !isOne(before, word.text) || (group.textContent ?? "").length > LONGEST) {
        if (between) parts.push(between);
        group = h("span", { class: "together" });
        parts.push(group);
      }
      const button = drawn(word, sentence);
      group.append(button);
      shown.push({ button, sentence, word });
      end = word.span[1];
    }
    parts.push(sentence.said.slice(end));
    return parts;
  }

  /**
   * @param {Word} word
   * @param {Sentence} sentence
   */
  function drawn(word, sentence) {
    return h("button", {
      type: "button", class: word.isWary ? "word wary" : "word", tabindex: -1, "aria-haspopup": "dialog",
      dataset: { place: shown.length, probability: word.probability.toFixed(6) },
      style: { "--doubt": `${Math.round(100 * (1 - word.probability))}%` },
      "aria-label": t(WORDS.word, word.text, percent(word.probability), sentence.text.slice(...word.source)),
    }, word.text);
  }

  /**
   * @param {Item[]} items
   * @param {string} language
   */
  function show(items, language) {
    shown = [];
    element.lang = language;
    refill(element, items.flatMap((item) => {
      if (typeof item === "string") return [item];
      if (item.isClosed) return [item.said.replace(/\n+$/, ""), " ", opener(item), item.said.match(/\n+$/)?.[0] ?? ""];
      return item.isChanged ? [h("span", { class: "changed" }, spelt(item))] : spelt(item);
    }));
    if (shown.length) shown[0].button.tabIndex = 0;
    return shown;
  }

  /** @param {Sentence} part */
  function opener(part) {
    return h("button", { type: "button", class: "opener", "aria-label": t(WORDS.open), title: t(WORDS.open), onclick: (/** @type {MouseEvent} */ event) => {
      /** @type {HTMLButtonElement} */ (event.currentTarget).disabled = true;
      onAsk(part);
    } }, "⋯");
  }

  /** @param {Shown[]} these */
  function light(these) {
    for (const lit of element.querySelectorAll(".lit")) lit.classList.remove("lit");
    for (const { button } of these) button.classList.add("lit");
  }

  /**
   * @param {Shown} its
   * @param {number} count
   */
  function tell(its, count) {
    its.button.setAttribute("aria-label",
      t(WORDS.known, its.word.text, percent(its.word.probability), its.sentence.text.slice(...its.word.source), count));
  }

  return { element, show, light, tell };
}

/**
 * Whether no line may end between them: letters of one word, a word and what closes it, what opens and a word.
 * @param {string} before
 * @param {string} word
 */
function isOne(before, word) {
  const last = [...before.slice(-2)].pop() ?? "";
  return CLOSES.test(word) || OPENS.test(last) || !(DENSE.test(last) || DENSE.test(word));
}

// --- Which word comes from which, shown both ways: looking at one lights the other.

/** @typedef {import("../api.js").Span} Span */

/**
 * @param {{mark: (spans: Span[]) => void, light: (place: number | null) => void}} source
 * @param {{light: (these: Shown[]) => void}} words
 */
export function linked(source, words) {
  /** @type {Shown[]} */
  let shown = [];
  /** @type {Map<number, number>} where a source word begins, and which of the marked it is */
  let marks = new Map();
  /** @type {Shown | null} */
  let held = null;

  /** @param {Shown} its */
  function markOf(its) {
    return marks.get(its.sentence.at + its.word.source[0]) ?? null;
  }

  /** @param {Shown | null} its a word that the pointer or the focus is at */
  function look(its) {
    const one = its ?? held;
    source.light(one && markOf(one));
    words.light(one ? [one] : []);
  }

  return {
    look,
    /** @param {number | null} place of a marked word of the source */
    lookBack: (place) => {
      if (place === null) return look(null);
      source.light(place);
      words.light(shown.filter((each) => markOf(each) === place));
    },
    /** @param {Shown | null} its stays lit while nothing else is looked at */
    hold: (its) => look((held = its)),
    /** @param {Shown[]} now */
    connect: (now) => {
      shown = now;
      held = null;
      const spans = new Map(shown.map(({ sentence, word }) => [sentence.at + word.source[0], sentence.at + word.source[1]]));
      const sorted = [...spans].filter(([start, end]) => start < end).sort(([one], [other]) => one - other);
      const apart = sorted.filter(([start], place) => place === 0 || sorted[place - 1][1] <= start);
      marks = new Map(apart.map(([start], place) => [start, place]));
      source.mark(apart);
    },
  };
}
