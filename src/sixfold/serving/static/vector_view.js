/** A vector as coloured cells on a canvas, in several rows if it is long; one component is selected. */

import { announce, h } from "./dom.js";
import { renderCells } from "./heat_map.js";
import { formatNumber, truncate } from "./page_text.js";

/**
 * @typedef {object} VectorData
 * @property {Float32Array} values
 * @property {string} label description for screen readers
 * @property {boolean} isSigned use the diverging colour scale, with zero in the middle
 * @property {string[] | null} [names] of the components; without names only the index is shown
 * @property {[number, number] | null} [outlined] first component to outline, and the one after the last
 */

const MIN_NAMED_WIDTH = 30; // CSS pixels: cells of this width show their names
const MAX_SELECTABLE = 8192; // components; longer vectors get cells too small to click
const FONT = '12px ui-sans-serif, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

export class VectorView {
  /** @param {(component: number) => void} onSelect */
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.canvas = h("canvas", { class: "vector", tabindex: 0, role: "slider", "aria-valuemin": 0 });
    this.tooltip = h("div", { class: "tooltip", hidden: true });
    this.element = h("div", { class: "canvas-frame" }, this.canvas, this.tooltip);
    /** @type {VectorData | null} */
    this.data = null;
    this.selected = 0;
    this.columns = 1;
    this.cell = [1, 1];
    this.canvas.addEventListener("pointermove", (event) => this.showTooltip(event));
    this.canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const component = this.componentAt(event);
      if (component !== null) this.select(component);
    });
    this.canvas.addEventListener("keydown", (event) => this.moveSelection(event));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  /**
   * @param {VectorData} data
   * @param {number} selected
   */
  show(data, selected) {
    if (!isSameView(this.data?.values, data.values)) this.image = null;
    this.data = data;
    this.selected = selected;
    this.canvas.setAttribute("aria-label", data.label);
    this.canvas.setAttribute("aria-valuemax", String(data.values.length - 1));
    this.draw();
  }

  draw() {
    const [data, width] = [this.data, this.element.clientWidth];
    if (!data || !width) return;
    const count = data.values.length;
    const columns = cellsPerRow(count, width);
    if (!this.image || columns !== this.columns) this.image = renderCellRows(data, columns);
    this.columns = columns;
    const rows = Math.ceil(count / columns);
    const cellWidth = Math.min(columns === count ? 56 : 24, width / columns);
    this.cell = [cellWidth, rows === 1 ? 32 : Math.max(cellWidth, rows > 16 ? 2 : 10)];
    const hasNames = Boolean(data.names) && cellWidth >= MIN_NAMED_WIDTH;
    const [height, ratio] = [rows * this.cell[1] + 4 + (hasNames ? 20 : 0), window.devicePixelRatio || 1];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const style = getComputedStyle(this.element);
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    context.fillStyle = style.getPropertyValue("--masked");
    for (let row = 0; row < rows; row++)
      context.fillRect(0, 2 + row * this.cell[1], Math.min(columns, count - row * columns) * cellWidth, this.cell[1]);
    context.drawImage(this.image, 0, 2, columns * cellWidth, rows * this.cell[1]);
    if (data.outlined) this.outline(context, style.getPropertyValue("--accent"), data.outlined[0], data.outlined[1]);
    this.outline(context, style.getPropertyValue("--highlight"), this.selected, this.selected + 1);
    if (hasNames) this.drawNames(context, style);
    this.updateAria();
  }

  /**
   * Outline a range of components, row by row.
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   * @param {number} from
   * @param {number} to
   */
  outline(context, colour, from, to) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    for (let start = from; start < to; ) {
      const dispose = Math.min(to, (Math.floor(start / this.columns) + 1) * this.columns);
      const [x, y] = [(start % this.columns) * this.cell[0], 2 + Math.floor(start / this.columns) * this.cell[1]];
      context.strokeRect(x, y, Math.max(4, (dispose - start) * this.cell[0]), this.cell[1]);
      start = dispose;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} style
   */
  drawNames(context, style) {
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.data?.names?.forEach((name, component) => {
      context.fillStyle = style.getPropertyValue(component === this.selected ? "--highlight" : "--ink-muted");
      context.fillText(truncate(name, this.cell[0] / 7), (component + 0.5) * this.cell[0], this.cell[1] + 14);
    });
  }

  updateAria() {
    this.canvas.setAttribute("aria-valuenow", String(this.selected));
    this.canvas.setAttribute("aria-valuetext", this.describe(this.selected));
  }

  /** @param {number} component */
  describe(component) {
    const data = /** @type {VectorData} */ (this.data);
    const name = data.names?.[component];
    return `${component}${name ? ` ${name}` : ""}: ${formatNumber(data.values[component])}`;
  }

  /**
   * Return the component under the pointer.
   * @param {MouseEvent} event
   * @returns {number | null}
   */
  componentAt(event) {
    const [column, row] = [Math.floor(event.offsetX / this.cell[0]), Math.max(0, Math.floor((event.offsetY - 2) / this.cell[1]))];
    const component = Math.min(row, Math.ceil((this.data?.values.length ?? 0) / this.columns) - 1) * this.columns + column;
    return this.data && column >= 0 && column < this.columns && component < this.data.values.length ? component : null;
  }

  /** @param {PointerEvent} event */
  showTooltip(event) {
    const component = this.componentAt(event);
    this.tooltip.hidden = component === null;
    if (component === null) return;
    this.tooltip.textContent = this.describe(component);
    this.tooltip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.element.clientWidth - this.tooltip.offsetWidth))}px`;
    this.tooltip.style.top = `${event.offsetY + 16}px`;
  }

  /** @param {KeyboardEvent} event */
  moveSelection(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, Home: -1e9, End: 1e9 }[event.key];
    if (!step || !this.data) return;
    event.preventDefault();
    const isVerticalInSingleRow = Math.abs(step) === this.columns && this.columns >= this.data.values.length;
    if (!isVerticalInSingleRow) this.select(Math.max(0, Math.min(this.data.values.length - 1, this.selected + step)));
  }

  /** @param {number} component */
  select(component) {
    this.selected = component;
    this.draw();
    announce(this.describe(component));
    this.onSelect(component);
  }

  dispose() {
    this.observer.disconnect();
  }
}

/**
 * Return whether two arrays view the same memory; then the image need not be drawn again.
 * @param {Float32Array | undefined} first
 * @param {Float32Array} second
 */
function isSameView(first, second) {
  return first?.buffer === second.buffer && first.byteOffset === second.byteOffset && first.length === second.length;
}

/**
 * Return the cells per row: all, or the largest power of two with cells wide enough to click. Very long vectors use 2 pixels per cell.
 * @param {number} count
 * @param {number} width
 */
export function cellsPerRow(count, width) {
  if (count > MAX_SELECTABLE) return Math.max(1, Math.floor(width / 2));
  return count <= width / 5 ? count : 2 ** Math.floor(Math.log2(width / 5));
}

/**
 * @param {VectorData} data
 * @param {number} columns
 * @param {"light" | "dark"} [theme]
 */
function renderCellRows(data, columns, theme) {
  const rows = Math.ceil(data.values.length / columns);
  const values = new Float32Array(rows * columns).fill(NaN);
  values.set(data.values);
  const emptyLabels = (/** @type {number} */ length) => new Array(length).fill("");
  return renderCells({ rows: emptyLabels(rows), columns: emptyLabels(columns), values, isSigned: data.isSigned, label: data.label }, theme);
}

/**
 * Return the cells as an image in light colours, for export.
 * @param {VectorData} data
 * @param {number} width
 * @returns {{href: string, height: number}}
 */
export function vectorImage(data, width) {
  const columns = cellsPerRow(data.values.length, width);
  const rows = Math.ceil(data.values.length / columns);
  return { href: renderCellRows(data, columns, "light").toDataURL(), height: rows === 1 ? 32 : rows * Math.max(width / columns, rows > 16 ? 2 : 10) };
}
