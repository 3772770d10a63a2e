/** What may stand in one place of a text: the model's probabilities, and those with which tokens are drawn. */

import { requestJson } from "../api.js";
import { barCell } from "../bar_cell.js";
import { debounce, h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { describeFailure } from "../retry.js";
import { samplingOptions } from "./generate_options.js";

const TEXTS = {
  title: { en: "What could stand here", zh: "此处可能的词元" },
  hint: { en: "Open a token of the text, or the arrow at its end.", zh: "点开文本中的一个词元，或末尾的箭头。" },
  token: { en: "Token", zh: "词元" },
  model: { en: "Probability of the model", zh: "模型给出的概率" },
  drawn: { en: "Probability to be drawn", zh: "被抽中的概率" },
  written: { en: "written", zh: "已写出" },
  facts: {
    en: "The {0} likeliest tokens. With these options, {1} tokens of the vocabulary can be drawn. Entropy of the model: {2} bits.",
    zh: "概率最大的 {0} 个词元。按当前设置，词表中有 {1} 个词元可能被抽中。模型分布的熵：{2} 比特。",
  },
  pick: { en: "Go on with “{0}”", zh: "从“{0}”接着写" },
};

const COUNT = 20; // tokens that are shown
const PAUSE = 120; // milliseconds without a move of a slider before the distribution is fetched again

/** @typedef {{index: number, ids: number[], model: string, written: import("./generate.js").WrittenToken | null}} Place */
/** @typedef {{id: number, text: string, logprob: number, drawn: number}} NextToken */
/** @typedef {{tokens: NextToken[], kept: number, entropy: number}} NextTokens */

/** @param {(index: number, token: import("./generate.js").WrittenToken) => void} onPick */
export function nextTokensPanel(onPick) {
  /** @type {Place | null} */
  let place = null;
  /** @type {NextTokens | null} */
  let shown = null;
  let latestNumber = 0;
  let options = "";
  const note = h("p", { class: "note", id: "next-note" }, t(TEXTS.hint));
  const table = h("table", { class: "choices", id: "next-tokens" });
  const element = panel(t(TEXTS.title), [note, table], {
    svg: () => tableSvg(t(TEXTS.title), [[t(TEXTS.token), t(TEXTS.model), t(TEXTS.drawn)], ...(shown?.tokens ?? []).map((token) => [
      token.text, { text: formatNumber(Math.exp(token.logprob)), fraction: Math.exp(token.logprob) }, { text: formatNumber(token.drawn), fraction: token.drawn },
    ])]),
    data: () => toCsv([["id", "token", "logprob", "drawn"], ...(shown?.tokens ?? []).map((token) => [token.id, token.text, token.logprob, token.drawn])]),
  });

  async function load() {
    const requestNumber = ++latestNumber;
    if (!place) {
      shown = null;
      replaceContent(table);
      replaceContent(note, t(TEXTS.hint));
      return;
    }
    const { seed: _, ...sampling } = samplingOptions();
    options = JSON.stringify(sampling);
    try {
      const result = await requestJson("/api/v1/generate/next", { prompt: place.ids, model: place.model, count: COUNT, include: place.written ? [place.written.id] : [], ...sampling });
      if (requestNumber !== latestNumber) return;
      shown = result;
      draw(result, place);
    } catch (error) {
      if (requestNumber === latestNumber) replaceContent(note, h("span", { class: "error" }, describeFailure(error)));
    }
  }

  /**
   * @param {NextTokens} result
   * @param {Place} at
   */
  function draw(result, at) {
    replaceContent(note, t(TEXTS.facts, COUNT, result.kept.toLocaleString("en"), formatNumber(result.entropy)));
    const most = Math.max(...result.tokens.map((token) => Math.max(token.drawn, Math.exp(token.logprob))));
    replaceContent(table,
      h("thead", {}, h("tr", {}, [TEXTS.token, TEXTS.model, TEXTS.drawn].map((title) => h("th", { scope: "col" }, t(title))))),
      h("tbody", {}, result.tokens.map((token) => {
        const isWritten = token.id === at.written?.id;
        return h("tr", { class: isWritten ? "written" : "", dataset: { id: token.id } },
          h("th", { scope: "row" }, h("button", { type: "button", class: "outlined", "aria-label": t(TEXTS.pick, token.text),
            onclick: () => onPick(at.index, { id: token.id, text: token.text, logprob: token.logprob }) }, token.text || "·"),
            isWritten && h("span", { class: "badge chosen" }, t(TEXTS.written))),
          barCell(Math.exp(token.logprob), Math.exp(token.logprob) / most, false), barCell(token.drawn, token.drawn / most, false));
      })));
  }

  const loadLater = debounce(PAUSE, load);
  return {
    element,
    /** @param {Place | null} newPlace */
    show(newPlace) {
      place = newPlace;
      load();
    },
    /** Fetch the distribution again if the options have changed. */
    update() {
      const { seed: _, ...sampling } = samplingOptions();
      if (place && JSON.stringify(sampling) !== options) loadLater();
    },
    dispose() {
      latestNumber++;
      place = null;
    },
  };
}
