/** Shapes: where a model's parameters are, how its stacks are built, and what every weight is called. */

import { look, models } from "../api.js";
import { stackDiagram, thousands } from "../architecture_diagram.js";
import { h, refill, s, table } from "../dom.js";
import { csv, tableSvg } from "../export.js";
import { asking } from "../latest_request.js";
import { breadth, t } from "../page_text.js";
import { panel } from "../panel.js";
import { alone, frame, Picture } from "../svg_diagram.js";
import { css, ink, sequence } from "../theme_colours.js";
import { get, watch } from "../url_state.js";

export const TITLE = { en: "Shapes", zh: "结构" };

const WORDS = {
  lead: { en: "{0} parameters, and where they are.", zh: "{0} 个参数，以及它们在哪里。" },
  parts: { en: "Where the parameters are", zh: "参数在哪里" },
  embedding: { en: "embedding", zh: "词嵌入" },
  attention: { en: "attention", zh: "注意力" },
  "feed-forward": { en: "feed-forward", zh: "前馈网络" },
  norm: { en: "norms", zh: "归一化" },
  output: { en: "output", zh: "输出" },
  part: { en: "part", zh: "部分" },
  count: { en: "parameters", zh: "参数" },
  share: { en: "share", zh: "占比" },
  thirds: {
    en: "In large models about two thirds of the parameters are feed-forward: with a d_ff of 4 d, a layer has 8 d² of them there and 4 d² in an attention. In this model it is {0} of what lies in layers, and {1} of all, as its embedding holds {2}.",
    zh: "在大模型中约三分之二的参数属于前馈网络：当 d_ff = 4 d 时，每层的前馈网络有 8 d² 个参数，一个注意力有 4 d² 个。在这个模型里，它占各层参数的 {0}，占全部参数的 {1}，因为词嵌入占了 {2}。",
  },
  tied: { en: "The output has no matrix of its own: it is the embedding again.", zh: "输出没有自己的矩阵：它就是词嵌入矩阵。" },
  diagram: { en: "The stacks", zh: "堆叠结构" },
  diagramNote: { en: "Drawn from the config; read it from bottom to top.", zh: "根据配置绘制，自下而上阅读。" },
  memory: { en: "Memory", zh: "内存" },
  memoryNote: { en: "Of the weights alone. In int8 each row of a matrix has a scale, and what is no matrix stays in 32 bits.", zh: "仅指权重。int8 中矩阵的每一行有一个缩放系数，非矩阵的部分仍为 32 位。" },
  storage: { en: "stored as", zh: "存储为" },
  bytes: { en: "bytes", zh: "字节" },
  file: { en: "this file, with its tokeniser", zh: "此文件，含分词器" },
  config: { en: "Config", zh: "配置" },
  setting: { en: "setting", zh: "设置" },
  value: { en: "value", zh: "值" },
  tree: { en: "Every weight", zh: "全部权重" },
  treeNote: { en: "Rows × columns as they are stored; a module opens with Enter.", zh: "按存储的行 × 列；用回车键展开模块。" },
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
  const [lead, body] = [h("p", { class: "lead" }), h("div", { class: "parts" })];
  const asks = asking(
    async () => {
      const [found, open] = await Promise.all([look("shapes", get("model") ? { model: get("model") } : {}), models()]);
      const file = open.models.find((/** @type {{name: string}} */ each) => each.name === get("model")) ?? open.models[0];
      return { found: /** @type {Shapes} */ (found), bytes: file.bytes };
    },
    ({ found, bytes }) => {
      refill(lead, t(WORDS.lead, thousands(found.total)));
      refill(body, partsPanel(found), diagramPanel(found), h("div", { class: "columns" }, memoryPanel(found, bytes), configPanel(found)), treePanel(found));
    });
  refill(root, h("div", {}, h("h1", {}, t(TITLE)), lead, asks.said), body);
  const end = watch((changed) => changed.has("model") && asks.ask());
  asks.ask();
  return () => {
    end();
    asks.end();
  };
}

/** @param {number} part */
function percent(part) {
  return `${(100 * part).toFixed(1)}%`;
}

/** @param {{name: string}} part */
function partName({ name }) {
  return name in WORDS ? t(WORDS[/** @type {"norm"} */ (name)]) : name;
}

/** @param {Shapes} found */
function partsPanel({ config, parts, total }) {
  const title = t(WORDS.parts);
  const count = Object.fromEntries(parts.map((part) => [part.name, part.count]));
  const inLayers = count.attention + count["feed-forward"];
  const rows = [[t(WORDS.part), t(WORDS.count), t(WORDS.share)], ...parts.map((part) => [partName(part), thousands(part.count), percent(part.count / total)])];
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => {
    let x = 0;
    return frame(width, 72, title, parts.map((part, at) => {
      const wide = (width * part.count) / total;
      const colour = sequence(paints.theme)[[225, 175, 125, 80, 50][at % 5]];
      const its = { x: x + 12, fill: ink(colour) };
      const name = partName(part);
      const fits = 7.5 * breadth(name) + 24 < wide;
      const drawn = part.count > 0 && s("g", { "data-part": part.name },
        s("rect", { x, y: 4, width: Math.max(1, wide - 2), height: 64, rx: wide > 8 ? 6 : 0, fill: css(colour) }, s("title", {}, `${name}: ${thousands(part.count)}`)),
        fits && s("text", { ...its, y: 32, "font-weight": 600 }, name), fits && s("text", { ...its, y: 52 }, percent(part.count / total)));
      x += wide;
      return drawn;
    }));
  };
  const said = [
    h("p", { class: "after", id: "thirds" }, t(WORDS.thirds, percent(count["feed-forward"] / inLayers), percent(count["feed-forward"] / total), percent(count.embedding / total))),
    config.tie_output && h("p", {}, t(WORDS.tied)),
  ];
  return panel(title, [new Picture(draw).element, table(rows, "counts"), ...said], {
    svg: () => alone(draw, title), data: () => csv([rows[0], ...parts.map((part) => [part.name, part.count, part.count / total])]),
  });
}

/** @param {Shapes} found */
function diagramPanel({ config }) {
  const title = t(WORDS.diagram);
  /** @type {import("../svg_diagram.js").Draw} */
  const draw = (width, paints) => stackDiagram(config, width, paints);
  return panel(title, [new Picture(draw).element],
    { svg: () => alone(draw, title), data: () => config }, t(WORDS.diagramNote));
}

/**
 * As modelfile.py stores them.
 * @param {Shapes} found
 * @returns {[string, number][]}
 */
function stored({ weights, total }) {
  const isExact = (/** @type {string} */ name) => [".position.", ".segment.", ".compatibility."].some((part) => name.includes(part));
  const small = weights.reduce((sum, { name, shape, count }) => sum + (shape.length === 2 && !isExact(name) ? count + 4 * shape[0] : 4 * count), 0);
  return [["int8", small], ["bf16", 2 * total], ["f32", 4 * total]];
}

/**
 * @param {Shapes} found
 * @param {number} bytes
 */
function memoryPanel(found, bytes) {
  const rows = [[t(WORDS.storage), t(WORDS.bytes), "MiB"], ...[...stored(found), [t(WORDS.file), bytes]].map(([name, size]) =>
    [String(name), thousands(Number(size)), (Number(size) / 2 ** 20).toFixed(1)])];
  const title = t(WORDS.memory);
  return panel(title, [table(rows, "counts")], { svg: () => tableSvg(title, rows), data: () => csv(rows) }, t(WORDS.memoryNote));
}

/** @param {Shapes} found */
function configPanel({ config }) {
  const rows = [[t(WORDS.setting), t(WORDS.value)], ...Object.entries(config).map(([name, value]) => [name, String(value)])];
  const title = t(WORDS.config);
  return panel(title, [h("div", { class: "tall" }, table(rows, "settings"))], { svg: () => tableSvg(title, rows), data: () => config });
}

/** @typedef {{name: string, count: number, shape?: number[], inside: Map<string, Branch>}} Branch */

/**
 * Names are paths: what begins alike lies in one module.
 * @param {Shapes} found
 */
function grown({ weights }) {
  /** @type {Branch} */
  const root = { name: "", count: 0, inside: new Map() };
  for (const { name, shape, count } of weights) {
    let at = root;
    at.count += count;
    for (const part of name.split(".")) {
      const next = at.inside.get(part) ?? { name: part, count: 0, inside: new Map() };
      at.inside.set(part, next);
      next.count += count;
      at = next;
    }
    at.shape = shape;
  }
  return root;
}

/** @param {Shapes} found */
function treePanel(found) {
  const title = t(WORDS.tree);
  const root = grown(found);
  const tree = h("div", { class: "tree" }, [...root.inside.values()].map((each) => branch(each, 0)));
  const all = (/** @type {boolean} */ isOpen) => tree.querySelectorAll("details").forEach((each) => (each.open = isOpen));
  const rows = () => [[t(WORDS.weight), t(WORDS.shape), t(WORDS.count)], ...told(found)];
  return panel(title, [
    h("div", { class: "controls" }, h("button", { type: "button", class: "quiet", onclick: () => all(true) }, t(WORDS.open)),
      h("button", { type: "button", class: "quiet", onclick: () => all(false) }, t(WORDS.close))),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, tree),
  ], { svg: () => tableSvg(title, rows()), data: () => ({ total: found.total, weights: found.weights }) }, t(WORDS.treeNote));
}

/**
 * Weights of layers that are alike on one line, with the numbers of these layers.
 * @param {Shapes} found
 */
function told({ weights }) {
  /** @type {Map<string, {layers: string[], shape: number[], count: number}>} */
  const lines = new Map();
  for (const { name, shape, count } of weights) {
    const line = name.replace(/\.layers\.\d+\./, ".layers.*.");
    const its = lines.get(line) ?? { layers: [], shape, count: 0 };
    its.layers.push(/\.layers\.(\d+)\./.exec(name)?.[1] ?? "");
    its.count += count;
    lines.set(line, its);
  }
  return [...lines].map(([name, { layers, shape, count }]) => {
    const ends = layers.length > 1 ? `${layers[0]}–${layers[layers.length - 1]}` : layers[0];
    return [name.replace("*", ends), `${layers.length > 1 ? `${layers.length} × ` : ""}${shape.join(" × ")}`, thousands(count)];
  });
}

/**
 * @param {Branch} its
 * @param {number} depth
 * @returns {HTMLElement}
 */
function branch(its, depth) {
  const words = [h("span", { class: "name" }, its.name), its.shape && h("span", { class: "shape" }, its.shape.join(" × ")), h("span", { class: "count" }, thousands(its.count))];
  if (its.shape) return h("div", { class: "leaf" }, words);
  return h("details", { open: depth < 1 }, h("summary", {}, words), h("div", { class: "inside" }, [...its.inside.values()].map((each) => branch(each, depth + 1))));
}
