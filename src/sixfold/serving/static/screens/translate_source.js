/** Where a text is typed: it grows with the text, and a layer behind it can mark words. */

import { h, refill } from "../dom.js";
import { t } from "../language.js";

const WORDS = {
  label: { en: "Text to translate", zh: "要翻译的文字" },
  type: { en: "Type or paste a text", zh: "输入或粘贴文字" },
  clear: { en: "Clear the text", zh: "清空" },
  count: { en: "{0} of {1} characters", zh: "{0} / {1} 个字符" },
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
