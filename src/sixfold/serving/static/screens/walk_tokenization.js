/** The beginning of the walk: a word is joined out of its characters, and its pieces become numbers. */

import { asked, look } from "../api.js";
import { h, refill } from "../dom.js";
import { csv, tableSvg } from "../export.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { pythonBox } from "./walk_card.js";
import { python } from "./walk_python.js";
import { ABOUT, TITLES } from "./walk_stage_texts.js";

/** @typedef {{text: string, stages: string[][]}} Word */

const WORDS = {
  special: { en: "{0} stands for no text: the model is told it.", zh: "{0} 不对应任何文本，是给模型的标记。" },
  unknown: { en: "The server tells no merges of this text.", zh: "服务器没有给出这段文本的合并过程。" },
  other: { en: "The model wrote {0} itself; the tokeniser would have cut the text otherwise.", zh: "{0} 是模型自己写出的；分词器会用别的切法。" },
  rounds: { en: "Merges, one a line", zh: "合并过程，每行一次" },
  rule: { en: "round", zh: "轮次" },
  pieces: { en: "pieces", zh: "词元" },
  id: { en: "id", zh: "编号" },
};

/** @returns {{elements: HTMLElement[], show: (spot: import("./walk_python.js").Spot) => Promise<void>}} */
export function textCards() {
  /** @type {import("./walk_python.js").Spot | null} */
  let now = null;
  /** @type {Word | null} */
  let word = null;
  let turn = 0;
  const rounds = h("ol", { class: "rounds", tabindex: 0, "aria-label": t(WORDS.rounds) });
  const ids = h("ol", { class: "ids" });
  const value = h("output", { class: "value" });
  const { element: snippet, show: showPython } = pythonBox(t(TITLES.id));
  const merging = panel(t(TITLES.text), [rounds], {
    svg: () => tableSvg(t(TITLES.text), [[t(WORDS.rule), t(WORDS.pieces)], ...(word?.stages ?? []).map((stage, at) => [String(at), stage.join("   ")])]),
    data: () => word ?? {},
  }, t(ABOUT.text));
  const numbering = panel(t(TITLES.id), [ids, h("div", { class: "readout" }, value), snippet], {
    svg: () => tableSvg(t(TITLES.id), table().map((row) => row.map(String))), data: () => csv(table()),
  }, t(ABOUT.id));
  [["text", merging], ["id", numbering]].forEach(([id, element]) => {
    const card = /** @type {HTMLElement} */ (element);
    card.classList.add("stage");
    card.id = `stage-${id}`;
    card.dataset.stage = String(id);
  });

  /** @param {import("./walk_python.js").Spot} spot */
  function side(spot) {
    return spot.stack === "encoder" ? "source" : "target";
  }

  function table() {
    const pieces = now ? now.trace[side(now)] : { texts: [], ids: [] };
    return [[t(WORDS.pieces), t(WORDS.id)], ...pieces.texts.map((text, at) => [text, pieces.ids[at]])];
  }

  /** @param {import("./walk_python.js").Spot} spot */
  async function show(spot) {
    if (now && now.trace === spot.trace && now.stack === spot.stack && now.row === spot.row) return;
    const mine = ++turn;
    now = spot;
    const { texts, ids: numbers } = spot.trace[side(spot)];
    refill(ids, texts.map((text, at) => h("li", { class: at === spot.row ? "here" : "" }, h("span", { class: "cell-word" }, text), h("span", { class: "note" }, numbers[at]))));
    value.textContent = String(numbers[spot.row]);
    value.dataset.value = String(numbers[spot.row]);
    const stage = { id: "id", title: TITLES.id, about: ABOUT.id, formula: "", name: "", inputs: [], snippet: "id", axis: /** @type {const} */ ("row"), isSigned: false, hasBias: false };
    showPython(python(spot, stage, 0), `trace.${side(spot)}.ids[${spot.row}]`);
    const found = await look("merges", asked()).catch(() => null);
    if (mine !== turn) return;
    const [start, end] = spot.trace[side(spot)].spans[spot.row];
    word = found && wordAt(found[side(spot)], spot.trace[side(spot)], spot.row);
    const why = start === end ? WORDS.special : found ? WORDS.other : WORDS.unknown;
    refill(rounds, word
      ? word.stages.map((pieces) => h("li", {}, pieces.map((piece) => h("span", { class: "chip" }, piece.replaceAll(" ", "▁")))))
      : h("li", { class: "note" }, t(why, texts[spot.row])));
  }

  return { elements: [merging, numbering], show };
}

/**
 * The word that a piece belongs to: the last stages of all words, one after the other, are the pieces.
 * @param {Word[]} words
 * @param {import("../api.js").Pieces} pieces
 * @param {number} row
 * @returns {Word | null}
 */
function wordAt(words, pieces, row) {
  const isText = pieces.spans.map(([start, end]) => start !== end);
  if (!isText[row]) return null;
  let left = isText.slice(0, row).filter(Boolean).length;
  for (const word of words) {
    left -= word.stages[word.stages.length - 1].length;
    if (left < 0) return word.stages[word.stages.length - 1].some((piece) => piece.trim() === pieces.texts[row]) ? word : null;
  }
  return null;
}
