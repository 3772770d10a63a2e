/** Where a text is typed: it grows with the text, and a layer behind it can mark words. */

import { models } from "../api.js";
import { h, refill } from "../dom.js";
import { languageName, t } from "../page_text.js";
import { get, set } from "../url_state.js";

const WORDS = {
  label: { en: "Text to translate", zh: "要翻译的文字" },
  type: { en: "Type or paste a text", zh: "输入或粘贴文字" },
  clear: { en: "Clear the text", zh: "清空" },
  count: { en: "{0} of {1} characters", zh: "{0} / {1} 个字符" },
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "By script", zh: "自动识别" },
  found: { en: "By script: {0} → {1}", zh: "自动识别：{0} → {1}" },
  swap: { en: "Swap the languages, and translate back", zh: "交换语言并回译" },
  examples: { en: "Try one of these", zh: "试试这些句子" },
};

/** @typedef {import("../api.js").Span} Span */

/**
 * @param {(text: string) => void} onInput
 * @param {(place: number | null) => void} onLook which of the marked words the pointer or the caret is at
 */
export function sourceField(onInput, onLook) {
  const mirror = h("div", { class: "mirror", "aria-hidden": "true" });
  const area = h("textarea", {
    id: "source", "aria-label": t(WORDS.label), placeholder: t(WORDS.type), rows: 4, spellcheck: "false", autocomplete: "off",
    "aria-describedby": "count",
  });
  const count = h("span", { class: "note count", id: "count" });
  const clear = h("button", { type: "button", class: "quiet", id: "clear", "aria-label": t(WORDS.clear), title: t(WORDS.clear),
    onclick: () => change("") }, "✕");
  let limit = 0;

  function measure() {
    const length = [...area.value].length;
    clear.hidden = length === 0;
    count.textContent = limit ? t(WORDS.count, length.toLocaleString("en"), limit.toLocaleString("en")) : "";
    count.classList.toggle("wrong", limit > 0 && length > limit);
  }

  /** @param {string} text */
  function put(text) {
    area.value = text;
    mark([]);
    measure();
  }

  /** @param {string} text */
  function change(text) {
    put(text);
    area.focus();
    onInput(text);
  }

  /**
   * The layer says the same as the field; the last line must have a height even if it is empty.
   * @param {Span[]} spans in order; none may overlap another
   */
  function mark(spans) {
    /** @type {(Node | string)[]} */
    const parts = [];
    let end = 0;
    spans.forEach(([start, stop], place) => {
      parts.push(area.value.slice(end, start), h("mark", { dataset: { place } }, area.value.slice(start, stop)));
      end = stop;
    });
    refill(mirror, parts, `${area.value.slice(end)}\u200b`);
  }

  /** @param {number | null} place */
  function light(place) {
    for (const lit of mirror.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (place !== null) mirror.querySelector(`mark[data-place="${place}"]`)?.classList.add("lit");
  }

  area.addEventListener("input", (event) => {
    mark([]);
    measure();
    // Letters that an input method is still making a word of are not yet the text.
    if (!(event instanceof InputEvent && event.isComposing)) onInput(area.value);
  });
  area.addEventListener("compositionend", () => onInput(area.value));
  area.addEventListener("pointermove", (event) => {
    const under = document.elementsFromPoint(event.clientX, event.clientY).find((each) => each.matches(".mirror mark"));
    onLook(under instanceof HTMLElement ? Number(under.dataset.place) : null);
  });
  area.addEventListener("pointerleave", () => onLook(null));
  area.addEventListener("keyup", (event) => {
    if (!/^(Arrow|Home|End|Page)/.test(event.key)) return;
    let end = 0;
    let found = null;
    for (const node of mirror.childNodes) {
      const start = end;
      end += node.textContent?.length ?? 0;
      if (node instanceof HTMLElement && start <= area.selectionStart && area.selectionStart < end) found = Number(node.dataset.place);
    }
    onLook(found);
  });
  area.addEventListener("blur", () => onLook(null));

  return {
    field: h("div", { class: "field" }, mirror, area),
    area, clear, count, put, change, mark, light,
    /** @param {number} characters */
    allow: (characters) => {
      limit = characters;
      measure();
    },
    isOver: () => limit > 0 && area.value.length > limit && [...area.value].length > limit,
  };
}

// --- From which language into which: chosen, or told by the script of the text; and the way back.

/** @param {() => void} onTurn */
export function directionChooser(onTurn) {
  const select = h("select", { id: "direction", "aria-label": t(WORDS.direction), class: "plain" }, h("option", { value: "" }, t(WORDS.auto)));
  const swap = h("button", { type: "button", class: "swap", id: "swap", "aria-label": t(WORDS.swap), title: t(WORDS.swap), onclick: onTurn }, "⇄");
  /** @type {{from: string, to: string} | null} */
  let told = null;

  /** @param {{from: string, to: string} | null} languages of the translation that is shown, if any is */
  function show(languages) {
    told = languages;
    select.options[0].textContent = told && !get("from") ? t(WORDS.found, languageName(told.from), languageName(told.to)) : t(WORDS.auto);
    select.value = get("from") ? `${get("from")}>${get("to")}` : "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
    const back = `${get("to")}>${get("from")}`;
    swap.disabled = get("from") ? ![...select.options].some(({ value }) => value === back) : !told;
  }

  select.addEventListener("change", () => {
    const [from, to] = select.value ? select.value.split(">") : ["", ""];
    set({ from, to });
  });
  models().then(({ directions }) => {
    for (const [from, to] of directions) select.append(h("option", { value: `${from}>${to}` }, `${languageName(from)} → ${languageName(to)}`));
    show(told);
  }).catch(() => {});
  return { select, swap, show };
}

// --- Sentences to begin with, for who has none at hand.

const EXAMPLES = [
  { text: "机器学习很有趣，但是好的数据很难找到。", language: "zh" },
  { text: "她打开那本旧书，开始读了起来。", language: "zh" },
  { text: "Scientists have found water on the moon.", language: "en" },
  { text: "Thank you for your help. I will never forget it.", language: "en" },
];

/**
 * In languages that a model reads.
 * @param {(text: string) => void} onPick
 */
export function exampleChips(onPick) {
  const element = h("div", { class: "examples", hidden: true });
  models().then(({ directions }) => {
    const read = new Set(directions.map((/** @type {[string, string]} */ pair) => pair[0]));
    element.append(h("span", { class: "note" }, t(WORDS.examples)), ...EXAMPLES.filter(({ language }) => read.has(language)).map(({ text, language }) =>
      h("button", { type: "button", class: "chip", lang: language, onclick: () => onPick(text) }, text)));
  }).catch(() => {});
  return element;
}
