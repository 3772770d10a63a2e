/** All heads of one kind of attention as small pictures, and the one that is chosen as a matrix. */

import { h, refill } from "../dom.js";
import { matrixBody, matrixCsv, matrixSvg, svgFrame } from "../export.js";
import { HeadGrid } from "../head_grid.js";
import { Matrix, raster, shade } from "../heat_map.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, set } from "../url_state.js";

/** @typedef {import("./attention_weights.js").Shown} Shown */
/** @typedef {import("./attention_weights.js").Weights} Weights */

const WORDS = {
  heads: { en: "All heads", zh: "全部注意力头" },
  headsNote: { en: "Layers go down, heads across, both counted from 0. Choose with a click or the arrow keys.", zh: "自上而下为层，自左而右为头，均从 0 计数。点击或用方向键选择。" },
  headsLabel: { en: "{0} layers of {1} heads; the arrow keys choose", zh: "{0} 层，每层 {1} 个头；用方向键选择" },
  head: { en: "layer {0}, head {1}", zh: "第 {0} 层，第 {1} 个头" },
  isOff: { en: "switched off", zh: "已关闭" },
  isBest: { en: "aligns best", zh: "对齐最好" },
  matrix: { en: "The chosen head", zh: "选中的头" },
  matrixNote: { en: "{0}: each row asks, and its weights over the columns sum to 1.", zh: "{0}：每行是发问者，它对各列的权重之和为 1。" },
  matrixLabel: { en: "Weights of {0}; the arrow keys move", zh: "{0} 的权重；用方向键移动" },
  masked: { en: "masked: exactly 0", zh: "被遮蔽：恰为 0" },
  off: { en: "Switch this head off", zh: "关闭这个头" },
  on: { en: "Switch this head on", zh: "打开这个头" },
  layerOff: { en: "Switch off all heads of layer {0}", zh: "关闭第 {0} 层所有头" },
  allOn: { en: "All on", zh: "全部打开" },
};

/** @returns {string[]} names of the heads that are switched off */
export function switchedOff() {
  return get("off") ? get("off").split(",") : [];
}

/** @returns {import("./attention_weights.js").Part & {mark: (names: Set<string>) => void}} */
export function gridPart() {
  /** @type {Shown | null} */
  let now = null;
  /** @type {import("../head_grid.js").GridData | null} */
  let data = null;
  /** Heads that are pointed out, by name. */
  let marked = new Set();
  const grid = new HeadGrid((layer, head) => set({ layer, head, ...(now && { row: now.row }), column: "" }));
  const element = panel(t(WORDS.heads), [grid.element], {
    svg: () => (now ? gridSvg(now.weights) : ""),
    data: () => (now ? gridData(now.weights) : ""),
  }, t(WORDS.headsNote));

  /** @param {Weights} weights */
  function dataOf(weights) {
    const here = (/** @type {Iterable<string>} */ names) => new Set([...names].filter((name) => name.startsWith(`${weights.kind}.`)).map((name) => name.slice(weights.kind.length + 1)));
    const [off, best] = [here(weights.trace.off), here(marked)];
    return {
      layers: weights.layers, heads: weights.heads, off, marked: best,
      get: (/** @type {number} */ layer, /** @type {number} */ head) => weights.get(layer, head),
      label: t(WORDS.headsLabel, weights.layers, weights.heads),
      describe: (/** @type {number} */ layer, /** @type {number} */ head) => [t(WORDS.head, layer, head),
        off.has(`${layer}.${head}`) && t(WORDS.isOff), best.has(`${layer}.${head}`) && t(WORDS.isBest)].filter(Boolean).join(", "),
    };
  }

  return {
    element,
    show(shown) {
      if (!data || now?.weights !== shown.weights) data = dataOf(shown.weights);
      now = shown;
      grid.show(data, [shown.layer, shown.head]);
    },
    mark(names) {
      marked = names;
      data = null;
      if (now) this.show(now);
    },
  };
}

/** @returns {import("./attention_weights.js").Part} */
export function matrixPart() {
  /** @type {Shown | null} */
  let now = null;
  const matrix = new Matrix({ onSelect: (row, column) => set({ row, column }) });
  const note = h("p", { class: "note" });
  const actions = h("div", { class: "actions" });
  const legend = h("div", { class: "legend" });
  const element = panel(t(WORDS.matrix), [note, actions, matrix.element, legend], {
    svg: () => (now ? matrixSvg(now.weights.get(now.layer, now.head)) : ""),
    data: async () => (now ? matrixCsv(await now.weights.whole(now.layer, now.head)) : ""),
  });

  return {
    element,
    show(shown) {
      const isSame = now?.weights === shown.weights && now.layer === shown.layer && now.head === shown.head;
      now = shown;
      const { weights, layer, head, row, column } = shown;
      const data = weights.get(layer, head);
      matrix.show(data, [row, column]);
      if (isSame) return;
      matrix.canvas.setAttribute("aria-label", t(WORDS.matrixLabel, data.label));
      note.textContent = t(WORDS.matrixNote, data.label);
      refill(actions, switches(weights, layer, head));
      refill(legend, h("span", {}, "0"), h("span", { class: "ramp", style: { background: `linear-gradient(to right, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(shade).join(", ")})` } }), h("span", {}, "1"),
        data.isOpen && h("span", { class: "masked" }), data.isOpen && h("span", {}, t(WORDS.masked)));
    },
  };
}

/**
 * Buttons that switch heads off and on.
 * @param {Weights} weights
 * @param {number} layer
 * @param {number} head
 */
function switches(weights, layer, head) {
  const off = switchedOff();
  const name = `${weights.kind}.${layer}.${head}`;
  const all = Array.from({ length: weights.heads }, (_, each) => `${weights.kind}.${layer}.${each}`);
  const isOff = off.includes(name);
  const become = (/** @type {string[]} */ names) => () => set({ off: [...new Set(names)].sort().join(",") });
  const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string[]} */ names, isDisabled = false) =>
    h("button", { type: "button", class: "outlined", dataset: { does: id }, disabled: isDisabled, onclick: become(names) }, text);
  return [
    button("head", t(isOff ? WORDS.on : WORDS.off), isOff ? off.filter((each) => each !== name) : [...off, name]),
    button("layer", t(WORDS.layerOff, layer), [...off, ...all], all.every((each) => off.includes(each))),
    button("on", t(WORDS.allOn), [], off.length === 0),
  ];
}

/** @param {Weights} weights */
function gridSvg(weights) {
  const side = 96;
  const place = (/** @type {number} */ each) => 40 + each * (side + 6);
  const parts = [];
  for (let layer = 0; layer < weights.layers; layer++) {
    parts.push(`<text x="20" y="${place(layer) + side / 2 + 24}">${layer}</text>`);
    for (let head = 0; head < weights.heads; head++)
      parts.push(`<rect x="${place(head)}" y="${place(layer) + 24}" width="${side}" height="${side}" fill="#eceef3" stroke="#d9dce6"/>` +
        `<image x="${place(head)}" y="${place(layer) + 24}" width="${side}" height="${side}" preserveAspectRatio="none" ` +
        `style="image-rendering: pixelated" href="${raster(weights.get(layer, head), "light").toDataURL()}"/>`);
  }
  for (let head = 0; head < weights.heads; head++) parts.push(`<text x="${place(head) + side / 2}" y="54">${head}</text>`);
  return svgFrame(place(weights.heads), place(weights.layers) + 24, weights.kind, parts.join(""));
}

/** @param {Weights} weights */
function gridData(weights) {
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
 * Several matrices beside each other in one picture.
 * @param {string} title
 * @param {import("../heat_map.js").MatrixData[]} all
 */
export function besideSvg(title, all) {
  const drawn = all.map(matrixBody);
  let left = 0;
  const bodies = drawn.map(({ body, width }, place) => {
    const moved = `<g transform="translate(${left} 24)"><text x="16" y="24" font-weight="600">${all[place].label.replace(/[<&]/g, (each) => `&#${each.charCodeAt(0)};`)}</text>${body}</g>`;
    left += width;
    return moved;
  });
  return svgFrame(left, 24 + Math.max(...drawn.map(({ height }) => height)), title, bodies.join(""));
}
