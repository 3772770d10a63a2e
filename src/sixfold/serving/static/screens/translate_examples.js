/** Sentences to begin with, for who has none at hand. */

import { models } from "../api.js";
import { h } from "../dom.js";
import { t } from "../language.js";

const WORDS = { examples: { en: "Try one of these", zh: "试试这些句子" } };

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
