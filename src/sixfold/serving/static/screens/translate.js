/** The translate screen: translates while the user types, and explains every word of the translation. */

import { fetchSettings, requestJson, streamTranslation } from "../api.js";
import { announce, debounce, h, replaceContent } from "../dom.js";
import { languageName, t } from "../page_text.js";
import { describeFailure, retryUntilDone } from "../retry.js";
import { getState, onStateChange, setState } from "../url_state.js";
import { actionButtons } from "./translate_actions.js";
import { documentsSection } from "./translate_documents.js";
import { failureNotice, partialTranslation } from "./translate_progress.js";
import { confidenceNote, otherTranslations, warningsNote } from "./translate_quality.js";
import { joinItems, splitLongText, splitSentences } from "./translate_sentences.js";
import { directionChooser, exampleButtons, sourceField } from "./translate_source.js";
import { openWordPopover } from "./translate_word_popover.js";
import { connectAlignment, wordsPane } from "./translate_words.js";

export const TITLE = { en: "Translate", zh: "翻译" };

const TEXTS = {
  lead: {
    en: "Translates as you type. Open any word to see how likely it is, which source word it comes from, and what the alternatives are.",
    zh: "边输入边翻译。点开任意一个词，看看它的概率、来自原文的哪个词、还有哪些译法。",
  },
  target: { en: "Translation", zh: "译文" },
  text: { en: "Text", zh: "原文" },
  empty: { en: "The translation appears here.", zh: "译文会显示在这里。" },
  tooLong: {
    en: "This text is too long: this server takes {0} characters at once. For longer texts, translate a document.",
    zh: "文本过长：此服务器一次最多接受 {0} 个字符。更长的内容请用文档翻译。",
  },
};

const LONG_TEXT = 2000; // characters: longer texts are not put into the address, and their words are loaded part by part
const TYPING_PAUSE = 250; // milliseconds without typing before a text is sent
const N_BEST = 4;

/** @typedef {import("./translate_sentences.js").Item} Item */
/** @typedef {import("./translate_words.js").WordButton} WordButton */
/** @typedef {{text: string, from: string, to: string, result: import("../api.js").Translation, items: Item[], undoStack: Item[][]}} TranslationView */

let longText = ""; // a text that is too long for the address
/** @type {TranslationView | null} */
let view = null; // outlives the screen: chosen alternatives survive a change of language or theme

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  let abortController = new AbortController();
  let isMounted = true;
  let limit = 0;
  let closePopover = () => {};
  /** @type {WordButton[]} */
  let wordButtons = [];

  const source = sourceField(onTyped, (markIndex) => alignment.highlightSource(markIndex));
  const words = wordsPane(openPopover, (wordButton) => alignment.highlightWord(wordButton), loadPartWords);
  const alignment = connectAlignment(source, words);
  const direction = directionChooser(swapLanguages);
  const title = h("h2", {}, t(TEXTS.target));
  const header = h("span", { class: "head-note" });
  const footer = h("div", { class: "pane-foot" });
  const below = h("div", { class: "quality-notes" });
  const examples = exampleButtons((text) => {
    source.setText(text);
    source.area.focus();
    send();
  });
  const notice = failureNotice();
  const target = h("section", { class: "pane target", id: "target", "aria-label": t(TEXTS.target) },
    h("div", { class: "pane-head" }, title, header), notice.element, words.element, footer);
  const files = documentsSection();
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))),
    h("div", { class: "panel panes" },
      h("section", { class: "pane", "aria-label": t(TEXTS.text) }, h("div", { class: "pane-head" }, direction.select, source.clear),
        source.field, examples, h("div", { class: "pane-foot" }, source.count)), direction.swap, target), below, files.element);

  // --- requests -----------------------------------------------------------------------------------------------------

  const sendLater = debounce(TYPING_PAUSE, () => isMounted && send());

  function onTyped() {
    abortController.abort(); // the pending request is for an older text
    closePopover();
    notice.hide();
    source.area.value.trim() ? setBusy("stale") : send();
    sendLater();
  }

  function send() {
    longText = source.area.value.length > LONG_TEXT ? source.area.value : "";
    const text = longText ? "" : source.area.value;
    if (text !== getState("text")) setState({ text });
    requestTranslation();
  }

  function isUpToDate() {
    return view !== null && view.text === source.area.value && view.from === getState("from") && view.to === getState("to");
  }

  async function requestTranslation() {
    abortController.abort();
    abortController = new AbortController();
    const { signal } = abortController;
    const [text, from, to] = [source.area.value, getState("from"), getState("to")];
    notice.hide();
    if (isUpToDate()) return showView();
    view = null;
    if (!text.trim()) return showView();
    if (source.isTooLong()) return showFailure(t(TEXTS.tooLong, limit.toLocaleString("en")), null);
    setBusy("stale");
    const isLong = text.length > LONG_TEXT;
    const options = { source: from || null, target: to || null, n_best: isLong ? 1 : N_BEST, details: !isLong };
    const partial = partialTranslation();
    try {
      const result = await retryUntilDone((onProgress) => {
        partial.restart();
        return streamTranslation(text, options, (sentence) => {
          if (partial.add(sentence)) onProgress();
          // When all sentences are there, the whole result comes next: a short text is shown only once, with its words.
          if (!partial.isShown() && sentence.done < sentence.total) showPartial(partial, to);
          notice.hide();
        }, signal);
      }, (message, tryNow) => {
        if (!partial.isEmpty() && !partial.isShown()) showPartial(partial, to);
        target.removeAttribute("aria-busy"); // nothing changes now, and the message must be read
        notice.show(message, tryNow);
      }, signal);
      view = { text, from, to, result, items: isLong ? splitLongText(result, LONG_TEXT) : splitSentences(result), undoStack: [] };
      showView();
      announce(joinItems(view.items).slice(0, LONG_TEXT));
    } catch (error) {
      if (signal.aborted) return;
      showFailure(describeFailure(error), requestTranslation, partial.isShown());
    }
  }

  /** @param {import("./translate_sentences.js").Sentence} part */
  async function loadPartWords(part) {
    const openedView = view;
    const { signal } = abortController;
    if (!openedView) return;
    try {
      const languages = { source: openedView.result.from, target: openedView.result.to };
      const result = await streamTranslation(part.text, { ...languages, details: true }, () => {}, signal);
      const sentences = splitSentences(result, part.offset);
      openedView.items = openedView.items.flatMap((item) => (item === part ? sentences : [item]));
      if (openedView !== view || signal.aborted) return;
      showView();
      wordButtons.find(({ sentence }) => sentences.includes(sentence))?.button.focus();
    } catch (error) {
      if (!signal.aborted && openedView === view) notice.show(describeFailure(error), showView);
    }
  }

  // --- display ------------------------------------------------------------------------------------------------------

  /** @param {"" | "stale" | "partial"} work whether an older result is shown while a new one is made, or a part of the new one */
  function setBusy(work) {
    target.classList.toggle("working", work !== "");
    for (const element of [target, below]) element.classList.toggle("stale", work === "stale");
    if (work === "stale") target.setAttribute("aria-busy", "true");
    else target.removeAttribute("aria-busy");
  }

  function adaptToSource() {
    closePopover();
    root.querySelector(".panes")?.classList.toggle("small", source.area.value.length > 160);
    examples.hidden = source.area.value !== "";
  }

  /**
   * Replace the older result by the sentences that have come.
   * @param {import("./translate_progress.js").PartialTranslation} partial
   * @param {string} language
   */
  function showPartial(partial, language) {
    setBusy("partial");
    adaptToSource();
    wordButtons = words.show([], language);
    alignment.setWords(wordButtons);
    title.textContent = language ? languageName(language) : t(TEXTS.target);
    replaceContent(header, partial.progress);
    for (const element of [footer, below]) replaceContent(element);
    partial.show(words.element);
  }

  function showView() {
    setBusy("");
    adaptToSource();
    notice.hide();
    const shownView = view;
    wordButtons = words.show(shownView ? shownView.items : [], shownView?.result.to ?? "");
    if (!shownView) words.element.append(h("p", { class: "waiting" }, t(TEXTS.empty)));
    alignment.setWords(wordButtons);
    direction.show(shownView && shownView.result);
    title.textContent = shownView ? languageName(shownView.result.to) : t(TEXTS.target);
    replaceContent(header, shownView && !shownView.undoStack.length && confidenceNote(shownView.result.confidence));
    replaceContent(footer, shownView && actionButtons(shownView, undo));
    replaceContent(below, shownView && warningsNote(shownView.result.warnings), shownView && otherTranslations(shownView.result.n_best, shownView.result.translation, shownView.result.to));
  }

  /**
   * @param {string} message
   * @param {(() => void) | null} onRetry
   * @param {boolean} [keepsPartial] whether the sentences that are shown stay
   */
  function showFailure(message, onRetry, keepsPartial = false) {
    if (keepsPartial) setBusy("");
    else {
      showView();
      replaceContent(words.element);
    }
    notice.show(message, onRetry);
  }

  // --- actions ------------------------------------------------------------------------------------------------------

  /** @param {WordButton} wordButton */
  function openPopover(wordButton) {
    closePopover();
    if (!view || target.classList.contains("stale")) return;
    closePopover = openWordPopover(target, wordButton, view.result, {
      describeError: describeFailure,
      onLoaded: (count) => words.labelWithCount(wordButton, count),
      onPick: (alternative) => replaceSentence(wordButton, alternative.translation),
      onClose: () => alignment.pin(null),
    });
    alignment.pin(wordButton);
  }

  /**
   * Replace the sentence of a word by the chosen alternative. Its words and probabilities need another request.
   * @param {WordButton} wordButton
   * @param {string} translation
   */
  async function replaceSentence({ sentence, word }, translation) {
    const changedView = view;
    const { signal } = abortController;
    if (!changedView || translation === sentence.translation) return;
    setBusy("stale");
    const request = { text: sentence.text, translation, source: changedView.result.from, target: changedView.result.to };
    const scored = await requestJson("/api/v1/score", request, signal).catch(() => null);
    if (changedView !== view || signal.aborted) return;
    /** @type {Item[]} */
    const items = scored ? splitSentences(scored.translations[0], sentence.offset) : [];
    const scoredSentence = items.find((item) => typeof item !== "string" && item.translation === translation);
    const changedSentence = { ...(typeof scoredSentence === "object" ? scoredSentence : { ...sentence, words: [] }), translation, isChanged: true };
    changedView.undoStack.push(changedView.items);
    changedView.items = changedView.items.map((item) => (item === sentence ? changedSentence : item));
    showView();
    announce(translation);
    wordButtons.find((wordButton) => wordButton.sentence === changedSentence && wordButton.word.span[0] >= word.span[0])?.button.focus();
  }

  function undo() {
    const previousItems = view?.undoStack.pop();
    if (!view || !previousItems) return;
    view.items = previousItems;
    showView();
    announce(joinItems(previousItems).slice(0, LONG_TEXT));
    wordButtons[0]?.button.focus();
  }

  function swapLanguages() {
    const text = view ? joinItems(view.items) : source.area.value;
    longText = text.length > LONG_TEXT ? text : "";
    setState({ from: getState("to"), to: getState("from"), text: longText ? "" : text });
  }

  fetchSettings().then(({ charLimit }) => source.setLimit((limit = charLimit))).catch(() => {});

  const stopListening = onStateChange((changed) => {
    const text = getState("text") || longText;
    const isNewText = changed.has("text") && text !== source.area.value;
    if (isNewText) source.setText(text);
    if (isNewText || changed.has("from") || changed.has("to")) requestTranslation();
  });
  source.setText(getState("text") || longText);
  if (!isUpToDate()) view = null;
  showView();
  requestTranslation();
  return () => {
    isMounted = false;
    abortController.abort();
    closePopover();
    files.dispose();
    stopListening();
  };
}
