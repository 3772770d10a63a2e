/** Actions below a translation: copy, save, open in the explorer, undo. */

import { announce, h } from "../dom.js";
import { tableSvg } from "../export.js";
import { t } from "../page_text.js";
import { exportButtons } from "../panel.js";
import { linkTo } from "../url_state.js";
import { formatPercent, joinItems } from "./translate_sentences.js";
import { attentionState, openAttention } from "./translate_word_popover.js";

const TEXTS = {
  copy: { en: "Copy", zh: "复制" },
  copied: { en: "Copied ✓", zh: "已复制 ✓" },
  refused: { en: "The browser did not allow it", zh: "浏览器不允许复制" },
  explore: { en: "Explore", zh: "查看内部计算" },
  changed: { en: "You changed this", zh: "已手动修改" },
  undo: { en: "Undo", zh: "撤销" },
  title: { en: "Translation", zh: "译文" },
  word: { en: "word", zh: "词" },
  from: { en: "from", zh: "来自" },
  probability: { en: "probability", zh: "概率" },
  legend: { en: "A stronger underline means a less likely word", zh: "下划线越深，模型越没有把握" },
  parts: { en: "Long text: ⋯ shows the words of the part before it", zh: "文本较长：点 ⋯ 查看它前面部分的词" },
};

/**
 * @param {{items: import("./translate_sentences.js").Item[], undoStack: unknown[], result: import("../api.js").Translation}} view
 * @param {() => void} onUndo
 */
export function actionButtons({ items, undoStack, result }, onUndo) {
  const sentences = items.flatMap((item) => (typeof item === "string" ? [] : [item]));
  const first = sentences.find((sentence) => !sentence.isClosed);
  const isLong = sentences.some((sentence) => sentence.isClosed);
  const copy = h("button", { type: "button", class: "subtle bordered", id: "copy", onclick: async () => {
    copy.textContent = await copyText(joinItems(items)).then(() => t(TEXTS.copied), () => t(TEXTS.refused));
    announce(copy.textContent);
    setTimeout(() => (copy.textContent = t(TEXTS.copy)), 2000);
  } }, t(TEXTS.copy));
  const words = sentences.flatMap(({ text, words }) => words.map((word) => ({ ...word, from: text.slice(...word.source) })));
  return [
    copy,
    words.length > 0 && exportButtons(t(TEXTS.title), {
      svg: () => tableSvg(joinItems(items), [[t(TEXTS.word), t(TEXTS.from), t(TEXTS.probability)],
        ...words.map(({ text, from, probability }) => [text, from, { text: formatPercent(probability), fraction: probability }])]),
      data: () => ({ source: result.source, translation: joinItems(items), from: result.from, to: result.to, confidence: result.confidence,
        words: words.map(({ text, from, probability, weight, pieces }) => ({ text, from, probability, weight, pieces })),
        n_best: result.n_best, warnings: result.warnings }),
    }),
    first && h("a", { class: "subtle bordered", id: "explore", href: linkTo(attentionState(first)),
      onclick: (/** @type {MouseEvent} */ event) => openAttention(event, first) }, t(TEXTS.explore)),
    undoStack.length > 0 && h("span", { class: "note", id: "changed" }, t(TEXTS.changed), " ",
      h("button", { type: "button", class: "subtle bordered", id: "undo", onclick: onUndo }, t(TEXTS.undo))),
    h("span", { class: "note legend" }, t(isLong ? TEXTS.parts : TEXTS.legend)),
  ];
}

/**
 * Copy a text. Pages without HTTPS have no clipboard API and use the old command.
 * @param {string} text
 */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "visually-hidden" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("the browser has no clipboard");
}
