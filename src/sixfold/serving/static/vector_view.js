/** A vector as a ribbon of coloured cells on a canvas, folded where it is long; one component is chosen. */

import { announce, h } from "./dom.js";
import { raster } from "./heat_map.js";
import { cut, number } from "./page_text.js";

/**
 * @typedef {object} RibbonData
 * @property {Float32Array} values
 * @property {string} label what a listener is told that this is
 * @property {boolean} isSigned colours go from the least to the most, with nothing in the middle
 * @property {string[] | null} [names] of the components; none: they are only counted
 * @property {[number, number] | null} [mark] components from … to below … are marked
 */

const NAMED = 30; // a cell that is this wide has room for its name
const VOCABULARY = 8192; // more components than this are not hit one by one
const FONT = '12px ui-sans-serif, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

export class Ribbon {
  /** @param {(component: number) => void} onSelect */
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.canvas = h("canvas", { class: "ribbon", tabindex: 0, role: "slider", "aria-valuemin": 0 });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", { class: "matrix-frame" }, this.canvas, this.tip);
    /** @type {RibbonData | null} */
    this.data = null;
    this.selected = 0;
    this.columns = 1;
    this.cell = [1, 1];
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const at = this.at(event);
      if (at !== null) this.select(at);
    });
    this.canvas.addEventListener("keydown", (event) => this.walk(event));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  /**
   * @param {RibbonData} data
   * @param {number} selected
   */
  show(data, selected) {
    if (!isSame(this.data?.values, data.values)) this.image = null;
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
    const columns = fold(count, width);
    if (!this.image || columns !== this.columns) this.image = folded(data, columns);
    this.columns = columns;
    const rows = Math.ceil(count / columns);
    const side = Math.min(columns === count ? 56 : 24, width / columns);
    this.cell = [side, rows === 1 ? 32 : Math.max(side, rows > 16 ? 2 : 10)];
    const isNamed = Boolean(data.names) && side >= NAMED;
    const [height, ratio] = [rows * this.cell[1] + 4 + (isNamed ? 20 : 0), window.devicePixelRatio || 1];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const look = getComputedStyle(this.element);
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    context.fillStyle = look.getPropertyValue("--masked");
    for (let row = 0; row < rows; row++)
      context.fillRect(0, 2 + row * this.cell[1], Math.min(columns, count - row * columns) * side, this.cell[1]);
    context.drawImage(this.image, 0, 2, columns * side, rows * this.cell[1]);
    if (data.mark) this.outline(context, look.getPropertyValue("--accent"), data.mark[0], data.mark[1]);
    this.outline(context, look.getPropertyValue("--accent-2"), this.selected, this.selected + 1);
    if (isNamed) this.write(context, look);
    this.tell();
  }

  /**
   * Around components that stand in one row, or around each row of them.
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   * @param {number} from
   * @param {number} to
   */
  outline(context, colour, from, to) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    for (let start = from; start < to; ) {
      const end = Math.min(to, (Math.floor(start / this.columns) + 1) * this.columns);
      const [x, y] = [(start % this.columns) * this.cell[0], 2 + Math.floor(start / this.columns) * this.cell[1]];
      context.strokeRect(x, y, Math.max(4, (end - start) * this.cell[0]), this.cell[1]);
      start = end;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} look
   */
  write(context, look) {
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.data?.names?.forEach((name, place) => {
      context.fillStyle = look.getPropertyValue(place === this.selected ? "--accent-2" : "--ink-2");
      context.fillText(cut(name, this.cell[0] / 7), (place + 0.5) * this.cell[0], this.cell[1] + 14);
    });
  }

  tell() {
    this.canvas.setAttribute("aria-valuenow", String(this.selected));
    this.canvas.setAttribute("aria-valuetext", this.describe(this.selected));
  }

  /** @param {number} component */
  describe(component) {
    const data = /** @type {RibbonData} */ (this.data);
    const name = data.names?.[component];
    return `${component}${name ? ` ${name}` : ""}: ${number(data.values[component])}`;
  }

  /**
   * The component under the pointer.
   * @param {MouseEvent} event
   * @returns {number | null}
   */
  at(event) {
    const [column, row] = [Math.floor(event.offsetX / this.cell[0]), Math.max(0, Math.floor((event.offsetY - 2) / this.cell[1]))];
    const place = Math.min(row, Math.ceil((this.data?.values.length ?? 0) / this.columns) - 1) * this.columns + column;
    return this.data && column >= 0 && column < this.columns && place < this.data.values.length ? place : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    const at = this.at(event);
    this.tip.hidden = at === null;
    if (at === null) return;
    this.tip.textContent = this.describe(at);
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, this.element.clientWidth - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, Home: -1e9, End: 1e9 }[event.key];
    if (!step || !this.data) return;
    event.preventDefault();
    const isFold = Math.abs(step) === this.columns && this.columns >= this.data.values.length;
    if (!isFold) this.select(Math.max(0, Math.min(this.data.values.length - 1, this.selected + step)));
  }

  /** @param {number} component */
  select(component) {
    this.selected = component;
    this.draw();
    announce(this.describe(component));
    this.onSelect(component);
  }

  end() {
    this.observer.disconnect();
  }
}

/**
 * Views of the same numbers: drawn once, they need not be drawn again.
 * @param {Float32Array | undefined} one
 * @param {Float32Array} other
 */
function isSame(one, other) {
  return one?.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length;
}

/**
 * How many cells stand in a row: all, or the largest power of two of which each can still be hit; a vocabulary is a carpet.
 * @param {number} count
 * @param {number} width
 */
export function fold(count, width) {
  if (count > VOCABULARY) return Math.max(1, Math.floor(width / 2));
  return count <= width / 5 ? count : 2 ** Math.floor(Math.log2(width / 5));
}

/**
 * @param {RibbonData} data
 * @param {number} columns
 * @param {"light" | "dark"} [theme]
 */
function folded(data, columns, theme) {
  const rows = Math.ceil(data.values.length / columns);
  const values = new Float32Array(rows * columns).fill(NaN);
  values.set(data.values);
  const names = (/** @type {number} */ length) => new Array(length).fill("");
  return raster({ rows: names(rows), columns: names(columns), values, isSigned: data.isSigned, label: data.label }, theme);
}

/**
 * Its cells as an image by itself, in light colours.
 * @param {RibbonData} data
 * @param {number} width
 * @returns {{href: string, height: number}}
 */
export function ribbonImage(data, width) {
  const columns = fold(data.values.length, width);
  const rows = Math.ceil(data.values.length / columns);
  return { href: folded(data, columns, "light").toDataURL(), height: rows === 1 ? 32 : rows * Math.max(width / columns, rows > 16 ? 2 : 10) };
}
