/** Next-token probabilities at one step: logits, softmax with temperature, and the cut-offs of top-k and top-p sampling. */

import { exploreRequest, fetchArrays } from "../api.js";
import { barCell } from "../bar_cell.js";
import { h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { formula } from "../formula.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, setState, stateIndex } from "../url_state.js";

const TEXTS = {
  title: { en: "Logits, softmax, choice", zh: "分数、softmax 与选择" },
  temperature: { en: "Temperature", zh: "温度" },
  topK: { en: "Top-k", zh: "前 k 个（top-k）" },
  topP: { en: "Top-p", zh: "累积概率 p（top-p）" },
  token: { en: "Token", zh: "词元" },
  logit: { en: "Logit z", zh: "分数 z" },
  probability: { en: "Probability", zh: "概率" },
  written: { en: "written", zh: "已写出" },
  greedy: { en: "greedy", zh: "贪心" },
  cutK: { en: "top-k = {0}: sampling keeps the tokens above", zh: "top-k = {0}：采样只保留以上词元" },
  cutP: { en: "top-p = {0}: sampling keeps the {1} tokens above", zh: "top-p = {0}：采样保留以上 {1} 个词元" },
  beyond: { en: "top-p = {0} keeps {1} tokens, more than are shown", zh: "top-p = {0} 会保留 {1} 个词元，超过这里列出的数量" },
  wrote: { en: "Written token", zh: "写出的词元" },
  rank: { en: "Rank (0 is the most likely)", zh: "排名（0 为最可能）" },
  entropy: { en: "Entropy over all {0} tokens", zh: "全部 {0} 个词元的熵" },
  bits: { en: "{0} bits", zh: "{0} 比特" },
};

/** @typedef {{text: string, rank: number, logit: number, probability: number, isWritten: boolean}} TokenRow */

/**
 * Return all probabilities at this temperature, in 64-bit floats.
 * @param {Float32Array} logits
 * @param {number} temperature
 */
export function softmax(logits, temperature) {
  let [highest, sum] = [-Infinity, 0];
  for (const logit of logits) highest = Math.max(highest, logit);
  const powers = Float64Array.from(logits, (logit) => Math.exp((logit - highest) / temperature));
  for (const power of powers) sum += power;
  return powers.map((power) => power / sum);
}

/** @returns {import("./decode.js").DecodePanel} */
export function probabilitiesPanel() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Float32Array | null} */
  let logits = null;
  let [latestNumber, shownStep] = [0, 0];
  /** @type {TokenRow[]} */
  let rows = [];
  const facts = h("dl", { class: "facts", id: "facts" });
  const bars = h("table", { class: "choices", id: "choices" });
  const controls = [
    slider("temperature", TEXTS.temperature, 0.1, 3, 0.05),
    slider("topK", TEXTS.topK, 1, 10, 1),
    slider("topP", TEXTS.topP, 0.05, 1, 0.05),
  ];
  const element = panel(t(TEXTS.title), [
    formula("\\softmax{(z)}_i = \\frac{e^{z_i / T}}{Σ_j e^{z_j / T}}"),
    h("div", { class: "sliders" }, controls.map((control) => control.element)), facts, bars,
  ], { svg, data: () => toCsv(cells()) });

  async function load() {
    const requestNumber = ++latestNumber;
    if (!trace) return draw();
    const step = stateIndex("step", 0, trace.steps.length);
    const tensors = await fetchArrays(exploreRequest(), ["logits"], { row: step }).catch(() => null);
    if (requestNumber !== latestNumber) return;
    shownStep = step;
    logits = /** @type {Float32Array | undefined} */ (tensors?.get("logits")?.data) ?? null;
    draw();
  }

  function draw() {
    controls.forEach((control) => control.draw());
    if (!trace || !logits) return replaceContent(bars), replaceContent(facts);
    const [step, writtenId] = [trace.steps[shownStep], trace.predicted.ids[shownStep]];
    const probabilities = softmax(logits, Number(getState("temperature")) || 1);
    rows = step.choices.map((choice, rank) => ({ text: choice.text, rank, logit: choice.logit, probability: probabilities[choice.id], isWritten: choice.id === writtenId }));
    if (!rows.some((row) => row.isWritten))
      rows.push({ text: step.wrote, rank: step.rank, logit: logits[writtenId], probability: probabilities[writtenId], isWritten: true });
    const bits = probabilities.reduce((sum, probability) => sum - (probability > 0 ? probability * Math.log2(probability) : 0), 0);
    replaceContent(facts,
      fact(t(TEXTS.wrote), step.wrote, "wrote"), fact(t(TEXTS.rank), String(step.rank), "rank"),
      fact(t(TEXTS.entropy, logits.length.toLocaleString("en")), t(TEXTS.bits, formatNumber(bits)), "entropy"));
    replaceContent(bars,
      h("thead", {}, h("tr", {}, [TEXTS.token, TEXTS.logit, TEXTS.probability].map((title) => h("th", { scope: "col" }, t(title))))),
      h("tbody", {}, tableRows(nucleusSize(probabilities, Number(getState("topP"))))));
  }

  /** @param {number} nucleusSize number of tokens that top-p keeps */
  function tableRows(nucleusSize) {
    const maxLogit = Math.max(...rows.map((row) => Math.abs(row.logit)), 1e-9);
    const maxProbability = Math.max(...rows.map((row) => row.probability), 1e-9);
    const topK = stateIndex("topK", 5, 11);
    return [
      ...rows.flatMap((row, index) => [
        h("tr", { class: row.isWritten ? "written" : "", dataset: { rank: row.rank } },
          h("th", { scope: "row" }, h("span", { class: "cell-word" }, row.text), row.rank === 0 && h("span", { class: "badge" }, t(TEXTS.greedy)),
            row.isWritten && h("span", { class: "badge chosen" }, t(TEXTS.written))),
          barCell(row.logit, Math.abs(row.logit) / maxLogit, row.logit < 0), barCell(row.probability, row.probability / maxProbability, false)),
        index === topK - 1 && cutoffRow(t(TEXTS.cutK, topK), "k"),
        index === nucleusSize - 1 && cutoffRow(t(TEXTS.cutP, getState("topP"), nucleusSize), "p"),
      ]),
      nucleusSize > rows.length && cutoffRow(t(TEXTS.beyond, getState("topP"), nucleusSize.toLocaleString("en")), "p"),
    ].filter((row) => row !== false);
  }

  /** @returns {(string | number)[][]} */
  function cells() {
    return [[t(TEXTS.rank), t(TEXTS.token), t(TEXTS.logit), t(TEXTS.probability)], ...rows.map((row) => [row.rank, row.text, row.logit, row.probability])];
  }

  function svg() {
    const [maxLogit, maxProbability] = [Math.max(...rows.map((row) => Math.abs(row.logit))), Math.max(...rows.map((row) => row.probability))];
    return tableSvg(`${t(TEXTS.title)} · T = ${getState("temperature")}`, [[t(TEXTS.token), t(TEXTS.logit), t(TEXTS.probability)],
      ...rows.map((row) => [row.text, { text: formatNumber(row.logit), fraction: Math.abs(row.logit) / maxLogit }, { text: formatNumber(row.probability), fraction: row.probability / maxProbability }])]);
  }

  return {
    element,
    show(newTrace) {
      [trace, logits] = [newTrace, null];
      load();
    },
    update(changed) {
      if (changed.has("step")) load();
      else if (["temperature", "topK", "topP"].some((name) => changed.has(/** @type {any} */ (name)))) draw();
    },
    dispose: () => latestNumber++,
  };
}

/**
 * Return how many of the most likely tokens are needed to reach this total probability.
 * @param {Float64Array} probabilities
 * @param {number} share
 */
function nucleusSize(probabilities, share) {
  const sorted = probabilities.slice().sort();
  let [sum, count] = [0, 0];
  while (count < sorted.length && sum < share - 1e-12) sum += sorted[sorted.length - 1 - count++];
  return Math.max(1, count);
}

/**
 * @param {"temperature" | "topK" | "topP"} name
 * @param {import("../page_text.js").BilingualText} label
 * @param {number} min
 * @param {number} max
 * @param {number} step
 */
function slider(name, label, min, max, step) {
  const input = h("input", { type: "range", id: name, min, max, step, value: getState(name), oninput: () => setState({ [name]: input.value }) });
  const output = h("output", { for: name, class: "number" });
  return {
    element: h("label", {}, h("span", { class: "note" }, t(label)), input, output),
    draw() {
      input.value = getState(name);
      output.textContent = getState(name);
    },
  };
}

/**
 * @param {string} text
 * @param {string} cut
 */
function cutoffRow(text, cut) {
  return h("tr", { class: "cutoff", dataset: { cut } }, h("td", { colspan: 3 }, text));
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} key
 */
function fact(name, value, key) {
  return h("div", {}, h("dt", {}, name), h("dd", { dataset: { fact: key } }, value));
}
