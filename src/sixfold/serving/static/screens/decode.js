/** How a translation is written: step by step, by its logits, along a beam, with a teacher and without. */

import { announce, h, refill } from "../dom.js";
import { csv, tableSvg } from "../export.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { strip } from "../radio_group.js";
import { isAnother, sentence } from "../sentence_bar.js";
import { index, set, watch } from "../url_state.js";
import { tree } from "./decode_beam_tree.js";
import { choices } from "./decode_probabilities.js";
import { teacher } from "./decode_teacher_forcing.js";

/**
 * @typedef {object} Part
 * @property {HTMLElement} element
 * @property {(trace: import("../api.js").Trace | null) => void} show
 * @property {(changed: Set<import("../url_state.js").Name>) => void} change
 * @property {() => void} end
 */

export const TITLE = { en: "Decode", zh: "解码" };

const WORDS = {
  lead: {
    en: "The decoder writes one piece at a time. Each time it gives every piece of the vocabulary a number, the softmax makes them probabilities, and a search chooses.",
    zh: "解码器一次写一个词元：每一步给词表里的每个词元打分，softmax 把分数变成概率，再由搜索来选择。",
  },
  title: { en: "The translation so far", zh: "目前的译文" },
  note: { en: "Pieces after the current step are not written yet; the model cannot see them.", zh: "当前步之后的词元还没有写出，模型看不到它们。" },
  step: { en: "Step", zh: "步" },
  of: { en: "{0} of {1}", zh: "第 {0} 步，共 {1} 步" },
  before: { en: "Previous step", zh: "上一步" },
  next: { en: "Next step", zh: "下一步" },
  play: { en: "Play", zh: "播放" },
  pause: { en: "Pause", zh: "暂停" },
  pieces: { en: "Pieces of the translation", zh: "译文的词元" },
  told: { en: "Step {0}: reads {1}, writes {2} with probability {3}", zh: "第 {0} 步：读入 {1}，写出 {2}，概率 {3}" },
  read: { en: "reads", zh: "读入" },
  wrote: { en: "writes", zh: "写出" },
  probability: { en: "probability", zh: "概率" },
  rank: { en: "rank", zh: "排名" },
  entropy: { en: "entropy (bits)", zh: "熵（比特）" },
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

// --- The step that is looked at: a slider, and the translation as far as it is written.

const PACE = 900; // milliseconds a step is shown for when playing

/** @returns {Part} */
export function steps() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  let timer = 0;
  const slider = h("input", { type: "range", min: 0, max: 0, id: "step", oninput: () => go(Number(slider.value)) });
  const place = h("output", { for: "step", class: "number" });
  const play = h("button", { type: "button", class: "quiet", id: "play", onclick: () => (timer ? pause() : start()) }, t(WORDS.play));
  const said = h("div", { class: "so-far" });
  const step = (/** @type {number} */ by) => {
    pause();
    go(index("step", 0, count()) + by);
  };
  const element = panel(t(WORDS.title), [
    h("div", { class: "stepper" },
      h("button", { type: "button", class: "quiet", id: "before", "aria-label": t(WORDS.before), onclick: () => step(-1) }, "←"),
      h("label", {}, h("span", { class: "note" }, t(WORDS.step)), slider), place,
      h("button", { type: "button", class: "quiet", id: "next", "aria-label": t(WORDS.next), onclick: () => step(1) }, "→"), play),
    said,
  ], { svg: () => tableSvg(t(WORDS.title), rows().map((row) => row.map((cell) => (typeof cell === "number" ? number(cell) : cell)))), data: () => csv(rows()) }, t(WORDS.note));

  function count() {
    return trace?.steps.length ?? 1;
  }

  /** @param {number} to */
  function go(to) {
    set({ step: Math.max(0, Math.min(count() - 1, to)) });
  }

  function start() {
    play.textContent = t(WORDS.pause);
    if (index("step", 0, count()) === count() - 1) go(0);
    timer = window.setInterval(() => {
      const here = index("step", 0, count());
      if (here + 1 < count()) go(here + 1);
      else pause();
    }, PACE);
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    play.textContent = t(WORDS.play);
  }

  function rows() {
    const head = [t(WORDS.step), t(WORDS.read), t(WORDS.wrote), t(WORDS.probability), t(WORDS.rank), t(WORDS.entropy)];
    return [head, ...(trace?.steps ?? []).map((each, at) => [at, each.read, each.wrote, each.probability, each.rank, each.entropy])];
  }

  function draw() {
    if (!trace) return refill(said);
    const here = index("step", 0, count());
    slider.max = String(count() - 1);
    slider.value = String(here);
    place.textContent = t(WORDS.of, here, count() - 1);
    const isInside = said.contains(document.activeElement);
    refill(said, strip(t(WORDS.pieces), trace.predicted.texts, here, (to) => go(to), (at, button) => button.classList.toggle("future", at > here)));
    if (isInside) /** @type {HTMLElement | null} */ (said.querySelector("[aria-checked=true]"))?.focus();
  }

  function tell() {
    const [here, its] = [index("step", 0, count()), trace?.steps[index("step", 0, count())]];
    if (its) announce(t(WORDS.told, here, its.read, its.wrote, number(its.probability)));
  }

  return {
    element,
    show(found) {
      trace = found;
      draw();
    },
    change(changed) {
      if (!changed.has("step")) return;
      draw();
      tell();
    },
    end: pause,
  };
}
