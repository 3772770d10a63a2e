/** Python code for each stage of the walk: it computes a number again from the numbers of the stage before. */

import { exponentSteps } from "./position_encodings.js";

/**
 * @typedef {object} WalkPosition What the walk shows: kind of attention, layer, head, query and key.
 * @property {import("../api.js").Trace} trace
 * @property {boolean} isGiven whether the user gave the translation
 * @property {"encoder" | "decoder"} stack
 * @property {import("../api.js").AttentionKind} kind
 * @property {string} attention path of the attention module
 * @property {string} feedForward path of the feed-forward module of the same layer
 * @property {string} input array that enters the attention sublayer
 * @property {string} keyInput array from which keys and values are computed
 * @property {number} head
 * @property {number} keyHead head of keys and values that this head uses
 * @property {number} row
 * @property {number} column
 */

/** @typedef {(position: WalkPosition, index: number, stage: import("./walk_stages.js").Stage) => string[]} Snippet lines of Python; the last one is the expression of the number */

/**
 * Return the complete snippet. It runs wherever sixfold is installed.
 * @param {WalkPosition} position
 * @param {import("./walk_stages.js").Stage} stage
 * @param {number} index
 */
export function python(position, stage, index) {
  const lines = SNIPPETS[stage.snippet](position, index, stage);
  const last = lines.pop();
  const print = stage.snippet === "id" ? `print(${last})` : `print(f"{${last}:.4g}")`;
  return ["import numpy as np, sixfold", `trace = sixfold.explore(${exploreArguments(position)})`, ...lines, print].join("\n");
}

/**
 * Return the arguments that differ from the defaults; the shipped model needs no name.
 * @param {WalkPosition} position
 */
function exploreArguments({ trace, isGiven }) {
  const parts = [pythonString(trace.text)];
  if (isGiven) parts.push(`translation=${pythonString(trace.translation)}`);
  if (trace.model !== "zh-en") parts.push(`model=${pythonString(`${trace.model}.safetensors`)}`);
  if (trace.from && trace.to) parts.push(`source=${pythonString(trace.from)}`, `target=${pythonString(trace.to)}`);
  if (trace.off.length) parts.push(`off=[${trace.off.map(pythonString).join(", ")}]`);
  return parts.join(", ");
}

/**
 * Return a Python string literal; every JSON string is one.
 * @param {string} value
 */
function pythonString(value) {
  return JSON.stringify(value);
}

/**
 * Return the code of a linear layer: W[i] · x + b[i].
 * @param {string} module
 * @param {string} input
 * @param {number} row
 * @param {number} index
 * @param {boolean} hasBias
 */
function linear(module, input, row, index, hasBias) {
  const lines = [`x = trace["${input}"][${row}]`, `W = trace.model.weight("${module}.weight")`];
  return hasBias ? [...lines, `b = trace.model.weight("${module}.bias")`, `W[${index}] @ x + b[${index}]`] : [...lines, `W[${index}] @ x`];
}

/**
 * @param {WalkPosition} position
 * @param {string} module
 * @param {string} input
 * @param {number} index
 */
function norm(position, module, input, index) {
  const lines = [`x = trace["${input}"][${position.row}]`, `gain = trace.model.weight("${module}.weight")`];
  if (position.trace.config.norm === "rms")
    return [...lines, "size = np.sqrt((x**2).mean() + trace.config.norm_eps)", `x[${index}] / size * gain[${index}]`];
  return [...lines, `bias = trace.model.weight("${module}.bias")`, "deviation = np.sqrt(x.var() + trace.config.norm_eps)",
    `(x[${index}] - x.mean()) / deviation * gain[${index}] + bias[${index}]`];
}

/**
 * Return the code of one row of the query, key and value projection.
 * @param {WalkPosition} position
 * @param {string} input
 * @param {number} tokenIndex
 * @param {{start: string, head: number, feature: number}} row
 */
function projection(position, input, tokenIndex, row) {
  const width = position.trace.d_head;
  const lines = [
    `x = trace["${input}"][${tokenIndex}]`,
    `W = trace.model.weight("${position.attention}.query_key_value.weight")  # rows of queries, then of keys, then of values`,
    `row = ${row.start}${row.head} * ${width} + ${row.feature}`,
  ];
  return position.trace.config.bias || position.trace.config.query_key_value_bias
    ? [...lines, `b = trace.model.weight("${position.attention}.query_key_value.bias")`, "W[row] @ x + b[row]"]
    : [...lines, "W[row] @ x"];
}

/**
 * @param {WalkPosition} position
 * @param {string} role
 * @param {string} head
 * @param {number} tokenIndex
 * @param {number} index
 */
function rotation(position, role, head, tokenIndex, index) {
  const [width, half] = [position.trace.d_head, position.trace.d_head / 2];
  const isInterleaved = position.trace.config.position_layout === "interleaved";
  const pair = isInterleaved ? Math.floor(index / 2) : index % half;
  const [first, second] = isInterleaved ? [2 * pair, 2 * pair + 1] : [pair, pair + half];
  return [
    `x = trace["${position.attention}.${role}"][${head}, ${tokenIndex}]`,
    ...(position.trace.config.rotary_scaling === "none"
      ? [`angle = ${tokenIndex} / ${position.trace.config.rotary_base} ** (${2 * pair} / ${width})`]
      : ["from sixfold.explorer.forward import rotary_angles", `angle = rotary_angles(trace.config, np.arange(${tokenIndex + 1}))[${tokenIndex}, ${pair}]`]),
    index === first ? `x[${first}] * np.cos(angle) - x[${second}] * np.sin(angle)` : `x[${first}] * np.sin(angle) + x[${second}] * np.cos(angle)`,
  ];
}

/** @param {WalkPosition} position */
function queryAndKey(position) {
  const suffix = `${position.attention}.query_rotated` in position.trace.arrays ? "_rotated" : "";
  return [
    `at = "${position.attention}"`,
    `q, k = trace[f"{at}.query${suffix}"][${position.head}, ${position.row}], trace[f"{at}.key${suffix}"][${position.keyHead}, ${position.column}]`,
  ];
}

/** @type {Record<string, (position: WalkPosition) => string[]>} */
const SCORES = {
  "scaled-dot": (position) => [...queryAndKey(position), "q @ k / np.sqrt(len(q))"],
  cosine: (position) => [...queryAndKey(position), "q @ k / np.linalg.norm(q) / np.linalg.norm(k) * np.sqrt(len(q))"],
  additive: (position) => [...queryAndKey(position), `w = trace.model.weight(f"{at}.compatibility.weight")[${position.head}]`, "w @ np.tanh(q + k)"],
};

/** @type {Record<string, (x: string) => string>} */
const ACTIVATIONS = {
  relu: (x) => `max(0, ${x})`,
  gelu: (x) => `${x} * (1 + math.erf(${x} / math.sqrt(2))) / 2`,
  "gelu-tanh": (x) => `${x} * (1 + np.tanh(math.sqrt(2 / math.pi) * (${x} + 0.044715 * ${x}**3))) / 2`,
  silu: (x) => `${x} / (1 + np.exp(-${x}))`,
  swiglu: (x) => `${x} / (1 + np.exp(-${x}))`,
};

/** @param {WalkPosition} position */
function maskCondition(position) {
  return position.kind === "decoder" ? `${position.column} <= ${position.row}  # a position attends to itself and those before it` : "True  # no position is padding";
}

/** @type {Record<string, Snippet>} */
export const SNIPPETS = {
  id: (position) => {
    const side = position.stack === "encoder" ? "source" : "target";
    const first = position.trace[side].spans.findIndex(([start, end]) => start !== end);
    const [from, to] = position.trace[side].spans[position.row];
    if (side === "source" && from !== to) return [`ids = trace.tokenizer.encode(trace.text)  # after ${first} special tokens`, `ids[${position.row - first}]`];
    return [`trace.${side}.ids[${position.row}]`];
  },
  token: ({ trace, stack, row }, index) => {
    const id = (stack === "encoder" ? trace.source : trace.target).ids[row];
    const table = `E = trace.model.weight("${stack}.embedding.token.weight")`;
    return [table, trace.config.scale_embeddings ? `E[${id}, ${index}] * np.sqrt(E.shape[1])` : `E[${id}, ${index}]`];
  },
  position: ({ trace, stack, row }, index) => {
    const position = row + trace.config.position_offset;
    if (trace.config.positions === "learned") return [`P = trace.model.weight("${stack}.embedding.position.weight")`, `P[${position}, ${index}]`];
    const half = trace.d_model / 2;
    const isInterleaved = trace.config.position_layout === "interleaved";
    const [pair, wave] = isInterleaved ? [Math.floor(index / 2), index % 2 ? "cos" : "sin"] : [index % half, index < half ? "sin" : "cos"];
    return [`angle = ${position} / 10000 ** (${pair} / ${exponentSteps(trace.config, trace.d_model)})`, `np.${wave}(angle)`];
  },
  segment: ({ stack }, index) => [`S = trace.model.weight("${stack}.embedding.segment.weight")`, `S[0, ${index}]`],
  sum: ({ trace, stack, row }, index) => {
    const parts = ["token", "position", "segment"].filter((name) => `${stack}.embedding.${name}` in trace.arrays);
    return [`parts = [trace[f"${stack}.embedding.{name}"][${row}] for name in ${JSON.stringify(parts)}]`, `sum(part[${index}] for part in parts)`];
  },
  norm: (position, index, stage) => norm(position, stage.name, stage.inputs[0], index),
  residual: ({ row }, index, stage) => [`x, branch = trace["${stage.inputs[0]}"][${row}], trace["${stage.inputs[1]}"][${row}]`, `x[${index}] + branch[${index}]`],
  query: (position, index, stage) => projection(position, stage.inputs[0], position.row, { start: "", head: position.head, feature: index }),
  key: (position, index, stage) => projection(position, stage.inputs[0], position.column, { start: `${queryRows(position)} + `, head: position.keyHead, feature: index }),
  value: (position, index, stage) => projection(position, stage.inputs[0], position.column, { start: `${queryRows(position) + keyRows(position)} + `, head: position.keyHead, feature: index }),
  query_rotated: (position, index) => rotation(position, "query", String(position.head), position.row, index),
  key_rotated: (position, index) => rotation(position, "key", String(position.keyHead), position.column, index),
  product: (position) => [...queryAndKey(position), "q @ k"],
  scores: (position) => SCORES[position.trace.config.compatibility](position),
  masked_scores: (position) => [
    `score = trace["${position.attention}.scores"][${position.head}, ${position.row}, ${position.column}]`, `may_look = ${maskCondition(position)}`, "score if may_look else -np.inf",
  ],
  weights: (position) => [
    `z = trace["${position.attention}.masked_scores"][${position.head}, ${position.row}]`, "powers = np.exp(z - z.max())", `powers[${position.column}] / powers.sum()`,
  ],
  heads: (position, index) => [
    `at = "${position.attention}"`, `weights, V = trace[f"{at}.weights"][${position.head}, ${position.row}], trace[f"{at}.value"][${position.keyHead}]`, `weights @ V[:, ${index}]`,
  ],
  concatenation: (position, index) => [`heads = trace["${position.attention}.heads"][:, ${position.row}]  # one row per head`, `np.concatenate(heads)[${index}]`],
  linear: (position, index, stage) => linear(stage.name, stage.inputs[0], position.row, index, stage.hasBias),
  hidden: ({ trace, feedForward: ff, row }, index) => {
    const kind = trace.config.feed_forward;
    const imports = kind.startsWith("gelu") ? ["import math"] : [];
    if (kind !== "swiglu") return [...imports, `up = trace["${ff}.up"][${row}, ${index}]`, ACTIVATIONS[kind]("up")];
    return [`gate, up = trace["${ff}.gate"][${row}, ${index}], trace["${ff}.up"][${row}, ${index}]`, `${ACTIVATIONS.swiglu("gate")} * up`];
  },
  output_norm: (position, index, stage) => [
    "from sixfold.explorer.forward import ACTIVATIONS",
    ...norm(position, stage.name, stage.inputs[0], index).map((line, lineIndex) =>
      (lineIndex === 0 ? `x = ACTIVATIONS["${position.trace.config.feed_forward}"](trace["${stage.inputs[0]}"][${position.row}])` : line)),
  ],
  logits: (position, index, stage) => linear("output.projection", stage.inputs[0], position.row, index, stage.hasBias),
  probabilities: ({ row }, index) => [`z = trace["logits"][${row}]`, "powers = np.exp(z - z.max())", `powers[${index}] / powers.sum()`],
};

/** @param {WalkPosition} position */
function queryRows(position) {
  return position.trace.heads * position.trace.d_head;
}

/** @param {WalkPosition} position */
function keyRows(position) {
  return position.trace.arrays[`${position.attention}.key`][0] * position.trace.d_head;
}
