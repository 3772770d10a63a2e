/** Diagram of a model's architecture, drawn from its config as in the paper: layers, sublayers and cross-attention. */

import { s } from "./dom.js";
import { formatCount, t } from "./page_text.js";
import { svgRoot } from "./svg_diagram.js";

const TEXTS = {
  label: { en: "Model architecture, from bottom to top", zh: "模型结构，自下而上" },
  source: { en: "source tokens", zh: "源语言词元" },
  target: { en: "target tokens so far", zh: "已生成的目标词元" },
  embedding: { en: "Embedding", zh: "词嵌入" },
  sinusoidal: { en: "+ sinusoidal positions", zh: "+ 正弦位置编码" },
  learned: { en: "+ learned positions", zh: "+ 可学习的位置编码" },
  rotary: { en: "rotary positions", zh: "旋转位置编码" },
  none: { en: "no positions", zh: "无位置编码" },
  self: { en: "Self-attention", zh: "自注意力" },
  masked: { en: "Masked self-attention", zh: "掩码自注意力" },
  cross: { en: "Cross-attention", zh: "交叉注意力" },
  heads: { en: "{0} heads of size {1}", zh: "{0} 个头，每头 {1} 维" },
  forward: { en: "Feed-forward", zh: "前馈网络" },
  layers: { en: "{0} × layer", zh: "{0} × 层" },
  layer: { en: "layer {0}", zh: "第 {0} 层" },
  output: { en: "Output layer and softmax", zh: "输出层与 softmax" },
  next: { en: "next-token probabilities", zh: "下一个词元的概率" },
};

/** @typedef {{title: string, detail?: string, shape: "text" | "box" | "thin" | "sum", bottom: number, height: number, from?: number, isCross?: boolean}} Block */
/** @typedef {{blocks: Block[], frames: {title: string, from: number, to: number}[], height: number}} Column */

const [BOX_HEIGHT, NORM_HEIGHT, GAP, SUM_HEIGHT] = [48, 24, 12, 16];
const MAX_DRAWN_LAYERS = 3; // more layers are drawn as one, with their number

/**
 * @param {Record<string, any>} config
 * @param {"encoder" | "decoder"} stack
 * @returns {Column}
 */
function stackColumn(config, stack) {
  /** @type {Column} */
  const column = { blocks: [], frames: [], height: 0 };
  const hasTwoStacks = config.kind === "encoder-decoder";
  /** @param {Omit<Block, "bottom" | "height">} block */
  const addBlock = (block) => {
    const height = { text: 20, box: BOX_HEIGHT, thin: NORM_HEIGHT, sum: SUM_HEIGHT }[block.shape];
    column.blocks.push({ ...block, bottom: column.height, height });
    column.height += height + GAP;
  };
  const norm = config.norm === "rms" ? "RMSNorm" : "LayerNorm";
  /** @param {Omit<Block, "bottom" | "height" | "shape">} block */
  const addSublayer = (block) => {
    const bottom = column.height - GAP / 2;
    if (config.norm_position === "pre") addBlock({ title: norm, shape: "thin" });
    addBlock({ ...block, shape: "box" });
    addBlock({ title: "+", shape: "sum", from: bottom });
    if (config.norm_position === "post") addBlock({ title: norm, shape: "thin" });
  };
  const layers = config[`${stack}_layers`];
  const heads = t(TEXTS.heads, config.heads, config.d_model / config.heads);
  addBlock({ title: t(stack === "encoder" || !hasTwoStacks ? TEXTS.source : TEXTS.target), shape: "text" });
  addBlock({ title: t(TEXTS.embedding), detail: `${formatCount(config.vocab)} × ${config.d_model}, ${t(TEXTS[/** @type {"none"} */ (config.positions)])}`, shape: "box" });
  for (let layer = 0; layer < (layers > MAX_DRAWN_LAYERS ? 1 : layers); layer++) {
    column.height += GAP;
    const bottom = column.height;
    addSublayer({ title: t(stack === "decoder" ? TEXTS.masked : TEXTS.self), detail: heads });
    if (stack === "decoder" && hasTwoStacks) addSublayer({ title: t(TEXTS.cross), detail: heads, isCross: true });
    addSublayer({ title: t(TEXTS.forward), detail: `${config.d_model} → ${config.d_ff} → ${config.d_model}, ${config.feed_forward}` });
    column.frames.push({ title: layers > MAX_DRAWN_LAYERS ? t(TEXTS.layers, layers) : t(TEXTS.layer, layer), from: bottom - GAP, to: column.height });
    column.height += GAP;
  }
  if (config.norm_position === "pre" || config.final_norm) addBlock({ title: norm, shape: "thin" });
  if (stack === "encoder" && hasTwoStacks) return column;
  addBlock({ title: t(TEXTS.output), detail: `${config.d_model} → ${formatCount(config.vocab)}`, shape: "box" });
  addBlock({ title: t(TEXTS.next), shape: "text" });
  return column;
}

/** @typedef {{column: Column, middle: number, y: (up: number) => number}} PlacedColumn a column and its place in the diagram */

/**
 * Draw the stacks side by side, or one above the other on narrow screens.
 * @param {Record<string, any>} config
 * @param {number} width
 * @param {import("./theme_colours.js").DiagramColours} colours
 */
export function architectureDiagram(config, width, colours) {
  const stacks = /** @type {("encoder" | "decoder")[]} */ (config.kind === "encoder-decoder" ? ["encoder", "decoder"] : [config.kind]);
  const columns = stacks.map((stack) => stackColumn(config, stack));
  const isNarrow = width < 620 || columns.length === 1;
  const columnWidth = Math.min(320, isNarrow ? width - 32 : width / 2 - 64);
  const heights = columns.map((column) => column.height);
  const height = (isNarrow ? heights.reduce((sum, height) => sum + height + 32, 0) : Math.max(...heights) + 32);
  /** @type {PlacedColumn[]} */
  const placed = columns.map((column, index) => {
    const bottom = height - 8 - (isNarrow && index ? heights[0] + 32 : 0);
    return { column, y: (up) => bottom - up, middle: isNarrow ? width / 2 + 12 : width / 2 + (index ? 1 : -1) * (40 + columnWidth / 2) };
  });
  const lineX = isNarrow ? placed[0].middle - columnWidth / 2 - 12 : width / 2;
  return svgRoot(width, height, t(TEXTS.label),
    placed.map((column) => drawColumn(column, columnWidth, colours)).flat(),
    columns.length === 2 ? crossAttentionArrows(placed, lineX, columnWidth, colours) : []);
}

/**
 * @param {PlacedColumn} placed
 * @param {number} columnWidth
 * @param {import("./theme_colours.js").DiagramColours} colours
 */
function drawColumn({ column, middle, y }, columnWidth, colours) {
  const left = middle - columnWidth / 2;
  const box = { x: left + 24, width: columnWidth - 64 };
  const frames = column.frames.map(({ title, from, to }) => s("g", { class: "layer" },
    s("rect", { x: left, y: y(to), width: columnWidth, height: to - from, rx: 12, fill: colours.empty, stroke: colours.line }),
    s("text", { x: left + 10, y: y(to) + 17, fill: colours.mutedInk, "font-weight": 600 }, title)));
  const [first, last] = [column.blocks[0], column.blocks[column.blocks.length - 1]];
  const end = last.shape === "text" ? last.bottom - 4 : last.bottom + last.height;
  const line = s("line", { x1: middle - 8, x2: middle - 8, y1: y(first.bottom + first.height), y2: y(end), stroke: colours.mutedInk, "stroke-width": 1.5 });
  return [...frames, line, ...column.blocks.map((block) => drawBlock(block, { middle: middle - 8, ...box, right: left + columnWidth - 18 }, y, colours))];
}

/**
 * @param {Block} block
 * @param {{middle: number, x: number, width: number, right: number}} box
 * @param {(up: number) => number} y
 * @param {import("./theme_colours.js").DiagramColours} colours
 */
function drawBlock(block, { middle, x, width, right }, y, colours) {
  const centre = y(block.bottom + block.height / 2);
  const drawText = (/** @type {string} */ text, /** @type {number} */ offset, /** @type {object} */ attributes = {}) =>
    s("text", { x: middle, y: centre + offset, "text-anchor": "middle", fill: colours.ink, ...attributes }, text);
  if (block.shape === "text") return drawText(block.title, 5, { fill: colours.mutedInk });
  if (block.shape === "sum") {
    const start = y(/** @type {number} */ (block.from));
    return s("g", {},
      s("path", { d: `M${middle} ${start}H${right}V${centre}H${middle + 9}`, fill: "none", stroke: colours.mutedInk, "stroke-width": 1.5 }),
      s("circle", { cx: middle, cy: centre, r: 8, fill: colours.surface, stroke: colours.mutedInk, "stroke-width": 1.5 }), drawText("+", 4.5));
  }
  const isThin = block.shape === "thin";
  return s("g", {},
    s("rect", { x, y: y(block.bottom + block.height), width, height: block.height, rx: isThin ? 6 : 8, fill: isThin ? colours.surface : colours.accentSoft, stroke: isThin ? colours.line : colours.accent }),
    isThin ? drawText(block.title, 4.5, { fill: colours.mutedInk }) : [drawText(block.title, -3, { "font-weight": 600 }), drawText(block.detail ?? "", 15, { fill: colours.mutedInk })]);
}

/**
 * Draw arrows from the top of the encoder to every cross-attention.
 * @param {PlacedColumn[]} columns
 * @param {number} lineX x of the vertical part
 * @param {number} columnWidth
 * @param {import("./theme_colours.js").DiagramColours} colours
 */
function crossAttentionArrows([encoder, decoder], lineX, columnWidth, colours) {
  const top = encoder.y(encoder.column.height - GAP);
  const end = decoder.middle - columnWidth / 2 + 24;
  return decoder.column.blocks.filter((block) => block.isCross).map((block) => {
    const y = decoder.y(block.bottom + block.height / 2);
    return s("g", { class: "crossing" },
      s("path", { d: `M${encoder.middle - 8} ${top}V${top - 16}H${lineX}V${y}H${end - 6}`, fill: "none", stroke: colours.accentInk, "stroke-width": 2 }),
      s("path", { d: `M${end} ${y}l-9 -5v10z`, fill: colours.accentInk }));
  });
}
