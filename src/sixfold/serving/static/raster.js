/** Numbers as an image: one pixel a cell, or one for several cells where they are too many to be seen. */

import { css, sequence, signed } from "./colour.js";
import { h } from "./dom.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */

/** @param {MatrixData} data */
export function largest(data) {
  if (data.most) return data.most;
  let most = 0;
  for (const value of data.values) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most || 1;
}

/**
 * How many cells share a pixel, along and across, so that neither side has more than `most` pixels.
 * @param {MatrixData} data
 * @param {number} most
 */
export function pooling(data, most) {
  return Math.max(1, Math.ceil(Math.max(data.rows.length, data.columns.length) / most));
}

/**
 * Its cells as an image; of cells that share a pixel the largest number is shown, as a thin line would fade in a mean.
 * @param {MatrixData} data
 * @param {"light" | "dark"} [theme]
 * @param {number} [pool] cells along and across that share a pixel
 */
export function raster(data, theme, pool = 1) {
  const [height, width] = [data.rows.length, data.columns.length];
  const size = [Math.max(1, Math.ceil(width / pool)), Math.max(1, Math.ceil(height / pool))];
  const canvas = h("canvas", { width: size[0], height: size[1] });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(size[0], size[1]);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = palette(data.isSigned ? signed(theme) : sequence(theme));
  const [scale, zero] = data.isSigned ? [127.5 / largest(data), 127.5] : [255 / largest(data), 0];
  const { values, isOpen } = data;
  const shown = pool === 1 ? null : new Float32Array(pixels.length).fill(NaN);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const value = values[row * width + column];
      if ((isOpen && !isOpen(row, column)) || !Number.isFinite(value)) continue;
      let place = row * width + column;
      if (shown) {
        place = Math.floor(row / pool) * size[0] + Math.floor(column / pool);
        if (Math.abs(shown[place]) >= Math.abs(value)) continue;
        shown[place] = value;
      }
      pixels[place] = colours[Math.max(0, Math.min(255, Math.round(zero + scale * value)))];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Colours as the bytes of a pixel.
 * @param {import("./colour.js").Rgb[]} colours
 */
function palette(colours) {
  return new Uint32Array(new Uint8ClampedArray(colours.flatMap((colour) => [...colour, 255])).buffer);
}

/** @param {number} part from 0 to 1 */
export function shade(part) {
  return css(sequence()[Math.round(Math.min(1, Math.max(0, part)) * 255)]);
}
