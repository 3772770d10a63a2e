/** Pictures in SVG that are drawn twice: on the page in its colours and width, and by themselves in light colours. */

import { h, refill, s } from "./dom.js";
import { PAGE, PAPER } from "./theme_colours.js";

/** @typedef {(width: number, paints: import("./theme_colours.js").Paints) => SVGSVGElement} Draw */

const FONT = "ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif";

/** A picture that fills the width it is given, and is drawn anew when that changes. */
export class Picture {
  /** @param {Draw} draw */
  constructor(draw) {
    this.draw = draw;
    this.width = 0;
    this.element = h("div", { class: "picture" });
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.show()).observe(this.element);
  }

  show() {
    this.width = this.element.clientWidth;
    if (this.width) refill(this.element, this.draw(this.width, PAGE));
  }
}

/**
 * The root of a picture.
 * @param {number} width
 * @param {number} height
 * @param {string} label what a listener is told that this is
 * @param {...(import("./dom.js").Child | import("./dom.js").Child[])} children
 */
export function frame(width, height, label, ...children) {
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-size": 13 }, ...children);
}

/**
 * The picture by itself, under its title.
 * @param {Draw} draw
 * @param {string} title
 * @param {number} [width]
 */
export function alone(draw, title, width = 900) {
  const inner = draw(width, PAPER);
  const height = Number(inner.getAttribute("height")) + 64;
  inner.setAttribute("x", "16");
  inner.setAttribute("y", "48");
  const outer = s("svg", { width: width + 32, height, viewBox: `0 0 ${width + 32} ${height}`, "font-family": FONT },
    s("rect", { width: "100%", height: "100%", fill: "#fff" }),
    s("text", { x: 16, y: 28, "font-size": 15, "font-weight": 600, fill: PAPER.ink }, title), inner);
  return new XMLSerializer().serializeToString(outer);
}

/**
 * Round numbers that a scale is marked with.
 * @param {number} least
 * @param {number} most
 * @param {number} [count] about so many
 */
export function ticks(least, most, count = 5) {
  const rough = (most - least) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10);
  const found = [];
  for (let each = Math.ceil(least / step); each * step <= most + step * 1e-9; each++) found.push(each * step);
  return found;
}

/**
 * A chart of lines over whole numbers: axes, then what `lines` draws with their scales.
 * @param {object} chart
 * @param {[number, number]} chart.across what the scales go from and to
 * @param {[number, number]} chart.up
 * @param {string} chart.label
 * @param {string} chart.below what the lower scale counts
 * @param {number} [chart.height]
 * @param {number} width
 * @param {import("./theme_colours.js").Paints} paints
 * @param {(x: (value: number) => number, y: (value: number) => number) => import("./dom.js").Child[]} lines
 */
export function chart({ across, up, label, below, height = 280 }, width, paints, lines) {
  const [left, top, right, bottom] = [48, 12, width - 12, height - 44];
  const x = (/** @type {number} */ value) => left + ((value - across[0]) / (across[1] - across[0] || 1)) * (right - left);
  const y = (/** @type {number} */ value) => bottom - ((value - up[0]) / (up[1] - up[0] || 1)) * (bottom - top);
  return frame(width, height, label,
    ticks(up[0], up[1]).map((value) => s("g", {},
      s("line", { x1: left, x2: right, y1: y(value), y2: y(value), stroke: paints.line }),
      s("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end", fill: paints.soft }, shortened(value)))),
    ticks(across[0], across[1], Math.max(2, Math.min(8, width / 90))).map((value) =>
      s("text", { x: x(value), y: bottom + 20, "text-anchor": "middle", fill: paints.soft }, shortened(value))),
    s("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle", fill: paints.soft }, below),
    lines(x, y));
}

/** @param {number} value */
function shortened(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

/**
 * Points as the path of a line.
 * @param {ArrayLike<number>} values at 0, 1, 2 …
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 */
export function path(values, x, y) {
  return Array.from(values, (value, at) => `${at ? "L" : "M"}${x(at).toFixed(2)} ${y(value).toFixed(2)}`).join("");
}
