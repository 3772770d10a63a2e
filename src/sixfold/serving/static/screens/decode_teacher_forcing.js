/** The translation as a teacher dictates it, what the model would have written at each place, and what it writes alone. */

import { exploreRequest, fetchExplorer } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, stateIndex } from "../url_state.js";

const TEXTS = {
  title: { en: "With a teacher and without", zh: "有教师与无教师" },
  own: {
    en: "No translation is given above, so the teacher dictates what the model's own beam search found. Give one to see where the model would have gone another way.",
    zh: "上面没有给定译文，所以教师念的是模型自己用集束搜索找到的译文。填入一个译文，就能看到模型在哪里会走另一条路。",
  },
  given: {
    en: "The teacher dictates the translation that is given above, whatever the model would have said.",
    zh: "教师逐个念出上面给定的译文，不管模型本来想写什么。",
  },
  exposure: {
    en: "Teacher forcing, as in training: at every step the model reads the right past. Running free it reads what it wrote itself, so one early slip changes every step after it; as it never learnt from its own mistakes, this gap is called exposure bias.",
    zh: "教师强制即训练时的做法：每一步读到的都是正确的前文。自由运行时模型读的是自己写的内容，早期的一个偏差会改变之后的每一步；训练中它从未见过自己的错误，这一差距称为曝光偏差。",
  },
  step: { en: "Step", zh: "步" },
  teacher: { en: "The teacher wrote", zh: "教师写的" },
  model: { en: "The model would have written", zh: "模型会写的" },
  free: { en: "The model running free", zh: "模型自由运行" },
  rank: { en: "rank {0}", zh: "排名 {0}" },
  wait: { en: "Working…", zh: "计算中…" },
  table: { en: "Steps with a teacher and without", zh: "有教师与无教师的各步" },
  says: { en: "Running free it says: {0}", zh: "自由运行的译文：{0}" },
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
    freeRunText.textContent = freeRun ? t(TEXTS.says, joinTokens(freeRun.steps)) : t(TEXTS.wait);
    const currentStep = stateIndex("step", 0, trace.steps.length);
    const steps = Array.from({ length: columnCount() }, (_, step) => step);
    replaceContent(table,
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t(TEXTS.step)),
        steps.map((step) => h("th", { scope: "col", class: step === currentStep ? "here" : "" }, step)))),
      h("tbody", {}, namedLines().map(([name, cells], line) => h("tr", { dataset: { line } }, h("th", { scope: "row" }, name), steps.map((step) => {
        const cell = cells[step];
        return h("td", { class: `${cell?.differs ? "differs" : ""} ${step === currentStep ? "here" : ""}` },
          cell && [h("span", { class: "cell-word" }, cell.text), h("span", { class: "note" }, `${formatNumber(Number(cell.probability.toFixed(3)))}${line === 0 ? ` · ${t(TEXTS.rank, cell.rank)}` : ""}`)]);
      })))));
  }

  /** @returns {(string | number)[][]} a row for each step */
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
 * The text of a run that always took the likeliest piece; ▁ is the space that a piece begins with.
 * @param {import("../api.js").Step[]} steps
 */
function joinTokens(steps) {
  return steps.filter((step) => step.wrote !== "<eos>").map((step) => step.choices[0].text).join("").replaceAll("▁", " ").trim();
}
