/** A matrix of numbers on a canvas: drawn once, so that a million cells can be walked through without a pause. */

import { announce, h } from "./dom.js";
import { breadth, cut, number } from "./page_text.js";
import { css, sequence, signed } from "./theme_colours.js";

/**
 * @typedef {object} MatrixData
 * @property {string[]} rows labels
 * @property {string[]} columns
 * @property {Float32Array} values row by row
 * @property {(row: number, column: number) => boolean} [isOpen] false: masked, drawn as nothing
 * @property {boolean} [isSigned] colours go from the least to the most, with nothing in the middle
 * @property {number} [most] what the darkest colour stands for; none: the largest number
 * @property {string} label what a listener is told that this is
 */

const LETTER = 7; // width of one in a label, about
const SLANT = -Math.PI / 3; // of the columns' labels
export const FONT = '12px ui-sans-serif, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

/**
 * A canvas as sharp as the screen is, of a size in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  return context;
}

/** A matrix that can be pointed at, clicked and walked with the arrow keys. */
export class Matrix {
  /** @param {{onSelect?: (row: number, column: number) => void, size?: number, square?: boolean}} [options] `size`: widest cell */
  constructor(options = {}) {
    this.options = options;
    this.canvas = h("canvas", { class: "matrix", tabindex: 0, role: "application" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", { class: "matrix-frame" }, this.canvas, this.tip);
    /** @type {MatrixData | null} */
    this.data = null;
    /** All but the selection. */
    this.base = h("canvas", {});
    this.selected = [0, 0];
    this.left = this.top = this.width = this.height = 0;
    this.cell = [1, 1];
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const at = this.at(event);
      if (at) this.select(at[0], at[1]);
    });
    this.canvas.addEventListener("keydown", (event) => this.walk(event));
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.paint()).observe(this.element);
  }

  /**
   * The same data again only moves the selection.
   * @param {MatrixData} data
   * @param {[number, number]} [selected]
   */
  show(data, selected) {
    const isSame = this.data === data && this.width > 0;
    this.data = data;
    this.selected = selected ?? [0, 0];
    if (isSame) return this.draw();
    this.canvas.setAttribute("aria-label", data.label);
    this.paint();
  }

  /** Everything, after the numbers or the width have changed. */
  paint() {
    const data = this.data;
    this.width = this.element.clientWidth;
    if (!data || !this.width) return;
    this.measure(data);
    const [across, down] = [data.columns.length * this.cell[0], data.rows.length * this.cell[1]];
    const context = sized(this.base, this.width, this.height);
    const look = getComputedStyle(this.element);
    const pool = Math.min(...this.cell) >= 1 ? 1 : pooling(data, Math.max(across, down) * (window.devicePixelRatio || 1));
    const image = raster(data, undefined, pool);
    context.imageSmoothingEnabled = false;
    context.fillStyle = look.getPropertyValue("--masked");
    context.fillRect(this.left, this.top, across, down);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, across, down);
    context.clip();
    context.drawImage(image, this.left, this.top, image.width * pool * this.cell[0], image.height * pool * this.cell[1]);
    context.restore();
    this.write(context, look.getPropertyValue("--ink-2"));
    this.draw();
  }

  /** @param {MatrixData} data */
  measure(data) {
    const [rows, columns] = [data.rows.length, data.columns.length];
    const longest = (/** @type {string[]} */ words) => Math.max(...words.map(breadth), 1);
    this.left = Math.round(Math.min(this.width * 0.35, LETTER * longest(data.rows) + 14));
    this.top = Math.round(Math.min(150, LETTER * longest(data.columns) * 0.8 + 16));
    const last = Math.min(this.width / 8, 0.5 * LETTER * breadth(data.columns[columns - 1] ?? "")); // it leans over the edge
    const side = Math.min(this.options.size ?? 34, (this.width - this.left - 8 - last) / columns);
    this.cell = [side, rows * side > 900 && side > 8 ? Math.max(8, 900 / rows) : side];
    this.height = Math.ceil(this.top + rows * this.cell[1] + 8);
    Object.assign(this.canvas.dataset, { left: this.left, top: this.top, across: this.cell[0], down: this.cell[1] });
  }

  /** What is selected, over the rest. */
  draw() {
    const data = this.data;
    if (!data || !this.base.width) return;
    const context = sized(this.canvas, this.width, this.height);
    this.canvas.style.height = `${this.height}px`;
    context.drawImage(this.base, 0, 0, this.width, this.height);
    const look = getComputedStyle(this.element);
    const [[row, column], [across, down]] = [this.selected, this.cell];
    if (row >= data.rows.length || column >= data.columns.length) return;
    context.strokeStyle = look.getPropertyValue("--accent-2");
    context.lineWidth = 1;
    context.strokeRect(this.left - 0.5, this.top + row * down - 0.5, data.columns.length * across + 1, down + 1);
    context.lineWidth = 2;
    context.strokeRect(this.left + column * across, this.top + row * down, Math.max(2, across), Math.max(2, down));
    const colours = [look.getPropertyValue("--accent-soft"), look.getPropertyValue("--accent-ink")];
    this.writeRow(context, row, colours);
    this.writeColumn(context, column, colours);
  }

  /**
   * The labels; where cells are narrow, only some.
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  write(context, colour) {
    const data = /** @type {MatrixData} */ (this.data);
    const every = (/** @type {number} */ side) => Math.ceil(13 / side);
    for (let row = 0; row < data.rows.length; row += every(this.cell[1])) this.writeRow(context, row, ["", colour]);
    for (let column = 0; column < data.columns.length; column += every(this.cell[0])) this.writeColumn(context, column, ["", colour]);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   * @param {string[]} colours behind it, where there is one, and its own
   */
  writeRow(context, row, [behind, colour]) {
    const data = /** @type {MatrixData} */ (this.data);
    const text = cut(data.rows[row], (this.left - 12) / LETTER);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const y = this.top + (row + 0.5) * this.cell[1];
    if (behind) backed(context, behind, this.left - 10 - context.measureText(text).width, y - 9, this.left - 2);
    context.fillStyle = colour;
    context.fillText(text, this.left - 6, y);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} column
   * @param {string[]} colours
   */
  writeColumn(context, column, [behind, colour]) {
    const data = /** @type {MatrixData} */ (this.data);
    const text = cut(data.columns[column], this.top / 0.8 / LETTER);
    context.save();
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.translate(this.left + (column + 0.5) * this.cell[0], this.top - 8);
    context.rotate(SLANT);
    if (behind) backed(context, behind, -4, -9, context.measureText(text).width + 4);
    context.fillStyle = colour;
    context.fillText(text, 0, 0);
    context.restore();
  }

  /**
   * The cell under the pointer.
   * @param {MouseEvent} event
   * @returns {[number, number] | null}
   */
  at(event) {
    if (!this.data) return null;
    const column = Math.floor((event.offsetX - this.left) / this.cell[0]);
    const row = Math.floor((event.offsetY - this.top) / this.cell[1]);
    const is = row >= 0 && column >= 0 && row < this.data.rows.length && column < this.data.columns.length;
    return is ? [row, column] : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    const at = this.at(event);
    this.tip.hidden = !at;
    if (!at) return;
    this.tip.textContent = this.describe(at[0], at[1]);
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  describe(row, column) {
    const data = /** @type {MatrixData} */ (this.data);
    const value = data.values[row * data.columns.length + column];
    const open = !data.isOpen || data.isOpen(row, column);
    return `${data.rows[row]} · ${data.columns[column]}: ${open ? number(value) : "0 (mask)"}`;
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  select(row, column) {
    this.selected = [row, column];
    this.draw();
    announce(this.describe(row, column));
    this.options.onSelect?.(row, column);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const step = STEPS[event.key];
    if (!step || !this.data) return;
    event.preventDefault();
    const last = [this.data.rows.length - 1, this.data.columns.length - 1];
    const [row, column] = [0, 1].map((axis) => Math.max(0, Math.min(last[axis], this.selected[axis] + step[axis])));
    this.select(row, column);
  }
}

/**
 * A rounded ground behind a label.
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {number} left
 * @param {number} top
 * @param {number} right
 */
function backed(context, colour, left, top, right) {
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(left, top, right - left, 18, 4);
  context.fill();
}

/** @type {Record<string, [number, number]>} */
export const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e9], End: [0, 1e9] };

// --- Numbers as an image: one pixel a cell, or one for several cells where they are too many to be seen.

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
 * @param {import("./theme_colours.js").Rgb[]} colours
 */
function palette(colours) {
  return new Uint32Array(new Uint8ClampedArray(colours.flatMap((colour) => [...colour, 255])).buffer);
}

/** @param {number} part from 0 to 1 */
export function shade(part) {
  return css(sequence()[Math.round(Math.min(1, Math.max(0, part)) * 255)]);
}
