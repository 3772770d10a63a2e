/** What goes with a translation: how sure it is, what to be wary of, and other ways to say it. */

import { h } from "../dom.js";
import { t } from "../page_text.js";
import { formatPercent } from "./translate_sentences.js";

const TEXTS = {
  sure: { en: "{0} sure", zh: "可信度 {0}" },
  meaning: {
    en: "The chance that the least sure sentence is a fair translation, as measured on sentences that the model had not seen.",
    zh: "最没有把握的一句是合格译文的概率，由模型未见过的句子测得。",
  },
  wary: { en: "Read this with care", zh: "请留意" },
  others: { en: "{0} other ways to say it", zh: "另外 {0} 种译法" },
  score: { en: "The mean log-probability of a piece, less a length penalty; higher is likelier.", zh: "词片对数概率的平均值（含长度惩罚），越大越可能。" },
};

/** @type {Record<string, import("../page_text.js").BilingualText>} */
const WARNING_TEXTS = {
  empty: { en: "The model had nothing to say for a sentence.", zh: "有一句话模型没有给出译文。" },
  loop: { en: "The translation says the same again and again.", zh: "译文在反复说同样的内容。" },
  damaged: { en: "A character of the translation is damaged.", zh: "译文中有损坏的字符。" },
  short: { en: "The translation is much shorter than the text: something may be missing.", zh: "译文比原文短得多，可能有遗漏。" },
  long: { en: "The translation is much longer than the text: something may be made up.", zh: "译文比原文长得多，可能有添加。" },
  script: { en: "Words were left as they are, not translated.", zh: "有些词没有翻译，保留了原样。" },
  copied: { en: "The translation only repeats the text.", zh: "译文只是照抄了原文。" },
  numbers: { en: "Figures differ from the text{0}.", zh: "数字与原文不符{0}。" },
  names: { en: "Names are missing{0}.", zh: "缺少名称{0}。" },
  characters: { en: "Half characters were replaced.", zh: "不完整的字符已被替换。" },
  direction: { en: "No model reads this language.", zh: "没有模型懂这种语言。" },
};

/** @typedef {import("../api.js").TranslationWarning} TranslationWarning */

/** @param {number | null} confidence */
export function confidenceNote(confidence) {
  if (confidence === null || confidence === undefined) return null;
  return h("span", { class: "chip", id: "confidence", title: t(TEXTS.meaning), role: "note", "aria-label": `${t(TEXTS.sure, formatPercent(confidence))}. ${t(TEXTS.meaning)}` },
    t(TEXTS.sure, formatPercent(confidence)));
}

/** @param {TranslationWarning[]} warnings */
export function warningsNote(warnings) {
  if (!warnings.length) return null;
  return h("div", { class: "warnings", id: "warnings", role: "note" }, h("h2", {}, t(TEXTS.wary)),
    h("ul", {}, warnings.map((warning) => h("li", { dataset: { kind: warning.kind } }, warningText(warning)))));
}

/**
 * In words of the interface; the server's own where the kind is new to us.
 * @param {TranslationWarning} warning
 */
function warningText(warning) {
  const text = WARNING_TEXTS[warning.kind];
  if (!text) return warning.message;
  const details = warning.message.split(": ").slice(1).join(": ");
  return t(text, details && `: ${details}`);
}

/**
 * All but the best, with what differs from it set off.
 * @param {{text: string, score: number}[]} candidates
 * @param {string} best
 * @param {string} language
 */
export function otherTranslations(candidates, best, language) {
  const others = candidates.filter(({ text }) => text !== best);
  if (!others.length) return null;
  return h("details", { class: "panel ways", id: "ways" }, h("summary", {}, t(TEXTS.others, others.length)),
    h("ol", {}, others.map(({ text, score }) =>
      h("li", {}, h("span", { class: "way", lang: language }, markDifference(text, best)), h("span", { class: "note", title: t(TEXTS.score) }, score.toFixed(3))))));
}

/**
 * @param {string} text
 * @param {string} best
 */
function markDifference(text, best) {
  let start = 0;
  while (start < text.length && text[start] === best[start]) start++;
  let end = 0;
  while (end < text.length - start && end < best.length - start && text[text.length - 1 - end] === best[best.length - 1 - end]) end++;
  // Whole words of scripts that put spaces between them.
  while (start > 0 && /\w/.test(text[start - 1])) start--;
  while (end > 0 && /\w/.test(text[text.length - end])) end--;
  return [text.slice(0, start), h("strong", {}, text.slice(start, text.length - end)), text.slice(text.length - end)];
}
