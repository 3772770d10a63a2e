/** The embeddings screen: neighbours of a word, similarity of two words or sentences, and a map of words. */

import { fetchExplorer } from "../api.js";
import { announce, debounce, h, replaceContent, s } from "../dom.js";
import { toCsv } from "../export.js";
import { latestRequest } from "../latest_request.js";
import { formatNumber, t, textWidth } from "../page_text.js";
import { panel } from "../panel.js";
import { optionRadioGroup } from "../radio_group.js";
import { scatterPlot } from "../scatter_plot.js";
import { ResponsiveDiagram, standaloneSvg, svgRoot } from "../svg_diagram.js";
import { getState, onStateChange, setState } from "../url_state.js";

export const TITLE = { en: "Embeddings", zh: "词向量" };

const TEXTS = {
  lead: {
    en: "Each token has a vector that is learned in training. Words that are used alike have similar vectors, in both languages. The cosine of the angle between two vectors measures how similar they are.",
    zh: "每个词元对应一个训练得到的向量。用法相近的词，向量也相近，两种语言都是如此。两个向量夹角的余弦表示它们有多相似。",
  },
  word: { en: "Word", zh: "词" },
  exampleWord: { en: "black", zh: "黑" },
  examples: { en: "Examples", zh: "示例" },
  neighbours: { en: "Neighbours", zh: "近邻" },
  nearest: { en: "Nearest to “{0}”. Select a word to continue from there.", zh: "离“{0}”最近的词。选择一个词，从那里继续看。" },
  showNeighbours: { en: "{0}, cosine {1}: show its neighbours", zh: "{0}，余弦 {1}：查看它的近邻" },
  cosine: { en: "cosine", zh: "余弦" },
  compare: { en: "How similar are they?", zh: "两者有多相似？" },
  kind: { en: "What is compared", zh: "比较什么" },
  words: { en: "words", zh: "词" },
  sentences: { en: "sentences", zh: "句子" },
  first: { en: "First", zh: "第一个" },
  second: { en: "Second", zh: "第二个" },
  wordsNote: {
    en: "Cosine between two rows of the encoder's embedding table. A word of several tokens uses their mean.",
    zh: "编码器词向量表中两行之间的余弦。由几个词元组成的词取平均值。",
  },
  sentencesNote: {
    en: "Cosine between the mean encoder outputs of the two sentences. A sentence and its translation are close to each other.",
    zh: "编码器对两个句子的输出各取平均后的余弦。一个句子和它的译文很接近。",
  },
  secondExampleWord: { en: "brown", zh: "白" },
  exampleSentence: { en: "I like cats.", zh: "我喜欢猫。" },
  secondExampleSentence: { en: "我喜欢猫。", zh: "I like cats." },
  map: { en: "Word map", zh: "词向量地图" },
  mapNote: {
    en: "The word, its neighbours and your own words, projected onto their first two principal components. Select a word to show its neighbours.",
    zh: "这个词、它的近邻和你添加的词，投影到前两个主成分上。选择一个词，查看它的近邻。",
  },
  add: { en: "Words to add, separated by commas", zh: "要添加的词，用逗号隔开" },
  added: { en: "dog, cat, 狗, 猫", zh: "狗, 猫, dog, cat" },
  showPoint: { en: "{0}: show its neighbours", zh: "{0}：查看它的近邻" },
};

const EXAMPLE_WORDS = ["black", "黑", "London", "三", "Monday", "水"];
const NEIGHBOUR_COUNT = 12;

/** @typedef {{text: string, id: number, cosine: number}} Neighbour */

const currentWord = () => getState("word") || t(TEXTS.exampleWord);
const comparesSentences = () => getState("view") === "sentences";
const secondText = () => getState("other") || t(comparesSentences() ? TEXTS.secondExampleSentence : TEXTS.secondExampleWord);
const firstText = () => (comparesSentences() ? getState("text") || t(TEXTS.exampleSentence) : currentWord());
const addedWords = () => (getState("map") || t(TEXTS.added)).split(/[,，、;；\n]+/).map((word) => word.trim()).filter(Boolean).slice(0, 40);

/** @returns {{model?: string}} */
const modelOption = () => (getState("model") ? { model: getState("model") } : {});

/** @returns {Promise<Neighbour[]>} */
async function fetchNeighbours() {
  return (await fetchExplorer("neighbours", { word: currentWord(), count: NEIGHBOUR_COUNT, ...modelOption() })).neighbours;
}

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const field = h("input", { type: "text", id: "word", value: currentWord(), autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", debounce(350, () => setState({ word: field.value.trim() })));
  const panels = [neighboursPanel(), similarityPanel(), mapPanel()];
  replaceContent(root,
    h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))),
    h("div", { class: "controls" }, h("label", { for: "word" }, t(TEXTS.word)), field, h("span", { class: "note" }, t(TEXTS.examples)),
      h("div", { class: "chips" }, EXAMPLE_WORDS.map((word) => h("button", { type: "button", class: "chip", onclick: () => setState({ word }) }, word)))),
    h("div", { class: "columns" }, panels[0].element, panels[1].element), panels[2].element);
  const stopListening = onStateChange((changed) => {
    if (changed.has("word") && document.activeElement !== field) field.value = currentWord();
    for (const panel of panels) if (panel.dependsOn.some((name) => changed.has(name))) panel.request();
  });
  for (const panel of panels) panel.request();
  return () => {
    stopListening();
    for (const panel of panels) panel.dispose();
  };
}

/**
 * @typedef {object} EmbeddingsPanel
 * @property {HTMLElement} element
 * @property {import("../url_state.js").StateKey[]} dependsOn state keys that need a new request
 * @property {() => void} request
 * @property {() => void} dispose
 */

/** @returns {EmbeddingsPanel} */
function neighboursPanel() {
  const [list, note] = [h("ol", { class: "neighbours" }), h("p", { class: "note" })];
  /** @type {Neighbour[]} */
  let neighbours = [];
  const { request, status, dispose } = latestRequest(fetchNeighbours, (newNeighbours) => {
    const hadFocus = list.contains(document.activeElement);
    neighbours = newNeighbours;
    replaceContent(note, t(TEXTS.nearest, currentWord()));
    replaceContent(list, neighbours.map((neighbour) => h("li", {}, h("button", {
      type: "button", class: "neighbour", "aria-label": t(TEXTS.showNeighbours, neighbour.text, neighbour.cosine.toFixed(3)), dataset: { word: neighbour.text }, onclick: () => goToWord(neighbour.text),
    }, h("span", { class: "neighbour-word" }, neighbour.text), h("span", { class: "bar-track" }, h("span", { class: "bar-fill", style: { width: `${100 * Math.max(0, neighbour.cosine)}%` } })),
    h("span", { class: "neighbour-cosine" }, neighbour.cosine.toFixed(3))))));
    if (hadFocus) list.querySelector("button")?.focus();
  });
  const title = t(TEXTS.neighbours);
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => {
    const left = 24 + 8 * Math.max(4, ...neighbours.map((neighbour) => textWidth(neighbour.text)));
    return svgRoot(width, 28 * neighbours.length + 8, title, neighbours.map((neighbour, row) => [
      s("text", { x: left - 12, y: 28 * row + 20, "text-anchor": "end", fill: colours.ink }, neighbour.text),
      s("rect", { x: left, y: 28 * row + 6, height: 20, rx: 4, width: Math.max(1, (width - left - 64) * Math.max(0, neighbour.cosine)), fill: colours.accent }),
      s("text", { x: width, y: 28 * row + 20, "text-anchor": "end", fill: colours.ink }, neighbour.cosine.toFixed(3))]).flat());
  };
  const rows = () => [[currentWord(), t(TEXTS.cosine)], ...neighbours.map((neighbour) => [neighbour.text, neighbour.cosine])];
  const element = panel(title, [note, status, list], { svg: () => standaloneSvg(draw, `${title}: ${currentWord()}`, 640), data: () => toCsv(rows()) });
  return { element, dependsOn: ["word", "model"], request, dispose };
}

/** @param {string} text */
function goToWord(text) {
  announce(text);
  setState({ word: text });
}

/** @returns {EmbeddingsPanel} */
function similarityPanel() {
  const input = (/** @type {string} */ id, /** @type {string} */ label) => h("input", { type: "text", id, "aria-label": label, autocomplete: "off" });
  const fields = [input("one", t(TEXTS.first)), input("other", t(TEXTS.second))];
  fields[0].addEventListener("input", debounce(350, () => setState(comparesSentences() ? { text: fields[0].value } : { word: fields[0].value.trim() })));
  fields[1].addEventListener("input", debounce(350, () => setState({ other: fields[1].value })));
  const note = h("p", { class: "note" });
  const figure = h("output", { class: "cosine", "aria-label": t(TEXTS.cosine) });
  let cosine = 0;
  const title = t(TEXTS.compare);
  const cosineText = () => `${t(TEXTS.cosine)} ${formatNumber(cosine)}`;
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => {
    const x = (/** @type {number} */ value) => 16 + ((value + 1) / 2) * (width - 32);
    const label = colours.theme ? [s("text", { x: 16, y: 16, fill: colours.ink }, `${firstText()} · ${secondText()} · ${cosineText()}`)] : [];
    return svgRoot(width, 76, cosineText(), ...label,
      s("rect", { x: x(-1), y: 32, width: x(1) - x(-1), height: 8, rx: 4, fill: colours.empty }),
      s("rect", { x: Math.min(x(0), x(cosine)), y: 32, width: Math.abs(x(cosine) - x(0)), height: 8, fill: colours.accent }),
      s("circle", { cx: x(cosine), cy: 36, r: 9, fill: colours.accent }),
      [-1, 0, 1].map((value) => s("text", { x: x(value), y: 66, "text-anchor": "middle", fill: colours.mutedInk }, String(value).replace("-", "−"))));
  };
  const gauge = new ResponsiveDiagram(draw);
  const { request, status, dispose } = latestRequest(
    () => fetchExplorer("similar", { one: firstText(), other: secondText(), sentences: comparesSentences(), ...modelOption() }),
    (/** @type {{cosine: number}} */ result) => {
      cosine = result.cosine;
      replaceContent(figure, formatNumber(cosine));
      gauge.show();
    });
  const kindSwitch = optionRadioGroup(t(TEXTS.kind), [["words", t(TEXTS.words)], ["sentences", t(TEXTS.sentences)]], comparesSentences() ? "sentences" : "words",
    (value) => setState({ view: value === "words" ? "" : value, other: "" }));
  const element = panel(title, [h("div", { class: "controls" }, kindSwitch), note, h("div", { class: "stacked-fields" }, fields), status, figure, gauge.element], {
    svg: () => standaloneSvg(draw, title, 640),
    data: () => ({ one: firstText(), other: secondText(), sentences: comparesSentences(), cosine }),
  });
  return {
    element, dependsOn: ["word", "text", "other", "view", "model"], dispose,
    request: () => {
      [firstText(), secondText()].forEach((text, index) => document.activeElement !== fields[index] && (fields[index].value = text));
      replaceContent(note, t(comparesSentences() ? TEXTS.sentencesNote : TEXTS.wordsNote));
      request();
    },
  };
}

/** @returns {EmbeddingsPanel} */
function mapPanel() {
  const field = h("input", { type: "text", id: "map", value: getState("map"), placeholder: t(TEXTS.added), autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", debounce(350, () => setState({ map: field.value })));
  /** @type {import("../scatter_plot.js").Point[]} */
  let points = [];
  const title = t(TEXTS.map);
  const interaction = { describe: (/** @type {{text: string}} */ point) => t(TEXTS.showPoint, point.text), onSelect: goToWord };
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => scatterPlot(points, title, width, colours, colours.theme ? undefined : interaction);
  const diagram = new ResponsiveDiagram(draw);
  const { request, status, dispose } = latestRequest(async () => {
    const roles = new Map(addedWords().map((text) => [text, /** @type {"word" | "neighbour" | "added"} */ ("added")]));
    for (const neighbour of await fetchNeighbours()) roles.set(neighbour.text, "neighbour");
    roles.set(currentWord(), "word");
    const result = await fetchExplorer("plane", { words: [...roles.keys()], ...modelOption() });
    return result.points.map((/** @type {{text: string, x: number, y: number}} */ point) => ({ ...point, role: roles.get(point.text) ?? "added" }));
  }, (newPoints) => {
    const hadFocus = diagram.element.contains(document.activeElement);
    points = newPoints;
    diagram.show();
    if (hadFocus) /** @type {SVGElement | null} */ (diagram.element.querySelector(`[data-word="${CSS.escape(currentWord())}"]`))?.focus();
  });
  const rows = () => [[t(TEXTS.word), "x", "y"], ...points.map(({ text, x, y }) => [text, x, y])];
  const element = panel(title, [h("div", { class: "controls" }, h("label", { for: "map" }, t(TEXTS.add)), field), status, diagram.element],
    { svg: () => standaloneSvg(draw, title), data: () => toCsv(rows()) }, t(TEXTS.mapNote));
  return { element, dependsOn: ["word", "map", "model"], request, dispose };
}
