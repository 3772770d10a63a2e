/** All heads of all layers as thumbnails on one canvas; one of them is selected. */

import { announce, h } from "./dom.js";
import { ARROW_STEPS, cellsPerPixel, FONT, renderCells, resizeCanvas } from "./heat_map.js";

const GAP = 6;
const MAX_SIDE = 96; // CSS pixels: side of a thumbnail

/**
 * @typedef {object} HeadGridData
 * @property {number} layers
 * @property {number} heads
 * @property {(layer: number, head: number) => import("./heat_map.js").HeatMapData} get
 * @property {Set<string>} off "layer.head" of heads that are switched off
 * @property {Set<string>} [highlighted] "layer.head" of heads that get a highlighted corner
 * @property {string} label
 * @property {(layer: number, head: number) => string} describe
 */

export class HeadGrid {
  /** @param {(layer: number, head: number) => void} onSelect */
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.canvas = h("canvas", { class: "head-grid", tabindex: 0, role: "application" });
    this.tooltip = h("div", { class: "tooltip", hidden: true });
    this.element = h("div", { class: "canvas-frame" }, this.canvas, this.tooltip);
    /** @type {HeadGridData | null} */
    this.data = null;
    /** @type {HTMLCanvasElement[]} */
    this.images = [];
    /** Everything except the selection. */
    this.unselectedLayer = h("canvas", {});
    this.selected = [0, 0];
    this.side = this.left = this.top = this.width = this.height = 0;
    this.canvas.addEventListener("pointermove", (event) => this.showTooltip(event));
    this.canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (cell) this.select(cell[0], cell[1]);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const step = ARROW_STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      this.select(this.selected[0] + step[0], this.selected[1] + step[1]);
    });
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.redraw()).observe(this.element);
  }

  /**
   * Show data and a selection. Showing the same data again only moves the selection.
   * @param {HeadGridData} data
   * @param {[number, number]} selected layer and head
   */
  show(data, selected) {
    const isSame = this.data === data && this.width > 0;
    this.selected = selected;
    if (isSame) return this.drawSelection();
    this.data = data;
    this.images = [];
    for (let layer = 0; layer < data.layers; layer++)
      for (let head = 0; head < data.heads; head++) {
        const weights = data.get(layer, head);
        this.images.push(renderCells(weights, undefined, cellsPerPixel(weights, MAX_SIDE)));
      }
    this.canvas.setAttribute("aria-label", data.label);
    this.redraw();
  }

  /** Draw everything again, after the data or the width changed. */
  redraw() {
    const data = this.data;
    this.width = this.element.clientWidth;
    if (!data || !this.width) return;
    [this.left, this.top] = [26, 22];
    this.side = Math.max(14, Math.min(MAX_SIDE, Math.floor((this.width - this.left) / data.heads - GAP)));
    this.height = this.top + data.layers * (this.side + GAP);
    const context = resizeCanvas(this.unselectedLayer, this.width, this.height);
    const style = getComputedStyle(this.element);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = style.getPropertyValue("--ink-muted");
    for (let head = 0; head < data.heads; head++) context.fillText(String(head), this.x(head) + this.side / 2, 10);
    for (let layer = 0; layer < data.layers; layer++) context.fillText(String(layer), 10, this.y(layer) + this.side / 2);
    this.images.forEach((image, index) => this.drawThumbnail(context, style, image, Math.floor(index / data.heads), index % data.heads));
    this.drawSelection();
  }

  /** Draw the frame of the selected head over the thumbnails. */
  drawSelection() {
    if (!this.data || !this.unselectedLayer.width) return;
    const context = resizeCanvas(this.canvas, this.width, this.height);
    this.canvas.style.height = `${this.height}px`;
    context.drawImage(this.unselectedLayer, 0, 0, this.width, this.height);
    context.strokeStyle = getComputedStyle(this.element).getPropertyValue("--highlight");
    context.lineWidth = 3;
    context.strokeRect(this.x(this.selected[1]), this.y(this.selected[0]), this.side, this.side);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} style
   * @param {HTMLCanvasElement} image
   * @param {number} layer
   * @param {number} head
   */
  drawThumbnail(context, style, image, layer, head) {
    const [x, y] = [this.x(head), this.y(layer)];
    const isOff = this.data?.off.has(`${layer}.${head}`);
    context.imageSmoothingEnabled = image.width > this.side;
    context.fillStyle = style.getPropertyValue("--masked");
    context.fillRect(x, y, this.side, this.side);
    context.globalAlpha = isOff ? 0.25 : 1;
    context.drawImage(image, x, y, this.side, this.side);
    context.globalAlpha = 1;
    context.strokeStyle = style.getPropertyValue("--line");
    context.lineWidth = 1;
    context.strokeRect(x, y, this.side, this.side);
    if (this.data?.highlighted?.has(`${layer}.${head}`)) this.drawCorner(context, style, x, y);
    if (!isOff) return;
    context.strokeStyle = style.getPropertyValue("--ink-muted");
    context.beginPath();
    context.moveTo(x, y + this.side);
    context.lineTo(x + this.side, y);
    context.stroke();
  }

  /**
   * Draw the triangle in the corner of a highlighted head.
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} style
   * @param {number} x
   * @param {number} y
   */
  drawCorner(context, style, x, y) {
    const size = Math.max(8, this.side / 4);
    context.fillStyle = style.getPropertyValue("--accent");
    context.beginPath();
    context.moveTo(x + this.side - size, y);
    context.lineTo(x + this.side, y);
    context.lineTo(x + this.side, y + size);
    context.fill();
  }

  /** @param {number} head */
  x(head) {
    return this.left + head * (this.side + GAP);
  }

  /** @param {number} layer */
  y(layer) {
    return this.top + layer * (this.side + GAP);
  }

  /**
   * Return the layer and head under the pointer.
   * @param {MouseEvent} event
   * @returns {[number, number] | null}
   */
  cellAt(event) {
    if (!this.data) return null;
    const layer = Math.floor((event.offsetY - this.top) / (this.side + GAP));
    const head = Math.floor((event.offsetX - this.left) / (this.side + GAP));
    return layer >= 0 && head >= 0 && layer < this.data.layers && head < this.data.heads ? [layer, head] : null;
  }

  /** @param {PointerEvent} event */
  showTooltip(event) {
    const cell = this.cellAt(event);
    this.tooltip.hidden = !cell;
    if (!cell || !this.data) return;
    this.tooltip.textContent = this.data.describe(cell[0], cell[1]);
    this.tooltip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.width - this.tooltip.offsetWidth))}px`;
    this.tooltip.style.top = `${event.offsetY + 16}px`;
  }

  /**
   * @param {number} layer
   * @param {number} head
   */
  select(layer, head) {
    if (!this.data) return;
    const clamp = (/** @type {number} */ value, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, value));
    this.selected = [clamp(layer, this.data.layers), clamp(head, this.data.heads)];
    this.drawSelection();
    announce(this.data.describe(this.selected[0], this.selected[1]));
    this.onSelect(this.selected[0], this.selected[1]);
  }
}
