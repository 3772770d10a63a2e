/** The whole computation of one number after the other: from the text to the probability of the next piece. */

import { arrays, asked, labels } from "../api.js";
import { h, refill } from "../dom.js";
import { number, t } from "../page_text.js";
import { strip, switcher } from "../radio_group.js";
import { isAnother, sentence } from "../sentence_bar.js";
import { get, set, watch } from "../url_state.js";
import { card } from "./walk_card.js";
import { TITLES } from "./walk_stage_texts.js";
import { spotOf, stages, vector } from "./walk_stages.js";
import { textCards } from "./walk_tokenization.js";

export const TITLE = { en: "Walk", zh: "逐步计算" };

const WORDS = {
  lead: {
    en: "Choose a piece, a layer and a head: here is every number on its way from text to probability, the equation beside it, and Python that computes it again.",
    zh: "选择词元、层和头：这里是从文本到概率一路上的每个数，旁边是公式，以及能重现它的 Python。",
  },
  kind: { en: "Attention", zh: "注意力" },
  encoder: { en: "Encoder", zh: "编码器" },
  decoder: { en: "Decoder", zh: "解码器" },
  cross: { en: "Cross", zh: "交叉" },
  layer: { en: "Layer", zh: "层" },
  head: { en: "Head", zh: "头" },
  row: { en: "The place that asks", zh: "提问的位置" },
  column: { en: "The key that is looked at", zh: "被看的键" },
  stages: { en: "Stages", zh: "阶段" },
  text: { en: "Text", zh: "文本" },
  input: { en: "Embedding", zh: "嵌入" },
  attention: { en: "Attention, layer {0}", zh: "注意力，第 {0} 层" },
  feedForward: { en: "Feed-forward, layer {0}", zh: "前馈，第 {0} 层" },
  output: { en: "Output", zh: "输出" },
};

/** @typedef {import("../api.js").Kind} Kind */

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Map<string, import("./walk_card.js").Card>} */
  let cards = new Map();
  /** @type {Map<string, number>} */
  const chosen = new Map();
  /** @type {Map<string, () => void>} */
  const again = new Map();
  let [turn, passes, isFirst, drawn] = [0, 0, true, ""];
  const controls = h("div", { class: "walk-controls" });
  const list = h("nav", { class: "stages", "aria-label": t(WORDS.stages) });
  const body = h("div", { class: "cards" });
  const words = textCards();
  const bar = sentence((found) => {
    trace = found;
    passes++;
    draw();
  });
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))), bar.element, controls, h("div", { class: "walk" }, list, body));
  readStage();

  function readStage() {
    const [id, index] = get("stage").split(".");
    if (index && Number.isInteger(Number(index))) chosen.set(id, Number(index));
  }

  /** @returns {Kind} */
  function kind() {
    const wanted = /** @type {Kind} */ (get("kind"));
    return trace && wanted in trace.kinds ? wanted : "cross";
  }

  async function draw() {
    const mine = ++turn;
    if (!trace) return refill(controls), refill(list), refill(body);
    const spot = spotOf(trace, kind(), Boolean(get("given")));
    const groups = stages(spot);
    const all = Object.values(groups).flat();
    const found = await arrays(asked(), [...new Set(all.map((stage) => stage.name))], { row: spot.row }).catch(() => null);
    if (mine !== turn || !found) return;
    if (get("column") === "") spot.column = likeliest(vector(spot, all.filter((stage) => stage.id === "weights")[0], found));
    if (drawn !== `${passes} ${spot.kind}`) drawControls(spot);
    drawn = `${passes} ${spot.kind}`;
    mark(spot);
    words.show(spot);
    if (String([...cards.keys()]) !== String(all.map((stage) => stage.id))) build(groups);
    for (const heading of body.querySelectorAll("[data-group]")) heading.textContent = title(/** @type {HTMLElement} */ (heading).dataset.group ?? "", spot);
    if (list.childElementCount !== all.length + 2) drawList(["text", "id", ...all.map((stage) => stage.id)]);
    for (const stage of all) showCard(spot, stage, vector(spot, stage, found));
    body.dataset.ready = `${spot.at}.${spot.head}.${spot.row}.${spot.column}`;
    if (isFirst && get("stage")) document.getElementById(`stage-${get("stage").split(".")[0]}`)?.scrollIntoView();
    isFirst = false;
  }

  /**
   * @param {import("./walk_python.js").Spot} spot
   * @param {import("./walk_stages.js").Stage} stage
   * @param {Float32Array} values
   */
  function showCard(spot, stage, values) {
    const index = Math.min(values.length - 1, stage.axis === "keys" ? spot.column : (chosen.get(stage.id) ?? usual(spot, stage)));
    const names = stage.axis === "keys" ? labels(spot.trace, spot.kind)[1] : null;
    cards.get(stage.id)?.show({ spot, stage, values, index, names, nameOf: namer(spot, stage), where: where(spot, stage, index) });
    again.set(stage.id, () => showCard(spot, stage, values));
    refill(/** @type {Element} */ (list.querySelector(`[data-to=${stage.id}] .number`)), number(values[index]));
  }

  /** @param {ReturnType<typeof stages>} groups */
  function build(groups) {
    cards.forEach((each) => each.end());
    cards = new Map();
    const heading = (/** @type {string} */ group) => h("h2", { class: "group", dataset: { group } });
    refill(body, heading("text"), h("div", { class: "columns" }, words.elements), Object.entries(groups).filter(([, its]) => its.length).flatMap(([group, its]) => [
      heading(group),
      h("div", { class: "columns" }, its.map((stage) => {
        const made = card(stage, (index) => {
          if (stage.axis === "keys") return set({ column: index, stage: stage.id });
          chosen.set(stage.id, index);
          set({ stage: `${stage.id}.${index}` });
          again.get(stage.id)?.();
        });
        cards.set(stage.id, made);
        return made.element;
      })),
    ]));
  }

  /** @param {import("./walk_python.js").Spot} spot */
  function drawControls(spot) {
    const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, each) => /** @type {[string, string]} */ ([String(each), String(each)]));
    const kinds = /** @type {Kind[]} */ (Object.keys(spot.trace.kinds));
    const [rows, columns] = labels(spot.trace, spot.kind);
    const layer = spot.at.split(".")[2];
    refill(controls,
      control("kind", t(WORDS.kind), switcher(t(WORDS.kind), kinds.map((each) => [each, t(WORDS[each])]), spot.kind, (value) =>
        set({ kind: value, layer: "", column: "", ...(spot.stack === (value === "encoder" ? "encoder" : "decoder") ? {} : { row: "" }) }))),
      control("layer", t(WORDS.layer), switcher(t(WORDS.layer), numbers(spot.trace.kinds[spot.kind] ?? 1), layer, (value) => set({ layer: value }))),
      control("head", t(WORDS.head), switcher(t(WORDS.head), numbers(spot.trace.heads), String(spot.head), (value) => set({ head: value }))),
      control("row", t(WORDS.row), strip(t(WORDS.row), rows, spot.row, (row) => set({ row }))),
      control("column", t(WORDS.column), strip(t(WORDS.column), columns, spot.column, (column) => set({ column }))));
  }

  /**
   * What is chosen now: a long sentence has too many pieces to make their buttons anew.
   * @param {import("./walk_python.js").Spot} spot
   */
  function mark(spot) {
    const places = { layer: Number(spot.at.split(".")[2]), head: spot.head, row: spot.row, column: spot.column };
    for (const [name, place] of Object.entries(places))
      for (const button of /** @type {NodeListOf<HTMLElement>} */ (controls.querySelectorAll(`[data-control=${name}] [role=radio]`))) {
        const is = Number(button.dataset.place) === place;
        button.setAttribute("aria-checked", String(is));
        button.tabIndex = is ? 0 : -1;
      }
  }

  /** @param {string[]} ids */
  function drawList(ids) {
    const here = get("stage").split(".")[0];
    refill(list, ids.map((id) =>
      h("button", { type: "button", dataset: { to: id }, "aria-current": id === here ? "step" : null, onclick: () => {
        set({ stage: chosen.has(id) ? `${id}.${chosen.get(id)}` : id });
        document.getElementById(`stage-${id}`)?.scrollIntoView({ block: "start" });
      } }, h("span", {}, t(TITLES[id])), h("span", { class: "number" }))));
  }

  const end = watch((changed) => {
    if (isAnother(changed)) return;
    if (["kind", "layer", "head", "row", "column"].some((name) => changed.has(/** @type {any} */ (name)))) draw();
    else if (changed.has("stage")) for (const each of list.children)
      if (each.getAttribute("data-to") === get("stage").split(".")[0]) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
  });
  return () => {
    turn++;
    end();
    bar.end();
    cards.forEach((each) => each.end());
  };
}

/**
 * @param {string} group
 * @param {import("./walk_python.js").Spot} spot
 */
function title(group, spot) {
  return t(WORDS[/** @type {keyof typeof WORDS} */ (group)], spot.at.split(".")[2]);
}

/**
 * @param {string} name
 * @param {string} label
 * @param {HTMLElement} element
 */
function control(name, label, element) {
  return h("div", { dataset: { control: name } }, h("span", { class: "note" }, label), element);
}

/** @param {Float32Array} values */
function likeliest(values) {
  return values.reduce((best, value, place) => (value > values[best] ? place : best), 0);
}

/**
 * The component that is looked at first: of the vocabulary, the piece that comes next.
 * @param {import("./walk_python.js").Spot} spot
 * @param {import("./walk_stages.js").Stage} stage
 */
function usual(spot, stage) {
  return ["logits", "probabilities"].includes(stage.id) ? spot.trace.predicted.ids[spot.row] : 0;
}

/**
 * What a component stands for, where that is known.
 * @param {import("./walk_python.js").Spot} spot
 * @param {import("./walk_stages.js").Stage} stage
 * @returns {(index: number) => string}
 */
function namer(spot, stage) {
  if (stage.axis === "keys") return (index) => labels(spot.trace, spot.kind)[1][index] ?? "";
  if (!["logits", "probabilities"].includes(stage.id)) return () => "";
  return (index) => (index === spot.trace.predicted.ids[spot.row] ? spot.trace.predicted.texts[spot.row]
    : spot.trace.steps[spot.row].choices.find((each) => each.id === index)?.text ?? "");
}

/**
 * The number as Python would index it.
 * @param {import("./walk_python.js").Spot} spot
 * @param {import("./walk_stages.js").Stage} stage
 * @param {number} index
 */
function where(spot, stage, index) {
  if (stage.id === "product") return "q · k";
  const places = { row: [spot.row, index], head: [spot.head, spot.row, index], keys: [spot.head, spot.row, index], key: [spot.group, spot.column, index] };
  return `trace["${stage.name}"][${places[stage.axis].join(", ")}]`;
}
