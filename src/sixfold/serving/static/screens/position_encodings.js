/** Positions as numbers: a table and the inner products of its rows, from the server or, of rotations, from the config. */

/**
 * @typedef {object} PositionTable
 * @property {"sinusoidal" | "learned" | "rotary"} kind
 * @property {number} first number of the first position
 * @property {number} length
 * @property {number} width
 * @property {number} base what the slowest wave is told by
 * @property {[number, number][]} pairs dimensions that belong together
 * @property {Float32Array} values length × width
 * @property {Float32Array} products length × length
 */

/**
 * What the server has told.
 * @param {Record<string, any>} config
 * @param {Map<string, import("../safetensors.js").Tensor>} tensors
 * @returns {PositionTable}
 */
export function positionTable(config, tensors) {
  const [values, products] = ["table", "products"].map((name) => /** @type {import("../safetensors.js").Tensor} */ (tensors.get(name)));
  const [length, width] = values.shape;
  const layout = config.positions === "learned" ? "interleaved" : config.position_layout; // neighbours, where there are no pairs
  return {
    kind: config.positions, first: config.position_offset, length, width, base: 10000, pairs: dimensionPairs(width, layout),
    values: /** @type {Float32Array} */ (values.data), products: /** @type {Float32Array} */ (products.data),
  };
}

/**
 * Of rotations: cosine and sine of each angle. The product of two such rows is what is left of the product of a query
 * and a key that were equal before they were turned.
 * @param {Record<string, any>} config
 * @param {number} length
 * @returns {PositionTable}
 */
export function rotaryTable(config, length) {
  const width = config.d_model / config.heads;
  /** @type {PositionTable} */
  const table = {
    kind: "rotary", first: 0, length, width, base: config.rotary_base, pairs: dimensionPairs(width, config.position_layout),
    values: new Float32Array(length * width), products: new Float32Array(length * length),
  };
  const frequencies = frequenciesOf(table);
  for (let row = 0; row < length; row++) {
    table.pairs.forEach(([first, second], pair) => {
      table.values[row * width + first] = Math.cos(row * frequencies[pair]);
      table.values[row * width + second] = Math.sin(row * frequencies[pair]);
    });
    for (let column = 0; column < length; column++)
      table.products[row * length + column] = frequencies.reduce((sum, frequency) => sum + Math.cos((row - column) * frequency), 0);
  }
  return table;
}

/**
 * How far each pair turns from one position to the next: 1 / base^(2i/d).
 * @param {PositionTable} table
 */
export function frequenciesOf(table) {
  return table.pairs.map((_, pair) => table.base ** ((-2 * pair) / table.width));
}

/**
 * As forward.pair_slices.
 * @param {number} width
 * @param {string} layout
 * @returns {[number, number][]}
 */
function dimensionPairs(width, layout) {
  return Array.from({ length: width / 2 }, (_, pair) => (layout === "interleaved" ? [2 * pair, 2 * pair + 1] : [pair, pair + width / 2]));
}

/**
 * The least, the mean and the most of the pairs that stand 0, 1, 2 … apart.
 * @param {Float32Array} products
 * @param {number} length
 */
export function productsByDistance(products, length) {
  return Array.from({ length }, (_, distance) => {
    const values = Array.from({ length: length - distance }, (_, row) => products[row * length + row + distance]);
    return { min: Math.min(...values), mean: values.reduce((sum, value) => sum + value, 0) / values.length, max: Math.max(...values) };
  });
}
