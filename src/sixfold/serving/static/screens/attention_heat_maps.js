/** Heat maps of attention: all heads of one kind as thumbnails, and the selected head in full. */

import { h, replaceContent } from "../dom.js";
import { figureSvg, heatMapBody, heatMapCsv, heatMapSvg } from "../export.js";
import { HeadGrid } from "../head_grid.js";
import { HeatMap, renderCells, sequentialColour } from "../heat_map.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, setState } from "../url_state.js";

/** @typedef {import("./attention_weights.js").Selection} Selection */
/** @typedef {import("./attention_weights.js").AttentionWeights} AttentionWeights */

const TEXTS = {
  heads: { en: "All heads", zh: "全部注意力头" },
  headsNote: {
    en: "Rows are layers, columns are heads; both count from 0. Select with a click or the arrow keys.",
    zh: "行是层，列是头，都从 0 开始编号。点击或用方向键选择。",
  },
  headsLabel: { en: "{0} layers of {1} heads; arrow keys select", zh: "{0} 层，每层 {1} 个头；用方向键选择" },
  head: { en: "layer {0}, head {1}", zh: "第 {0} 层，第 {1} 个头" },
  isOff: { en: "switched off", zh: "已关闭" },
  isBest: { en: "best alignment", zh: "对齐最好" },
  selectedHead: { en: "Selected head", zh: "选中的头" },
  selectedHeadNote: { en: "{0}: each row is a query token; its weights over the columns sum to 1.", zh: "{0}：每行是一个查询词元，它对各列的权重之和为 1。" },
  selectedHeadLabel: { en: "Weights of {0}; arrow keys move the selection", zh: "{0} 的权重；用方向键移动" },
  masked: { en: "masked: exactly 0", zh: "被遮住：恰好为 0" },
  off: { en: "Switch this head off", zh: "关闭这个头" },
  on: { en: "Switch this head on", zh: "打开这个头" },
  layerOff: { en: "Switch off all heads of layer {0}", zh: "关闭第 {0} 层的所有头" },
  allOn: { en: "Switch all heads on", zh: "打开所有头" },
};

/** @returns {string[]} names of the disabled heads */
export function disabledHeads() {
  return getState("off") ? getState("off").split(",") : [];
}

/** @returns {import("./attention_weights.js").AttentionPanel & {highlight: (names: Set<string>) => void}} */
export function headGridPanel() {
  /** @type {Selection | null} */
  let selection = null;
  /** @type {import("../head_grid.js").HeadGridData | null} */
  let gridData = null;
  /** Names of the highlighted heads. */
  let highlightedNames = new Set();
  const grid = new HeadGrid((layer, head) => setState({ layer, head, ...(selection && { row: selection.row }), column: "" }));
  const element = panel(t(TEXTS.heads), [grid.element], {
    svg: () => (selection ? gridSvg(selection.weights) : ""),
    data: () => (selection ? gridJson(selection.weights) : ""),
  }, t(TEXTS.headsNote));

  /** @param {AttentionWeights} weights */
  function gridDataOf(weights) {
    const ofThisKind = (/** @type {Iterable<string>} */ names) => new Set([...names].filter((name) => name.startsWith(`${weights.kind}.`)).map((name) => name.slice(weights.kind.length + 1)));
    const [off, highlighted] = [ofThisKind(weights.trace.off), ofThisKind(highlightedNames)];
    return {
      layers: weights.layers, heads: weights.heads, off, marked: highlighted,
      get: (/** @type {number} */ layer, /** @type {number} */ head) => weights.get(layer, head),
      label: t(TEXTS.headsLabel, weights.layers, weights.heads),
      describe: (/** @type {number} */ layer, /** @type {number} */ head) => [t(TEXTS.head, layer, head),
        off.has(`${layer}.${head}`) && t(TEXTS.isOff), highlighted.has(`${layer}.${head}`) && t(TEXTS.isBest)].filter(Boolean).join(", "),
    };
  }

  return {
    element,
    show(nextSelection) {
      if (!gridData || selection?.weights !== nextSelection.weights) gridData = gridDataOf(nextSelection.weights);
      selection = nextSelection;
      grid.show(gridData, [nextSelection.layer, nextSelection.head]);
    },
    highlight(names) {
      highlightedNames = names;
      gridData = null;
      if (selection) this.show(selection);
    },
  };
}

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function selectedHeadPanel() {
  /** @type {Selection | null} */
  let selection = null;
  const heatMap = new HeatMap({ onSelect: (row, column) => setState({ row, column }) });
  const note = h("p", { class: "note" });
  const actions = h("div", { class: "actions" });
  const legend = h("div", { class: "legend" });
  const element = panel(t(TEXTS.selectedHead), [note, actions, heatMap.element, legend], {
    svg: () => (selection ? heatMapSvg(selection.weights.get(selection.layer, selection.head)) : ""),
    data: async () => (selection ? heatMapCsv(await selection.weights.loadExactHead(selection.layer, selection.head)) : ""),
  });

  return {
    element,
    show(nextSelection) {
      const isSame = selection?.weights === nextSelection.weights && selection.layer === nextSelection.layer && selection.head === nextSelection.head;
      selection = nextSelection;
      const { weights, layer, head, row, column } = nextSelection;
      const data = weights.get(layer, head);
      heatMap.show(data, [row, column]);
      if (isSame) return;
      heatMap.canvas.setAttribute("aria-label", t(TEXTS.selectedHeadLabel, data.label));
      note.textContent = t(TEXTS.selectedHeadNote, data.label);
      replaceContent(actions, ablationButtons(weights, layer, head));
      replaceContent(legend, h("span", {}, "0"), h("span", { class: "ramp", style: { background: `linear-gradient(to right, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(sequentialColour).join(", ")})` } }), h("span", {}, "1"),
        data.isUnmasked && h("span", { class: "masked" }), data.isUnmasked && h("span", {}, t(TEXTS.masked)));
    },
  };
}

/**
 * Return buttons that switch heads off and on.
 * @param {AttentionWeights} weights
 * @param {number} layer
 * @param {number} head
 */
function ablationButtons(weights, layer, head) {
  const disabled = disabledHeads();
  const name = `${weights.kind}.${layer}.${head}`;
  const layerHeads = Array.from({ length: weights.heads }, (_, item) => `${weights.kind}.${layer}.${item}`);
  const isOff = disabled.includes(name);
  const setDisabled = (/** @type {string[]} */ names) => () => setState({ off: [...new Set(names)].sort().join(",") });
  const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string[]} */ names, isDisabled = false) =>
    h("button", { type: "button", class: "outlined", dataset: { action: id }, disabled: isDisabled, onclick: setDisabled(names) }, text);
  return [
    button("head", t(isOff ? TEXTS.on : TEXTS.off), isOff ? disabled.filter((item) => item !== name) : [...disabled, name]),
    button("layer", t(TEXTS.layerOff, layer), [...disabled, ...layerHeads], layerHeads.every((item) => disabled.includes(item))),
    button("on", t(TEXTS.allOn), [], disabled.length === 0),
  ];
}

/** @param {AttentionWeights} weights */
function gridSvg(weights) {
  const size = 96;
  const offset = (/** @type {number} */ index) => 40 + index * (size + 6);
  const parts = [];
  for (let layer = 0; layer < weights.layers; layer++) {
    parts.push(`<text x="20" y="${offset(layer) + size / 2 + 24}">${layer}</text>`);
    for (let head = 0; head < weights.heads; head++)
      parts.push(`<rect x="${offset(head)}" y="${offset(layer) + 24}" width="${size}" height="${size}" fill="#eceef3" stroke="#d9dce6"/>` +
        `<image x="${offset(head)}" y="${offset(layer) + 24}" width="${size}" height="${size}" preserveAspectRatio="none" ` +
        `style="image-rendering: pixelated" href="${renderCells(weights.get(layer, head), "light").toDataURL()}"/>`);
  }
  for (let head = 0; head < weights.heads; head++) parts.push(`<text x="${offset(head) + size / 2}" y="54">${head}</text>`);
  return figureSvg(offset(weights.heads), offset(weights.layers) + 24, weights.kind, parts.join(""));
}

/** @param {AttentionWeights} weights */
function gridJson(weights) {
  /** @type {Record<string, number[][]>} */
  const heads = {};
  const width = weights.columns.texts.length;
  for (let layer = 0; layer < weights.layers; layer++)
    for (let head = 0; head < weights.heads; head++) {
      const { values, label } = weights.get(layer, head);
      heads[label] = weights.rows.texts.map((_, row) => [...values.subarray(row * width, (row + 1) * width)]);
    }
  return { rows: weights.rows.texts, columns: weights.columns.texts, heads };
}

/**
 * Return several heat maps side by side as one SVG file.
 * @param {string} title
 * @param {import("../heat_map.js").HeatMapData[]} heatMaps
 */
export function sideBySideSvg(title, heatMaps) {
  const drawings = heatMaps.map(heatMapBody);
  let left = 0;
  const bodies = drawings.map(({ body, width }, index) => {
    const group = `<g transform="translate(${left} 24)"><text x="16" y="24" font-weight="600">${heatMaps[index].label.replace(/[<&]/g, (character) => `&#${character.charCodeAt(0)};`)}</text>${body}</g>`;
    left += width;
    return group;
  });
  return figureSvg(left, 24 + Math.max(...drawings.map(({ height }) => height)), title, bodies.join(""));
}
