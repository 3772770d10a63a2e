/** All heads of all layers as small pictures on one canvas; one of them is chosen. */

import { announce, h } from "./dom.js";
import { FONT, pooling, raster, sized, STEPS } from "./heat_map.js";

const GAP = 6;
const LARGEST = 96; // side of a picture, which has at most as many pixels

/**
 * @typedef {object} GridData
 * @property {number} layers
 * @property {number} heads
 * @property {(layer: number, head: number) => import("./heat_map.js").MatrixData} get
 * @property {Set<string>} off "layer.head" of those that are switched off
 * @property {Set<string>} [marked] "layer.head" of those that are pointed out
 * @property {string} label
 * @property {(layer: number, head: number) => string} describe
 */

export class HeadGrid {
  /** @param {(layer: number, head: number) => void} onSelect */
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.canvas = h("canvas", { class: "heads", tabindex: 0, role: "application" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", { class: "matrix-frame" }, this.canvas, this.tip);
    /** @type {GridData | null} */
    this.data = null;
    /** @type {HTMLCanvasElement[]} */
    this.images = [];
    /** All but the choice. */
    this.base = h("canvas", {});
    this.selected = [0, 0];
    this.side = this.left = this.top = this.width = this.height = 0;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const at = this.at(event);
      if (at) this.choose(at[0], at[1]);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      this.choose(this.selected[0] + step[0], this.selected[1] + step[1]);
    });
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.paint()).observe(this.element);
  }

  /**
   * The same data again only moves the choice.
   * @param {GridData} data
   * @param {[number, number]} selected layer and head
   */
  show(data, selected) {
    const isSame = this.data === data && this.width > 0;
    this.selected = selected;
    if (isSame) return this.draw();
    this.data = data;
    this.images = [];
    for (let layer = 0; layer < data.layers; layer++)
      for (let head = 0; head < data.heads; head++) {
        const its = data.get(layer, head);
        this.images.push(raster(its, undefined, pooling(its, LARGEST)));
      }
    this.canvas.setAttribute("aria-label", data.label);
    this.paint();
  }

  /** Everything, after the numbers or the width have changed. */
  paint() {
    const data = this.data;
    this.width = this.element.clientWidth;
    if (!data || !this.width) return;
    [this.left, this.top] = [26, 22];
    this.side = Math.max(14, Math.min(LARGEST, Math.floor((this.width - this.left) / data.heads - GAP)));
    this.height = this.top + data.layers * (this.side + GAP);
    const context = sized(this.base, this.width, this.height);
    const look = getComputedStyle(this.element);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = look.getPropertyValue("--ink-2");
    for (let head = 0; head < data.heads; head++) context.fillText(String(head), this.x(head) + this.side / 2, 10);
    for (let layer = 0; layer < data.layers; layer++) context.fillText(String(layer), 10, this.y(layer) + this.side / 2);
    this.images.forEach((image, place) => this.picture(context, look, image, Math.floor(place / data.heads), place % data.heads));
    this.draw();
  }

  /** Which one is chosen, over the rest. */
  draw() {
    if (!this.data || !this.base.width) return;
    const context = sized(this.canvas, this.width, this.height);
    this.canvas.style.height = `${this.height}px`;
    context.drawImage(this.base, 0, 0, this.width, this.height);
    context.strokeStyle = getComputedStyle(this.element).getPropertyValue("--accent-2");
    context.lineWidth = 3;
    context.strokeRect(this.x(this.selected[1]), this.y(this.selected[0]), this.side, this.side);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} look
   * @param {HTMLCanvasElement} image
   * @param {number} layer
   * @param {number} head
   */
  picture(context, look, image, layer, head) {
    const [x, y] = [this.x(head), this.y(layer)];
    const isOff = this.data?.off.has(`${layer}.${head}`);
    context.imageSmoothingEnabled = image.width > this.side;
    context.fillStyle = look.getPropertyValue("--masked");
    context.fillRect(x, y, this.side, this.side);
    context.globalAlpha = isOff ? 0.25 : 1;
    context.drawImage(image, x, y, this.side, this.side);
    context.globalAlpha = 1;
    context.strokeStyle = look.getPropertyValue("--line");
    context.lineWidth = 1;
    context.strokeRect(x, y, this.side, this.side);
    if (this.data?.marked?.has(`${layer}.${head}`)) this.mark(context, look, x, y);
    if (!isOff) return;
    context.strokeStyle = look.getPropertyValue("--ink-2");
    context.beginPath();
    context.moveTo(x, y + this.side);
    context.lineTo(x + this.side, y);
    context.stroke();
  }

  /**
   * A corner turned down.
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} look
   * @param {number} x
   * @param {number} y
   */
  mark(context, look, x, y) {
    const size = Math.max(8, this.side / 4);
    context.fillStyle = look.getPropertyValue("--accent");
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
   * Layer and head under the pointer.
   * @param {MouseEvent} event
   * @returns {[number, number] | null}
   */
  at(event) {
    if (!this.data) return null;
    const layer = Math.floor((event.offsetY - this.top) / (this.side + GAP));
    const head = Math.floor((event.offsetX - this.left) / (this.side + GAP));
    return layer >= 0 && head >= 0 && layer < this.data.layers && head < this.data.heads ? [layer, head] : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    const at = this.at(event);
    this.tip.hidden = !at;
    if (!at || !this.data) return;
    this.tip.textContent = this.data.describe(at[0], at[1]);
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  /**
   * @param {number} layer
   * @param {number} head
   */
  choose(layer, head) {
    if (!this.data) return;
    const fit = (/** @type {number} */ value, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, value));
    this.selected = [fit(layer, this.data.layers), fit(head, this.data.heads)];
    this.draw();
    announce(this.data.describe(this.selected[0], this.selected[1]));
    this.onSelect(this.selected[0], this.selected[1]);
  }
}
