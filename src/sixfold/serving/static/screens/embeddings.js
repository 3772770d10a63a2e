/** Embeddings: how near two words or sentences are, the neighbours of a word, and words on a plane. */

import { look } from "../api.js";
import { announce, h, refill, s, settled } from "../dom.js";
import { csv } from "../export.js";
import { asking } from "../latest_request.js";
import { breadth, number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { switcher } from "../radio_group.js";
import { scatter } from "../scatter_plot.js";
import { alone, frame, Picture } from "../svg_diagram.js";
import { get, set, watch } from "../url_state.js";

export const TITLE = { en: "Embeddings", zh: "词向量" };

const WORDS = {
  lead: {
    en: "Each piece is a row of numbers that training has moved. Words that are used alike lie near each other, in both languages; the cosine of the angle between two rows says how near.",
    zh: "每个子词是一行由训练调整的数。用法相近的词彼此靠近，两种语言都是如此；两行之间夹角的余弦说明有多近。",
  },
  word: { en: "Word", zh: "词" },
  first: { en: "black", zh: "黑" },
  try: { en: "Try", zh: "试试" },
  neighbours: { en: "Neighbours", zh: "近邻" },
  near: { en: "What lies nearest to “{0}”. Choose one to walk on.", zh: "离“{0}”最近的词。选择一个继续走。" },
  walk: { en: "{0}, cosine {1}: walk on", zh: "{0}，余弦 {1}：走过去" },
  cosine: { en: "cosine", zh: "余弦" },
  compare: { en: "How alike are two?", zh: "两者有多相似？" },
  kind: { en: "What is compared", zh: "比较什么" },
  words: { en: "words", zh: "词" },
  sentences: { en: "sentences", zh: "句子" },
  one: { en: "The first", zh: "第一个" },
  other: { en: "The second", zh: "第二个" },
  wordsNote: { en: "Rows of the table that the encoder begins with; of a word of several pieces their mean.", zh: "编码器最初的词向量表中的行；由几个子词组成的词取其平均值。" },
  sentencesNote: {
    en: "The mean of what the encoder makes of each sentence. A sentence and its translation come out near each other.",
    zh: "编码器对每个句子输出的平均值。一个句子和它的译文彼此靠近。",
  },
  otherWord: { en: "brown", zh: "白" },
  sentence: { en: "I like cats.", zh: "我喜欢猫。" },
  otherSentence: { en: "我喜欢猫。", zh: "I like cats." },
  map: { en: "Map", zh: "地图" },
  mapNote: {
    en: "The word, its neighbours and yours, seen from the side on which they differ most (the first two principal components). Choose a word to walk there.",
    zh: "这个词、它的近邻和你添加的词，从差别最大的方向看去（前两个主成分）。选择一个词走过去。",
  },
  add: { en: "Words to add, with commas between", zh: "要添加的词，用逗号隔开" },
  added: { en: "dog, cat, 狗, 猫", zh: "狗, 猫, dog, cat" },
  point: { en: "{0}: walk there", zh: "{0}：走过去" },
};

const EXAMPLES = ["black", "黑", "London", "三", "Monday", "水"];
const COUNT = 12;

/** @typedef {{text: string, id: number, cosine: number}} Neighbour */

const word = () => get("word") || t(WORDS.first);
const isSentences = () => get("view") === "sentences";
const other = () => get("other") || t(isSentences() ? WORDS.otherSentence : WORDS.otherWord);
const one = () => (isSentences() ? get("text") || t(WORDS.sentence) : word());
const added = () => (get("map") || t(WORDS.added)).split(/[,，、;；\n]+/).map((each) => each.trim()).filter(Boolean).slice(0, 40);

/** @returns {{model?: string}} */
const model = () => (get("model") ? { model: get("model") } : {});

/** @returns {Promise<Neighbour[]>} */
async function neighbours() {
  return (await look("neighbours", { word: word(), count: COUNT, ...model() })).neighbours;
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const field = h("input", { type: "text", id: "word", value: word(), autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", settled(350, () => set({ word: field.value.trim() })));
  const parts = [near(), compared(), plane()];
  refill(root,
    h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))),
    h("div", { class: "controls" }, h("label", { for: "word" }, t(WORDS.word)), field, h("span", { class: "note" }, t(WORDS.try)),
      h("div", { class: "chips" }, EXAMPLES.map((each) => h("button", { type: "button", class: "chip", onclick: () => set({ word: each }) }, each)))),
    h("div", { class: "columns" }, parts[0].element, parts[1].element), parts[2].element);
  const end = watch((changed) => {
    if (changed.has("word") && document.activeElement !== field) field.value = word();
    for (const part of parts) if (part.needs.some((name) => changed.has(name))) part.ask();
  });
  for (const part of parts) part.ask();
  return () => {
    end();
    for (const part of parts) part.end();
  };
}

/**
 * @typedef {object} Part
 * @property {HTMLElement} element
 * @property {import("../url_state.js").Name[]} needs what it must be asked anew for
 * @property {() => void} ask
 * @property {() => void} end
 */

/** @returns {Part} */
function near() {
  const [list, note] = [h("ol", { class: "near" }), h("p", { class: "note" })];
  /** @type {Neighbour[]} */
  let found = [];
  const { ask, said, end } = asking(neighbours, (its) => {
    const isHere = list.contains(document.activeElement);
    found = its;
    refill(note, t(WORDS.near, word()));
    refill(list, found.map((each) => h("li", {}, h("button", {
      type: "button", class: "neighbour", "aria-label": t(WORDS.walk, each.text, each.cosine.toFixed(3)), dataset: { word: each.text }, onclick: () => walk(each.text),
    }, h("span", { class: "what" }, each.text), h("span", { class: "track" }, h("span", { class: "bar-of", style: { width: `${100 * Math.max(0, each.cosine)}%` } })),
    h("span", { class: "figure" }, each.cosine.toFixed(3))))));
    if (isHere) list.querySelector("button")?.focus();
  });
  const title = t(WORDS.neighbours);
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => {
    const left = 24 + 8 * Math.max(4, ...found.map((each) => breadth(each.text)));
    return frame(width, 28 * found.length + 8, title, found.map((each, row) => [
      s("text", { x: left - 12, y: 28 * row + 20, "text-anchor": "end", fill: paints.ink }, each.text),
      s("rect", { x: left, y: 28 * row + 6, height: 20, rx: 4, width: Math.max(1, (width - left - 64) * Math.max(0, each.cosine)), fill: paints.accent }),
      s("text", { x: width, y: 28 * row + 20, "text-anchor": "end", fill: paints.ink }, each.cosine.toFixed(3))]).flat());
  };
  const rows = () => [[word(), t(WORDS.cosine)], ...found.map((each) => [each.text, each.cosine])];
  const element = panel(title, [note, said, list], { svg: () => alone(draw, `${title}: ${word()}`, 640), data: () => csv(rows()) });
  return { element, needs: ["word", "model"], ask, end };
}

/** @param {string} text */
function walk(text) {
  announce(text);
  set({ word: text });
}

/** @returns {Part} */
function compared() {
  const input = (/** @type {string} */ id, /** @type {string} */ label) => h("input", { type: "text", id, "aria-label": label, autocomplete: "off" });
  const fields = [input("one", t(WORDS.one)), input("other", t(WORDS.other))];
  fields[0].addEventListener("input", settled(350, () => set(isSentences() ? { text: fields[0].value } : { word: fields[0].value.trim() })));
  fields[1].addEventListener("input", settled(350, () => set({ other: fields[1].value })));
  const note = h("p", { class: "note" });
  const figure = h("output", { class: "cosine", "aria-label": t(WORDS.cosine) });
  let cosine = 0;
  const title = t(WORDS.compare);
  const told = () => `${t(WORDS.cosine)} ${number(cosine)}`;
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => {
    const x = (/** @type {number} */ value) => 16 + ((value + 1) / 2) * (width - 32);
    const label = paints.theme ? [s("text", { x: 16, y: 16, fill: paints.ink }, `${one()} · ${other()} · ${told()}`)] : [];
    return frame(width, 76, told(), ...label,
      s("rect", { x: x(-1), y: 32, width: x(1) - x(-1), height: 8, rx: 4, fill: paints.empty }),
      s("rect", { x: Math.min(x(0), x(cosine)), y: 32, width: Math.abs(x(cosine) - x(0)), height: 8, fill: paints.accent }),
      s("circle", { cx: x(cosine), cy: 36, r: 9, fill: paints.accent }),
      [-1, 0, 1].map((value) => s("text", { x: x(value), y: 66, "text-anchor": "middle", fill: paints.soft }, String(value).replace("-", "−"))));
  };
  const gauge = new Picture(draw);
  const { ask, said, end } = asking(
    () => look("similar", { one: one(), other: other(), sentences: isSentences(), ...model() }),
    (/** @type {{cosine: number}} */ found) => {
      cosine = found.cosine;
      refill(figure, number(cosine));
      gauge.show();
    });
  const choice = switcher(t(WORDS.kind), [["words", t(WORDS.words)], ["sentences", t(WORDS.sentences)]], isSentences() ? "sentences" : "words",
    (value) => set({ view: value === "words" ? "" : value, other: "" }));
  const element = panel(title, [h("div", { class: "controls" }, choice), note, h("div", { class: "two" }, fields), said, figure, gauge.element], {
    svg: () => alone(draw, title, 640),
    data: () => ({ one: one(), other: other(), sentences: isSentences(), cosine }),
  });
  return {
    element, needs: ["word", "text", "other", "view", "model"], end,
    ask: () => {
      [one(), other()].forEach((text, at) => document.activeElement !== fields[at] && (fields[at].value = text));
      refill(note, t(isSentences() ? WORDS.sentencesNote : WORDS.wordsNote));
      ask();
    },
  };
}

/** @returns {Part} */
function plane() {
  const field = h("input", { type: "text", id: "map", value: get("map"), placeholder: t(WORDS.added), autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", settled(350, () => set({ map: field.value })));
  /** @type {import("../scatter_plot.js").Point[]} */
  let points = [];
  const title = t(WORDS.map);
  const how = { say: (/** @type {{text: string}} */ point) => t(WORDS.point, point.text), onChoose: walk };
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => scatter(points, title, width, paints, paints.theme ? undefined : how);
  const picture = new Picture(draw);
  const { ask, said, end } = asking(async () => {
    const roles = new Map(added().map((text) => [text, /** @type {"word" | "near" | "own"} */ ("own")]));
    for (const each of await neighbours()) roles.set(each.text, "near");
    roles.set(word(), "word");
    const found = await look("plane", { words: [...roles.keys()], ...model() });
    return found.points.map((/** @type {{text: string, x: number, y: number}} */ point) => ({ ...point, role: roles.get(point.text) ?? "own" }));
  }, (found) => {
    const isHere = picture.element.contains(document.activeElement);
    points = found;
    picture.show();
    if (isHere) /** @type {SVGElement | null} */ (picture.element.querySelector(`[data-word="${CSS.escape(word())}"]`))?.focus();
  });
  const rows = () => [[t(WORDS.word), "x", "y"], ...points.map(({ text, x, y }) => [text, x, y])];
  const element = panel(title, [h("div", { class: "controls" }, h("label", { for: "map" }, t(WORDS.add)), field), said, picture.element],
    { svg: () => alone(draw, title), data: () => csv(rows()) }, t(WORDS.mapNote));
  return { element, needs: ["word", "map", "model"], ask, end };
}
