/** The weights of one kind of attention for all layers and heads, by token or joined into words. */

import { attentionPath, axisLabels, fetchArrays, isTextModel } from "../api.js";
import { maskAllows } from "../safetensors.js";

/** @typedef {import("../api.js").ExploreRequest} Asked */
/** @typedef {import("../api.js").AttentionKind} AttentionKind */
/** @typedef {import("../api.js").Trace} Trace */
/** @typedef {import("../heat_map.js").HeatMapData} HeatMapData */
/**
 * @typedef {object} Selection What the panels of the screen show.
 * @property {AttentionWeights} weights
 * @property {number} layer
 * @property {number} head
 * @property {number} row query position
 * @property {number} column key position
 */
/** @typedef {{element: HTMLElement, show: (selection: Selection) => void}} AttentionPanel */

/**
 * Return a word without the mark of a space before it, unless it is nothing else.
 * @param {string} word
 */
function withoutSpaces(word) {
  return word.replace(/^▁+/, "") || word;
}

/**
 * Return the labels of rows and columns, and the token positions that each row and column stands for.
 * @param {Trace} trace
 * @param {AttentionKind} kind
 * @param {boolean} byWord
 */
function tokenAxes(trace, kind, byWord) {
  const queries = kind === "encoder" ? trace.source : isTextModel(trace) ? trace.target : trace.predicted;
  const keys = kind === "decoder" ? trace.target : trace.source;
  if (byWord) return [queries, keys].map((axis) => ({ groups: axis.words, texts: axis.words.map((word) => withoutSpaces(word.map((token) => axis.texts[token]).join(""))) }));
  return axisLabels(trace, kind).map((texts) => ({ groups: texts.map((_, token) => [token]), texts }));
}

export class AttentionWeights {
  /**
   * @param {Asked} request
   * @param {Trace} trace
   * @param {AttentionKind} kind
   * @param {boolean} byWord
   * @param {Map<string, import("../safetensors.js").Tensor>} tensors
   */
  constructor(request, trace, kind, byWord, tensors) {
    this.request = request;
    this.trace = trace;
    this.kind = kind;
    this.byWord = byWord;
    this.tensors = tensors;
    this.layers = trace.kinds[kind] ?? 0;
    this.heads = trace.heads;
    const [rows, columns] = tokenAxes(trace, kind, byWord);
    this.rows = rows;
    this.columns = columns;
    /** @type {Map<string, HeatMapData>} */
    this.heatMaps = new Map();
    /** Rows whose weights were loaded as 32-bit numbers. @type {Set<number>} */
    this.exactRows = new Set();
  }

  /**
   * Load the weights of all layers and heads in one request, as 16-bit numbers.
   * @param {Asked} request
   * @param {Trace} trace
   * @param {AttentionKind} kind
   * @param {boolean} byWord
   */
  static async load(request, trace, kind, byWord) {
    const names = Array.from({ length: trace.kinds[kind] ?? 0 }, (_, layer) => `${attentionPath(kind, layer)}.weights`);
    return new AttentionWeights(request, trace, kind, byWord, await fetchArrays(request, names, { half: true }));
  }

  /**
   * @param {number} layer
   * @param {number} head
   * @returns {HeatMapData} the same object each time
   */
  get(layer, head) {
    const name = `${layer}.${head}`;
    const heatMap = this.heatMaps.get(name) ?? this.heatMap(layer, this.tokenWeights(layer, head), `${this.kind}.${name}`);
    this.heatMaps.set(name, heatMap);
    return heatMap;
  }

  /**
   * Return the weights of one head by token: queries × keys.
   * @param {number} layer
   * @param {number} head
   */
  tokenWeights(layer, head) {
    const { shape, data } = this.tensor(layer, "weights");
    return /** @type {Float32Array} */ (data).subarray(head * shape[1] * shape[2], (head + 1) * shape[1] * shape[2]);
  }

  /**
   * @param {number} layer
   * @param {string} name
   */
  tensor(layer, name) {
    return /** @type {import("../safetensors.js").Tensor} */ (this.tensors.get(`${attentionPath(this.kind, layer)}.${name}`));
  }

  /**
   * @param {number} layer
   * @param {Float32Array} tokenWeights
   * @param {string} label
   * @returns {HeatMapData}
   */
  heatMap(layer, tokenWeights, label) {
    const mask = this.tensor(layer, "mask");
    const [rows, columns] = [this.rows.groups, this.columns.groups];
    const isUnmasked = this.byWord
      ? (/** @type {number} */ row, /** @type {number} */ column) => rows[row].some((queryToken) => columns[column].some((keyToken) => maskAllows(mask, queryToken, keyToken)))
      : (/** @type {number} */ row, /** @type {number} */ column) => maskAllows(mask, row, column);
    return {
      rows: this.rows.texts, columns: this.columns.texts, max: 1, label,
      values: this.byWord ? this.joinWords(tokenWeights) : tokenWeights,
      isUnmasked: this.kind === "decoder" ? isUnmasked : undefined,
    };
  }

  /**
   * Join token weights into words: the mean over the rows of a word, the sum over its columns.
   * @param {Float32Array} tokenWeights
   */
  joinWords(tokenWeights) {
    const width = this.columns.groups.length;
    const tokenColumns = tokenWeights.length / this.rows.groups.flat().length;
    const joinedWeights = new Float32Array(this.rows.groups.length * width);
    this.rows.groups.forEach((queryWord, row) => this.columns.groups.forEach((keyWord, column) => {
      let sum = 0;
      for (const queryToken of queryWord) for (const keyToken of keyWord) sum += tokenWeights[queryToken * tokenColumns + keyToken];
      joinedWeights[row * width + column] = sum / queryWord.length;
    }));
    return joinedWeights;
  }

  /**
   * Load one row of all layers and heads again, as 32-bit numbers, unless that was done before.
   * @param {number} row
   */
  async loadExactRow(row) {
    if (this.exactRows.has(row)) return;
    const names = Array.from({ length: this.layers }, (_, layer) => `${attentionPath(this.kind, layer)}.weights`);
    for (const token of this.rows.groups[row]) {
      const tensors = await fetchArrays(this.request, names, { row: token });
      for (let layer = 0; layer < this.layers; layer++) {
        const [heads, width] = this.tensor(layer, "weights").shape.filter((_, axis) => axis !== 1);
        const exactWeights = /** @type {Float32Array} */ (tensors.get(names[layer])?.data);
        for (let head = 0; head < heads; head++) this.tokenWeights(layer, head).set(exactWeights.subarray(head * width, (head + 1) * width), token * width);
      }
    }
    this.exactRows.add(row);
    if (!this.byWord) return;
    for (const [name, data] of this.heatMaps) {
      const [layer, head] = name.split(".").map(Number);
      data.values.set(this.joinWords(this.tokenWeights(layer, head)));
    }
  }

  /**
   * Load one head as 32-bit numbers, for export.
   * @param {number} layer
   * @param {number} head
   */
  async loadExactHead(layer, head) {
    const name = `${attentionPath(this.kind, layer)}.weights`;
    const { shape, data } = /** @type {import("../safetensors.js").Tensor} */ ((await fetchArrays(this.request, [name])).get(name));
    const size = shape[1] * shape[2];
    return this.heatMap(layer, /** @type {Float32Array} */ (data).subarray(head * size, (head + 1) * size), this.get(layer, head).label);
  }

  /**
   * Return one row of a head.
   * @param {number} layer
   * @param {number} head
   * @param {number} row
   */
  row(layer, head, row) {
    const width = this.columns.texts.length;
    return this.get(layer, head).values.subarray(row * width, (row + 1) * width);
  }
}

/**
 * Return the index of the largest number.
 * @param {Float32Array} numbers
 */
export function indexOfMax(numbers) {
  let best = 0;
  for (let index = 1; index < numbers.length; index++) if (numbers[index] > numbers[best]) best = index;
  return best;
}

/**
 * Convert a row or column index when tokens are joined into words, or split again.
 * @param {AttentionWeights} weights
 * @param {"rows" | "columns"} side
 * @param {number} index
 * @param {boolean} byWord the new unit: words or tokens
 */
export function convertIndex(weights, side, index, byWord) {
  const token = weights[side].groups[index]?.[0] ?? 0;
  return Math.max(0, tokenAxes(weights.trace, weights.kind, byWord)[side === "rows" ? 0 : 1].groups.findIndex((group) => group.includes(token)));
}

/**
 * Return a function that makes a file of what is selected, after the numbers of its row were loaded as 32-bit numbers.
 * @param {() => Selection | null} getSelection
 * @param {(selection: Selection) => string} write
 */
export function exactExport(getSelection, write) {
  return async () => {
    const selection = getSelection();
    if (!selection) return "";
    await selection.weights.loadExactRow(selection.row);
    return write(selection);
  };
}
