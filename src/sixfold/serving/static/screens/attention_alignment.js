/** Which cross-attention heads align source and target: their weights compared with the effect of hiding each source token. */

import { ApiError, axisLabels, exploreRequest, fetchExplorer } from "../api.js";
import { escapeXml, h, replaceContent } from "../dom.js";
import { figureSvg, heatMapCsv, heatMapSvg } from "../export.js";
import { HeatMap } from "../heat_map.js";
import { t, wholePercent } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, setState } from "../url_state.js";

/** @typedef {{head: string, agreement: number, reads_token: boolean}} HeadAlignment */
/** @typedef {{aligners: HeadAlignment[], influence: number[][]}} AlignmentResult */
/** @typedef {import("./attention_weights.js").Selection} Selection */
/** @typedef {import("../heat_map.js").HeatMapData} HeatMapData */

const TEXTS = {
  title: { en: "Which head aligns", zh: "哪个头负责对齐" },
  explanation: {
    en: "This is measured. Each source token is hidden in turn, and the drop in log-probability of each target token is recorded. A head agrees on a target token when its largest weight falls on the source token with the largest drop. The weights are those of the step that writes the token or, for heads marked ↓, of the next step, which reads it. <eos> and language tags do not count.",
    zh: "这是实测的结果：依次遮住每个源词元，记录每个目标词元的对数概率下降多少。如果一个头权重最大的源词元正好是下降最多的那个，就算它在这个目标词元上一致。权重取自写出该词元的那一步；标有 ↓ 的头取自读入该词元的下一步。<eos> 和语言标签不计。",
  },
  measure: { en: "Measure", zh: "测量" },
  wait: { en: "Hiding each token in turn…", zh: "正在依次遮住每个词元…" },
  best: { en: "{0} aligns best: it agrees on {1} of the target tokens.", zh: "{0} 对齐得最好：在 {1} 的目标词元上一致。" },
  tied: { en: "{0} align equally well: each agrees on {1} of the target tokens.", zh: "{0} 对齐得一样好：各在 {1} 的目标词元上一致。" },
  showHead: { en: "Show {0}, agreement {1}", zh: "查看 {0}，一致率 {1}" },
  influence: { en: "Influence of each source token", zh: "每个源词元的影响" },
  influenceNote: {
    en: "Drop in the log-probability of the token that a row writes, when the column's token is hidden.",
    zh: "遮住某一列的词元后，该行写出的词元的对数概率下降多少。",
  },
  influenceLabel: { en: "Drop in log-probability; arrow keys move the selection", zh: "对数概率的下降；用方向键移动" },
};

const MAX_LISTED = 8;

/**
 * @param {(names: Set<string>) => void} onBest called with the names of the best heads
 * @returns {import("./attention_weights.js").AttentionPanel}
 */
export function alignmentPanel(onBest) {
  /** @type {AlignmentResult | null} */
  let result = null;
  /** @type {HeatMapData | null} */
  let influence = null;
  /** @type {Selection | null} */
  let selection = null;
  let shownRequest = "";
  let latestNumber = 0;
  const heatMap = new HeatMap();
  const body = h("div", { id: "aligners" });
  const headsPanel = panel(t(TEXTS.title), [h("p", { class: "note" }, t(TEXTS.explanation)), body], { svg: () => alignmentSvg(result), data: () => alignmentCsv(result) });
  const influencePanel = panel(t(TEXTS.influence), [heatMap.element], {
    svg: () => (influence ? heatMapSvg(influence, t(TEXTS.influence)) : figureSvg(200, 40, t(TEXTS.influence), "")),
    data: () => (influence ? heatMapCsv(influence) : ""),
  }, t(TEXTS.influenceNote));
  influencePanel.hidden = true;

  function reset() {
    latestNumber++;
    [result, influence, influencePanel.hidden] = [null, null, true];
    onBest(new Set());
    replaceContent(body, h("button", { type: "button", class: "button", id: "measure", onclick: () => setState({ view: "aligners" }) }, t(TEXTS.measure)));
  }

  /** @param {Selection} newSelection */
  async function measure(newSelection) {
    const requestNumber = ++latestNumber;
    replaceContent(body, h("p", { class: "note", role: "status" }, t(TEXTS.wait)));
    try {
      const newResult = await fetchExplorer("aligners", exploreRequest());
      if (requestNumber !== latestNumber) return;
      result = newResult;
      showResult(newResult, newSelection);
    } catch (error) {
      if (requestNumber === latestNumber) replaceContent(body, h("p", { class: "error" }, error instanceof ApiError ? error.message : String(error)));
    }
  }

  /**
   * @param {AlignmentResult} newResult
   * @param {Selection} newSelection
   */
  function showResult(newResult, newSelection) {
    const best = newResult.aligners.filter(({ agreement }) => agreement === newResult.aligners[0].agreement).map(({ head }) => head);
    const selectedHead = selection && `${selection.weights.kind}.${selection.layer}.${selection.head}`;
    replaceContent(body, h("p", { id: "best" }, t(best.length > 1 ? TEXTS.tied : TEXTS.best, best.join(", "), wholePercent(newResult.aligners[0].agreement))),
      h("ol", { class: "bars" }, newResult.aligners.slice(0, MAX_LISTED).map((head) => h("li", {}, headBar(head, head.head === selectedHead)))));
    onBest(new Set(best));
    const [rows, columns] = axisLabels(newSelection.weights.trace, "cross");
    influence = { rows, columns, values: Float32Array.from(newResult.influence.flat()), isSigned: true, label: t(TEXTS.influenceLabel) };
    influencePanel.hidden = false;
    heatMap.show(influence);
  }

  return {
    element: h("div", { class: "columns" }, headsPanel, influencePanel),
    show(newSelection) {
      selection = newSelection;
      const neededRequest = getState("view") === "aligners" ? JSON.stringify(newSelection.weights.request) : "none";
      if (neededRequest !== shownRequest) {
        shownRequest = neededRequest;
        if (neededRequest === "none") reset();
        else measure(newSelection);
      }
      const selectedHead = `${newSelection.weights.kind}.${newSelection.layer}.${newSelection.head}`;
      for (const button of body.querySelectorAll("button[data-head]")) button.setAttribute("aria-pressed", String(button.getAttribute("data-head") === selectedHead));
    },
  };
}

/**
 * @param {HeadAlignment} aligner
 * @param {boolean} isSelected
 */
function headBar({ head, agreement, reads_token }, isSelected) {
  const [kind, layer, number] = head.split(".");
  return h("button", {
    type: "button", class: "bar-row", dataset: { head, agreement }, "aria-pressed": String(isSelected), "aria-label": t(TEXTS.showHead, head, wholePercent(agreement)),
    onclick: () => setState({ kind, layer, head: number, row: "", column: "" }),
  }, h("code", {}, head, reads_token ? " ↓" : ""), h("span", { class: "bar-track" }, h("span", { class: "bar-fill", style: { width: wholePercent(agreement) } })), h("span", {}, wholePercent(agreement)));
}

/** @param {AlignmentResult | null} result */
function alignmentCsv(result) {
  return ["head,agreement", ...(result?.aligners ?? []).map(({ head, agreement }) => `${head},${agreement}`)].join("\n");
}

/** @param {AlignmentResult | null} result */
function alignmentSvg(result) {
  const lines = (result?.aligners ?? []).map(({ head, agreement }, index) =>
    `<text x="12" y="${54 + 24 * index}">${escapeXml(head)}</text>` +
    `<rect x="90" y="${43 + 24 * index}" width="${300 * agreement}" height="14" rx="3" fill="#4455c7"/>` +
    `<text x="${98 + 300 * agreement}" y="${54 + 24 * index}">${wholePercent(agreement)}</text>`);
  return figureSvg(460, 56 + 24 * lines.length, t(TEXTS.title), lines.join(""));
}
