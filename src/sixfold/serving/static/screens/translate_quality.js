/** Quality notes of a translation: its confidence, warnings, and the other translations of the beam. */

import { h } from "../dom.js";
import { t } from "../page_text.js";
import { formatPercent } from "./translate_sentences.js";

const TEXTS = {
  confidence: { en: "confidence {0}", zh: "可信度 {0}" },
  meaning: {
    en: "The chance that the least certain sentence is an acceptable translation, measured on sentences that the model had not seen.",
    zh: "最没有把握的一句译得合格的概率，用模型没有见过的句子测得。",
  },
  check: { en: "Please check", zh: "请留意" },
  others: { en: "{0} other translations", zh: "另外 {0} 种译法" },
  score: { en: "Mean log-probability per token with length penalty; higher is more likely.", zh: "每个词元的平均对数概率（含长度惩罚），越大越可能。" },
};

/** @type {Record<string, import("../page_text.js").BilingualText>} */
const WARNING_TEXTS = {
  empty: { en: "The model gave no translation for a sentence.", zh: "有一句话模型没有给出译文。" },
  loop: { en: "The translation repeats itself.", zh: "译文在反复说同样的内容。" },
  damaged: { en: "The translation contains a damaged character.", zh: "译文中有损坏的字符。" },
  short: { en: "The translation is much shorter than the text: something may be missing.", zh: "译文比原文短得多，可能有遗漏。" },
  long: { en: "The translation is much longer than the text: something may have been added.", zh: "译文比原文长得多，可能有添加。" },
  script: { en: "Some words were not translated.", zh: "有些词没有翻译，保留了原样。" },
  copied: { en: "The translation is a copy of the text.", zh: "译文只是照抄了原文。" },
  numbers: { en: "Numbers differ from the text{0}.", zh: "数字与原文不符{0}。" },
  names: { en: "Names are missing{0}.", zh: "缺少名称{0}。" },
  characters: { en: "Invalid characters were replaced.", zh: "无效的字符已被替换。" },
  direction: { en: "No model can translate this language.", zh: "没有模型能翻译这种语言。" },
};

/** @typedef {import("../api.js").TranslationWarning} TranslationWarning */

/** @param {number | null} confidence */
export function confidenceNote(confidence) {
  if (confidence === null || confidence === undefined) return null;
  return h("span", { class: "chip", id: "confidence", title: t(TEXTS.meaning), role: "note", "aria-label": `${t(TEXTS.confidence, formatPercent(confidence))}. ${t(TEXTS.meaning)}` },
    t(TEXTS.confidence, formatPercent(confidence)));
}

/** @param {TranslationWarning[]} warnings */
export function warningsNote(warnings) {
  if (!warnings.length) return null;
  return h("div", { class: "warnings", id: "warnings", role: "note" }, h("h2", {}, t(TEXTS.check)),
    h("ul", {}, warnings.map((warning) => h("li", { dataset: { kind: warning.kind } }, warningText(warning)))));
}

/**
 * Return the text of a warning in the interface language, or the server's message if the kind is unknown.
 * @param {TranslationWarning} warning
 */
function warningText(warning) {
  const text = WARNING_TEXTS[warning.kind];
  if (!text) return warning.message;
  const details = warning.message.split(": ").slice(1).join(": ");
  return t(text, details && `: ${details}`);
}

/**
 * Return the other translations, with their differences from the best one in bold.
 * @param {{text: string, score: number}[]} candidates
 * @param {string} best
 * @param {string} language
 */
export function otherTranslations(candidates, best, language) {
  const others = candidates.filter(({ text }) => text !== best);
  if (!others.length) return null;
  return h("details", { class: "panel n-best", id: "n-best" }, h("summary", {}, t(TEXTS.others, others.length)),
    h("ol", {}, others.map(({ text, score }) =>
      h("li", {}, h("span", { class: "n-best-text", lang: language }, markDifference(text, best)), h("span", { class: "note", title: t(TEXTS.score) }, score.toFixed(3))))));
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
  // Extend to whole words in scripts that use spaces.
  while (start > 0 && /\w/.test(text[start - 1])) start--;
  while (end > 0 && /\w/.test(text[text.length - end])) end--;
  return [text.slice(0, start), h("strong", {}, text.slice(start, text.length - end)), text.slice(text.length - end)];
}
