/** The stacks of a model as the paper draws them, from its config: layers, sublayers, and what the decoder reads of the encoder. */

import { s } from "./dom.js";
import { t } from "./page_text.js";
import { frame } from "./svg_diagram.js";

const WORDS = {
  label: { en: "The model from bottom to top", zh: "模型结构，自下而上" },
  source: { en: "source pieces", zh: "源语言子词" },
  target: { en: "target pieces so far", zh: "已有的目标子词" },
  embedding: { en: "Embedding", zh: "词嵌入" },
  sinusoidal: { en: "+ sinusoids", zh: "+ 正弦位置" },
  learned: { en: "+ learned positions", zh: "+ 训练的位置" },
  rotary: { en: "rotary positions", zh: "旋转位置" },
  none: { en: "no positions", zh: "无位置" },
  self: { en: "Self-attention", zh: "自注意力" },
  masked: { en: "Masked self-attention", zh: "带掩码的自注意力" },
  cross: { en: "Cross-attention", zh: "交叉注意力" },
  heads: { en: "{0} heads of {1}", zh: "{0} 个头，每头 {1} 维" },
  forward: { en: "Feed-forward", zh: "前馈网络" },
  layers: { en: "{0} × layer", zh: "{0} × 层" },
  layer: { en: "layer {0}", zh: "第 {0} 层" },
  output: { en: "Output and softmax", zh: "输出与 softmax" },
  next: { en: "probabilities of the next piece", zh: "下一个子词的概率" },
};

/** @typedef {{title: string, detail?: string, look: "text" | "box" | "thin" | "sum", up: number, high: number, from?: number, isCross?: boolean}} Block */
/** @typedef {{blocks: Block[], frames: {title: string, from: number, to: number}[], high: number}} Column */

const [HIGH, THIN, STEP, SUM] = [48, 24, 12, 16];
const DRAWN = 3; // layers that are drawn one by one; more are one with a number

/**
 * @param {Record<string, any>} config
 * @param {"encoder" | "decoder"} stack
 * @returns {Column}
 */
function layout(config, stack) {
  /** @type {Column} */
  const column = { blocks: [], frames: [], high: 0 };
  const both = config.kind === "encoder-decoder";
  /** @param {Omit<Block, "up" | "high">} block */
  const put = (block) => {
    const high = { text: 20, box: HIGH, thin: THIN, sum: SUM }[block.look];
    column.blocks.push({ ...block, up: column.high, high });
    column.high += high + STEP;
  };
  const norm = config.norm === "rms" ? "RMSNorm" : "LayerNorm";
  /** @param {Omit<Block, "up" | "high" | "look">} block */
  const sublayer = (block) => {
    const from = column.high - STEP / 2;
    if (config.norm_position === "pre") put({ title: norm, look: "thin" });
    put({ ...block, look: "box" });
    put({ title: "+", look: "sum", from });
    if (config.norm_position === "post") put({ title: norm, look: "thin" });
  };
  const count = config[`${stack}_layers`];
  const heads = t(WORDS.heads, config.heads, config.d_model / config.heads);
  put({ title: t(stack === "encoder" || !both ? WORDS.source : WORDS.target), look: "text" });
  put({ title: t(WORDS.embedding), detail: `${thousands(config.vocab)} × ${config.d_model}, ${t(WORDS[/** @type {"none"} */ (config.positions)])}`, look: "box" });
  for (let layer = 0; layer < (count > DRAWN ? 1 : count); layer++) {
    column.high += STEP;
    const from = column.high;
    sublayer({ title: t(stack === "decoder" ? WORDS.masked : WORDS.self), detail: heads });
    if (stack === "decoder" && both) sublayer({ title: t(WORDS.cross), detail: heads, isCross: true });
    sublayer({ title: t(WORDS.forward), detail: `${config.d_model} → ${config.d_ff} → ${config.d_model}, ${config.feed_forward}` });
    column.frames.push({ title: count > DRAWN ? t(WORDS.layers, count) : t(WORDS.layer, layer), from: from - STEP, to: column.high });
    column.high += STEP;
  }
  if (config.norm_position === "pre" || config.final_norm) put({ title: norm, look: "thin" });
  if (stack === "encoder" && both) return column;
  put({ title: t(WORDS.output), detail: `${config.d_model} → ${thousands(config.vocab)}`, look: "box" });
  put({ title: t(WORDS.next), look: "text" });
  return column;
}

/** @typedef {{column: Column, middle: number, y: (up: number) => number}} Standing a column, and where it stands */

/**
 * Side by side, or one above the other where there is no room for that.
 * @param {Record<string, any>} config
 * @param {number} width
 * @param {import("./theme_colours.js").Paints} paints
 */
export function stackDiagram(config, width, paints) {
  const stacks = /** @type {("encoder" | "decoder")[]} */ (config.kind === "encoder-decoder" ? ["encoder", "decoder"] : [config.kind]);
  const columns = stacks.map((stack) => layout(config, stack));
  const isNarrow = width < 620 || columns.length === 1;
  const wide = Math.min(320, isNarrow ? width - 32 : width / 2 - 64);
  const highs = columns.map((column) => column.high);
  const height = (isNarrow ? highs.reduce((sum, high) => sum + high + 32, 0) : Math.max(...highs) + 32);
  /** @type {Standing[]} */
  const standing = columns.map((column, at) => {
    const ground = height - 8 - (isNarrow && at ? highs[0] + 32 : 0);
    return { column, y: (up) => ground - up, middle: isNarrow ? width / 2 + 12 : width / 2 + (at ? 1 : -1) * (40 + wide / 2) };
  });
  const between = isNarrow ? standing[0].middle - wide / 2 - 12 : width / 2;
  return frame(width, height, t(WORDS.label),
    standing.map((its) => drawColumn(its, wide, paints)).flat(),
    columns.length === 2 ? crossings(standing, between, wide, paints) : []);
}

/**
 * @param {Standing} its
 * @param {number} wide
 * @param {import("./theme_colours.js").Paints} paints
 */
function drawColumn({ column, middle, y }, wide, paints) {
  const left = middle - wide / 2;
  const inside = { x: left + 24, width: wide - 64 };
  const frames = column.frames.map(({ title, from, to }) => s("g", { class: "layer" },
    s("rect", { x: left, y: y(to), width: wide, height: to - from, rx: 12, fill: paints.empty, stroke: paints.line }),
    s("text", { x: left + 10, y: y(to) + 17, fill: paints.soft, "font-weight": 600 }, title)));
  const [first, last] = [column.blocks[0], column.blocks[column.blocks.length - 1]];
  const end = last.look === "text" ? last.up - 4 : last.up + last.high;
  const spine = s("line", { x1: middle - 8, x2: middle - 8, y1: y(first.up + first.high), y2: y(end), stroke: paints.soft, "stroke-width": 1.5 });
  return [...frames, spine, ...column.blocks.map((block) => drawBlock(block, { middle: middle - 8, ...inside, right: left + wide - 18 }, y, paints))];
}

/**
 * @param {Block} block
 * @param {{middle: number, x: number, width: number, right: number}} at
 * @param {(up: number) => number} y
 * @param {import("./theme_colours.js").Paints} paints
 */
function drawBlock(block, { middle, x, width, right }, y, paints) {
  const centre = y(block.up + block.high / 2);
  const word = (/** @type {string} */ text, /** @type {number} */ down, /** @type {object} */ more = {}) =>
    s("text", { x: middle, y: centre + down, "text-anchor": "middle", fill: paints.ink, ...more }, text);
  if (block.look === "text") return word(block.title, 5, { fill: paints.soft });
  if (block.look === "sum") {
    const start = y(/** @type {number} */ (block.from));
    return s("g", {},
      s("path", { d: `M${middle} ${start}H${right}V${centre}H${middle + 9}`, fill: "none", stroke: paints.soft, "stroke-width": 1.5 }),
      s("circle", { cx: middle, cy: centre, r: 8, fill: paints.card, stroke: paints.soft, "stroke-width": 1.5 }), word("+", 4.5));
  }
  const isThin = block.look === "thin";
  return s("g", {},
    s("rect", { x, y: y(block.up + block.high), width, height: block.high, rx: isThin ? 6 : 8, fill: isThin ? paints.card : paints.accentSoft, stroke: isThin ? paints.line : paints.accent }),
    isThin ? word(block.title, 4.5, { fill: paints.soft }) : [word(block.title, -3, { "font-weight": 600 }), word(block.detail ?? "", 15, { fill: paints.soft })]);
}

/**
 * From the top of the encoder to every cross-attention.
 * @param {Standing[]} standing
 * @param {number} between where the line goes up
 * @param {number} wide
 * @param {import("./theme_colours.js").Paints} paints
 */
function crossings([encoder, decoder], between, wide, paints) {
  const top = encoder.y(encoder.column.high - STEP);
  const end = decoder.middle - wide / 2 + 24;
  return decoder.column.blocks.filter((block) => block.isCross).map((block) => {
    const at = decoder.y(block.up + block.high / 2);
    return s("g", { class: "crossing" },
      s("path", { d: `M${encoder.middle - 8} ${top}V${top - 16}H${between}V${at}H${end - 6}`, fill: "none", stroke: paints.accentInk, "stroke-width": 2 }),
      s("path", { d: `M${end} ${at}l-9 -5v10z`, fill: paints.accentInk }));
  });
}

/** @param {number} value */
export function thousands(value) {
  return value.toLocaleString("en-US");
}
