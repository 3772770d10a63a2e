/** The first two stages of the walk: characters are merged into tokens, and tokens become ids. */

import { exploreRequest, fetchExplorer } from "../api.js";
import { h, replaceContent } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { pythonBox } from "./walk_card.js";
import { python } from "./walk_python.js";
import { STAGE_DESCRIPTIONS, STAGE_TITLES } from "./walk_stage_texts.js";

/** @typedef {{text: string, stages: string[][]}} Word */

const SPACE = "▁"; // as tokens show it
const TEXTS = {
  special: { en: "{0} is a special token without text.", zh: "{0} 是没有对应文本的特殊词元。" },
  unknown: { en: "The server sent no merges for this text.", zh: "服务器没有给出这段文本的合并过程。" },
  differs: { en: "The model wrote {0} itself; the tokeniser would split this text differently.", zh: "{0} 是模型自己写出的；分词器会把这段文本切成别的样子。" },
  rounds: { en: "Merges, one per line", zh: "合并过程，每行一轮" },
  round: { en: "round", zh: "轮次" },
  tokens: { en: "tokens", zh: "词元" },
  id: { en: "id", zh: "编号" },
};

/** @returns {{elements: HTMLElement[], show: (position: import("./walk_python.js").WalkPosition) => Promise<void>}} */
export function tokenizationCards() {
  /** @type {import("./walk_python.js").WalkPosition | null} */
  let position = null;
  /** @type {Word | null} */
  let word = null;
  let latestNumber = 0;
  const rounds = h("ol", { class: "rounds", tabindex: 0, "aria-label": t(TEXTS.rounds) });
  const ids = h("ol", { class: "ids" });
  const value = h("output", { class: "value" });
  const { element: snippet, show: showPython } = pythonBox(t(STAGE_TITLES.id));
  const mergesPanel = panel(t(STAGE_TITLES.text), [rounds], {
    svg: () => tableSvg(t(STAGE_TITLES.text), [[t(TEXTS.round), t(TEXTS.tokens)], ...(word?.stages ?? []).map((stage, round) => [String(round), stage.join("   ")])]),
    data: () => word ?? {},
  }, t(STAGE_DESCRIPTIONS.text));
  const idsPanel = panel(t(STAGE_TITLES.id), [ids, h("div", { class: "readout" }, value), snippet], {
    svg: () => tableSvg(t(STAGE_TITLES.id), idRows().map((row) => row.map(String))), data: () => toCsv(idRows()),
  }, t(STAGE_DESCRIPTIONS.id));
  [["text", mergesPanel], ["id", idsPanel]].forEach(([id, element]) => {
    const card = /** @type {HTMLElement} */ (element);
    card.classList.add("stage");
    card.id = `stage-${id}`;
    card.dataset.stage = String(id);
  });

  /** @param {import("./walk_python.js").WalkPosition} walkPosition */
  function side(walkPosition) {
    return walkPosition.stack === "encoder" ? "source" : "target";
  }

  function idRows() {
    const tokens = position ? position.trace[side(position)] : { texts: [], ids: [] };
    return [[t(TEXTS.tokens), t(TEXTS.id)], ...tokens.texts.map((text, index) => [text, tokens.ids[index]])];
  }

  /** @param {import("./walk_python.js").WalkPosition} newPosition */
  async function show(newPosition) {
    if (position && position.trace === newPosition.trace && position.stack === newPosition.stack && position.row === newPosition.row) return;
    const requestNumber = ++latestNumber;
    position = newPosition;
    const { texts, ids: numbers } = newPosition.trace[side(newPosition)];
    replaceContent(ids, texts.map((text, index) => h("li", { class: index === newPosition.row ? "current" : "" }, h("span", { class: "cell-word" }, text), h("span", { class: "note" }, numbers[index]))));
    value.textContent = String(numbers[newPosition.row]);
    value.dataset.value = String(numbers[newPosition.row]);
    const stage = { id: "id", title: STAGE_TITLES.id, about: STAGE_DESCRIPTIONS.id, formula: "", name: "", inputs: [], snippet: "id", axis: /** @type {const} */ ("row"), isSigned: false, hasBias: false };
    showPython(python(newPosition, stage, 0), `trace.${side(newPosition)}.ids[${newPosition.row}]`);
    const merges = await fetchExplorer("merges", exploreRequest()).catch(() => null);
    if (requestNumber !== latestNumber) return;
    const [start, end] = newPosition.trace[side(newPosition)].spans[newPosition.row];
    word = merges && wordOfToken(merges[side(newPosition)], newPosition.trace[side(newPosition)], newPosition.row);
    const reason = start === end ? TEXTS.special : merges ? TEXTS.differs : TEXTS.unknown;
    replaceContent(rounds, word
      ? word.stages.map((pieces) => h("li", {}, pieces.map((piece) => h("span", { class: "chip" }, piece.replaceAll(" ", SPACE)))))
      : h("li", { class: "note" }, t(reason, texts[newPosition.row])));
  }

  return { elements: [mergesPanel, idsPanel], show };
}

/**
 * Return the word that a token belongs to: the last stages of all words, in order, are the tokens.
 * @param {Word[]} words
 * @param {import("../api.js").TokenList} tokens
 * @param {number} row
 * @returns {Word | null}
 */
function wordOfToken(words, tokens, row) {
  // The space that a tokeniser puts before every text has no characters of the text, but a word of its own.
  const isText = tokens.spans.map(([start, end], token) => start !== end || tokens.texts[token] === SPACE);
  if (!isText[row]) return null;
  let remaining = isText.slice(0, row).filter(Boolean).length;
  for (const word of words) {
    remaining -= word.stages[word.stages.length - 1].length;
    if (remaining < 0) return word.stages[word.stages.length - 1].some((piece) => (piece.trim() || SPACE) === tokens.texts[row]) ? word : null;
  }
  return null;
}
