/** A text as tokens: those of the prompt, then those that were written, each underlined by how unsure the model was. */

import { h, replaceContent } from "../dom.js";
import { formatNumber, t } from "../page_text.js";

const TEXTS = {
  empty: { en: "The text appears here.", zh: "文本会显示在这里。" },
  token: { en: "{0}: probability {1}", zh: "{0}：概率 {1}" },
  nextToken: { en: "What comes next?", zh: "接下来是什么？" },
};

/** @param {(index: number) => void} onOpen called with the number of a written token, or with that of the next one */
export function tokensPane(onOpen) {
  const element = h("div", { class: "words written-text", id: "written", role: "group" }, h("p", { class: "waiting" }, t(TEXTS.empty)));
  /** @type {import("./generate.js").WrittenText | null} */
  let text = null;
  /** @type {HTMLButtonElement[]} */
  let buttons = [];
  const prompt = h("span", { class: "rest prompt-text" });
  const end = h("button", { type: "button", class: "word next-token", "aria-label": t(TEXTS.nextToken), onclick: () => open(buttons.length) }, "▸");

  /** @param {number} index */
  function open(index) {
    for (const each of [...buttons, end]) each.removeAttribute("aria-expanded");
    (buttons[index] ?? end).setAttribute("aria-expanded", "true");
    onOpen(index);
  }

  /**
   * @param {import("./generate.js").WrittenToken} token
   * @param {number} index
   */
  function tokenButton(token, index) {
    const probability = Math.exp(token.logprob);
    return h("button", {
      type: "button", class: token.isPicked ? "word changed" : "word", style: { "--uncertainty": `${Math.round(100 * (1 - probability))}%` },
      title: t(TEXTS.token, token.text, formatNumber(probability)), dataset: { index }, onclick: () => open(index),
    }, token.text || "·");
  }

  return {
    element,
    /** @param {import("./generate.js").WrittenText} newText */
    show(newText) {
      if (newText !== text || newText.tokens.length < buttons.length) {
        [text, buttons] = [newText, []];
        replaceContent(element, prompt, end);
      }
      prompt.textContent = newText.pieces.length ? newText.pieces.join("") : newText.prompt;
      for (const token of newText.tokens.slice(buttons.length)) {
        const button = tokenButton(token, buttons.length);
        buttons.push(button);
        end.before(button);
      }
      end.hidden = !newText.ids.length;
    },
  };
}
