/** Heat map of a matrix on a canvas. Cells are drawn once, so that moving the selection stays fast with a million cells. */

import { announce, h } from "./dom.js";
import { formatNumber, textWidth, truncate } from "./page_text.js";
import { cssColour, divergingScale, sequentialScale } from "./theme_colours.js";

/**
 * @typedef {object} HeatMapData
 * @property {string[]} rows row labels
 * @property {string[]} columns column labels
 * @property {Float32Array} values row by row
 * @property {(row: number, column: number) => boolean} [isUnmasked] false: masked, shown as background
 * @property {boolean} [isSigned] use the diverging colour scale, with zero in the middle
 * @property {number} [max] value of the strongest colour; default: the largest magnitude
 * @property {string} label description for screen readers
 */

const LETTER_WIDTH = 7; // CSS pixels, approximate width of a letter in a label
const LABEL_ANGLE = -Math.PI / 3; // of column labels
export const FONT = '12px ui-sans-serif, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

/**
 * Resize a canvas to a size in CSS pixels at the resolution of the screen, and return its context.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function resizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  return context;
}

/** A heat map with tooltips, whose cells are selected by click or arrow keys. */
export class HeatMap {
  /** @param {{onSelect?: (row: number, column: number) => void, size?: number, square?: boolean}} [options] `size`: largest cell side in CSS pixels */
  constructor(options = {}) {
    this.options = options;
    this.canvas = h("canvas", { class: "heat-map", tabindex: 0, role: "application" });
    this.tooltip = h("div", { class: "tooltip", hidden: true });
    this.element = h("div", { class: "canvas-frame" }, this.canvas, this.tooltip);
    /** @type {HeatMapData | null} */
    this.data = null;
    /** Everything except the selection. */
    this.unselectedLayer = h("canvas", {});
    this.selected = [0, 0];
    this.left = this.top = this.width = this.height = 0;
    this.cell = [1, 1];
    this.canvas.addEventListener("pointermove", (event) => this.showTooltip(event));
    this.canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (cell) this.select(cell[0], cell[1]);
    });
    this.canvas.addEventListener("keydown", (event) => this.moveSelection(event));
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.redraw()).observe(this.element);
  }

  /**
   * Show data and a selection. Showing the same data again only moves the selection.
   * @param {HeatMapData} data
   * @param {[number, number]} [selected]
   */
  show(data, selected) {
    const isSame = this.data === data && this.width > 0;
    this.data = data;
    this.selected = selected ?? [0, 0];
    if (isSame) return this.drawSelection();
    this.canvas.setAttribute("aria-label", data.label);
    this.redraw();
  }

  /** Draw everything again, after the data or the width changed. */
  redraw() {
    const data = this.data;
    this.width = this.element.clientWidth;
    if (!data || !this.width) return;
    this.computeLayout(data);
    const [width, height] = [data.columns.length * this.cell[0], data.rows.length * this.cell[1]];
    const context = resizeCanvas(this.unselectedLayer, this.width, this.height);
    const style = getComputedStyle(this.element);
    const cellsPerImagePixel = Math.min(...this.cell) >= 1 ? 1 : cellsPerPixel(data, Math.max(width, height) * (window.devicePixelRatio || 1));
    const image = renderCells(data, undefined, cellsPerImagePixel);
    context.imageSmoothingEnabled = false;
    context.fillStyle = style.getPropertyValue("--masked");
    context.fillRect(this.left, this.top, width, height);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, width, height);
    context.clip();
    context.drawImage(image, this.left, this.top, image.width * cellsPerImagePixel * this.cell[0], image.height * cellsPerImagePixel * this.cell[1]);
    context.restore();
    this.drawLabels(context, style.getPropertyValue("--ink-muted"));
    this.drawSelection();
  }

  /** @param {HeatMapData} data */
  computeLayout(data) {
    const [rows, columns] = [data.rows.length, data.columns.length];
    const maxWidth = (/** @type {string[]} */ labels) => Math.max(...labels.map(textWidth), 1);
    this.left = Math.round(Math.min(this.width * 0.35, LETTER_WIDTH * maxWidth(data.rows) + 14));
    this.top = Math.round(Math.min(150, LETTER_WIDTH * maxWidth(data.columns) * 0.8 + 16));
    const overhang = Math.min(this.width / 8, 0.5 * LETTER_WIDTH * textWidth(data.columns[columns - 1] ?? "")); // slanted labels extend past the last column
    const cellSize = Math.min(this.options.size ?? 34, (this.width - this.left - 8 - overhang) / columns);
    this.cell = [cellSize, rows * cellSize > 900 && cellSize > 8 ? Math.max(8, 900 / rows) : cellSize];
    this.height = Math.ceil(this.top + rows * this.cell[1] + 8);
    Object.assign(this.canvas.dataset, { left: this.left, top: this.top, across: this.cell[0], down: this.cell[1] });
  }

  /** Draw the selected row, cell and labels over the heat map. */
  drawSelection() {
    const data = this.data;
    if (!data || !this.unselectedLayer.width) return;
    const context = resizeCanvas(this.canvas, this.width, this.height);
    this.canvas.style.height = `${this.height}px`;
    context.drawImage(this.unselectedLayer, 0, 0, this.width, this.height);
    const style = getComputedStyle(this.element);
    const [[row, column], [across, down]] = [this.selected, this.cell];
    if (row >= data.rows.length || column >= data.columns.length) return;
    context.strokeStyle = style.getPropertyValue("--highlight");
    context.lineWidth = 1;
    context.strokeRect(this.left - 0.5, this.top + row * down - 0.5, data.columns.length * across + 1, down + 1);
    context.lineWidth = 2;
    context.strokeRect(this.left + column * across, this.top + row * down, Math.max(2, across), Math.max(2, down));
    const colours = [style.getPropertyValue("--accent-soft"), style.getPropertyValue("--accent-ink")];
    this.drawRowLabel(context, row, colours);
    this.drawColumnLabel(context, column, colours);
  }

  /**
   * Draw the labels, skipping some where cells are narrow.
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  drawLabels(context, colour) {
    const data = /** @type {HeatMapData} */ (this.data);
    const labelStep = (/** @type {number} */ cellSize) => Math.ceil(13 / cellSize);
    for (let row = 0; row < data.rows.length; row += labelStep(this.cell[1])) this.drawRowLabel(context, row, ["", colour]);
    for (let column = 0; column < data.columns.length; column += labelStep(this.cell[0])) this.drawColumnLabel(context, column, ["", colour]);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   * @param {string[]} colours background ("" for none) and text
   */
  drawRowLabel(context, row, [background, colour]) {
    const data = /** @type {HeatMapData} */ (this.data);
    const text = truncate(data.rows[row], (this.left - 12) / LETTER_WIDTH);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const y = this.top + (row + 0.5) * this.cell[1];
    if (background) fillLabelBackground(context, background, this.left - 10 - context.measureText(text).width, y - 9, this.left - 2);
    context.fillStyle = colour;
    context.fillText(text, this.left - 6, y);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} column
   * @param {string[]} colours
   */
  drawColumnLabel(context, column, [background, colour]) {
    const data = /** @type {HeatMapData} */ (this.data);
    const text = truncate(data.columns[column], this.top / 0.8 / LETTER_WIDTH);
    context.save();
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.translate(this.left + (column + 0.5) * this.cell[0], this.top - 8);
    context.rotate(LABEL_ANGLE);
    if (background) fillLabelBackground(context, background, -4, -9, context.measureText(text).width + 4);
    context.fillStyle = colour;
    context.fillText(text, 0, 0);
    context.restore();
  }

  /**
   * Return row and column of the cell under the pointer.
   * @param {MouseEvent} event
   * @returns {[number, number] | null}
   */
  cellAt(event) {
    if (!this.data) return null;
    const column = Math.floor((event.offsetX - this.left) / this.cell[0]);
    const row = Math.floor((event.offsetY - this.top) / this.cell[1]);
    const isInside = row >= 0 && column >= 0 && row < this.data.rows.length && column < this.data.columns.length;
    return isInside ? [row, column] : null;
  }

  /** @param {PointerEvent} event */
  showTooltip(event) {
    const cell = this.cellAt(event);
    this.tooltip.hidden = !cell;
    if (!cell) return;
    this.tooltip.textContent = this.describe(cell[0], cell[1]);
    this.tooltip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.width - this.tooltip.offsetWidth))}px`;
    this.tooltip.style.top = `${event.offsetY + 16}px`;
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  describe(row, column) {
    const data = /** @type {HeatMapData} */ (this.data);
    const value = data.values[row * data.columns.length + column];
    const isUnmasked = !data.isUnmasked || data.isUnmasked(row, column);
    return `${data.rows[row]} · ${data.columns[column]}: ${isUnmasked ? formatNumber(value) : "0 (mask)"}`;
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  select(row, column) {
    this.selected = [row, column];
    this.drawSelection();
    announce(this.describe(row, column));
    this.options.onSelect?.(row, column);
  }

  /** @param {KeyboardEvent} event */
  moveSelection(event) {
    const step = ARROW_STEPS[event.key];
    if (!step || !this.data) return;
    event.preventDefault();
    const last = [this.data.rows.length - 1, this.data.columns.length - 1];
    const [row, column] = [0, 1].map((axis) => Math.max(0, Math.min(last[axis], this.selected[axis] + step[axis])));
    this.select(row, column);
  }
}

/**
 * Fill a rounded background behind a label.
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {number} left
 * @param {number} top
 * @param {number} right
 */
function fillLabelBackground(context, colour, left, top, right) {
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(left, top, right - left, 18, 4);
  context.fill();
}

/** @type {Record<string, [number, number]>} */
export const ARROW_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e9], End: [0, 1e9] };

// --- cells as an image: one pixel per cell, or per block of cells ---------------------------------------------------

/** @param {HeatMapData} data */
export function maxMagnitude(data) {
  if (data.max) return data.max;
  let max = 0;
  for (const value of data.values) if (Number.isFinite(value)) max = Math.max(max, Math.abs(value));
  return max || 1;
}

/**
 * Return how many cells, in each direction, share a pixel so that no side has more than `maxPixels` pixels.
 * @param {HeatMapData} data
 * @param {number} maxPixels
 */
export function cellsPerPixel(data, maxPixels) {
  return Math.max(1, Math.ceil(Math.max(data.rows.length, data.columns.length) / maxPixels));
}

/**
 * Render the cells as an image. Cells that share a pixel show the largest magnitude: with a mean, thin lines would fade.
 * @param {HeatMapData} data
 * @param {"light" | "dark"} [theme]
 * @param {number} [cellsPerImagePixel] cells in each direction that share a pixel
 */
export function renderCells(data, theme, cellsPerImagePixel = 1) {
  const [height, width] = [data.rows.length, data.columns.length];
  const size = [Math.max(1, Math.ceil(width / cellsPerImagePixel)), Math.max(1, Math.ceil(height / cellsPerImagePixel))];
  const canvas = h("canvas", { width: size[0], height: size[1] });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(size[0], size[1]);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = packColours(data.isSigned ? divergingScale(theme) : sequentialScale(theme));
  const [scale, zero] = data.isSigned ? [127.5 / maxMagnitude(data), 127.5] : [255 / maxMagnitude(data), 0];
  const { values, isUnmasked } = data;
  const largestValues = cellsPerImagePixel === 1 ? null : new Float32Array(pixels.length).fill(NaN);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const value = values[row * width + column];
      if ((isUnmasked && !isUnmasked(row, column)) || !Number.isFinite(value)) continue;
      let pixel = row * width + column;
      if (largestValues) {
        pixel = Math.floor(row / cellsPerImagePixel) * size[0] + Math.floor(column / cellsPerImagePixel);
        if (Math.abs(largestValues[pixel]) >= Math.abs(value)) continue;
        largestValues[pixel] = value;
      }
      pixels[pixel] = colours[Math.max(0, Math.min(255, Math.round(zero + scale * value)))];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Pack colours into the bytes of RGBA pixels.
 * @param {import("./theme_colours.js").Rgb[]} colours
 */
function packColours(colours) {
  return new Uint32Array(new Uint8ClampedArray(colours.flatMap((colour) => [...colour, 255])).buffer);
}

/** @param {number} fraction from 0 to 1 */
export function sequentialColour(fraction) {
  return cssColour(sequentialScale()[Math.round(Math.min(1, Math.max(0, fraction)) * 255)]);
}
