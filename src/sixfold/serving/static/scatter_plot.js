/** Words on a plane: a point each, with labels that keep out of each other's way. */

import { s } from "./dom.js";
import { breadth } from "./page_text.js";
import { frame } from "./svg_diagram.js";

/** @typedef {{text: string, x: number, y: number, role: "word" | "near" | "own"}} Point */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const [LETTER, LINE, GAP] = [7.6, 18, 8];

/**
 * @param {Point[]} points
 * @param {string} label
 * @param {number} width
 * @param {import("./theme_colours.js").Paints} paints
 * @param {{say: (point: Point) => string, onChoose: (text: string) => void}} [how] none: nothing can be chosen
 */
export function scatter(points, label, width, paints, how) {
  const height = Math.round(Math.max(360, Math.min(560, width * 0.55)));
  const [across, up] = [span(points.map((each) => each.x)), span(points.map((each) => each.y))];
  const room = [Math.min(96, width / 5), 40];
  const placed = points.map((point) => ({
    ...point,
    x: room[0] + ((point.x - across[0]) / (across[1] - across[0])) * (width - 2 * room[0]),
    y: height - room[1] - ((point.y - up[0]) / (up[1] - up[0])) * (height - 2 * room[1]),
  }));
  const labels = placeLabels(placed, width, height);
  const svg = frame(width, height, label,
    s("rect", { x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8, fill: "none", stroke: paints.line }),
    placed.map((point, at) => drawn(point, labels[at], paints, how)));
  if (how) svg.setAttribute("role", "group");
  return svg;
}

/**
 * @param {Point} point
 * @param {Box} box
 * @param {import("./theme_colours.js").Paints} paints
 * @param {{say: (point: Point) => string, onChoose: (text: string) => void}} [how]
 */
function drawn(point, box, paints, how) {
  const colour = { word: paints.chosen, near: paints.accent, own: paints.soft }[point.role];
  const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const chosen = how && { tabindex: 0, role: "button", "aria-label": how.say(point), class: "dot", onclick: () => how.onChoose(point.text),
    onkeydown: (/** @type {KeyboardEvent} */ event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), how.onChoose(point.text)) };
  return s("g", { ...chosen, "data-word": point.text },
    s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, rx: 4, fill: paints.card, class: "ground" }),
    s("circle", { cx: point.x, cy: point.y, r: point.role === "word" ? 6 : 5, fill: colour }),
    s("text", { x, y: y + 5, "text-anchor": "middle", "font-size": 15, "font-weight": point.role === "word" ? 650 : null,
      fill: point.role === "word" ? paints.chosen : paints.ink }, point.text));
}

/**
 * A box for each label: the first of the places around its point where it meets no other label and no point, else
 * where it meets least.
 * @param {{text: string, x: number, y: number}[]} points
 * @param {number} width
 * @param {number} height
 * @returns {Box[]}
 */
export function placeLabels(points, width, height) {
  const taken = points.map(({ x, y }) => ({ left: x - 6, top: y - 6, right: x + 6, bottom: y + 6 }));
  return points.map((point) => {
    const size = LETTER * breadth(point.text) + 8;
    let best = { box: around(point, size, 1, 0), cost: Infinity };
    for (const far of [1, 2.2, 3.6])
      for (const [right, down] of SIDES) {
        const box = around(point, size, right * far, down * far);
        const outside = Math.max(0, -box.left) + Math.max(0, box.right - width) + Math.max(0, -box.top) + Math.max(0, box.bottom - height);
        const cost = 100 * outside + taken.reduce((sum, each) => sum + overlap(box, each), 0) + far;
        if (cost < best.cost) best = { box, cost };
      }
    taken.push(best.box);
    return best.box;
  });
}

const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];

/**
 * @param {{x: number, y: number}} point
 * @param {number} size
 * @param {number} right
 * @param {number} down
 * @returns {Box}
 */
function around({ x, y }, size, right, down) {
  const middle = [x + Math.sign(right) * (size / 2 + GAP * Math.abs(right)), y + Math.sign(down) * (LINE / 2 + GAP * Math.abs(down))];
  return { left: middle[0] - size / 2, right: middle[0] + size / 2, top: middle[1] - LINE / 2, bottom: middle[1] + LINE / 2 };
}

/**
 * @param {Box} one
 * @param {Box} other
 */
function overlap(one, other) {
  const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return across > 0 && down > 0 ? across * down : 0;
}

/** @param {number[]} values */
function span(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return most > least ? [least, most] : [least - 1, most + 1];
}
