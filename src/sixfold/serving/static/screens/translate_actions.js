/** What can be done with a translation: copied, saved, looked into, and put back to what it was. */

import { announce, h } from "../dom.js";
import { tableSvg } from "../export.js";
import { t } from "../page_text.js";
import { buttons } from "../panel.js";
import { link } from "../url_state.js";
import { joined, percent } from "./translate_sentences.js";
import { follow, inside } from "./translate_word_popover.js";

const WORDS = {
  copy: { en: "Copy", zh: "复制" },
  copied: { en: "Copied ✓", zh: "已复制 ✓" },
  refused: { en: "The browser did not allow it", zh: "浏览器不允许" },
  inside: { en: "Look inside", zh: "查看内部" },
  changed: { en: "You changed this", zh: "您已修改" },
  undo: { en: "Undo", zh: "撤销" },
  title: { en: "Translation", zh: "译文" },
  word: { en: "word", zh: "词" },
  from: { en: "from", zh: "来自" },
  sure: { en: "probability", zh: "概率" },
  legend: { en: "The stronger the underline, the less sure the word", zh: "下划线越深，模型越没有把握" },
  parts: { en: "A long text: ⋯ shows the words of the part before it", zh: "长文本：点 ⋯ 查看其前面部分的词" },
};

/**
 * @param {{items: import("./translate_sentences.js").Item[], before: unknown[], answer: import("../api.js").Translation}} view
 * @param {() => void} onUndo
 */
export function tools({ items, before, answer }, onUndo) {
  const sentences = items.flatMap((item) => (typeof item === "string" ? [] : [item]));
  const first = sentences.find((sentence) => !sentence.isClosed);
  const isLong = sentences.some((sentence) => sentence.isClosed);
  const copy = h("button", { type: "button", class: "quiet framed", id: "copy", onclick: async () => {
    copy.textContent = await write(joined(items)).then(() => t(WORDS.copied), () => t(WORDS.refused));
    announce(copy.textContent);
    setTimeout(() => (copy.textContent = t(WORDS.copy)), 2000);
  } }, t(WORDS.copy));
  const words = sentences.flatMap(({ text, words }) => words.map((word) => ({ ...word, from: text.slice(...word.source) })));
  return [
    copy,
    words.length > 0 && buttons(t(WORDS.title), {
      svg: () => tableSvg(joined(items), [[t(WORDS.word), t(WORDS.from), t(WORDS.sure)],
        ...words.map(({ text, from, probability }) => [text, from, { text: percent(probability), part: probability }])]),
      data: () => ({ source: answer.source, translation: joined(items), from: answer.from, to: answer.to, confidence: answer.confidence,
        words: words.map(({ text, from, probability, weight, pieces }) => ({ text, from, probability, weight, pieces })),
        n_best: answer.n_best, warnings: answer.warnings }),
    }),
    first && h("a", { class: "quiet framed", id: "inside", href: link(inside(first)),
      onclick: (/** @type {MouseEvent} */ event) => follow(event, first) }, t(WORDS.inside)),
    before.length > 0 && h("span", { class: "note", id: "changed" }, t(WORDS.changed), " ",
      h("button", { type: "button", class: "quiet framed", id: "undo", onclick: onUndo }, t(WORDS.undo))),
    h("span", { class: "note legend" }, t(isLong ? WORDS.parts : WORDS.legend)),
  ];
}

/**
 * Into the clipboard; pages that came without encryption may not use the new way.
 * @param {string} text
 */
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "unseen" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone) throw new Error("no clipboard");
}
