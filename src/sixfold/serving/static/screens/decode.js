/** How a translation is written: step by step, by its logits, along a beam, with a teacher and without. */

import { h, refill } from "../dom.js";
import { t } from "../language.js";
import { isAnother, sentence } from "../sentence.js";
import { watch } from "../state.js";
import { choices } from "./decode_choices.js";
import { steps } from "./decode_steps.js";
import { teacher } from "./decode_teacher.js";
import { tree } from "./decode_tree.js";

/**
 * @typedef {object} Part
 * @property {HTMLElement} element
 * @property {(trace: import("../api.js").Trace | null) => void} show
 * @property {(changed: Set<import("../state.js").Name>) => void} change
 * @property {() => void} end
 */

export const TITLE = { en: "Decode", zh: "解码" };

const WORDS = {
  lead: {
    en: "The decoder writes one piece at a time. Each time it gives every piece of the vocabulary a number, the softmax makes them probabilities, and a search chooses.",
    zh: "解码器一次写一个词元：每一步给词表里的每个词元打分，softmax 把分数变成概率，再由搜索来选择。",
  },
};

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  /** @type {Part[]} */
  const parts = [steps(), choices(), tree(), teacher()];
  const bar = sentence((trace) => parts.forEach((part) => part.show(trace)));
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))), bar.element, ...parts.map((part) => part.element));
  const end = watch((changed) => !isAnother(changed) && parts.forEach((part) => part.change(changed)));
  return () => {
    end();
    bar.end();
    parts.forEach((part) => part.end());
  };
}
