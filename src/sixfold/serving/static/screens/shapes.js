/** The shapes screen: parameter counts, the architecture diagram, memory, config and every weight. */

import { fetchExplorer, fetchModels } from "../api.js";
import { architectureDiagram } from "../architecture_diagram.js";
import { dataTable, h, replaceContent, s } from "../dom.js";
import { tableSvg, toCsv } from "../export.js";
import { latestRequest } from "../latest_request.js";
import { formatCount, t, textWidth } from "../page_text.js";
import { panel } from "../panel.js";
import { ResponsiveDiagram, standaloneSvg, svgRoot } from "../svg_diagram.js";
import { contrastColour, cssColour, sequentialScale } from "../theme_colours.js";
import { getState, onStateChange } from "../url_state.js";

export const TITLE = { en: "Shapes", zh: "结构" };

const TEXTS = {
  lead: { en: "{0} parameters, and where they are.", zh: "共 {0} 个参数，以及它们的分布。" },
  parts: { en: "Where the parameters are", zh: "参数的分布" },
  embedding: { en: "embedding", zh: "词嵌入" },
  attention: { en: "attention", zh: "注意力" },
  "feed-forward": { en: "feed-forward", zh: "前馈网络" },
  norm: { en: "norms", zh: "归一化" },
  output: { en: "output", zh: "输出" },
  part: { en: "part", zh: "部分" },
  count: { en: "parameters", zh: "参数" },
  share: { en: "share", zh: "占比" },
  feedForwardShare: {
    en: "In large models about two thirds of the parameters are in the feed-forward layers: with d_ff = 4 d, a layer has 8 d² parameters there and 4 d² in one attention. In this model the feed-forward layers hold {0} of the parameters in layers and {1} of all parameters, because the embedding holds {2}.",
    zh: "在大模型中，约三分之二的参数属于前馈网络：当 d_ff = 4 d 时，每层的前馈网络有 8 d² 个参数，一个注意力有 4 d² 个。在这个模型里，前馈网络占各层参数的 {0}，占全部参数的 {1}，因为词嵌入占了 {2}。",
  },
  tied: { en: "The output layer has no matrix of its own: it reuses the embedding.", zh: "输出层没有自己的矩阵，直接使用词嵌入矩阵。" },
  diagram: { en: "Architecture", zh: "模型结构" },
  diagramNote: { en: "Drawn from the config. Read it from bottom to top.", zh: "根据配置绘制，自下而上阅读。" },
  memory: { en: "Memory", zh: "内存" },
  memoryNote: {
    en: "Weights only. In int8, each row of a matrix has a scale, and everything that is not a matrix stays in 32 bits.",
    zh: "仅计算权重。int8 中矩阵的每一行有一个缩放系数，不是矩阵的部分仍为 32 位。",
  },
  storage: { en: "stored as", zh: "存储格式" },
  bytes: { en: "bytes", zh: "字节" },
  file: { en: "this file, with its tokeniser", zh: "此文件，含分词器" },
  config: { en: "Config", zh: "配置" },
  setting: { en: "setting", zh: "设置" },
  value: { en: "value", zh: "值" },
  tree: { en: "All weights", zh: "全部权重" },
  treeNote: { en: "Rows × columns as stored. Open a module with Enter.", zh: "按存储时的行 × 列显示。用回车键展开模块。" },
  open: { en: "Open all", zh: "全部展开" },
  close: { en: "Close all", zh: "全部收起" },
  weight: { en: "weight", zh: "权重" },
  shape: { en: "shape", zh: "形状" },
};

/**
 * @typedef {object} Shapes
 * @property {Record<string, any>} config
 * @property {{name: string, count: number}[]} parts
 * @property {number} total
 * @property {{name: string, shape: number[], count: number}[]} weights
 */

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  const [lead, body] = [h("p", { class: "lead" }), h("div", { class: "panels" })];
  const shapesRequest = latestRequest(
    async () => {
      const [shapes, available] = await Promise.all([fetchExplorer("shapes", getState("model") ? { model: getState("model") } : {}), fetchModels()]);
      const file = available.models.find((/** @type {{name: string}} */ model) => model.name === getState("model")) ?? available.models[0];
      return { shapes: /** @type {Shapes} */ (shapes), bytes: file.bytes };
    },
    ({ shapes, bytes }) => {
      replaceContent(lead, t(TEXTS.lead, formatCount(shapes.total)));
      replaceContent(body, partsPanel(shapes), diagramPanel(shapes), h("div", { class: "columns" }, memoryPanel(shapes, bytes), configPanel(shapes)), treePanel(shapes));
    });
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), lead, shapesRequest.status), body);
  const stopListening = onStateChange((changed) => changed.has("model") && shapesRequest.request());
  shapesRequest.request();
  return () => {
    stopListening();
    shapesRequest.dispose();
  };
}

/** @param {number} fraction */
function formatPercent(fraction) {
  return `${(100 * fraction).toFixed(1)}%`;
}

/** @param {{name: string}} part */
function partName({ name }) {
  return name in TEXTS ? t(TEXTS[/** @type {"norm"} */ (name)]) : name;
}

/** @param {Shapes} shapes */
function partsPanel({ config, parts, total }) {
  const title = t(TEXTS.parts);
  const counts = Object.fromEntries(parts.map((part) => [part.name, part.count]));
  const inLayers = counts.attention + counts["feed-forward"];
  const rows = [[t(TEXTS.part), t(TEXTS.count), t(TEXTS.share)], ...parts.map((part) => [partName(part), formatCount(part.count), formatPercent(part.count / total)])];
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => {
    let x = 0;
    return svgRoot(width, 72, title, parts.map((part, index) => {
      const barWidth = (width * part.count) / total;
      const colour = sequentialScale(colours.theme)[[225, 175, 125, 80, 50][index % 5]];
      const textAttributes = { x: x + 12, fill: contrastColour(colour) };
      const name = partName(part);
      const fits = 7.5 * textWidth(name) + 24 < barWidth;
      const bar = part.count > 0 && s("g", { "data-part": part.name },
        s("rect", { x, y: 4, width: Math.max(1, barWidth - 2), height: 64, rx: barWidth > 8 ? 6 : 0, fill: cssColour(colour) }, s("title", {}, `${name}: ${formatCount(part.count)}`)),
        fits && s("text", { ...textAttributes, y: 32, "font-weight": 600 }, name), fits && s("text", { ...textAttributes, y: 52 }, formatPercent(part.count / total)));
      x += barWidth;
      return bar;
    }));
  };
  const explanations = [
    h("p", { class: "below-figure", id: "feed-forward-share" }, t(TEXTS.feedForwardShare, formatPercent(counts["feed-forward"] / inLayers), formatPercent(counts["feed-forward"] / total), formatPercent(counts.embedding / total))),
    config.tie_output && h("p", {}, t(TEXTS.tied)),
  ];
  return panel(title, [new ResponsiveDiagram(draw).element, dataTable(rows, "counts"), ...explanations], {
    svg: () => standaloneSvg(draw, title), data: () => toCsv([rows[0], ...parts.map((part) => [part.name, part.count, part.count / total])]),
  });
}

/** @param {Shapes} shapes */
function diagramPanel({ config }) {
  const title = t(TEXTS.diagram);
  /** @type {import("../svg_diagram.js").DrawDiagram} */
  const draw = (width, colours) => architectureDiagram(config, width, colours);
  return panel(title, [new ResponsiveDiagram(draw).element],
    { svg: () => standaloneSvg(draw, title), data: () => config }, t(TEXTS.diagramNote));
}

/**
 * Return the bytes of the weights in each storage format, as modelfile.py stores them.
 * @param {Shapes} shapes
 * @returns {[string, number][]}
 */
function storageSizes({ weights, total }) {
  const isKeptInFloat32 = (/** @type {string} */ name) => [".position.", ".segment.", ".compatibility."].some((part) => name.includes(part));
  const int8Bytes = weights.reduce((sum, { name, shape, count }) => sum + (shape.length === 2 && !isKeptInFloat32(name) ? count + 4 * shape[0] : 4 * count), 0);
  return [["int8", int8Bytes], ["bf16", 2 * total], ["f32", 4 * total]];
}

/**
 * @param {Shapes} shapes
 * @param {number} bytes
 */
function memoryPanel(shapes, bytes) {
  const rows = [[t(TEXTS.storage), t(TEXTS.bytes), "MiB"], ...[...storageSizes(shapes), [t(TEXTS.file), bytes]].map(([name, size]) =>
    [String(name), formatCount(Number(size)), (Number(size) / 2 ** 20).toFixed(1)])];
  const title = t(TEXTS.memory);
  return panel(title, [dataTable(rows, "counts")], { svg: () => tableSvg(title, rows), data: () => toCsv(rows) }, t(TEXTS.memoryNote));
}

/** @param {Shapes} shapes */
function configPanel({ config }) {
  const rows = [[t(TEXTS.setting), t(TEXTS.value)], ...Object.entries(config).map(([name, value]) => [name, String(value)])];
  const title = t(TEXTS.config);
  return panel(title, [h("div", { class: "scroll-box" }, dataTable(rows, "settings"))], { svg: () => tableSvg(title, rows), data: () => config });
}

/** @typedef {{name: string, count: number, shape?: number[], children: Map<string, ModuleNode>}} ModuleNode */

/**
 * Build the tree of modules from the dotted names of weights.
 * @param {Shapes} shapes
 */
function moduleTree({ weights }) {
  /** @type {ModuleNode} */
  const root = { name: "", count: 0, children: new Map() };
  for (const { name, shape, count } of weights) {
    let node = root;
    node.count += count;
    for (const part of name.split(".")) {
      const child = node.children.get(part) ?? { name: part, count: 0, children: new Map() };
      node.children.set(part, child);
      child.count += count;
      node = child;
    }
    node.shape = shape;
  }
  return root;
}

/** @param {Shapes} shapes */
function treePanel(shapes) {
  const title = t(TEXTS.tree);
  const root = moduleTree(shapes);
  const tree = h("div", { class: "tree" }, [...root.children.values()].map((node) => drawNode(node, 0)));
  const setAllOpen = (/** @type {boolean} */ isOpen) => tree.querySelectorAll("details").forEach((node) => (node.open = isOpen));
  const rows = () => [[t(TEXTS.weight), t(TEXTS.shape), t(TEXTS.count)], ...weightRows(shapes)];
  return panel(title, [
    h("div", { class: "controls" }, h("button", { type: "button", class: "subtle", onclick: () => setAllOpen(true) }, t(TEXTS.open)),
      h("button", { type: "button", class: "subtle", onclick: () => setAllOpen(false) }, t(TEXTS.close))),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, tree),
  ], { svg: () => tableSvg(title, rows()), data: () => ({ total: shapes.total, weights: shapes.weights }) }, t(TEXTS.treeNote));
}

/**
 * Return one row per weight; equal weights of several layers share a row.
 * @param {Shapes} shapes
 */
function weightRows({ weights }) {
  /** @type {Map<string, {layers: string[], shape: number[], count: number}>} */
  const entries = new Map();
  for (const { name, shape, count } of weights) {
    const pattern = name.replace(/\.layers\.\d+\./, ".layers.*.");
    const entry = entries.get(pattern) ?? { layers: [], shape, count: 0 };
    entry.layers.push(/\.layers\.(\d+)\./.exec(name)?.[1] ?? "");
    entry.count += count;
    entries.set(pattern, entry);
  }
  return [...entries].map(([name, { layers, shape, count }]) => {
    const layerRange = layers.length > 1 ? `${layers[0]}–${layers[layers.length - 1]}` : layers[0];
    return [name.replace("*", layerRange), `${layers.length > 1 ? `${layers.length} × ` : ""}${shape.join(" × ")}`, formatCount(count)];
  });
}

/**
 * @param {ModuleNode} node
 * @param {number} depth
 * @returns {HTMLElement}
 */
function drawNode(node, depth) {
  const labels = [h("span", { class: "name" }, node.name), node.shape && h("span", { class: "shape" }, node.shape.join(" × ")), h("span", { class: "count" }, formatCount(node.count))];
  if (node.shape) return h("div", { class: "leaf" }, labels);
  return h("details", { open: depth < 1 }, h("summary", {}, labels), h("div", { class: "children" }, [...node.children.values()].map((child) => drawNode(child, depth + 1))));
}
