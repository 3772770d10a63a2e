/** The attention screen: the weights of every head, from an overview of all heads down to one row of one head. */

import { EXAMPLE_SENTENCE, exploreRequest, fetchTrace, isTextModel } from "../api.js";
import { debounce, h, replaceContent } from "../dom.js";
import { t } from "../page_text.js";
import { checkRadio, optionRadioGroup, tokenRadioGroup } from "../radio_group.js";
import { needsNewTrace, sentenceBar } from "../sentence_bar.js";
import { getState, onStateChange, setState, stateIndex } from "../url_state.js";
import { alignmentPanel } from "./attention_alignment.js";
import { arcsPanel } from "./attention_arcs.js";
import { comparePanel } from "./attention_compare.js";
import { headGridPanel, selectedHeadPanel } from "./attention_heat_maps.js";
import { tokenHeadsPanel } from "./attention_token_heads.js";
import { AttentionWeights, convertIndex, indexOfMax } from "./attention_weights.js";
import { headAblationPanel } from "./head_ablation.js";

/** @typedef {import("../api.js").AttentionKind} AttentionKind */

export const TITLE = { en: "Attention", zh: "注意力" };

const TEXTS = {
  lead: {
    en: "At each token, every head decides which tokens to attend to. See all heads at once, then one head, then one row of its weights.",
    zh: "在每个词元处，每个头都要决定关注哪些词元。先看全部的头，再看一个头，最后看其中一行权重。",
  },
  kind: { en: "Kind of attention", zh: "注意力种类" },
  unit: { en: "Tokens or words", zh: "词元或词" },
  tokens: { en: "tokens", zh: "词元" },
  words: { en: "words", zh: "词" },
  examples: { en: "Examples", zh: "示例" },
  compare: { en: "compare both", zh: "对比两句" },
  queryToken: { en: "Query token", zh: "查询词元" },
  causal: { en: "causal self-attention", zh: "因果自注意力" },
  aboutCausal: {
    en: "Each token attends to itself and to the tokens before it. Later tokens are masked: their weight is exactly 0. Rows show the token that the model reads → the token that follows; the last one is what it would write next.",
    zh: "每个词元只能关注自己和前面的词元。后面的词元被掩码遮住，权重恰好为 0。每行表示：模型读入的词元 → 后面的词元；最后一行后面是模型接着会写的词元。",
  },
};
/** @type {Record<AttentionKind, {name: import("../page_text.js").BilingualText, about: import("../page_text.js").BilingualText}>} */
const KINDS = {
  encoder: {
    name: { en: "encoder self-attention", zh: "编码器自注意力" },
    about: { en: "Each source token attends to all source tokens, before and after it.", zh: "每个源词元可以关注所有源词元，不分前后。" },
  },
  decoder: {
    name: { en: "masked decoder self-attention", zh: "解码器掩码自注意力" },
    about: {
      en: "Each target token attends to itself and to the tokens before it. Later tokens are masked: their weight is exactly 0.",
      zh: "每个目标词元只能关注自己和前面的词元。后面的词元被掩码遮住，权重恰好为 0。",
    },
  },
  cross: {
    name: { en: "cross-attention", zh: "交叉注意力" },
    about: {
      en: "Each step of the translation attends to the source. Rows show the token that the decoder reads → the token that it writes next.",
      zh: "翻译的每一步都会关注源句。每行表示：解码器读入的词元 → 接着写出的词元。",
    },
  },
};
const WIDE_SENTENCE = EXAMPLE_SENTENCE.replace("tired", "wide");

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {AttentionWeights | null} */
  let weights = null;
  let latestNumber = 0;
  const headGrid = headGridPanel();
  const translationPanels = [headAblationPanel(), alignmentPanel((names) => headGrid.highlight(names))]; // they say nothing about a text that is only read
  const textPanels = [headGrid, selectedHeadPanel(), tokenHeadsPanel(), arcsPanel(), comparePanel()];
  const panels = [...textPanels.slice(0, 4), translationPanels[0], textPanels[4], translationPanels[1]];
  const [heads, selectedHead, tokenHeads, arcs, ...otherPanels] = panels.map((panel) => panel.element);
  const controls = h("div", { class: "controls" });
  const about = h("p", { class: "lead", id: "about-kind" });
  const queryTokens = h("div", { class: "query-tokens" });
  const body = h("div", { class: "attention", hidden: true }, queryTokens, h("div", { class: "columns" }, heads, selectedHead),
    h("div", { class: "wide-and-narrow" }, tokenHeads, arcs), ...otherPanels);
  const bar = sentenceBar((newTrace) => {
    trace = newTrace;
    load();
  });
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))), bar.element, h("div", {}, controls, about), body);

  async function load() {
    const requestNumber = ++latestNumber;
    if (!trace) {
      body.hidden = true;
      return;
    }
    const kinds = /** @type {AttentionKind[]} */ (["encoder", "decoder", "cross"]).filter((kind) => trace?.kinds[kind]);
    const kind = kinds.find((item) => item === getState("kind")) ?? kinds[0];
    showChoices(kinds, kind);
    body.setAttribute("aria-busy", "true");
    const loadedWeights = await AttentionWeights.load(exploreRequest(), trace, kind, getState("words") === "1");
    if (requestNumber !== latestNumber) return;
    weights = loadedWeights;
    body.hidden = false;
    body.removeAttribute("aria-busy");
    replaceContent(queryTokens, h("h2", {}, t(TEXTS.queryToken)), tokenRadioGroup(t(TEXTS.queryToken), loadedWeights.rows.texts, -1, (row) => setState({ row, column: "" })));
    showSelection();
  }

  /**
   * @param {AttentionKind[]} kinds
   * @param {AttentionKind} kind
   */
  function showChoices(kinds, kind) {
    const isText = trace !== null && isTextModel(trace);
    about.textContent = t(isText ? TEXTS.aboutCausal : KINDS[kind].about);
    const focused = document.activeElement?.getAttribute("data-value");
    replaceContent(controls,
      optionRadioGroup(t(TEXTS.kind), kinds.map((item) => [item, t(isText ? TEXTS.causal : KINDS[item].name)]), kind, (chosen) => setState({ kind: chosen, layer: "", row: "", column: "" })),
      optionRadioGroup(t(TEXTS.unit), [["", t(TEXTS.tokens)], ["1", t(TEXTS.words)]], getState("words"), joinTokens),
      !isText && h("div", { class: "actions" }, h("span", { class: "note" }, t(TEXTS.examples)),
        presetButton("it … tired", "tired", { text: EXAMPLE_SENTENCE, other: "" }), presetButton("it … wide", "wide", { text: WIDE_SENTENCE, other: "" }),
        presetButton(t(TEXTS.compare), "both", { text: EXAMPLE_SENTENCE, other: WIDE_SENTENCE })));
    if (focused) /** @type {HTMLElement | null} */ (controls.querySelector(`[data-value="${focused}"]`))?.focus();
  }

  /** @param {string} words */
  function joinTokens(words) {
    if (!weights) return;
    const newIndex = (/** @type {"rows" | "columns"} */ side, /** @type {"row" | "column"} */ name) =>
      (weights && getState(name) ? convertIndex(weights, side, Number(getState(name)), words === "1") : getState(name));
    setState({ words, row: newIndex("rows", "row"), column: newIndex("columns", "column") });
  }

  function showSelection() {
    if (!weights) return;
    const layer = stateIndex("layer", weights.layers - 1, weights.layers);
    const head = stateIndex("head", 0, weights.heads);
    const isText = isTextModel(weights.trace);
    const row = stateIndex("row", weights.kind === "encoder" ? 1 : isText ? weights.rows.texts.length - 1 : 0, weights.rows.texts.length);
    for (const panel of translationPanels) panel.element.hidden = isText;
    const column = stateIndex("column", indexOfMax(weights.row(layer, head, row)), weights.columns.texts.length);
    checkRadio(queryTokens, row);
    for (const panel of isText ? textPanels : panels) panel.show({ weights, layer, head, row, column });
    if (!weights.exactRows.has(row)) loadExactRow(weights, row);
  }

  const loadExactRow = debounce(120, async (/** @type {AttentionWeights} */ requested, /** @type {number} */ row) => {
    await requested.loadExactRow(row);
    if (requested === weights) showSelection();
  });
  const stopListening = onStateChange((changed) => {
    if (needsNewTrace(changed)) return; // the sentence bar loads a new trace and calls back
    if (changed.has("kind") || changed.has("words")) load();
    else showSelection();
  });
  return () => {
    latestNumber++;
    weights = null;
    stopListening();
    bar.dispose();
  };
}

/**
 * A button that opens an example sentence and selects its token “it” as the query.
 * @param {string} name
 * @param {string} id
 * @param {{text: string, other: string}} sentences
 */
function presetButton(name, id, sentences) {
  const state = { ...sentences, kind: "encoder", words: "", given: "", from: "", to: "" };
  return h("button", {
    type: "button", class: "outlined", dataset: { preset: id },
    onclick: async () => {
      const trace = await fetchTrace(exploreRequest({ text: sentences.text, translation: null, source: null, target: null }));
      setState({ ...state, row: trace.source.texts.indexOf("it"), column: "" });
    },
  }, name);
}
