/** A translation while it is made: the sentences that have come, how many there are, and a notice if the server fails. */

import { h, replaceContent } from "../dom.js";
import { formatCount, t } from "../page_text.js";

const TEXTS = {
  progress: { en: "Translated so far", zh: "翻译进度" },
  count: { en: "{0} of {1} sentences", zh: "{0} / {1} 句" },
  retry: { en: "Try now", zh: "立即重试" },
};

const FEW_SENTENCES = 3; // need no progress bar

/** @typedef {import("../api.js").Progress} Progress */

/**
 * Return a progress bar with the number of sentences beside it.
 * @param {string} label
 * @param {string} [waitText] shown until the number of sentences is there
 */
export function sentenceProgress(label, waitText = "") {
  const bar = h("progress", { "aria-label": label });
  const note = h("span", { class: "note" }, waitText);
  return {
    element: h("span", { class: "sentence-progress" }, bar, note),
    /** @param {Progress} progress */
    show: ({ done, total }) => {
      if (!total) return;
      [bar.max, bar.value] = [total, done];
      note.textContent = t(TEXTS.count, formatCount(done), formatCount(total));
    },
  };
}

/**
 * @typedef {object} PartialTranslation The sentences of a stream, which may break off and begin again: then those that came before stay.
 * @property {HTMLElement} progress
 * @property {() => boolean} isEmpty
 * @property {() => boolean} isShown
 * @property {(element: HTMLElement) => void} show shows the sentences in an element, also those that come later
 * @property {() => void} restart must be called when the stream begins again
 * @property {(sentence: {text: string} & Progress) => boolean} add adds the next sentence and returns whether it never came before
 */

/** @returns {PartialTranslation} */
export function partialTranslation() {
  const { element: progress, show: showProgress } = sentenceProgress(t(TEXTS.progress));
  /** @type {Text[]} */
  const nodes = [];
  /** @type {HTMLElement | null} */
  let shownIn = null;
  let position = 0;
  return {
    progress,
    isEmpty: () => nodes.length === 0,
    isShown: () => shownIn !== null,
    show: (element) => {
      shownIn = element;
      element.append(...nodes);
    },
    restart: () => void (position = 0),
    add: ({ text, ...counts }) => {
      showProgress(counts);
      progress.hidden = counts.total <= FEW_SENTENCES;
      const node = nodes[position++];
      if (node) {
        if (node.data !== text) node.data = text;
        return false;
      }
      const added = new Text(text);
      nodes.push(added);
      shownIn?.append(added);
      return true;
    },
  };
}

/** Return a place for a message about a failure, with a button to try again. */
export function failureNotice() {
  const element = h("div", { class: "notice", hidden: true });
  let shownMessage = "";
  let tryAgain = () => {};
  return {
    element,
    /**
     * Show a message; if it is shown already, it stays, so that screen readers do not read it again.
     * @param {string} message
     * @param {(() => void) | null} onRetry
     */
    show: (message, onRetry) => {
      tryAgain = onRetry ?? (() => {});
      if (message === shownMessage) return;
      shownMessage = message;
      element.hidden = false;
      replaceContent(element, h("p", { class: "error error-message", role: "alert" }, message),
        onRetry && h("button", { type: "button", class: "subtle bordered", id: "again", onclick: () => tryAgain() }, t(TEXTS.retry)));
    },
    hide: () => {
      shownMessage = "";
      element.hidden = true;
      replaceContent(element);
    },
  };
}
