/** One step: the logits of the likeliest pieces, what the softmax makes of them, and where sampling would cut. */

import { arrays, asked } from "../api.js";
import { h, refill } from "../dom.js";
import { csv, tableSvg } from "../export.js";
import { formula } from "../formula.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, index, set } from "../url_state.js";

const WORDS = {
  title: { en: "Logits, softmax, choice", zh: "分数、softmax 与选择" },
  temperature: { en: "Temperature", zh: "温度" },
  topK: { en: "Top-k", zh: "取前 k 个" },
  topP: { en: "Top-p", zh: "概率和到 p" },
  piece: { en: "Piece", zh: "词元" },
  logit: { en: "Logit z", zh: "分数 z" },
  probability: { en: "Probability", zh: "概率" },
  written: { en: "written", zh: "已写出" },
  greedy: { en: "greedy", zh: "贪心" },
  cutK: { en: "top-k = {0}: sampling keeps what stands above", zh: "top-k = {0}：采样只保留以上词元" },
  cutP: { en: "top-p = {0}: sampling keeps {1} above", zh: "top-p = {0}：采样保留以上 {1} 个" },
  beyond: { en: "top-p = {0} keeps {1} pieces, more than are shown", zh: "top-p = {0} 会保留 {1} 个词元，多于此处所列" },
  wrote: { en: "What was written", zh: "写出的词元" },
  rank: { en: "Rank of it (0 is the likeliest)", zh: "它的排名（0 为最可能）" },
  entropy: { en: "Entropy of all {0} probabilities", zh: "全部 {0} 个概率的熵" },
  bits: { en: "{0} bits", zh: "{0} 比特" },
};

/** @typedef {{text: string, rank: number, logit: number, probability: number, isWritten: boolean}} Row */

/**
 * All probabilities at this temperature; in 64 bits, as JavaScript counts.
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

/** @returns {import("./decode.js").Part} */
export function choices() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Float32Array | null} */
  let logits = null;
  let [turn, place] = [0, 0];
  /** @type {Row[]} */
  let rows = [];
  const facts = h("dl", { class: "facts", id: "facts" });
  const bars = h("table", { class: "choices", id: "choices" });
  const controls = [
    slider("temperature", WORDS.temperature, 0.1, 3, 0.05),
    slider("topK", WORDS.topK, 1, 10, 1),
    slider("topP", WORDS.topP, 0.05, 1, 0.05),
  ];
  const element = panel(t(WORDS.title), [
    formula("\\softmax{(z)}_i = \\frac{e^{z_i / T}}{Σ_j e^{z_j / T}}"),
    h("div", { class: "sliders" }, controls.map((each) => each.element)), facts, bars,
  ], { svg, data: () => csv(cells()) });

  async function load() {
    const mine = ++turn;
    if (!trace) return draw();
    const row = index("step", 0, trace.steps.length);
    const found = await arrays(asked(), ["logits"], { row }).catch(() => null);
    if (mine !== turn) return;
    place = row;
    logits = /** @type {Float32Array | undefined} */ (found?.get("logits")?.data) ?? null;
    draw();
  }

  function draw() {
    controls.forEach((each) => each.draw());
    if (!trace || !logits) return refill(bars), refill(facts);
    const [step, wrote] = [trace.steps[place], trace.predicted.ids[place]];
    const chances = softmax(logits, Number(get("temperature")) || 1);
    rows = step.choices.map((each, rank) => ({ text: each.text, rank, logit: each.logit, probability: chances[each.id], isWritten: each.id === wrote }));
    if (!rows.some((row) => row.isWritten))
      rows.push({ text: step.wrote, rank: step.rank, logit: logits[wrote], probability: chances[wrote], isWritten: true });
    const bits = chances.reduce((sum, chance) => sum - (chance > 0 ? chance * Math.log2(chance) : 0), 0);
    refill(facts,
      fact(t(WORDS.wrote), step.wrote, "wrote"), fact(t(WORDS.rank), String(step.rank), "rank"),
      fact(t(WORDS.entropy, logits.length.toLocaleString("en")), t(WORDS.bits, number(bits)), "entropy"));
    refill(bars,
      h("thead", {}, h("tr", {}, [WORDS.piece, WORDS.logit, WORDS.probability].map((each) => h("th", { scope: "col" }, t(each))))),
      h("tbody", {}, body(kept(chances, Number(get("topP"))))));
  }

  /** @param {number} nucleus how many pieces top-p keeps */
  function body(nucleus) {
    const most = Math.max(...rows.map((row) => Math.abs(row.logit)), 1e-9);
    const highest = Math.max(...rows.map((row) => row.probability), 1e-9);
    const k = index("topK", 5, 11);
    return [
      ...rows.flatMap((row, at) => [
        h("tr", { class: row.isWritten ? "written" : "", dataset: { rank: row.rank } },
          h("th", { scope: "row" }, h("span", { class: "cell-word" }, row.text), row.rank === 0 && h("span", { class: "badge" }, t(WORDS.greedy)),
            row.isWritten && h("span", { class: "badge chosen" }, t(WORDS.written))),
          bar(row.logit, Math.abs(row.logit) / most, row.logit < 0), bar(row.probability, row.probability / highest, false)),
        at === k - 1 && line(t(WORDS.cutK, k), "k"),
        at === nucleus - 1 && line(t(WORDS.cutP, get("topP"), nucleus), "p"),
      ]),
      nucleus > rows.length && line(t(WORDS.beyond, get("topP"), nucleus.toLocaleString("en")), "p"),
    ].filter((each) => each !== false);
  }

  /** @returns {(string | number)[][]} */
  function cells() {
    return [[t(WORDS.rank), t(WORDS.piece), t(WORDS.logit), t(WORDS.probability)], ...rows.map((row) => [row.rank, row.text, row.logit, row.probability])];
  }

  function svg() {
    const [most, highest] = [Math.max(...rows.map((row) => Math.abs(row.logit))), Math.max(...rows.map((row) => row.probability))];
    return tableSvg(`${t(WORDS.title)} · T = ${get("temperature")}`, [[t(WORDS.piece), t(WORDS.logit), t(WORDS.probability)],
      ...rows.map((row) => [row.text, { text: number(row.logit), part: Math.abs(row.logit) / most }, { text: number(row.probability), part: row.probability / highest }])]);
  }

  return {
    element,
    show(found) {
      [trace, logits] = [found, null];
      load();
    },
    change(changed) {
      if (changed.has("step")) load();
      else if (["temperature", "topK", "topP"].some((name) => changed.has(/** @type {any} */ (name)))) draw();
    },
    end: () => turn++,
  };
}

/**
 * How many of the likeliest are needed to reach this share.
 * @param {Float64Array} chances
 * @param {number} share
 */
function kept(chances, share) {
  const sorted = chances.slice().sort();
  let [sum, count] = [0, 0];
  while (count < sorted.length && sum < share - 1e-12) sum += sorted[sorted.length - 1 - count++];
  return Math.max(1, count);
}

/**
 * @param {"temperature" | "topK" | "topP"} name
 * @param {import("../page_text.js").Words} words
 * @param {number} least
 * @param {number} most
 * @param {number} step
 */
function slider(name, words, least, most, step) {
  const input = h("input", { type: "range", id: name, min: least, max: most, step, value: get(name), oninput: () => set({ [name]: input.value }) });
  const output = h("output", { for: name, class: "number" });
  return {
    element: h("label", {}, h("span", { class: "note" }, t(words)), input, output),
    draw() {
      input.value = get(name);
      output.textContent = get(name);
    },
  };
}

/**
 * @param {number} value
 * @param {number} part
 * @param {boolean} isNegative
 */
function bar(value, part, isNegative) {
  return h("td", { dataset: { value } }, h("div", { class: "bar-cell" },
    h("span", { class: "rail" }, h("span", { class: isNegative ? "fill negative" : "fill", style: { width: `${(100 * part).toFixed(2)}%` } })),
    h("span", { class: "number" }, number(value))));
}

/**
 * @param {string} text
 * @param {string} cut
 */
function line(text, cut) {
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
