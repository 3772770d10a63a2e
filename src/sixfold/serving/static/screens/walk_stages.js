/** The stages of the computation for one place, layer and head, in their order, as this very model has them. */

import { place } from "../api.js";
import { index } from "../url_state.js";
import { ABOUT, TITLES } from "./walk_stage_texts.js";

/** @typedef {import("./walk_python.js").Spot} Spot */
/** @typedef {"row" | "head" | "key" | "keys"} Axis how a vector is cut out of its array: see `vector` */
/**
 * @typedef {object} Stage
 * @property {string} id
 * @property {import("../page_text.js").Words} title
 * @property {import("../page_text.js").Words} about
 * @property {string} formula
 * @property {string} name of the array
 * @property {string[]} inputs arrays that it is made of
 * @property {string} snippet which of the Python
 * @property {Axis} axis
 * @property {boolean} isSigned
 * @property {boolean} hasBias
 */

/**
 * @param {import("../api.js").Trace} trace
 * @param {import("../api.js").Kind} kind
 * @param {boolean} isGiven
 * @returns {Spot}
 */
export function spotOf(trace, kind, isGiven) {
  const layers = trace.kinds[kind] ?? 1;
  const [layer, head] = [index("layer", layers - 1, layers), index("head", 0, trace.heads)];
  const stack = kind === "encoder" ? "encoder" : "decoder";
  const at = place(kind, layer);
  const groups = trace.arrays[`${at}.key`][0];
  const stream = before(trace, stack, at);
  const [rows, columns] = trace.arrays[`${at}.weights`].slice(1);
  const keys = kind === "cross" ? "encoder.output" : isPre(trace) ? `${at}_norm` : stream;
  return {
    trace, isGiven, stack, kind, at, stream, keys, head, ff: `${stack}.layers.${layer}.feed_forward`,
    group: Math.floor(head / (trace.heads / groups)), row: index("row", 1, rows), column: index("column", 0, columns),
  };
}

/** @param {import("../api.js").Trace} trace */
function isPre(trace) {
  return trace.config.norm_position === "pre";
}

/**
 * What enters a sublayer: what the one before it left, or the embedding.
 * @param {import("../api.js").Trace} trace
 * @param {"encoder" | "decoder"} stack
 * @param {string} at
 */
function before(trace, stack, at) {
  const sublayers = sublayersOf(trace, stack);
  const last = sublayers[sublayers.indexOf(at) - 1];
  if (last) return isPre(trace) ? `${last}.residual` : `${last}_norm`;
  return `${stack}.embedding.norm` in trace.arrays ? `${stack}.embedding.norm` : `${stack}.embedding.sum`;
}

/**
 * @param {import("../api.js").Trace} trace
 * @param {"encoder" | "decoder"} stack
 */
function sublayersOf(trace, stack) {
  return Object.keys(trace.arrays).filter((name) => name.startsWith(`${stack}.layers.`) && name.endsWith(".residual")).map((name) => name.slice(0, -9));
}

/**
 * All of them, from the embedding to the probability.
 * @param {Spot} spot
 * @returns {Record<"input" | "attention" | "feedForward" | "output", Stage[]>}
 */
export function stages(spot) {
  return { input: embedding(spot), attention: [...entering(spot), ...attention(spot)], feedForward: feedForward(spot), output: output(spot) };
}

/**
 * @param {string} id
 * @param {string} name
 * @param {string} formula
 * @param {Partial<Stage>} [more]
 * @returns {Stage}
 */
function stage(id, name, formula, more = {}) {
  return { id, title: TITLES[id], about: ABOUT[id], formula, name, inputs: [], snippet: id, axis: "row", isSigned: true, hasBias: false, ...more };
}

/** @param {import("../api.js").Trace} trace */
function normFormula(trace) {
  return trace.config.norm === "rms" ? "y_i = \\frac{x_i}{\\sqrt{\\mean(x^2) + ε}} g_i" : "y_i = \\frac{x_i − μ}{\\sqrt{σ^2 + ε}} g_i + b_i";
}

/** @param {Spot} spot */
function embedding({ trace, stack }) {
  const at = `${stack}.embedding`;
  const waves = "p_{2i} = \\sin \\frac{\\place}{10000^{2i/d}}\np_{2i+1} = \\cos \\frac{\\place}{10000^{2i/d}}";
  const parts = ["e", "p", "s"].filter((_, each) => `${at}.${["token", "position", "segment"][each]}` in trace.arrays);
  return [
    stage("token", `${at}.token`, trace.config.scale_embeddings ? "e = E_{\\id} \\sqrt{d_{\\model}}" : "e = E_{\\id}", trace.config.scale_embeddings ? {} : { about: ABOUT.plain }),
    stage("position", `${at}.position`, trace.config.positions === "learned" ? "p = P_{\\place}" : waves),
    stage("segment", `${at}.segment`, "s = S_0"),
    stage("sum", `${at}.sum`, `x = ${parts.join(" + ")}`),
    stage("embedding_norm", `${at}.norm`, normFormula(trace), { snippet: "norm", inputs: [`${at}.sum`] }),
  ].filter((each) => each.name in trace.arrays);
}

/**
 * What the layers and sublayers before this one have made of it.
 * @param {Spot} spot
 */
function entering({ trace, stack, at, stream }) {
  const sublayers = sublayersOf(trace, stack);
  const last = sublayers[sublayers.indexOf(at) - 1];
  if (!last) return [];
  if (!isPre(trace)) return [stage("stream", stream, normFormula(trace), { snippet: "norm", inputs: [`${last}.residual`] })];
  return [stage("stream", stream, "x = x' + \\sublayer(x')", { snippet: "residual", inputs: [before(trace, stack, last), branch(trace, last)] })];
}

/**
 * What a sublayer adds to the stream.
 * @param {import("../api.js").Trace} trace
 * @param {string} at
 */
function branch(trace, at) {
  return `${at}.output` in trace.arrays ? `${at}.output` : `${at}.down`;
}

/**
 * x + Sublayer(Norm(x)), or Norm(x + Sublayer(x)): what stands before and after the sublayer.
 * @param {Spot} spot
 * @param {string} id
 * @param {string} at
 * @returns {{ahead: Stage[], behind: Stage[], input: string}}
 */
function wrapping({ trace, stack }, id, at) {
  const stream = before(trace, stack, at);
  const residual = stage(`${id}_residual`, `${at}.residual`, "r = x + \\sublayer(x)", { snippet: "residual", inputs: [stream, branch(trace, at)] });
  const norm = stage(`${id}_norm`, `${at}_norm`, normFormula(trace), { snippet: "norm", inputs: [isPre(trace) ? stream : residual.name] });
  if (isPre(trace)) residual.formula = "r = x + \\sublayer(\\norm(x))";
  return isPre(trace) ? { ahead: [norm], behind: [residual], input: norm.name } : { ahead: [], behind: [residual, norm], input: stream };
}

/** @type {Record<string, string>} */
const COMPATIBILITIES = {
  "scaled-dot": "s_j = \\frac{q · k_j}{\\sqrt{d_k}}",
  cosine: "s_j = \\cos(q, k_j) \\sqrt{d_k}",
  additive: "s_j = w · \\tanh(q + k_j)",
};

/** @param {Spot} spot */
function attention(spot) {
  const { trace, at, keys } = spot;
  const { ahead, behind, input } = wrapping(spot, "attention", at);
  const bias = (/** @type {string} */ role) => (trace.config.bias ? ` + b^${role}` : "");
  const source = spot.kind === "cross" ? "m" : "x";
  return [
    ...ahead,
    stage("query", `${at}.query`, `q = x W^Q${bias("Q")}`, { axis: "head", inputs: [input] }),
    stage("key", `${at}.key`, `k_j = ${source}_j W^K${bias("K")}`, { axis: "key", inputs: [keys] }),
    stage("value", `${at}.value`, `v_j = ${source}_j W^V${bias("V")}`, { axis: "key", inputs: [keys] }),
    stage("query_rotated", `${at}.query_rotated`, "q' = R_p q", { axis: "head" }),
    stage("key_rotated", `${at}.key_rotated`, "k'_j = R_j k_j", { axis: "key" }),
    trace.config.compatibility === "additive" ? null : stage("product", `${at}.scores`, "q · k_j = Σ_c q_c k_{j c}", { axis: "keys" }),
    stage("scores", `${at}.scores`, COMPATIBILITIES[trace.config.compatibility], { axis: "keys", about: trace.config.compatibility === "additive" ? ABOUT.additive : ABOUT.scores }),
    stage("masked_scores", `${at}.masked_scores`, spot.kind === "decoder" ? "z_j = s_j \\if j ≤ i, \\else {−∞}" : "z_j = s_j", { axis: "keys" }),
    stage("weights", `${at}.weights`, "α_j = \\frac{e^{z_j}}{Σ_l e^{z_l}}", { axis: "keys", isSigned: false }),
    stage("heads", `${at}.heads`, "h = Σ_j α_j v_j", { axis: "head" }),
    stage("concatenation", `${at}.concatenation`, `c = [h_0 ; h_1 ; … ; h_{${trace.heads - 1}}]`),
    stage("attention_output", `${at}.output`, `o = c W^O${bias("O")}`, { snippet: "linear", inputs: [`${at}.concatenation`], hasBias: trace.config.bias }),
    ...behind,
  ].filter((each) => each !== null).filter((each) => each.name in trace.arrays);
}

/** @type {Record<string, string>} */
const ACTIVATIONS = {
  relu: "a = \\max(0, u)",
  gelu: "a = u Φ(u)",
  "gelu-tanh": "a ≈ u Φ(u)",
  silu: "a = \\frac{u}{1 + e^{−u}}",
  swiglu: "a = \\frac{g}{1 + e^{−g}} u",
};

/** @param {Spot} spot */
function feedForward(spot) {
  const { trace, ff } = spot;
  const { ahead, behind, input } = wrapping(spot, "ff", ff);
  const hasBias = trace.config.bias;
  const linear = (/** @type {string} */ id, /** @type {string} */ formula, /** @type {string} */ bias, /** @type {string} */ from) =>
    stage(id, `${ff}.${id}`, hasBias ? `${formula} + ${bias}` : formula, { snippet: "linear", inputs: [from], hasBias });
  return [
    ...ahead,
    linear("up", "u = x W_1", "b_1", input),
    linear("gate", "g = x W_g", "b_g", input),
    stage("hidden", `${ff}.hidden`, ACTIVATIONS[trace.config.feed_forward]),
    linear("down", "y = a W_2", "b_2", `${ff}.hidden`),
    ...behind,
  ].filter((each) => each.name in trace.arrays);
}

/** @param {Spot} spot */
function output({ trace, stack }) {
  const sublayers = sublayersOf(trace, stack);
  const last = sublayers[sublayers.length - 1];
  const stream = isPre(trace) ? `${last}.residual` : `${last}_norm`;
  const final = stage("final_norm", `${stack}.norm`, normFormula(trace), { snippet: "norm", inputs: [stream] });
  const found = final.name in trace.arrays ? [final] : [];
  if (stack === "encoder") return found;
  const transform = stage("transform", "output.transform", "t = x W_t + b_t", { snippet: "linear", inputs: ["decoder.output"], hasBias: true });
  const norm = stage("output_norm", "output.norm", normFormula(trace), { inputs: ["output.transform"] });
  if (transform.name in trace.arrays) found.push(transform, norm);
  const read = transform.name in trace.arrays ? norm.name : "decoder.output";
  const hasBias = trace.config.output_bias;
  return [
    ...found,
    stage("logits", "logits", hasBias ? "z = x W^{\\out} + b^{\\out}" : "z = x W^{\\out}", { inputs: [read], hasBias }),
    stage("probabilities", "probabilities", "P(\\next = i) = \\frac{e^{z_i}}{Σ_j e^{z_j}}", { isSigned: false }),
  ];
}

/**
 * The numbers of a stage, out of the arrays of this row. Keys and values come whole.
 * @param {Spot} spot
 * @param {Stage} its
 * @param {Map<string, import("../safetensors.js").Tensor>} found
 * @returns {Float32Array}
 */
export function vector(spot, its, found) {
  if (its.id === "product") return products(spot, found);
  const { shape, data } = /** @type {import("../safetensors.js").Tensor} */ (found.get(its.name));
  const numbers = /** @type {Float32Array} */ (data);
  const width = shape[shape.length - 1];
  const starts = { row: 0, head: spot.head * width, keys: spot.head * width, key: (spot.group * shape[1] + spot.column) * width };
  return numbers.subarray(starts[its.axis], starts[its.axis] + width);
}

/**
 * @param {Spot} spot
 * @param {Map<string, import("../safetensors.js").Tensor>} found
 */
function products(spot, found) {
  const turned = `${spot.at}.query_rotated` in spot.trace.arrays ? "_rotated" : "";
  const query = /** @type {import("../safetensors.js").Tensor} */ (found.get(`${spot.at}.query${turned}`));
  const key = /** @type {import("../safetensors.js").Tensor} */ (found.get(`${spot.at}.key${turned}`));
  const [, count, width] = key.shape;
  return Float32Array.from({ length: count }, (_, column) => {
    let sum = 0;
    for (let part = 0; part < width; part++)
      sum += query.data[spot.head * width + part] * key.data[(spot.group * count + column) * width + part];
    return sum;
  });
}
