/** Positions as numbers: a table and the inner products of its rows, from the server or, of rotations, from the config. */

/**
 * @typedef {object} Positions
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
 * @returns {Positions}
 */
export function table(config, tensors) {
  const [values, products] = ["table", "products"].map((name) => /** @type {import("../safetensors.js").Tensor} */ (tensors.get(name)));
  const [length, width] = values.shape;
  const layout = config.positions === "learned" ? "interleaved" : config.position_layout; // neighbours, where there are no pairs
  return {
    kind: config.positions, first: config.position_offset, length, width, base: 10000, pairs: pairs(width, layout),
    values: /** @type {Float32Array} */ (values.data), products: /** @type {Float32Array} */ (products.data),
  };
}

/**
 * Of rotations: cosine and sine of each angle. The product of two such rows is what is left of the product of a query
 * and a key that were equal before they were turned.
 * @param {Record<string, any>} config
 * @param {number} length
 * @returns {Positions}
 */
export function rotations(config, length) {
  const width = config.d_model / config.heads;
  /** @type {Positions} */
  const found = {
    kind: "rotary", first: 0, length, width, base: config.rotary_base, pairs: pairs(width, config.position_layout),
    values: new Float32Array(length * width), products: new Float32Array(length * length),
  };
  const speeds = waves(found);
  for (let row = 0; row < length; row++) {
    found.pairs.forEach(([one, other], pair) => {
      found.values[row * width + one] = Math.cos(row * speeds[pair]);
      found.values[row * width + other] = Math.sin(row * speeds[pair]);
    });
    for (let column = 0; column < length; column++)
      found.products[row * length + column] = speeds.reduce((sum, speed) => sum + Math.cos((row - column) * speed), 0);
  }
  return found;
}

/**
 * How far each pair turns from one position to the next: 1 / base^(2i/d).
 * @param {Positions} found
 */
export function waves(found) {
  return found.pairs.map((_, pair) => found.base ** ((-2 * pair) / found.width));
}

/**
 * As forward.pair_slices.
 * @param {number} width
 * @param {string} layout
 * @returns {[number, number][]}
 */
function pairs(width, layout) {
  return Array.from({ length: width / 2 }, (_, pair) => (layout === "interleaved" ? [2 * pair, 2 * pair + 1] : [pair, pair + width / 2]));
}

/**
 * The least, the mean and the most of the pairs that stand 0, 1, 2 … apart.
 * @param {Float32Array} products
 * @param {number} length
 */
export function byDistance(products, length) {
  return Array.from({ length }, (_, apart) => {
    const values = Array.from({ length: length - apart }, (_, row) => products[row * length + row + apart]);
    return { least: Math.min(...values), mean: values.reduce((sum, value) => sum + value, 0) / values.length, most: Math.max(...values) };
  });
}
