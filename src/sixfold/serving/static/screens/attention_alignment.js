/** Which head of the cross-attention aligns, as measured: its weights beside what hiding each source piece does. */

import { asked, labels, look, Refused } from "../api.js";
import { escape, h, refill } from "../dom.js";
import { matrixCsv, matrixSvg, svgFrame } from "../export.js";
import { Matrix } from "../heat_map.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, set } from "../url_state.js";

/** @typedef {{head: string, agreement: number, reads_token: boolean}} Aligner */
/** @typedef {{aligners: Aligner[], influence: number[][]}} Answer */
/** @typedef {import("./attention_weights.js").Shown} Shown */
/** @typedef {import("../heat_map.js").MatrixData} MatrixData */

const WORDS = {
  title: { en: "Which head aligns", zh: "哪个头负责对齐" },
  how: {
    en: "Measured, not guessed: each source piece is hidden in turn, and we note how far the log-probability of each target piece falls. A head agrees on a piece when what it looks at most is what that piece hangs on most, at the step that writes the piece or, marked ↓, at the next step, which reads it; <eos> and language tags are left out.",
    zh: "这是测出来的：依次遮住每个源词元，记下每个目标词元的对数概率下降多少。若一个头看得最多的源词元，正是该目标词元最依赖的那个，就算一致；看的是写出该词元的那一步，标有 ↓ 的则是读入它的下一步；<eos> 与语言标签不计。",
  },
  measure: { en: "Measure", zh: "测量" },
  wait: { en: "Hiding each piece in turn…", zh: "正在依次遮住每个词元…" },
  best: { en: "{0} aligns best: it agrees on {1} of the target pieces.", zh: "{0} 对齐最好：在 {1} 的目标词元上一致。" },
  tied: { en: "{0} align equally well: each agrees on {1} of the target pieces.", zh: "{0} 对齐得一样好：各在 {1} 的目标词元上一致。" },
  go: { en: "Show {0}, which agrees on {1}", zh: "查看 {0}，一致率 {1}" },
  influence: { en: "Influence of each source piece", zh: "每个源词元的影响" },
  influenceNote: { en: "How far the log-probability of what a row writes falls when the column's piece is hidden.", zh: "遮住某列的词元后，某行所写词元的对数概率下降多少。" },
  influenceLabel: { en: "Fall of log-probability; the arrow keys move", zh: "对数概率下降；用方向键移动" },
};

const LISTED = 8;

/** @param {number} part */
const percent = (part) => `${Math.round(100 * part)}%`;

/**
 * @param {(names: Set<string>) => void} onBest told which are the best, by name
 * @returns {import("./attention_weights.js").Part}
 */
export function alignersPart(onBest) {
  /** @type {Answer | null} */
  let found = null;
  /** @type {MatrixData | null} */
  let influence = null;
  /** @type {Shown | null} */
  let now = null;
  let last = "";
  let turn = 0;
  const matrix = new Matrix();
  const body = h("div", { id: "aligners" });
  const list = panel(t(WORDS.title), [h("p", { class: "note" }, t(WORDS.how)), body], { svg: () => bars(found), data: () => csv(found) });
  const map = panel(t(WORDS.influence), [matrix.element], {
    svg: () => (influence ? matrixSvg(influence, t(WORDS.influence)) : svgFrame(200, 40, t(WORDS.influence), "")),
    data: () => (influence ? matrixCsv(influence) : ""),
  }, t(WORDS.influenceNote));
  map.hidden = true;

  function forget() {
    turn++;
    [found, influence, map.hidden] = [null, null, true];
    onBest(new Set());
    refill(body, h("button", { type: "button", class: "button", id: "measure", onclick: () => set({ view: "aligners" }) }, t(WORDS.measure)));
  }

  /** @param {Shown} shown */
  async function measure(shown) {
    const mine = ++turn;
    refill(body, h("p", { class: "note", role: "status" }, t(WORDS.wait)));
    try {
      const answer = await look("aligners", asked());
      if (mine !== turn) return;
      found = answer;
      present(answer, shown);
    } catch (error) {
      if (mine === turn) refill(body, h("p", { class: "wrong" }, error instanceof Refused ? error.message : String(error)));
    }
  }

  /**
   * @param {Answer} answer
   * @param {Shown} shown
   */
  function present(answer, shown) {
    const best = answer.aligners.filter(({ agreement }) => agreement === answer.aligners[0].agreement).map(({ head }) => head);
    const chosen = now && `${now.weights.kind}.${now.layer}.${now.head}`;
    refill(body, h("p", { id: "best" }, t(best.length > 1 ? WORDS.tied : WORDS.best, best.join(", "), percent(answer.aligners[0].agreement))),
      h("ol", { class: "bars" }, answer.aligners.slice(0, LISTED).map((each) => h("li", {}, bar(each, each.head === chosen)))));
    onBest(new Set(best));
    const [rows, columns] = labels(shown.weights.trace, "cross");
    influence = { rows, columns, values: Float32Array.from(answer.influence.flat()), isSigned: true, label: t(WORDS.influenceLabel) };
    map.hidden = false;
    matrix.show(influence);
  }

  return {
    element: h("div", { class: "columns" }, list, map),
    show(shown) {
      now = shown;
      const wanted = get("view") === "aligners" ? JSON.stringify(shown.weights.asked) : "none";
      if (wanted !== last) {
        last = wanted;
        if (wanted === "none") forget();
        else measure(shown);
      }
      const chosen = `${shown.weights.kind}.${shown.layer}.${shown.head}`;
      for (const button of body.querySelectorAll("button[data-head]")) button.setAttribute("aria-pressed", String(button.getAttribute("data-head") === chosen));
    },
  };
}

/**
 * @param {Aligner} aligner
 * @param {boolean} isChosen
 */
function bar({ head, agreement, reads_token }, isChosen) {
  const [kind, layer, place] = head.split(".");
  return h("button", {
    type: "button", class: "bar-row", dataset: { head, agreement }, "aria-pressed": String(isChosen), "aria-label": t(WORDS.go, head, percent(agreement)),
    onclick: () => set({ kind, layer, head: place, row: "", column: "" }),
  }, h("code", {}, head, reads_token ? " ↓" : ""), h("span", { class: "track" }, h("span", { class: "length", style: { width: percent(agreement) } })), h("span", {}, percent(agreement)));
}

/** @param {Answer | null} found */
function csv(found) {
  return ["head,agreement", ...(found?.aligners ?? []).map(({ head, agreement }) => `${head},${agreement}`)].join("\n");
}

/** @param {Answer | null} found */
function bars(found) {
  const lines = (found?.aligners ?? []).map(({ head, agreement }, place) =>
    `<text x="12" y="${54 + 24 * place}">${escape(head)}</text>` +
    `<rect x="90" y="${43 + 24 * place}" width="${300 * agreement}" height="14" rx="3" fill="#4455c7"/>` +
    `<text x="${98 + 300 * agreement}" y="${54 + 24 * place}">${percent(agreement)}</text>`);
  return svgFrame(460, 56 + 24 * lines.length, t(WORDS.title), lines.join(""));
}
