/** Python that computes a number of the page again from the step before it, by the stage it belongs to. */

/**
 * @typedef {object} Spot What is looked at.
 * @property {import("../api.js").Trace} trace
 * @property {boolean} isGiven whether the translation is not the model's own
 * @property {"encoder" | "decoder"} stack
 * @property {import("../api.js").Kind} kind
 * @property {string} at the attention, in the names of arrays
 * @property {string} ff the feed-forward of the same layer
 * @property {string} stream what enters the attention's sublayer
 * @property {string} keys what keys and values are made of
 * @property {number} head
 * @property {number} group of keys and values that the head shares
 * @property {number} row
 * @property {number} column
 */

/** @typedef {(spot: Spot, index: number, stage: import("./walk_stages.js").Stage) => string[]} Snippet lines; the last one is the number */

/**
 * The whole snippet: it runs by itself wherever sixfold is installed.
 * @param {Spot} spot
 * @param {import("./walk_stages.js").Stage} stage
 * @param {number} index
 */
export function python(spot, stage, index) {
  const lines = SNIPPETS[stage.snippet](spot, index, stage);
  const last = lines.pop();
  const print = stage.snippet === "id" ? `print(${last})` : `print(f"{${last}:.4g}")`;
  return ["import numpy as np, sixfold", `trace = sixfold.explore(${options(spot)})`, ...lines, print].join("\n");
}

/**
 * Only what differs from the defaults; the model that ships needs no name.
 * @param {Spot} spot
 */
function options({ trace, isGiven }) {
  const given = [text(trace.text)];
  if (isGiven) given.push(`translation=${text(trace.translation)}`);
  if (trace.model !== "zh-en") given.push(`model=${text(`${trace.model}.safetensors`)}`);
  if (trace.from && trace.to) given.push(`source=${text(trace.from)}`, `target=${text(trace.to)}`);
  if (trace.off.length) given.push(`off=[${trace.off.map(text).join(", ")}]`);
  return given.join(", ");
}

/**
 * A string of JSON is one of Python too.
 * @param {string} value
 */
function text(value) {
  return JSON.stringify(value);
}

/**
 * W[i] · x + b[i], of a layer that is only that.
 * @param {string} at
 * @param {string} input
 * @param {number} row
 * @param {number} index
 * @param {boolean} hasBias
 */
function linear(at, input, row, index, hasBias) {
  const weight = [`x = trace["${input}"][${row}]`, `W = trace.model.weight("${at}.weight")`];
  return hasBias ? [...weight, `b = trace.model.weight("${at}.bias")`, `W[${index}] @ x + b[${index}]`] : [...weight, `W[${index}] @ x`];
}

/**
 * @param {Spot} spot
 * @param {string} at
 * @param {string} input
 * @param {number} index
 */
function norm(spot, at, input, index) {
  const begin = [`x = trace["${input}"][${spot.row}]`, `gain = trace.model.weight("${at}.weight")`];
  if (spot.trace.config.norm === "rms")
    return [...begin, "size = np.sqrt((x**2).mean() + trace.config.norm_eps)", `x[${index}] / size * gain[${index}]`];
  return [...begin, `bias = trace.model.weight("${at}.bias")`, "deviation = np.sqrt(x.var() + trace.config.norm_eps)",
    `(x[${index}] - x.mean()) / deviation * gain[${index}] + bias[${index}]`];
}

/**
 * A row of the matrix that makes queries, keys and values.
 * @param {Spot} spot
 * @param {string} input
 * @param {number} place of the token
 * @param {{start: string, head: number, feature: number}} which
 */
function projection(spot, input, place, which) {
  const width = spot.trace.d_head;
  const weight = [
    `x = trace["${input}"][${place}]`,
    `W = trace.model.weight("${spot.at}.query_key_value.weight")  # rows of queries, then of keys, then of values`,
    `row = ${which.start}${which.head} * ${width} + ${which.feature}`,
  ];
  return spot.trace.config.bias
    ? [...weight, `b = trace.model.weight("${spot.at}.query_key_value.bias")`, "W[row] @ x + b[row]"]
    : [...weight, "W[row] @ x"];
}

/**
 * @param {Spot} spot
 * @param {string} role
 * @param {string} heads
 * @param {number} place
 * @param {number} index
 */
function rotation(spot, role, heads, place, index) {
  const [width, half] = [spot.trace.d_head, spot.trace.d_head / 2];
  const isInterleaved = spot.trace.config.position_layout === "interleaved";
  const pair = isInterleaved ? Math.floor(index / 2) : index % half;
  const [first, second] = isInterleaved ? [2 * pair, 2 * pair + 1] : [pair, pair + half];
  return [
    `x = trace["${spot.at}.${role}"][${heads}, ${place}]`,
    `angle = ${place} / ${spot.trace.config.rotary_base} ** (${2 * pair} / ${width})`,
    index === first ? `x[${first}] * np.cos(angle) - x[${second}] * np.sin(angle)` : `x[${first}] * np.sin(angle) + x[${second}] * np.cos(angle)`,
  ];
}

/** @param {Spot} spot */
function queryAndKey(spot) {
  const turned = `${spot.at}.query_rotated` in spot.trace.arrays ? "_rotated" : "";
  return [
    `at = "${spot.at}"`,
    `q, k = trace[f"{at}.query${turned}"][${spot.head}, ${spot.row}], trace[f"{at}.key${turned}"][${spot.group}, ${spot.column}]`,
  ];
}

/** @type {Record<string, (spot: Spot) => string[]>} */
const SCORES = {
  "scaled-dot": (spot) => [...queryAndKey(spot), "q @ k / np.sqrt(len(q))"],
  cosine: (spot) => [...queryAndKey(spot), "q @ k / np.linalg.norm(q) / np.linalg.norm(k) * np.sqrt(len(q))"],
  additive: (spot) => [...queryAndKey(spot), `w = trace.model.weight(f"{at}.compatibility.weight")[${spot.head}]`, "w @ np.tanh(q + k)"],
};

/** @type {Record<string, (x: string) => string>} */
const ACTIVATIONS = {
  relu: (x) => `max(0, ${x})`,
  gelu: (x) => `${x} * (1 + math.erf(${x} / math.sqrt(2))) / 2`,
  "gelu-tanh": (x) => `${x} * (1 + np.tanh(math.sqrt(2 / math.pi) * (${x} + 0.044715 * ${x}**3))) / 2`,
  silu: (x) => `${x} / (1 + np.exp(-${x}))`,
  swiglu: (x) => `${x} / (1 + np.exp(-${x}))`,
};

/** @param {Spot} spot */
function isPadded(spot) {
  return spot.kind === "decoder" ? `${spot.column} <= ${spot.row}  # a place reads what stands up to it` : "True  # nothing here is padding";
}

/** @type {Record<string, Snippet>} */
export const SNIPPETS = {
  id: (spot) => {
    const side = spot.stack === "encoder" ? "source" : "target";
    const first = spot.trace[side].spans.findIndex(([start, end]) => start !== end);
    const [from, to] = spot.trace[side].spans[spot.row];
    if (side === "source" && from !== to) return [`ids = trace.tokenizer.encode(trace.text)  # after ${first} that the model is told`, `ids[${spot.row - first}]`];
    return [`trace.${side}.ids[${spot.row}]`];
  },
  token: ({ trace, stack, row }, index) => {
    const id = (stack === "encoder" ? trace.source : trace.target).ids[row];
    const table = `E = trace.model.weight("${stack}.embedding.token.weight")`;
    return [table, trace.config.scale_embeddings ? `E[${id}, ${index}] * np.sqrt(E.shape[1])` : `E[${id}, ${index}]`];
  },
  position: ({ trace, stack, row }, index) => {
    const place = row + trace.config.position_offset;
    if (trace.config.positions === "learned") return [`P = trace.model.weight("${stack}.embedding.position.weight")`, `P[${place}, ${index}]`];
    const half = trace.d_model / 2;
    const isInterleaved = trace.config.position_layout === "interleaved";
    const [pair, wave] = isInterleaved ? [Math.floor(index / 2), index % 2 ? "cos" : "sin"] : [index % half, index < half ? "sin" : "cos"];
    return [`angle = ${place} / 10000 ** (${2 * pair} / ${trace.d_model})`, `np.${wave}(angle)`];
  },
  segment: ({ stack }, index) => [`S = trace.model.weight("${stack}.embedding.segment.weight")`, `S[0, ${index}]`],
  sum: ({ trace, stack, row }, index) => {
    const parts = ["token", "position", "segment"].filter((name) => `${stack}.embedding.${name}` in trace.arrays);
    return [`parts = [trace[f"${stack}.embedding.{name}"][${row}] for name in ${JSON.stringify(parts)}]`, `sum(part[${index}] for part in parts)`];
  },
  norm: (spot, index, stage) => norm(spot, stage.name, stage.inputs[0], index),
  residual: ({ row }, index, stage) => [`x, branch = trace["${stage.inputs[0]}"][${row}], trace["${stage.inputs[1]}"][${row}]`, `x[${index}] + branch[${index}]`],
  query: (spot, index, stage) => projection(spot, stage.inputs[0], spot.row, { start: "", head: spot.head, feature: index }),
  key: (spot, index, stage) => projection(spot, stage.inputs[0], spot.column, { start: `${wide(spot)} + `, head: spot.group, feature: index }),
  value: (spot, index, stage) => projection(spot, stage.inputs[0], spot.column, { start: `${wide(spot) + narrow(spot)} + `, head: spot.group, feature: index }),
  query_rotated: (spot, index) => rotation(spot, "query", String(spot.head), spot.row, index),
  key_rotated: (spot, index) => rotation(spot, "key", String(spot.group), spot.column, index),
  product: (spot) => [...queryAndKey(spot), "q @ k"],
  scores: (spot) => SCORES[spot.trace.config.compatibility](spot),
  masked_scores: (spot) => [
    `score = trace["${spot.at}.scores"][${spot.head}, ${spot.row}, ${spot.column}]`, `may_look = ${isPadded(spot)}`, "score if may_look else -np.inf",
  ],
  weights: (spot) => [
    `z = trace["${spot.at}.masked_scores"][${spot.head}, ${spot.row}]`, "powers = np.exp(z - z.max())", `powers[${spot.column}] / powers.sum()`,
  ],
  heads: (spot, index) => [
    `at = "${spot.at}"`, `weights, V = trace[f"{at}.weights"][${spot.head}, ${spot.row}], trace[f"{at}.value"][${spot.group}]`, `weights @ V[:, ${index}]`,
  ],
  concatenation: (spot, index) => [`heads = trace["${spot.at}.heads"][:, ${spot.row}]  # a row for each head`, `np.concatenate(heads)[${index}]`],
  linear: (spot, index, stage) => linear(stage.name, stage.inputs[0], spot.row, index, stage.hasBias),
  hidden: ({ trace, ff, row }, index) => {
    const kind = trace.config.feed_forward;
    const begin = kind.startsWith("gelu") ? ["import math"] : [];
    if (kind !== "swiglu") return [...begin, `up = trace["${ff}.up"][${row}, ${index}]`, ACTIVATIONS[kind]("up")];
    return [`gate, up = trace["${ff}.gate"][${row}, ${index}], trace["${ff}.up"][${row}, ${index}]`, `${ACTIVATIONS.swiglu("gate")} * up`];
  },
  output_norm: (spot, index, stage) => [
    "from sixfold.explorer.forward import ACTIVATIONS",
    ...norm(spot, stage.name, stage.inputs[0], index).map((line, place) =>
      (place === 0 ? `x = ACTIVATIONS["${spot.trace.config.feed_forward}"](trace["${stage.inputs[0]}"][${spot.row}])` : line)),
  ],
  logits: (spot, index, stage) => linear("output.projection", stage.inputs[0], spot.row, index, stage.hasBias),
  probabilities: ({ row }, index) => [`z = trace["logits"][${row}]`, "powers = np.exp(z - z.max())", `powers[${index}] / powers.sum()`],
};

/** @param {Spot} spot */
function wide(spot) {
  return spot.trace.heads * spot.trace.d_head;
}

/** @param {Spot} spot */
function narrow(spot) {
  return spot.trace.arrays[`${spot.at}.key`][0] * spot.trace.d_head;
}
