/** Translate: a text as it is typed, and every word of its translation open to questions. */

import { json, Refused, settings, translate } from "../api.js";
import { announce, h, refill, settled } from "../dom.js";
import { languageName, t } from "../page_text.js";
import { get, set, watch } from "../url_state.js";
import { tools } from "./translate_actions.js";
import { filesBar } from "./translate_documents.js";
import { confidence, otherWays, warnings } from "./translate_quality.js";
import { inParts, joined, laidOut } from "./translate_sentences.js";
import { directionChooser, exampleChips, sourceField } from "./translate_source.js";
import { openWord } from "./translate_word_popover.js";
import { linked, wordsPane } from "./translate_words.js";

export const TITLE = { en: "Translate", zh: "翻译" };

const WORDS = {
  lead: { en: "Translates as you type. Open any word to see how sure the model is, where it comes from, and what else it could be.",
    zh: "边输入边翻译。点开任意一个词，看看模型有多大把握、它来自哪里、还能怎么译。" },
  target: { en: "Translation", zh: "译文" },
  text: { en: "Text", zh: "原文" },
  empty: { en: "The translation appears here.", zh: "译文会显示在这里。" },
  gone: { en: "The server does not answer. Is it still running?", zh: "服务器没有响应，它还在运行吗？" },
  over: { en: "This text is too long: this server takes {0} characters at once. A document has more room.", zh: "文本过长：此服务器一次最多接受 {0} 个字符。可以改用文档翻译。" },
  again: { en: "Try again", zh: "重试" },
};

const LONG = 2000; // characters; what is longer is not put into the address, and its words are asked for part by part
const REST = 250; // milliseconds without a key until a text is sent
const WAYS = 4;

/** @typedef {import("./translate_sentences.js").Item} Item */
/** @typedef {import("./translate_words.js").Shown} Shown */
/** @typedef {{text: string, from: string, to: string, answer: import("../api.js").Translation, items: Item[], before: Item[][]}} View */

let kept = ""; // a text too long for the address
/** @type {View | null} */
let view = null; // outlives the screen, so that what was chosen is still there in another language or colour

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  let asking = new AbortController();
  let isHere = true;
  let limit = 0;
  let closeWord = () => {};
  /** @type {Shown[]} */
  let shown = [];

  const source = sourceField(typed, (place) => links.lookBack(place));
  const words = wordsPane(open, (its) => links.look(its), openPart);
  const links = linked(source, words);
  const direction = directionChooser(turn);
  const title = h("h2", {}, t(WORDS.target));
  const chip = h("span", { class: "head-note" });
  const foot = h("div", { class: "pane-foot" });
  const below = h("div", { class: "below" });
  const examples = exampleChips((text) => {
    source.put(text);
    source.area.focus();
    send();
  });
  const target = h("section", { class: "pane target", id: "target", "aria-label": t(WORDS.target) },
    h("div", { class: "pane-head" }, title, chip), words.element, foot);
  const files = filesBar(tell);
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))),
    h("div", { class: "panel panes" },
      h("section", { class: "pane", "aria-label": t(WORDS.text) }, h("div", { class: "pane-head" }, direction.select, source.clear),
        source.field, examples, h("div", { class: "pane-foot" }, source.count)), direction.swap, target), below, files.element);

  // --- asking --------------------------------------------------------------------------------------------------------

  const rested = settled(REST, () => isHere && send());

  function typed() {
    asking.abort(); // what was asked for is for another text
    closeWord();
    source.area.value.trim() ? busy(true) : send();
    rested();
  }

  function send() {
    kept = source.area.value.length > LONG ? source.area.value : "";
    const text = kept ? "" : source.area.value;
    if (text !== get("text")) set({ text });
    ask();
  }

  function isShown() {
    return view !== null && view.text === source.area.value && view.from === get("from") && view.to === get("to");
  }

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const [text, from, to] = [source.area.value, get("from"), get("to")];
    if (isShown()) return present();
    view = null;
    if (!text.trim()) return present();
    if (source.isOver()) return fail(t(WORDS.over, limit.toLocaleString("en")), false);
    busy(true);
    const isLong = text.length > LONG;
    try {
      const how = { source: from || null, target: to || null, n_best: isLong ? 1 : WAYS, details: !isLong };
      const [answer] = await translate([text], how, signal);
      if (signal.aborted) return;
      view = { text, from, to, answer, items: isLong ? inParts(answer, LONG) : laidOut(answer), before: [] };
      present();
      announce(joined(view.items).slice(0, LONG));
    } catch (error) {
      if (!signal.aborted) fail(tell(error), true);
    }
  }

  /** @param {import("./translate_sentences.js").Sentence} part */
  async function openPart(part) {
    const its = view;
    const { signal } = asking;
    if (!its) return;
    try {
      const [answer] = await translate([part.text], { source: its.answer.from, target: its.answer.to, details: true }, signal);
      const found = laidOut(answer, part.at);
      its.items = its.items.flatMap((item) => (item === part ? found : [item]));
      if (its !== view || signal.aborted) return;
      present();
      shown.find(({ sentence }) => found.includes(sentence))?.button.focus();
    } catch (error) {
      if (!signal.aborted) fail(tell(error), true);
    }
  }

  // --- showing -------------------------------------------------------------------------------------------------------

  /** @param {boolean} isBusy */
  function busy(isBusy) {
    if (isBusy) target.setAttribute("aria-busy", "true");
    else target.removeAttribute("aria-busy");
  }

  function present() {
    busy(false);
    closeWord();
    const is = view;
    const isSmall = source.area.value.length > 160;
    root.querySelector(".panes")?.classList.toggle("small", isSmall);
    examples.hidden = source.area.value !== "";
    shown = words.show(is ? is.items : [], is?.answer.to ?? "");
    if (!is) words.element.append(h("p", { class: "waiting" }, t(WORDS.empty)));
    links.connect(shown);
    direction.show(is && is.answer);
    title.textContent = is ? languageName(is.answer.to) : t(WORDS.target);
    refill(chip, is && !is.before.length && confidence(is.answer.confidence));
    refill(foot, is && tools(is, undo));
    refill(below, is && warnings(is.answer.warnings), is && otherWays(is.answer.n_best, is.answer.translation, is.answer.to));
  }

  /** @param {unknown} error */
  function tell(error) {
    if (error instanceof Refused) return `${error.message}${error.hint ? ` – ${error.hint}` : ""}`;
    return error instanceof TypeError ? t(WORDS.gone) : error instanceof Error ? error.message : String(error);
  }

  /**
   * @param {string} message
   * @param {boolean} isWorthAnother attempt
   */
  function fail(message, isWorthAnother) {
    view = null;
    present();
    refill(words.element, h("p", { class: "wrong trouble", role: "alert" }, message),
      isWorthAnother && h("button", { type: "button", class: "quiet framed", id: "again", onclick: ask }, t(WORDS.again)));
  }

  // --- what can be done ----------------------------------------------------------------------------------------------

  /** @param {Shown} its */
  function open(its) {
    closeWord();
    if (!view) return;
    closeWord = openWord(target, its, view.answer, {
      tell,
      onKnown: (count) => words.tell(its, count),
      onPick: (chosen) => pick(its, chosen.translation),
      onClose: () => links.hold(null),
    });
    links.hold(its);
  }

  /**
   * The sentence of this word becomes what was chosen; what is inside of that takes another pass.
   * @param {Shown} its
   * @param {string} said
   */
  async function pick({ sentence, word }, said) {
    const is = view;
    const { signal } = asking;
    if (!is || said === sentence.said) return;
    busy(true);
    const asked = { text: sentence.text, translation: said, source: is.answer.from, target: is.answer.to };
    const answers = await json("/api/v1/score", asked, signal).catch(() => null);
    if (is !== view || signal.aborted) return;
    /** @type {Item[]} */
    const found = answers ? laidOut(answers.translations[0], sentence.at) : [];
    const known = found.find((item) => typeof item !== "string" && item.said === said);
    const next = { ...(typeof known === "object" ? known : { ...sentence, words: [] }), said, isChanged: true };
    is.before.push(is.items);
    is.items = is.items.map((item) => (item === sentence ? next : item));
    present();
    announce(said);
    shown.find((each) => each.sentence === next && each.word.span[0] >= word.span[0])?.button.focus();
  }

  function undo() {
    const before = view?.before.pop();
    if (!view || !before) return;
    view.items = before;
    present();
    announce(joined(before).slice(0, LONG));
    shown[0]?.button.focus();
  }

  function turn() {
    const text = view ? joined(view.items) : source.area.value;
    kept = text.length > LONG ? text : "";
    set({ from: get("to"), to: get("from"), text: kept ? "" : text });
  }

  settings().then(({ charLimit }) => source.allow((limit = charLimit))).catch(() => {});

  const end = watch((changed) => {
    const wanted = get("text") || kept;
    const isOther = changed.has("text") && wanted !== source.area.value;
    if (isOther) source.put(wanted);
    if (isOther || changed.has("from") || changed.has("to")) ask();
  });
  source.put(get("text") || kept);
  if (!isShown()) view = null;
  present();
  ask();
  return () => {
    isHere = false;
    asking.abort();
    closeWord();
    files.end();
    end();
  };
}
