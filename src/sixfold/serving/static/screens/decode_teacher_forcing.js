/** The translation as a teacher dictates it, what the model would have written at each place, and what it writes alone. */

import { asked, look } from "../api.js";
import { h, refill } from "../dom.js";
import { csv, tableSvg } from "../export.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, index } from "../url_state.js";

const WORDS = {
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

/** @typedef {{text: string, probability: number, rank: number, differs: boolean}} Cell */

/** @returns {import("./decode.js").Part} */
export function teacher() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {{steps: import("../api.js").Step[]} | null} */
  let free = null;
  let turn = 0;
  const note = h("p", { class: "note" });
  const table = h("table", { class: "teacher", id: "teacher" });
  const says = h("p", { id: "free" });
  const element = panel(t(WORDS.title), [
    note, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(WORDS.table) }, table), says, h("p", { class: "note" }, t(WORDS.exposure)),
  ], { svg: () => tableSvg(t(WORDS.title), transposed().map((row) => row.map(String))), data: () => csv(transposed()) });

  /** @param {import("../api.js").Trace | null} found */
  async function show(found) {
    const mine = ++turn;
    [trace, free] = [found, null];
    draw();
    if (!found) return;
    const answer = await look("free", asked()).catch(() => null);
    if (mine !== turn) return;
    free = answer;
    draw();
  }

  /** @returns {[string, Cell[]][]} */
  function lines() {
    if (!trace) return [];
    const taught = trace.steps.map((step) => ({ text: step.wrote, probability: step.probability, rank: step.rank, differs: step.rank > 0 }));
    const would = trace.steps.map((step) => ({ text: step.choices[0].text.replace(/^▁/, ""), probability: step.choices[0].probability, rank: 0, differs: step.rank > 0 }));
    const alone = (free?.steps ?? []).map((step, at) => ({ text: step.wrote, probability: step.probability, rank: step.rank, differs: step.wrote !== trace?.steps[at]?.wrote }));
    return [[t(WORDS.teacher), taught], [t(WORDS.model), would], [t(WORDS.free), alone]];
  }

  function width() {
    return Math.max(trace?.steps.length ?? 0, free?.steps.length ?? 0);
  }

  function draw() {
    if (!trace) return refill(table), refill(says);
    note.textContent = t(get("given") ? WORDS.given : WORDS.own);
    says.textContent = free ? t(WORDS.says, written(free.steps)) : t(WORDS.wait);
    const here = index("step", 0, trace.steps.length);
    const places = Array.from({ length: width() }, (_, at) => at);
    refill(table,
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t(WORDS.step)),
        places.map((at) => h("th", { scope: "col", class: at === here ? "here" : "" }, at)))),
      h("tbody", {}, lines().map(([name, cells], line) => h("tr", { dataset: { line } }, h("th", { scope: "row" }, name), places.map((at) => {
        const cell = cells[at];
        return h("td", { class: `${cell?.differs ? "differs" : ""} ${at === here ? "here" : ""}` },
          cell && [h("span", { class: "cell-word" }, cell.text), h("span", { class: "note" }, `${number(Number(cell.probability.toFixed(3)))}${line === 0 ? ` · ${t(WORDS.rank, cell.rank)}` : ""}`)]);
      })))));
  }

  /** @returns {(string | number)[][]} a row for each step */
  function transposed() {
    const found = lines();
    const head = [t(WORDS.step), ...found.flatMap(([name]) => [name, "p"])];
    const rows = Array.from({ length: width() }, (_, at) => [at, ...found.flatMap(([, cells]) => (cells[at] ? [cells[at].text, cells[at].probability] : ["", ""]))]);
    return [head, ...rows];
  }

  return {
    element,
    show,
    change(changed) {
      if (changed.has("step")) draw();
    },
    end: () => turn++,
  };
}

/**
 * The text of a run that always took the likeliest piece; ▁ is the space that a piece begins with.
 * @param {import("../api.js").Step[]} steps
 */
function written(steps) {
  return steps.filter((step) => step.wrote !== "<eos>").map((step) => step.choices[0].text).join("").replaceAll("▁", " ").trim();
}
