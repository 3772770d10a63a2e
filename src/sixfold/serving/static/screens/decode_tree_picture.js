/** Where the nodes of a beam stand, and their picture: a column for each step, the likeliest on top. */

import { s } from "../dom.js";
import { breadth, cut } from "../matrix.js";

/** @typedef {{places: Map<number, {x: number, y: number}>, width: number, height: number, steps: number}} Layout */

export const WIDTH = 152; // of a step
const [NODE, HEIGHT, LANE, MARGIN] = [120, 32, 44, 8];

/**
 * @param {import("./decode_tree.js").Node[]} nodes
 * @param {boolean} hasPruned
 * @returns {Layout}
 */
export function layout(nodes, hasPruned) {
  const places = new Map();
  /** @type {number[]} */
  const taken = [];
  for (const node of nodes) {
    if (node.fate === "pruned" && !hasPruned && !node.is_best) continue;
    const lane = taken[node.step] ?? 0;
    taken[node.step] = lane + 1;
    places.set(node.id, { x: MARGIN + node.step * WIDTH, y: MARGIN + lane * LANE });
  }
  return { places, width: taken.length * WIDTH + MARGIN, height: Math.max(...taken) * LANE + MARGIN, steps: taken.length };
}

/**
 * Colours are the page's variables.
 * @param {import("./decode_tree.js").Node[]} nodes
 * @param {Layout} where
 * @param {number} selected
 * @param {[number, number]} [steps] only those from … to …
 */
export function picture(nodes, where, selected, steps = [0, where.steps]) {
  const seen = nodes.filter((node) => where.places.has(node.id) && node.step >= steps[0] && node.step <= steps[1]);
  const lines = seen.filter((node) => node.parent >= 0).sort((one, other) => Number(one.is_best) - Number(other.is_best));
  return s("svg", { xmlns: "http://www.w3.org/2000/svg", width: where.width, height: where.height, "font-size": 13, "font-family": "var(--sans)", "aria-hidden": "true" },
    s("rect", { width: "100%", height: "100%", fill: "var(--card)" }),
    lines.map((node) => line(node, where)), seen.map((node) => box(node, where, node.id === selected)));
}

/**
 * @param {import("./decode_tree.js").Node} node
 * @param {Layout} where
 */
function line(node, where) {
  const [from, to] = [where.places.get(node.parent), where.places.get(node.id)];
  if (!from || !to) return null;
  const [x, y, middle] = [from.x + NODE, from.y + HEIGHT / 2, (from.x + NODE + to.x) / 2];
  return s("path", {
    d: `M${x} ${y}C${middle} ${y} ${middle} ${to.y + HEIGHT / 2} ${to.x} ${to.y + HEIGHT / 2}`, fill: "none",
    stroke: node.is_best ? "var(--accent)" : node.fate === "pruned" ? "var(--line)" : "var(--ink-2)",
    "stroke-width": node.is_best ? 3 : 1, "stroke-dasharray": node.fate === "pruned" ? "3 3" : null,
  });
}

/**
 * @param {import("./decode_tree.js").Node} node
 * @param {Layout} where
 * @param {boolean} isSelected
 */
function box(node, where, isSelected) {
  const { x, y } = /** @type {{x: number, y: number}} */ (where.places.get(node.id));
  const isPruned = node.fate === "pruned";
  const ink = node.is_best ? "var(--on-accent)" : isPruned ? "var(--ink-2)" : "var(--ink)";
  const chance = node.parent < 0 ? "" : node.logprob.toFixed(2).replace("-", "−");
  return s("g", { "data-node": node.id, "data-fate": node.fate, "data-best": node.is_best ? "true" : null, transform: `translate(${x} ${y})` },
    s("rect", {
      width: NODE, height: HEIGHT, rx: 8, fill: node.is_best ? "var(--accent)" : "var(--card)",
      stroke: isSelected ? "var(--accent-2)" : node.is_best ? "var(--accent)" : isPruned ? "var(--line)" : "var(--ink-2)",
      "stroke-width": isSelected ? 3 : 1, "stroke-dasharray": isPruned && !isSelected ? "3 3" : null,
    }),
    s("text", { x: 10, y: 21, fill: ink }, cut(node.text, 14 - breadth(chance))),
    s("text", { x: NODE - 10, y: 21, fill: ink, "text-anchor": "end" }, chance),
    node.fate === "ended" && s("rect", { x: NODE + 4, y: 8, width: 4, height: HEIGHT - 16, rx: 2, fill: node.is_best ? "var(--accent)" : "var(--ink-2)" }));
}
