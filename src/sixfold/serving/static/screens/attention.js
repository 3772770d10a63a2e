/** Attention: what every head of every layer looks at, from all of them down to one row of one. */

import { asked, EXAMPLE, explore } from "../api.js";
import { h, refill, settled } from "../dom.js";
import { t } from "../page_text.js";
import { mark, strip, switcher } from "../radio_group.js";
import { sentence } from "../sentence_bar.js";
import { get, index, set, watch } from "../url_state.js";
import { alignersPart } from "./attention_alignment.js";
import { arcsPart } from "./attention_arcs.js";
import { comparePart } from "./attention_compare.js";
import { gridPart, matrixPart } from "./attention_heat_maps.js";
import { tokenPart } from "./attention_token_heads.js";
import { carried, largestPlace, Weights } from "./attention_weights.js";
import { switchedPart } from "./head_ablation.js";

/** @typedef {import("../api.js").Kind} Kind */

export const TITLE = { en: "Attention", zh: "注意力" };

const WORDS = {
  lead: { en: "Every head asks, at each place, where to look. See all of them at once, then one head, then one row.", zh: "每个头都在每个位置发问：该看哪里？先看全部，再看一个头，再看一行。" },
  kind: { en: "Kind of attention", zh: "注意力种类" },
  unit: { en: "Pieces or words", zh: "词元或单词" },
  pieces: { en: "pieces", zh: "词元" },
  words: { en: "words", zh: "单词" },
  try: { en: "Try", zh: "试试" },
  compare: { en: "compare the two", zh: "对比两句" },
  token: { en: "The token that asks", zh: "发问的词元" },
};
/** @type {Record<Kind, {name: import("../page_text.js").Words, about: import("../page_text.js").Words}>} */
const KINDS = {
  encoder: {
    name: { en: "encoder self-attention", zh: "编码器自注意力" },
    about: { en: "Each source piece looks at all source pieces, before and after it.", zh: "每个源词元都看所有源词元，前后皆可。" },
  },
  decoder: {
    name: { en: "masked decoder self-attention", zh: "带掩码的解码器自注意力" },
    about: { en: "Each target piece looks at itself and what was written before it; the future is masked, its weight is exactly 0.", zh: "每个目标词元只看自己和之前写出的；未来被遮蔽，权重恰为 0。" },
  },
  cross: {
    name: { en: "cross-attention", zh: "交叉注意力" },
    about: { en: "Each step of the translation looks at the source: what the decoder reads → what it writes next.", zh: "翻译的每一步都看源句：解码器读到的 → 它接着写出的。" },
  },
};
const WIDE = EXAMPLE.replace("tired", "wide");
const OF_A_PASS = /** @type {const} */ (["text", "given", "from", "to", "off", "model"]);

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  /** @type {import("../api.js").Trace | null} */
  let trace = null;
  /** @type {Weights | null} */
  let weights = null;
  let turn = 0;
  const grid = gridPart();
  const parts = [grid, matrixPart(), tokenPart(), arcsPart(), switchedPart(), comparePart(), alignersPart((names) => grid.mark(names))];
  const [heads, matrix, token, arcs, ...rest] = parts.map((part) => part.element);
  const choices = h("div", { class: "controls" });
  const about = h("p", { class: "lead", id: "about-kind" });
  const asking = h("div", { class: "asking" });
  const body = h("div", { class: "attention", hidden: true }, asking, h("div", { class: "columns" }, heads, matrix),
    h("div", { class: "uneven" }, token, arcs), ...rest);
  const bar = sentence((found) => {
    trace = found;
    load();
  });
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(WORDS.lead))), bar.element, h("div", {}, choices, about), body);

  async function load() {
    const mine = ++turn;
    if (!trace) {
      body.hidden = true;
      return;
    }
    const kinds = /** @type {Kind[]} */ (["encoder", "decoder", "cross"]).filter((kind) => trace?.kinds[kind]);
    const kind = kinds.find((each) => each === get("kind")) ?? kinds[0];
    showChoices(kinds, kind);
    body.setAttribute("aria-busy", "true");
    const found = await Weights.load(asked(), trace, kind, get("words") === "1");
    if (mine !== turn) return;
    weights = found;
    body.hidden = false;
    body.removeAttribute("aria-busy");
    refill(asking, h("h2", {}, t(WORDS.token)), strip(t(WORDS.token), found.rows.texts, -1, (row) => set({ row, column: "" })));
    update();
  }

  /**
   * @param {Kind[]} kinds
   * @param {Kind} kind
   */
  function showChoices(kinds, kind) {
    about.textContent = t(KINDS[kind].about);
    const focused = document.activeElement?.getAttribute("data-value");
    refill(choices,
      switcher(t(WORDS.kind), kinds.map((each) => [each, t(KINDS[each].name)]), kind, (chosen) => set({ kind: chosen, layer: "", row: "", column: "" })),
      switcher(t(WORDS.unit), [["", t(WORDS.pieces)], ["1", t(WORDS.words)]], get("words"), join),
      h("div", { class: "actions" }, h("span", { class: "note" }, t(WORDS.try)),
        preset("it … tired", "tired", { text: EXAMPLE, other: "" }), preset("it … wide", "wide", { text: WIDE, other: "" }),
        preset(t(WORDS.compare), "both", { text: EXAMPLE, other: WIDE })));
    if (focused) /** @type {HTMLElement | null} */ (choices.querySelector(`[data-value="${focused}"]`))?.focus();
  }

  /** @param {string} words */
  function join(words) {
    if (!weights) return;
    const place = (/** @type {"rows" | "columns"} */ side, /** @type {"row" | "column"} */ name) =>
      (weights && get(name) ? carried(weights, side, Number(get(name)), words === "1") : get(name));
    set({ words, row: place("rows", "row"), column: place("columns", "column") });
  }

  function update() {
    if (!weights) return;
    const layer = index("layer", weights.layers - 1, weights.layers);
    const head = index("head", 0, weights.heads);
    const row = index("row", weights.kind === "encoder" ? 1 : 0, weights.rows.texts.length);
    const column = index("column", largestPlace(weights.row(layer, head, row)), weights.columns.texts.length);
    mark(asking, row);
    for (const part of parts) part.show({ weights, layer, head, row, column });
    if (!weights.exact.has(row)) refine(weights, row);
  }

  const refine = settled(120, async (/** @type {Weights} */ which, /** @type {number} */ row) => {
    await which.refine(row);
    if (which === weights) update();
  });
  const end = watch((changed) => {
    if (OF_A_PASS.some((name) => changed.has(name))) return; // the bar asks, and calls back
    if (changed.has("kind") || changed.has("words")) load();
    else update();
  });
  return () => {
    turn++;
    weights = null;
    end();
    bar.end();
  };
}

/**
 * A button that sets a sentence about “it”, and asks what it looks at.
 * @param {string} name
 * @param {string} id
 * @param {{text: string, other: string}} what
 */
function preset(name, id, what) {
  const state = { ...what, kind: "encoder", words: "", given: "", from: "", to: "" };
  return h("button", {
    type: "button", class: "outlined", dataset: { preset: id },
    onclick: async () => {
      const found = await explore(asked({ text: what.text, translation: null, source: null, target: null }));
      set({ ...state, row: found.source.texts.indexOf("it"), column: "" });
    },
  }, name);
}
