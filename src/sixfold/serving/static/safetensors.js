/** The safetensors format: a header of names, types and places, then the numbers. */

/** @typedef {{shape: number[], data: Float32Array | Uint8Array}} Tensor */

/**
 * Numbers of 16 bits become 32; bytes stay.
 * @param {ArrayBuffer} buffer
 * @returns {Map<string, Tensor>}
 */
export function parse(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const found = new Map();
  for (const [name, { dtype, shape, data_offsets: ends }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const part = buffer.slice(8 + size + ends[0], 8 + size + ends[1]);
    found.set(name, { shape, data: KINDS[dtype](part) });
  }
  return found;
}

/** @type {Record<string, (part: ArrayBuffer) => Float32Array | Uint8Array>} */
const KINDS = {
  F32: (part) => new Float32Array(part),
  F16: (part) => widened(new Uint16Array(part)),
  U8: (part) => new Uint8Array(part),
  BOOL: (part) => new Uint8Array(part),
};

/** @type {Float32Array | null} */
let halves = null;

/**
 * By a table of all numbers that 16 bits can be, which is made once.
 * @param {Uint16Array} bits
 */
function widened(bits) {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let each = 0; each < 65536; each++) halves[each] = half(each);
  }
  const numbers = new Float32Array(bits.length);
  for (let place = 0; place < bits.length; place++) numbers[place] = halves[bits[place]];
  return numbers;
}

/** @param {number} bits */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Of packed bits: whether the cell may be looked at.
 * @param {Tensor} mask
 * @param {number} row
 * @param {number} column
 */
export function isOpen(mask, row, column) {
  const width = mask.shape[mask.shape.length - 1];
  const rows = mask.shape[mask.shape.length - 2];
  const byte = mask.data[(rows === 1 ? 0 : row) * width + (column >> 3)];
  return ((byte >> (7 - (column & 7))) & 1) === 1;
}
