/** SVG diagrams and line charts, drawn for the page in its theme and width, or as a standalone file in light colours. */

import { h, replaceContent, s } from "./dom.js";
import { FONT_FAMILY } from "./export.js";
import { EXPORT_COLOURS, PAGE_COLOURS } from "./theme_colours.js";

/** @typedef {(width: number, colours: import("./theme_colours.js").DiagramColours) => SVGSVGElement} DrawDiagram */

/** A diagram that fills the width of its container and is drawn again when the width changes. */
export class ResponsiveDiagram {
  /** @param {DrawDiagram} draw */
  constructor(draw) {
    this.draw = draw;
    this.width = 0;
    this.element = h("div", { class: "diagram" });
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.show()).observe(this.element);
  }

  show() {
    this.width = this.element.clientWidth;
    if (this.width) replaceContent(this.element, this.draw(this.width, PAGE_COLOURS));
  }
}

/**
 * Return the root element of a diagram.
 * @param {number} width
 * @param {number} height
 * @param {string} label description for screen readers
 * @param {...(import("./dom.js").Child | import("./dom.js").Child[])} children
 */
export function svgRoot(width, height, label, ...children) {
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-size": 13 }, ...children);
}

/**
 * Return the diagram as an SVG file with a title.
 * @param {DrawDiagram} draw
 * @param {string} title
 * @param {number} [width]
 */
export function standaloneSvg(draw, title, width = 900) {
  const inner = draw(width, EXPORT_COLOURS);
  const height = Number(inner.getAttribute("height")) + 64;
  inner.setAttribute("x", "16");
  inner.setAttribute("y", "48");
  const outer = s("svg", { width: width + 32, height, viewBox: `0 0 ${width + 32} ${height}`, "font-family": FONT_FAMILY },
    s("rect", { width: "100%", height: "100%", fill: "#fff" }),
    s("text", { x: 16, y: 28, "font-size": 15, "font-weight": 600, fill: EXPORT_COLOURS.ink }, title), inner);
  return new XMLSerializer().serializeToString(outer);
}

/**
 * Return round numbers for the ticks of an axis.
 * @param {number} min
 * @param {number} max
 * @param {number} [count] approximate number of ticks
 */
export function tickValues(min, max, count = 5) {
  const minStep = (max - min) / count || 1;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const step = power * ([1, 2, 5, 10].find((multiple) => multiple * power >= minStep) ?? 10);
  const values = [];
  for (let multiple = Math.ceil(min / step); multiple * step <= max + step * 1e-9; multiple++) values.push(multiple * step);
  return values;
}

/**
 * Return a chart with axes. `drawLines` gets the two scales and returns the lines.
 * @param {object} chart
 * @param {[number, number]} chart.xRange first and last value of the axis
 * @param {[number, number]} chart.yRange
 * @param {string} chart.label
 * @param {string} chart.xLabel title of the x axis
 * @param {number} [chart.height]
 * @param {number} width
 * @param {import("./theme_colours.js").DiagramColours} colours
 * @param {(x: (value: number) => number, y: (value: number) => number) => import("./dom.js").Child[]} drawLines
 */
export function lineChart({ xRange, yRange, label, xLabel, height = 280 }, width, colours, drawLines) {
  const [left, top, right, bottom] = [48, 12, width - 12, height - 44];
  const x = (/** @type {number} */ value) => left + ((value - xRange[0]) / (xRange[1] - xRange[0] || 1)) * (right - left);
  const y = (/** @type {number} */ value) => bottom - ((value - yRange[0]) / (yRange[1] - yRange[0] || 1)) * (bottom - top);
  return svgRoot(width, height, label,
    tickValues(yRange[0], yRange[1]).map((value) => s("g", {},
      s("line", { x1: left, x2: right, y1: y(value), y2: y(value), stroke: colours.line }),
      s("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end", fill: colours.mutedInk }, tickLabel(value)))),
    tickValues(xRange[0], xRange[1], Math.max(2, Math.min(8, width / 90))).map((value) =>
      s("text", { x: x(value), y: bottom + 20, "text-anchor": "middle", fill: colours.mutedInk }, tickLabel(value))),
    s("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle", fill: colours.mutedInk }, xLabel),
    drawLines(x, y));
}

/** @param {number} value */
function tickLabel(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

/**
 * Return the SVG path of a line through the values.
 * @param {ArrayLike<number>} values y values at x = 0, 1, 2, …
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 */
export function linePath(values, x, y) {
  return Array.from(values, (value, position) => `${position ? "L" : "M"}${x(position).toFixed(2)} ${y(value).toFixed(2)}`).join("");
}
