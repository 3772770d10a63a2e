/** Tables of position encodings and the inner products of their rows: from the server, or computed from the config for rotary positions. */

/**
 * @typedef {object} PositionTable
 * @property {"sinusoidal" | "learned" | "rotary"} kind
 * @property {Record<string, any>} [scaling] the config of a model with rotary positions, which says how angles are scaled
 * @property {number} first number of the first position
 * @property {number} length
 * @property {number} width
 * @property {number} base base of the wavelengths
 * @property {number} steps the exponent of pair i is i / steps
 * @property {[number, number][]} pairs pairs of dimensions with the same frequency
 * @property {Float32Array} values length × width
 * @property {Float32Array} products length × length
 */

/**
 * Return the table that the server sent.
 * @param {Record<string, any>} config
 * @param {Map<string, import("../safetensors.js").Tensor>} tensors
 * @returns {PositionTable}
 */
export function positionTable(config, tensors) {
  const [values, products] = ["table", "products"].map((name) => /** @type {import("../safetensors.js").Tensor} */ (tensors.get(name)));
  const [length, width] = values.shape;
  const layout = config.positions === "learned" ? "interleaved" : config.position_layout; // learned positions have no pairs: show neighbouring dimensions
  return {
    kind: config.positions, first: config.position_offset, length, width, base: 10000, steps: exponentSteps(config, width), pairs: dimensionPairs(width, layout),
    values: /** @type {Float32Array} */ (values.data), products: /** @type {Float32Array} */ (products.data),
  };
}

/**
 * Return the cosine and sine of each rotation angle. The product of two rows is the factor by which rotation changes the
 * product of a query and an equal key.
 * @param {Record<string, any>} config
 * @param {number} length
 * @returns {PositionTable}
 */
export function rotaryTable(config, length) {
  const width = config.head_width || config.d_model / config.heads;
  /** @type {PositionTable} */
  const table = {
    kind: "rotary", first: 0, length, width, base: config.rotary_base, steps: width / 2, pairs: dimensionPairs(width, config.position_layout), scaling: config,
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
 * Return the angle between neighbouring positions for each pair: 1 / base^(2i/d), or with closed spacing 1 / base^(i/(d/2 - 1)).
 * @param {PositionTable} table
 */
export function frequenciesOf(table) {
  return table.pairs.map((_, pair) => {
    const frequency = table.base ** (-pair / table.steps);
    return frequency * rotaryFactor(table.scaling, frequency);
  });
}

/**
 * Return by what a rotary angle is multiplied, as `rotary_angles` in explorer/forward.py does.
 * @param {Record<string, any> | undefined} config
 * @param {number} frequency
 */
function rotaryFactor(config, frequency) {
  if (!config || config.rotary_scaling === "none") return 1;
  if (config.rotary_scaling === "linear") return 1 / config.rotary_factor;
  const turns = config.rotary_original_length * frequency / (2 * Math.PI);
  const share = Math.min(1, Math.max(0, (turns - config.rotary_low) / (config.rotary_high - config.rotary_low)));
  return share + (1 - share) / config.rotary_factor;
}

/**
 * Return by what the number of a pair is divided in the exponent of its wavelength.
 * @param {Record<string, any>} config
 * @param {number} width
 */
export function exponentSteps(config, width) {
  return config.position_spacing === "closed" ? Math.max(1, width / 2 - 1) : width / 2;
}

/**
 * Return the paired dimensions, as `pair_slices` in explorer/forward.py does.
 * @param {number} width
 * @param {string} layout
 * @returns {[number, number][]}
 */
function dimensionPairs(width, layout) {
  return Array.from({ length: width / 2 }, (_, pair) => (layout === "interleaved" ? [2 * pair, 2 * pair + 1] : [pair, pair + width / 2]));
}

/**
 * Return minimum, mean and maximum of the products of positions at distance 0, 1, 2, …
 * @param {Float32Array} products
 * @param {number} length
 */
export function productsByDistance(products, length) {
  return Array.from({ length }, (_, distance) => {
    const values = Array.from({ length: length - distance }, (_, row) => products[row * length + row + distance]);
    return { min: Math.min(...values), mean: values.reduce((sum, value) => sum + value, 0) / values.length, max: Math.max(...values) };
  });
}
