/** The logit lens: the most likely next token after each layer, at every step, with the rank of the token that follows. */

import { exploreRequest, fetchExplorer } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { tableSvg } from "../export.js";
import { latestRequest } from "../latest_request.js";
import { formatNumber, t, wholePercent } from "../page_text.js";
import { panel } from "../panel.js";
import { contrastColour, cssColour, sequentialScale } from "../theme_colours.js";
import { setState, stateIndex } from "../url_state.js";

/** @typedef {{layers: string[], texts: string[][], probabilities: number[][], ranks: number[][], following: number[][], note: string}} Lens */

const TEXTS = {
  title: { en: "Logit lens", zh: "Logit 透镜" },
  note: {
    en: "What the model would write if it stopped after a layer: the final norm, if there is one, and the output projection are applied to each layer as to the last. Earlier layers were never trained to be read in this way. Darker cells are more certain; # is the rank of the token that follows (0 is the most likely).",
    zh: "如果模型在某一层之后停下会写什么：把最后的归一化（如果有）和输出投影用在每一层上，就像用在最后一层上一样。前面的层并没有为此训练过。颜色越深越有把握；# 是后面那个词元的排名（0 为最可能）。",
  },
  embedding: { en: "Embedding", zh: "词嵌入" },
  layer: { en: "Layer {0}", zh: "第 {0} 层" },
  reads: { en: "Reads", zh: "读入" },
  follows: { en: "Follows", zh: "后面的词元" },
  table: { en: "Predictions after each layer", zh: "每一层之后的预测" },
  cell: { en: "{0}, step {1}: {2} with probability {3}; {4} has {5} and rank {6}", zh: "{0}，第 {1} 步：{2}，概率 {3}；{4} 的概率为 {5}，排名 {6}" },
};

/** @returns {import("./decode.js").DecodePanel} */
export function lensPanel() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Lens | null} */
  let lens = null;
  const table = h("table", { class: "teacher lens", id: "lens" });
  const lensRequest = latestRequest(() => fetchExplorer("lens", exploreRequest()), (/** @type {Lens} */ result) => {
    lens = result;
    draw();
  });
  const element = panel(t(TEXTS.title), [
    lensRequest.status, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(TEXTS.table) }, table),
  ], { svg: () => tableSvg(t(TEXTS.title), rows()), data: () => lens ?? {} }, t(TEXTS.note));

  /** @param {number} layer */
  function layerName(layer) {
    return layer === 0 ? t(TEXTS.embedding) : t(TEXTS.layer, layer - 1);
  }

  /** @returns {string[][]} what is read, a row for each layer, and what follows */
  function rows() {
    if (!trace || !lens) return [[]];
    const { texts, probabilities, ranks } = lens;
    return [[t(TEXTS.reads), ...trace.target.texts],
      ...texts.map((row, layer) => [layerName(layer), ...row.map((text, step) => `${text} ${wholePercent(probabilities[layer][step])} #${ranks[layer][step]}`)]),
      [t(TEXTS.follows), ...trace.predicted.texts]];
  }

  function draw() {
    if (!trace || !lens) return replaceContent(table);
    const currentStep = stateIndex("step", 0, trace.steps.length);
    const scale = sequentialScale();
    const marked = (/** @type {number} */ step) => (step === currentStep ? "current" : "");
    const cell = (/** @type {number} */ layer, /** @type {number} */ step) => {
      const { texts, probabilities, ranks, following } = /** @type {Lens} */ (lens);
      const [probability, rank, text] = [probabilities[layer][step], ranks[layer][step], texts[layer][step]];
      const colour = scale[Math.round(255 * Math.min(1, Math.max(0, probability)))];
      const follows = trace?.predicted.texts[step];
      return h("td", {
        class: marked(step), dataset: { layer, step, rank }, style: { background: cssColour(colour), color: contrastColour(colour) },
        title: t(TEXTS.cell, layerName(layer), step, text, formatNumber(probability), follows ?? "", formatNumber(following[layer][step]), rank),
        onclick: () => setState({ step }),
      }, h("span", { class: rank === 0 ? "cell-word follows" : "cell-word" }, text), h("span", {}, `${wholePercent(probability)}${rank ? ` · #${rank}` : ""}`));
    };
    const heading = (/** @type {string} */ name, /** @type {string[]} */ texts) => h("tr", {}, h("th", { scope: "row" }, name), texts.map((text, step) => h("th", { scope: "col", class: marked(step) }, text)));
    replaceContent(table,
      h("thead", {}, heading(t(TEXTS.reads), trace.target.texts)),
      h("tbody", {}, lens.layers.map((_, layer) => h("tr", {}, h("th", { scope: "row" }, layerName(layer)), /** @type {import("../api.js").Trace} */ (trace).steps.map((_, step) => cell(layer, step))))),
      h("tfoot", {}, heading(t(TEXTS.follows), trace.predicted.texts)));
  }

  return {
    element,
    show(newTrace) {
      [trace, lens] = [newTrace, null];
      draw();
      if (newTrace) lensRequest.request();
    },
    update(changed) {
      if (changed.has("step")) draw();
    },
    dispose: lensRequest.dispose,
  };
}
