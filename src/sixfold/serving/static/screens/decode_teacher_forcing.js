/** Teacher forcing compared with free running: the given translation, the model's choice at each step, and its own output. */

import { exploreRequest, fetchExplorer } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, stateIndex } from "../url_state.js";

const TEXTS = {
  title: { en: "Teacher forcing and free running", zh: "教师强制与自由运行" },
  own: {
    en: "No translation is given above, so the model reads the translation that its own beam search found. Enter one above to see where the model would choose other tokens.",
    zh: "上面没有指定译文，所以模型读入的是自己用集束搜索得到的译文。在上面填入一个译文，就能看到模型在哪里会选择别的词元。",
  },
  given: {
    en: "At every step the model reads the translation that is given above, whatever it would have chosen itself.",
    zh: "每一步模型读入的都是上面指定的译文，不管它自己会选什么。",
  },
  exposure: {
    en: "With teacher forcing, as in training, the model reads the correct past at every step. Running free, it reads its own output, so one early error changes every step after it. In training it never saw its own errors; this gap is called exposure bias.",
    zh: "教师强制就是训练时的做法：每一步读入的都是正确的前文。自由运行时，模型读入的是自己的输出，早期的一个错误会影响之后的每一步。训练中它从未见过自己的错误，这一差距称为曝光偏差。",
  },
  step: { en: "Step", zh: "步" },
  teacher: { en: "Given token", zh: "给定的词元" },
  model: { en: "Model's choice", zh: "模型会选的词元" },
  free: { en: "Free running", zh: "自由运行" },
  rank: { en: "rank {0}", zh: "排名 {0}" },
  wait: { en: "Working…", zh: "正在计算…" },
  table: { en: "Steps with teacher forcing and free running", zh: "教师强制与自由运行的各步" },
  freeTranslation: { en: "Free-running translation: {0}", zh: "自由运行的译文：{0}" },
};

/** @typedef {{text: string, probability: number, rank: number, differs: boolean}} StepCell */

/** @returns {import("./decode.js").DecodePanel} */
export function teacherForcingPanel() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {{steps: import("../api.js").Step[]} | null} */
  let freeRun = null;
  let latestNumber = 0;
  const note = h("p", { class: "note" });
  const table = h("table", { class: "teacher", id: "teacher" });
  const freeRunText = h("p", { id: "free" });
  const element = panel(t(TEXTS.title), [
    note, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(TEXTS.table) }, table), freeRunText, h("p", { class: "note" }, t(TEXTS.exposure)),
  ], { svg: () => tableSvg(t(TEXTS.title), stepRows().map((row) => row.map(String))), data: () => toCsv(stepRows()) });

  /** @param {import("../api.js").Trace | null} newTrace */
  async function show(newTrace) {
    const requestNumber = ++latestNumber;
    [trace, freeRun] = [newTrace, null];
    draw();
    if (!newTrace) return;
    const result = await fetchExplorer("free", exploreRequest()).catch(() => null);
    if (requestNumber !== latestNumber) return;
    freeRun = result;
    draw();
  }

  /** @returns {[string, StepCell[]][]} */
  function namedLines() {
    if (!trace) return [];
    const forced = trace.steps.map((step) => ({ text: step.wrote, probability: step.probability, rank: step.rank, differs: step.rank > 0 }));
    const predicted = trace.steps.map((step) => ({ text: step.choices[0].text.replace(/^▁/, ""), probability: step.choices[0].probability, rank: 0, differs: step.rank > 0 }));
    const free = (freeRun?.steps ?? []).map((step, index) => ({ text: step.wrote, probability: step.probability, rank: step.rank, differs: step.wrote !== trace?.steps[index]?.wrote }));
    return [[t(TEXTS.teacher), forced], [t(TEXTS.model), predicted], [t(TEXTS.free), free]];
  }

  function columnCount() {
    return Math.max(trace?.steps.length ?? 0, freeRun?.steps.length ?? 0);
  }

  function draw() {
    if (!trace) return replaceContent(table), replaceContent(freeRunText);
    note.textContent = t(getState("given") ? TEXTS.given : TEXTS.own);
    freeRunText.textContent = freeRun ? t(TEXTS.freeTranslation, joinTokens(freeRun.steps)) : t(TEXTS.wait);
    const currentStep = stateIndex("step", 0, trace.steps.length);
    const steps = Array.from({ length: columnCount() }, (_, step) => step);
    replaceContent(table,
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t(TEXTS.step)),
        steps.map((step) => h("th", { scope: "col", class: step === currentStep ? "current" : "" }, step)))),
      h("tbody", {}, namedLines().map(([name, cells], line) => h("tr", { dataset: { line } }, h("th", { scope: "row" }, name), steps.map((step) => {
        const cell = cells[step];
        return h("td", { class: `${cell?.differs ? "differs" : ""} ${step === currentStep ? "current" : ""}` },
          cell && [h("span", { class: "cell-word" }, cell.text), h("span", { class: "note" }, `${formatNumber(Number(cell.probability.toFixed(3)))}${line === 0 ? ` · ${t(TEXTS.rank, cell.rank)}` : ""}`)]);
      })))));
  }

  /** @returns {(string | number)[][]} one row per step */
  function stepRows() {
    const named = namedLines();
    const header = [t(TEXTS.step), ...named.flatMap(([name]) => [name, "p"])];
    const rows = Array.from({ length: columnCount() }, (_, step) => [step, ...named.flatMap(([, cells]) => (cells[step] ? [cells[step].text, cells[step].probability] : ["", ""]))]);
    return [header, ...rows];
  }

  return {
    element,
    show,
    update(changed) {
      if (changed.has("step")) draw();
    },
    dispose: () => latestNumber++,
  };
}

/**
 * Join the tokens of a greedy run into text; ▁ is the space at the start of a token.
 * @param {import("../api.js").Step[]} steps
 */
function joinTokens(steps) {
  return steps.filter((step) => step.wrote !== "<eos>").map((step) => step.choices[0].text).join("").replaceAll("▁", " ").trim();
}
