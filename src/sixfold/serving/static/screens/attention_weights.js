/** The weights of one kind of attention, of all layers and heads, by pieces or joined into words. */

import { arrays, labels, place } from "../api.js";
import { isOpen } from "../safetensors.js";

/** @typedef {import("../api.js").Asked} Asked */
/** @typedef {import("../api.js").Kind} Kind */
/** @typedef {import("../api.js").Trace} Trace */
/** @typedef {import("../heat_map.js").MatrixData} MatrixData */
/**
 * @typedef {object} Shown What every part of the screen is told to show.
 * @property {Weights} weights
 * @property {number} layer
 * @property {number} head
 * @property {number} row that asks
 * @property {number} column that is looked at
 */
/** @typedef {{element: HTMLElement, show: (shown: Shown) => void}} Part */

/**
 * The pieces of each row and of each column, and what these are called.
 * @param {Trace} trace
 * @param {Kind} kind
 * @param {boolean} isWords
 */
function sides(trace, kind, isWords) {
  const asks = kind === "encoder" ? trace.source : trace.predicted;
  const looked = kind === "decoder" ? trace.target : trace.source;
  if (isWords) return [asks, looked].map((side) => ({ groups: side.words, texts: side.words.map((word) => word.map((each) => side.texts[each]).join("")) }));
  return labels(trace, kind).map((texts) => ({ groups: texts.map((_, each) => [each]), texts }));
}

export class Weights {
  /**
   * @param {Asked} asked
   * @param {Trace} trace
   * @param {Kind} kind
   * @param {boolean} isWords
   * @param {Map<string, import("../safetensors.js").Tensor>} tensors
   */
  constructor(asked, trace, kind, isWords, tensors) {
    this.asked = asked;
    this.trace = trace;
    this.kind = kind;
    this.isWords = isWords;
    this.tensors = tensors;
    this.layers = trace.kinds[kind] ?? 0;
    this.heads = trace.heads;
    const [rows, columns] = sides(trace, kind, isWords);
    this.rows = rows;
    this.columns = columns;
    /** @type {Map<string, MatrixData>} */
    this.known = new Map();
    /** Rows whose numbers have come in 32 bits. @type {Set<number>} */
    this.exact = new Set();
  }

  /**
   * All of them in one question, in 16 bits.
   * @param {Asked} asked
   * @param {Trace} trace
   * @param {Kind} kind
   * @param {boolean} isWords
   */
  static async load(asked, trace, kind, isWords) {
    const names = Array.from({ length: trace.kinds[kind] ?? 0 }, (_, layer) => `${place(kind, layer)}.weights`);
    return new Weights(asked, trace, kind, isWords, await arrays(asked, names, { half: true }));
  }

  /**
   * @param {number} layer
   * @param {number} head
   * @returns {MatrixData} the same object each time
   */
  get(layer, head) {
    const name = `${layer}.${head}`;
    const found = this.known.get(name) ?? this.matrix(layer, this.pieces(layer, head), `${this.kind}.${name}`);
    this.known.set(name, found);
    return found;
  }

  /**
   * As the model made them: a row for each piece that asks.
   * @param {number} layer
   * @param {number} head
   */
  pieces(layer, head) {
    const { shape, data } = this.tensor(layer, "weights");
    return /** @type {Float32Array} */ (data).subarray(head * shape[1] * shape[2], (head + 1) * shape[1] * shape[2]);
  }

  /**
   * @param {number} layer
   * @param {string} name
   */
  tensor(layer, name) {
    return /** @type {import("../safetensors.js").Tensor} */ (this.tensors.get(`${place(this.kind, layer)}.${name}`));
  }

  /**
   * @param {number} layer
   * @param {Float32Array} pieces
   * @param {string} label
   * @returns {MatrixData}
   */
  matrix(layer, pieces, label) {
    const mask = this.tensor(layer, "mask");
    const [rows, columns] = [this.rows.groups, this.columns.groups];
    const open = this.isWords
      ? (/** @type {number} */ row, /** @type {number} */ column) => rows[row].some((each) => columns[column].some((other) => isOpen(mask, each, other)))
      : (/** @type {number} */ row, /** @type {number} */ column) => isOpen(mask, row, column);
    return {
      rows: this.rows.texts, columns: this.columns.texts, most: 1, label,
      values: this.isWords ? this.joined(pieces) : pieces,
      isOpen: this.kind === "decoder" ? open : undefined,
    };
  }

  /**
   * The mean of a word's rows, the sum of its columns.
   * @param {Float32Array} pieces
   */
  joined(pieces) {
    const width = this.columns.groups.length;
    const across = pieces.length / this.rows.groups.flat().length;
    const found = new Float32Array(this.rows.groups.length * width);
    this.rows.groups.forEach((word, row) => this.columns.groups.forEach((other, column) => {
      let sum = 0;
      for (const each of word) for (const its of other) sum += pieces[each * across + its];
      found[row * width + column] = sum / word.length;
    }));
    return found;
  }

  /**
   * The numbers of one row of all layers and heads again, in 32 bits.
   * @param {number} row
   */
  async refine(row) {
    const names = Array.from({ length: this.layers }, (_, layer) => `${place(this.kind, layer)}.weights`);
    for (const piece of this.rows.groups[row]) {
      const found = await arrays(this.asked, names, { row: piece });
      for (let layer = 0; layer < this.layers; layer++) {
        const [heads, width] = this.tensor(layer, "weights").shape.filter((_, axis) => axis !== 1);
        const exact = /** @type {Float32Array} */ (found.get(names[layer])?.data);
        for (let head = 0; head < heads; head++) this.pieces(layer, head).set(exact.subarray(head * width, (head + 1) * width), piece * width);
      }
    }
    this.exact.add(row);
    if (!this.isWords) return;
    for (const [name, data] of this.known) {
      const [layer, head] = name.split(".").map(Number);
      data.values.set(this.joined(this.pieces(layer, head)));
    }
  }

  /**
   * One head in 32 bits, for what is saved.
   * @param {number} layer
   * @param {number} head
   */
  async whole(layer, head) {
    const name = `${place(this.kind, layer)}.weights`;
    const { shape, data } = /** @type {import("../safetensors.js").Tensor} */ ((await arrays(this.asked, [name])).get(name));
    const size = shape[1] * shape[2];
    return this.matrix(layer, /** @type {Float32Array} */ (data).subarray(head * size, (head + 1) * size), this.get(layer, head).label);
  }

  /**
   * One row of a head.
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
 * Where the largest number is.
 * @param {Float32Array} numbers
 */
export function largestPlace(numbers) {
  let best = 0;
  for (let place_ = 1; place_ < numbers.length; place_++) if (numbers[place_] > numbers[best]) best = place_;
  return best;
}

/**
 * The place of a piece, counted as rows are now, when they are joined into words or taken apart.
 * @param {Weights} weights
 * @param {"rows" | "columns"} side
 * @param {number} now
 * @param {boolean} isWords what they shall be
 */
export function carried(weights, side, now, isWords) {
  const piece = weights[side].groups[now]?.[0] ?? 0;
  return Math.max(0, sides(weights.trace, weights.kind, isWords)[side === "rows" ? 0 : 1].groups.findIndex((group) => group.includes(piece)));
}
