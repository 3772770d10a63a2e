/** Scatter plot of words, with labels that do not overlap. */

import { s } from "./dom.js";
import { textWidth } from "./page_text.js";
import { svgRoot } from "./svg_diagram.js";

/** @typedef {{text: string, x: number, y: number, role: "word" | "neighbour" | "added"}} Point */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const [LETTER_WIDTH, LABEL_HEIGHT, GAP] = [7.6, 18, 8];

/**
 * @param {Point[]} points
 * @param {string} label
 * @param {number} width
 * @param {import("./theme_colours.js").DiagramColours} colours
 * @param {{describe: (point: Point) => string, onSelect: (text: string) => void}} [interaction] undefined: points cannot be selected
 */
export function scatterPlot(points, label, width, colours, interaction) {
  const height = Math.round(Math.max(360, Math.min(560, width * 0.55)));
  const [xRange, yRange] = [rangeOf(points.map((point) => point.x)), rangeOf(points.map((point) => point.y))];
  const margin = [Math.min(96, width / 5), 40];
  const placed = points.map((point) => ({
    ...point,
    x: margin[0] + ((point.x - xRange[0]) / (xRange[1] - xRange[0])) * (width - 2 * margin[0]),
    y: height - margin[1] - ((point.y - yRange[0]) / (yRange[1] - yRange[0])) * (height - 2 * margin[1]),
  }));
  const labels = placeLabels(placed, width, height);
  const svg = svgRoot(width, height, label,
    s("rect", { x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8, fill: "none", stroke: colours.line }),
    placed.map((point, index) => drawPoint(point, labels[index], colours, interaction)));
  if (interaction) svg.setAttribute("role", "group");
  return svg;
}

/**
 * @param {Point} point
 * @param {Box} box
 * @param {import("./theme_colours.js").DiagramColours} colours
 * @param {{describe: (point: Point) => string, onSelect: (text: string) => void}} [interaction]
 */
function drawPoint(point, box, colours, interaction) {
  const colour = { word: colours.selected, neighbour: colours.accent, added: colours.mutedInk }[point.role];
  const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const attributes = interaction && { tabindex: 0, role: "button", "aria-label": interaction.describe(point), class: "point", onclick: () => interaction.onSelect(point.text),
    onkeydown: (/** @type {KeyboardEvent} */ event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), interaction.onSelect(point.text)) };
  return s("g", { ...attributes, "data-word": point.text },
    s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, rx: 4, fill: colours.surface, class: "label-background" }),
    s("circle", { cx: point.x, cy: point.y, r: point.role === "word" ? 6 : 5, fill: colour }),
    s("text", { x, y: y + 5, "text-anchor": "middle", "font-size": 15, "font-weight": point.role === "word" ? 650 : null,
      fill: point.role === "word" ? colours.selected : colours.ink }, point.text));
}

/**
 * Return a box for each label: the first position around its point without overlap,
 * or the one with the least overlap.
 * @param {{text: string, x: number, y: number}[]} points
 * @param {number} width
 * @param {number} height
 * @returns {Box[]}
 */
export function placeLabels(points, width, height) {
  const taken = points.map(({ x, y }) => ({ left: x - 6, top: y - 6, right: x + 6, bottom: y + 6 }));
  return points.map((point) => {
    const labelWidth = LETTER_WIDTH * textWidth(point.text) + 8;
    let best = { box: labelBox(point, labelWidth, 1, 0), cost: Infinity };
    for (const distance of [1, 2.2, 3.6])
      for (const [right, down] of DIRECTIONS) {
        const box = labelBox(point, labelWidth, right * distance, down * distance);
        const outside = Math.max(0, -box.left) + Math.max(0, box.right - width) + Math.max(0, -box.top) + Math.max(0, box.bottom - height);
        const cost = 100 * outside + taken.reduce((sum, other) => sum + overlapArea(box, other), 0) + distance;
        if (cost < best.cost) best = { box, cost };
      }
    taken.push(best.box);
    return best.box;
  });
}

const DIRECTIONS = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];

/**
 * @param {{x: number, y: number}} point
 * @param {number} width
 * @param {number} right
 * @param {number} down
 * @returns {Box}
 */
function labelBox({ x, y }, width, right, down) {
  const centre = [x + Math.sign(right) * (width / 2 + GAP * Math.abs(right)), y + Math.sign(down) * (LABEL_HEIGHT / 2 + GAP * Math.abs(down))];
  return { left: centre[0] - width / 2, right: centre[0] + width / 2, top: centre[1] - LABEL_HEIGHT / 2, bottom: centre[1] + LABEL_HEIGHT / 2 };
}

/**
 * @param {Box} first
 * @param {Box} second
 */
function overlapArea(first, second) {
  const width = Math.min(first.right, second.right) - Math.max(first.left, second.left);
  const height = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
  return width > 0 && height > 0 ? width * height : 0;
}

/** @param {number[]} values */
function rangeOf(values) {
  const [min, max] = [Math.min(...values), Math.max(...values)];
  return max > min ? [min, max] : [min - 1, max + 1];
}
