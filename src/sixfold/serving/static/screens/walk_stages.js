/** The stages of the computation for one position, layer and head, in order, as this model computes them. */

import { attentionPath, isTextModel } from "../api.js";
import { stateIndex } from "../url_state.js";
import { STAGE_DESCRIPTIONS, STAGE_TITLES } from "./walk_stage_texts.js";

/** @typedef {import("./walk_python.js").WalkPosition} WalkPosition */
/** @typedef {"row" | "head" | "key" | "keys"} Axis how a vector is sliced from its array: see `stageValues` */
/**
 * @typedef {object} Stage
 * @property {string} id
 * @property {import("../page_text.js").BilingualText} title
 * @property {import("../page_text.js").BilingualText} about
 * @property {string} formula
 * @property {string} name of the array
 * @property {string[]} inputs arrays that it is computed from
 * @property {string} snippet key of SNIPPETS in walk_python.js
 * @property {Axis} axis
 * @property {boolean} isSigned
 * @property {boolean} hasBias
 */

/**
 * @param {import("../api.js").Trace} trace
 * @param {import("../api.js").AttentionKind} kind
 * @param {boolean} isGiven
 * @returns {WalkPosition}
 */
export function walkPosition(trace, kind, isGiven) {
  const layers = trace.kinds[kind] ?? 1;
  const [layer, head] = [stateIndex("layer", layers - 1, layers), stateIndex("head", 0, trace.heads)];
  const stack = kind === "encoder" ? "encoder" : "decoder";
  const attention = attentionPath(kind, layer);
  const keyHeads = trace.arrays[`${attention}.key`][0];
  const input = sublayerInput(trace, stack, attention);
  const [rows, columns] = trace.arrays[`${attention}.weights`].slice(1);
  const keyInput = kind === "cross" ? "encoder.output" : isPreNorm(trace) ? `${attention}_norm` : input;
  return {
    trace, isGiven, stack, kind, attention, input, keyInput, head, feedForward: `${stack}.layers.${layer}.feed_forward`,
    keyHead: Math.floor(head / (trace.heads / keyHeads)), row: stateIndex("row", isTextModel(trace) ? rows - 1 : Math.min(1, rows - 1), rows), column: stateIndex("column", 0, columns),
  };
}

/** @param {import("../api.js").Trace} trace */
function isPreNorm(trace) {
  return trace.config.norm_position === "pre";
}

/**
 * Return the array that enters a sublayer: the output of the previous sublayer, or the embedding.
 * @param {import("../api.js").Trace} trace
 * @param {"encoder" | "decoder"} stack
 * @param {string} sublayer
 */
function sublayerInput(trace, stack, sublayer) {
  const sublayers = sublayersOf(trace, stack);
  const previous = sublayers[sublayers.indexOf(sublayer) - 1];
  if (previous) return isPreNorm(trace) ? `${previous}.residual` : `${previous}_norm`;
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
 * Return all stages, from the embedding to the probability.
 * @param {WalkPosition} position
 * @returns {Record<"input" | "attention" | "feedForward" | "output", Stage[]>}
 */
export function stages(position) {
  return { input: embeddingStages(position), attention: [...previousSublayer(position), ...attentionStages(position)], feedForward: feedForwardStages(position), output: outputStages(position) };
}

/**
 * @param {string} id
 * @param {string} name
 * @param {string} formula
 * @param {Partial<Stage>} [options]
 * @returns {Stage}
 */
function makeStage(id, name, formula, options = {}) {
  return { id, title: STAGE_TITLES[id], about: STAGE_DESCRIPTIONS[id], formula, name, inputs: [], snippet: id, axis: "row", isSigned: true, hasBias: false, ...options };
}

/** @param {import("../api.js").Trace} trace */
function normFormula(trace) {
  return trace.config.norm === "rms" ? "y_i = \\frac{x_i}{\\sqrt{\\mean(x^2) + ε}} g_i" : "y_i = \\frac{x_i − μ}{\\sqrt{σ^2 + ε}} g_i + b_i";
}

/** @param {WalkPosition} position */
function embeddingStages({ trace, stack }) {
  const module = `${stack}.embedding`;
  const sinusoids = "p_{2i} = \\sin \\frac{\\place}{10000^{2i/d}}\np_{2i+1} = \\cos \\frac{\\place}{10000^{2i/d}}";
  const parts = ["e", "p", "s"].filter((_, index) => `${module}.${["token", "position", "segment"][index]}` in trace.arrays);
  return [
    makeStage("token", `${module}.token`, trace.config.scale_embeddings ? "e = E_{\\id} \\sqrt{d_{\\model}}" : "e = E_{\\id}", trace.config.scale_embeddings ? {} : { about: STAGE_DESCRIPTIONS.plain }),
    makeStage("position", `${module}.position`, trace.config.positions === "learned" ? "p = P_{\\place}" : sinusoids),
    makeStage("segment", `${module}.segment`, "s = S_0"),
    parts.length > 1 ? makeStage("sum", `${module}.sum`, `x = ${parts.join(" + ")}`) : null, // rotary positions come with queries and keys
    makeStage("embedding_norm", `${module}.norm`, normFormula(trace), { snippet: "norm", inputs: [`${module}.sum`] }),
  ].filter((stage) => stage !== null).filter((stage) => stage.name in trace.arrays);
}

/**
 * Return the stage with the output of the previous sublayer, if there is one.
 * @param {WalkPosition} position
 */
function previousSublayer({ trace, stack, attention, input }) {
  const sublayers = sublayersOf(trace, stack);
  const previous = sublayers[sublayers.indexOf(attention) - 1];
  if (!previous) return [];
  if (!isPreNorm(trace)) return [makeStage("stream", input, normFormula(trace), { snippet: "norm", inputs: [`${previous}.residual`] })];
  return [makeStage("stream", input, "x = x' + \\sublayer(x')", { snippet: "residual", inputs: [sublayerInput(trace, stack, previous), sublayerOutput(trace, previous)] })];
}

/**
 * Return the array that a sublayer adds to the residual stream.
 * @param {import("../api.js").Trace} trace
 * @param {string} sublayer
 */
function sublayerOutput(trace, sublayer) {
  return `${sublayer}.output` in trace.arrays ? `${sublayer}.output` : `${sublayer}.down`;
}

/**
 * Return the norm and residual stages of a sublayer: x + Sublayer(Norm(x)), or Norm(x + Sublayer(x)).
 * @param {WalkPosition} position
 * @param {string} id
 * @param {string} sublayer
 * @returns {{before: Stage[], after: Stage[], input: string}}
 */
function normAndResidual({ trace, stack }, id, sublayer) {
  const sublayerStream = sublayerInput(trace, stack, sublayer);
  const residual = makeStage(`${id}_residual`, `${sublayer}.residual`, "r = x + \\sublayer(x)", { snippet: "residual", inputs: [sublayerStream, sublayerOutput(trace, sublayer)] });
  const norm = makeStage(`${id}_norm`, `${sublayer}_norm`, normFormula(trace), { snippet: "norm", inputs: [isPreNorm(trace) ? sublayerStream : residual.name] });
  if (isPreNorm(trace)) residual.formula = "r = x + \\sublayer(\\norm(x))";
  return isPreNorm(trace) ? { before: [norm], after: [residual], input: norm.name } : { before: [], after: [residual, norm], input: sublayerStream };
}

/** @type {Record<string, string>} */
const COMPATIBILITIES = {
  "scaled-dot": "s_j = \\frac{q · k_j}{\\sqrt{d_k}}",
  cosine: "s_j = \\cos(q, k_j) \\sqrt{d_k}",
  additive: "s_j = w · \\tanh(q + k_j)",
};

/** @param {WalkPosition} position */
function attentionStages(position) {
  const { trace, attention, keyInput } = position;
  const { before, after, input } = normAndResidual(position, "attention", attention);
  const bias = (/** @type {string} */ role) => (trace.config.bias || (role !== "O" && trace.config.query_key_value_bias) ? ` + b^${role}` : "");
  const source = position.kind === "cross" ? "m" : "x";
  return [
    ...before,
    makeStage("query", `${attention}.query`, `q = x W^Q${bias("Q")}`, { axis: "head", inputs: [input] }),
    makeStage("key", `${attention}.key`, `k_j = ${source}_j W^K${bias("K")}`, { axis: "key", inputs: [keyInput] }),
    makeStage("value", `${attention}.value`, `v_j = ${source}_j W^V${bias("V")}`, { axis: "key", inputs: [keyInput] }),
    makeStage("query_rotated", `${attention}.query_rotated`, "q' = R_p q", { axis: "head" }),
    makeStage("key_rotated", `${attention}.key_rotated`, "k'_j = R_j k_j", { axis: "key" }),
    trace.config.compatibility === "additive" ? null : makeStage("product", `${attention}.scores`, "q · k_j = Σ_c q_c k_{j c}", { axis: "keys" }),
    makeStage("scores", `${attention}.scores`, COMPATIBILITIES[trace.config.compatibility], { axis: "keys", about: trace.config.compatibility === "additive" ? STAGE_DESCRIPTIONS.additive : STAGE_DESCRIPTIONS.scores }),
    makeStage("masked_scores", `${attention}.masked_scores`, position.kind === "decoder" ? "z_j = s_j \\if j ≤ i, \\else {−∞}" : "z_j = s_j", { axis: "keys" }),
    makeStage("weights", `${attention}.weights`, "α_j = \\frac{e^{z_j}}{Σ_l e^{z_l}}", { axis: "keys", isSigned: false }),
    makeStage("heads", `${attention}.heads`, "h = Σ_j α_j v_j", { axis: "head" }),
    makeStage("concatenation", `${attention}.concatenation`, `c = [h_0 ; h_1 ; … ; h_{${trace.heads - 1}}]`),
    makeStage("attention_output", `${attention}.output`, `o = c W^O${bias("O")}`, { snippet: "linear", inputs: [`${attention}.concatenation`], hasBias: trace.config.bias }),
    ...after,
  ].filter((stage) => stage !== null).filter((stage) => stage.name in trace.arrays);
}

/** @type {Record<string, string>} */
const ACTIVATIONS = {
  relu: "a = \\max(0, u)",
  gelu: "a = u Φ(u)",
  "gelu-tanh": "a ≈ u Φ(u)",
  silu: "a = \\frac{u}{1 + e^{−u}}",
  swiglu: "a = \\frac{g}{1 + e^{−g}} u",
};

/** @param {WalkPosition} position */
function feedForwardStages(position) {
  const { trace, feedForward } = position;
  const { before, after, input } = normAndResidual(position, "ff", feedForward);
  const hasBias = trace.config.bias;
  const linear = (/** @type {string} */ id, /** @type {string} */ formula, /** @type {string} */ bias, /** @type {string} */ from) =>
    makeStage(id, `${feedForward}.${id}`, hasBias ? `${formula} + ${bias}` : formula, { snippet: "linear", inputs: [from], hasBias });
  return [
    ...before,
    linear("up", "u = x W_1", "b_1", input),
    linear("gate", "g = x W_g", "b_g", input),
    makeStage("hidden", `${feedForward}.hidden`, ACTIVATIONS[trace.config.feed_forward]),
    linear("down", "y = a W_2", "b_2", `${feedForward}.hidden`),
    ...after,
  ].filter((stage) => stage.name in trace.arrays);
}

/** @param {WalkPosition} position */
function outputStages({ trace, stack }) {
  const sublayers = sublayersOf(trace, stack);
  const last = sublayers[sublayers.length - 1];
  const finalStream = isPreNorm(trace) ? `${last}.residual` : `${last}_norm`;
  const final = makeStage("final_norm", `${stack}.norm`, normFormula(trace), { snippet: "norm", inputs: [finalStream] });
  const outputs = final.name in trace.arrays ? [final] : [];
  if (stack === "encoder") return outputs;
  const transform = makeStage("transform", "output.transform", "t = x W_t + b_t", { snippet: "linear", inputs: ["decoder.output"], hasBias: true });
  const norm = makeStage("output_norm", "output.norm", normFormula(trace), { inputs: ["output.transform"] });
  if (transform.name in trace.arrays) outputs.push(transform, norm);
  const outputInput = transform.name in trace.arrays ? norm.name : "decoder.output";
  const hasBias = trace.config.output_bias;
  return [
    ...outputs,
    makeStage("logits", "logits", hasBias ? "z = x W^{\\out} + b^{\\out}" : "z = x W^{\\out}", { inputs: [outputInput], hasBias }),
    makeStage("probabilities", "probabilities", "P(\\next = i) = \\frac{e^{z_i}}{Σ_j e^{z_j}}", { isSigned: false }),
  ];
}

/**
 * Return the numbers of a stage, from the arrays of this row. Arrays of keys and values hold all positions.
 * @param {WalkPosition} position
 * @param {Stage} stage
 * @param {Map<string, import("../safetensors.js").Tensor>} tensors
 * @returns {Float32Array}
 */
export function stageValues(position, stage, tensors) {
  if (stage.id === "product") return queryKeyProducts(position, tensors);
  const { shape, data } = /** @type {import("../safetensors.js").Tensor} */ (tensors.get(stage.name));
  const numbers = /** @type {Float32Array} */ (data);
  const width = shape[shape.length - 1];
  const starts = { row: 0, head: position.head * width, keys: position.head * width, key: (position.keyHead * shape[1] + position.column) * width };
  return numbers.subarray(starts[stage.axis], starts[stage.axis] + width);
}

/**
 * @param {WalkPosition} position
 * @param {Map<string, import("../safetensors.js").Tensor>} tensors
 */
function queryKeyProducts(position, tensors) {
  const suffix = `${position.attention}.query_rotated` in position.trace.arrays ? "_rotated" : "";
  const query = /** @type {import("../safetensors.js").Tensor} */ (tensors.get(`${position.attention}.query${suffix}`));
  const key = /** @type {import("../safetensors.js").Tensor} */ (tensors.get(`${position.attention}.key${suffix}`));
  const [, count, width] = key.shape;
  return Float32Array.from({ length: count }, (_, column) => {
    let sum = 0;
    for (let part = 0; part < width; part++)
      sum += query.data[position.head * width + part] * key.data[(position.keyHead * count + column) * width + part];
    return sum;
  });
}
