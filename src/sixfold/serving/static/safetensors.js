/** Reader of the safetensors format: a JSON header with names, types and offsets, then the data. */

/** @typedef {{shape: number[], data: Float32Array | Uint8Array}} Tensor */

/**
 * Parse a file. 16-bit floats become 32-bit floats; bytes stay bytes.
 * @param {ArrayBuffer} buffer
 * @returns {Map<string, Tensor>}
 */
export function parseSafetensors(buffer) {
  const headerSize = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, headerSize)));
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const bytes = buffer.slice(8 + headerSize + offsets[0], 8 + headerSize + offsets[1]);
    tensors.set(name, { shape, data: READERS[dtype](bytes) });
  }
  return tensors;
}

/** @type {Record<string, (bytes: ArrayBuffer) => Float32Array | Uint8Array>} */
const READERS = {
  F32: (bytes) => new Float32Array(bytes),
  F16: (bytes) => float16ToFloat32(new Uint16Array(bytes)),
  U8: (bytes) => new Uint8Array(bytes),
  BOOL: (bytes) => new Uint8Array(bytes),
};

/** @type {Float32Array | null} */
let float16Table = null;

/**
 * Convert 16-bit floats through a table of all 65,536 values, made on first use.
 * @param {Uint16Array} bits
 */
function float16ToFloat32(bits) {
  if (!float16Table) {
    float16Table = new Float32Array(65536);
    for (let value = 0; value < 65536; value++) float16Table[value] = decodeFloat16(value);
  }
  const numbers = new Float32Array(bits.length);
  for (let index = 0; index < bits.length; index++) numbers[index] = float16Table[bits[index]];
  return numbers;
}

/** @param {number} bits */
function decodeFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Return whether a mask, stored as packed bits, allows attention from this row to this column.
 * @param {Tensor} mask
 * @param {number} row
 * @param {number} column
 */
export function maskAllows(mask, row, column) {
  const width = mask.shape[mask.shape.length - 1];
  const rows = mask.shape[mask.shape.length - 2];
  const byte = mask.data[(rows === 1 ? 0 : row) * width + (column >> 3)];
  return ((byte >> (7 - (column & 7))) & 1) === 1;
}
