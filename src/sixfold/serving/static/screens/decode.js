/** The decode screen: a translation step by step, with next-token probabilities, the beam tree and teacher forcing. */

import { isTextModel } from "../api.js";
import { announce, h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { tokenRadioGroup } from "../radio_group.js";
import { needsNewTrace, sentenceBar } from "../sentence_bar.js";
import { onStateChange, setState, stateIndex } from "../url_state.js";
import { beamTreePanel } from "./decode_beam_tree.js";
import { probabilitiesPanel } from "./decode_probabilities.js";
import { lensPanel } from "./decode_lens.js";
import { teacherForcingPanel } from "./decode_teacher_forcing.js";

/**
 * @typedef {object} DecodePanel
 * @property {HTMLElement} element
 * @property {(trace: import("../api.js").Trace | null) => void} show
 * @property {(changed: Set<import("../url_state.js").StateKey>) => void} update
 * @property {() => void} dispose
 */

export const TITLE = { en: "Decode", zh: "解码" };

const TEXTS = {
  lead: {
    en: "The decoder writes one token at a time. At each step it gives every token of the vocabulary a score, softmax turns the scores into probabilities, and the search picks tokens.",
    zh: "解码器每次写出一个词元：每一步给词表中的每个词元打分，softmax 把分数变成概率，再由搜索挑选词元。",
  },
  textLead: {
    en: "The model reads a text one token at a time. At each step it gives every token of the vocabulary a score, softmax turns the scores into probabilities of the next token. The last step is what it would write next.",
    zh: "模型逐个读入文本的词元：每一步给词表中的每个词元打分，softmax 把分数变成下一个词元的概率。最后一步就是它接着会写的词元。",
  },
  title: { en: "The translation so far", zh: "目前的译文" },
  textTitle: { en: "The text so far", zh: "目前的文本" },
  note: { en: "The model cannot see the tokens after the current step.", zh: "模型看不到当前步之后的词元。" },
  step: { en: "Step", zh: "步" },
  of: { en: "{0} of {1}", zh: "第 {0} 步，共 {1} 步" },
  previous: { en: "Previous step", zh: "上一步" },
  next: { en: "Next step", zh: "下一步" },
  play: { en: "Play", zh: "播放" },
  pause: { en: "Pause", zh: "暂停" },
  tokens: { en: "Tokens of the translation", zh: "译文的词元" },
  announcement: { en: "Step {0}: reads {1}, writes {2} with probability {3}", zh: "第 {0} 步：读入 {1}，写出 {2}，概率 {3}" },
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
  const teacherForcing = teacherForcingPanel();
  /** @type {DecodePanel[]} */
  const panels = [stepsPanel(), probabilitiesPanel(), lensPanel(), beamTreePanel(), teacherForcing];
  const lead = h("p", { class: "lead" }, t(TEXTS.lead));
  const bar = sentenceBar((trace) => {
    const isText = trace !== null && isTextModel(trace);
    lead.textContent = t(isText ? TEXTS.textLead : TEXTS.lead);
    teacherForcing.element.hidden = isText; // a text is always read as it is, and only its end is free
    for (const panel of panels) panel.show(isText && panel === teacherForcing ? null : trace);
  });
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), lead), bar.element, ...panels.map((panel) => panel.element));
  const stopListening = onStateChange((changed) => !needsNewTrace(changed) && panels.forEach((panel) => panel.update(changed)));
  return () => {
    stopListening();
    bar.dispose();
    panels.forEach((panel) => panel.dispose());
  };
}

// --- the current step: a slider, and the translation so far ---------------------------------------------------------

const STEP_MILLISECONDS = 900; // how long each step is shown when playing

/** @returns {DecodePanel} */
export function stepsPanel() {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  let timer = 0;
  const slider = h("input", { type: "range", min: 0, max: 0, id: "step", oninput: () => goTo(Number(slider.value)) });
  const stepText = h("output", { for: "step", class: "number" });
  const play = h("button", { type: "button", class: "subtle", id: "play", onclick: () => (timer ? pause() : start()) }, t(TEXTS.play));
  const tokenList = h("div", { class: "translation-so-far" });
  const move = (/** @type {number} */ by) => {
    pause();
    goTo(stateIndex("step", 0, stepCount()) + by);
  };
  const element = panel(t(TEXTS.title), [
    h("div", { class: "stepper" },
      h("button", { type: "button", class: "subtle", id: "before", "aria-label": t(TEXTS.previous), onclick: () => move(-1) }, "←"),
      h("label", {}, h("span", { class: "note" }, t(TEXTS.step)), slider), stepText,
      h("button", { type: "button", class: "subtle", id: "next", "aria-label": t(TEXTS.next), onclick: () => move(1) }, "→"), play),
    tokenList,
  ], { svg: () => tableSvg(t(TEXTS.title), rows().map((row) => row.map((cell) => (typeof cell === "number" ? formatNumber(cell) : cell)))), data: () => toCsv(rows()) }, t(TEXTS.note));

  function stepCount() {
    return trace?.steps.length ?? 1;
  }

  /** @param {number} step */
  function goTo(step) {
    setState({ step: Math.max(0, Math.min(stepCount() - 1, step)) });
  }

  function start() {
    play.textContent = t(TEXTS.pause);
    if (stateIndex("step", 0, stepCount()) === stepCount() - 1) goTo(0);
    timer = window.setInterval(() => {
      const step = stateIndex("step", 0, stepCount());
      if (step + 1 < stepCount()) goTo(step + 1);
      else pause();
    }, STEP_MILLISECONDS);
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    play.textContent = t(TEXTS.play);
  }

  function rows() {
    const header = [t(TEXTS.step), t(TEXTS.read), t(TEXTS.wrote), t(TEXTS.probability), t(TEXTS.rank), t(TEXTS.entropy)];
    return [header, ...(trace?.steps ?? []).map((step, position) => [position, step.read, step.wrote, step.probability, step.rank, step.entropy])];
  }

  function draw() {
    if (!trace) return replaceContent(tokenList);
    const step = stateIndex("step", 0, stepCount());
    slider.max = String(stepCount() - 1);
    slider.value = String(step);
    stepText.textContent = t(TEXTS.of, step, stepCount() - 1);
    const hadFocus = tokenList.contains(document.activeElement);
    replaceContent(tokenList, tokenRadioGroup(t(TEXTS.tokens), trace.predicted.texts, step, (chosen) => goTo(chosen), (position, button) => button.classList.toggle("future", position > step)));
    if (hadFocus) /** @type {HTMLElement | null} */ (tokenList.querySelector("[aria-checked=true]"))?.focus();
  }

  function announceStep() {
    const [number, step] = [stateIndex("step", 0, stepCount()), trace?.steps[stateIndex("step", 0, stepCount())]];
    if (step) announce(t(TEXTS.announcement, number, step.read, step.wrote, formatNumber(step.probability)));
  }

  return {
    element,
    show(newTrace) {
      trace = newTrace;
      const heading = element.querySelector("h2");
      if (heading) heading.textContent = t(trace && isTextModel(trace) ? TEXTS.textTitle : TEXTS.title);
      draw();
    },
    update(changed) {
      if (!changed.has("step")) return;
      draw();
      announceStep();
    },
    dispose: pause,
  };
}
