/** Beam search as a tree that grows from left to right; one node is looked at. */

import { asked, look } from "../api.js";
import { announce, h, refill, s, settled } from "../dom.js";
import { standing } from "../export.js";
import { breadth, cut, number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, index, set } from "../url_state.js";

/** @typedef {"kept" | "pruned" | "ended"} Fate */
/** @typedef {{id: number, parent: number, step: number, token: number, text: string, logprob: number, total: number, score: number, fate: Fate, is_best: boolean}} Node */
/** @typedef {{nodes: Node[], hypotheses: {text: string, score: number}[]}} Tree */

const WORDS = {
  title: { en: "The beam", zh: "集束搜索" },
  note: {
    en: "At every step the beam keeps its best beginnings. A node tells a piece and its log-probability; the sum along a path, divided by its length, is the score.",
    zh: "每一步，集束只保留最好的几个开头。节点上是词元和它的对数概率；沿路径求和再除以长度，就是得分。",
  },
  beam: { en: "Beam", zh: "集束宽度" },
  pruned: { en: "Show what was pruned", zh: "显示被剪掉的分支" },
  tree: { en: "Tree of the search. Left and right go to the parent and to the best child, up and down to the others of the step.", zh: "搜索树。左右键到父节点和最佳子节点，上下键到同一步的其他节点。" },
  keys: { en: "← parent, → child, ↑ ↓ the others of the step", zh: "← 父节点，→ 子节点，↑ ↓ 同一步的其他节点" },
  wait: { en: "Searching…", zh: "搜索中…" },
  told: { en: "{0}: log p {1}, total {2}, score {3}; {4}", zh: "{0}：log p {1}，总和 {2}，得分 {3}；{4}" },
  best: { en: "on the winning path", zh: "在获胜路径上" },
  kept: { en: "kept", zh: "保留" },
  cut: { en: "pruned", zh: "剪掉" },
  ended: { en: "ended", zh: "已结束" },
  found: { en: "Finished hypotheses, best first", zh: "完成的译文，最好的在前" },
  text: { en: "Translation", zh: "译文" },
  score: { en: "Score", zh: "得分" },
};

/** @type {Record<Fate, import("../page_text.js").Words>} */
const FATES = { kept: WORDS.kept, pruned: WORDS.cut, ended: WORDS.ended };

/** @returns {import("./decode.js").Part} */
export function tree() {
  /** @type {Tree | null} */
  let found = null;
  /** @type {Layout | null} */
  let where = null;
  let [turn, selected] = [0, 0];
  const beam = h("input", { type: "range", id: "beam", min: 1, max: 8, step: 1, oninput: () => set({ beam: beam.value }) });
  const wide = h("output", { for: "beam", class: "number" });
  const pruned = h("input", { type: "checkbox", id: "pruned", checked: true, onchange: () => place() });
  const told = h("output", { class: "told", id: "node" });
  const drawn = h("div", { class: "beam-tree", id: "tree", tabindex: 0, role: "img", "aria-label": t(WORDS.tree), onkeydown: walk });
  const box = h("div", { class: "scroll" }, drawn);
  const hypotheses = h("table", { id: "hypotheses" });
  const element = panel(t(WORDS.title), [
    h("div", { class: "controls beam-controls" }, h("label", {}, t(WORDS.beam), beam, wide), h("label", {}, pruned, t(WORDS.pruned)), h("span", { class: "note" }, t(WORDS.keys))),
    box, told, h("h3", {}, t(WORDS.found)), h("div", { class: "scroll short-list", tabindex: 0, role: "region", "aria-label": t(WORDS.found) }, hypotheses),
  ], { svg: () => (found && where ? standing(picture(found.nodes, where, selected)) : "<svg/>"), data: () => found ?? {} }, t(WORDS.note));

  box.addEventListener("scroll", () => requestAnimationFrame(draw));
  const observer = new ResizeObserver(() => draw());
  observer.observe(box);
  drawn.addEventListener("click", (event) => choose(under(event)));
  drawn.addEventListener("pointerover", (event) => under(event) !== null && tell(under(event)));
  drawn.addEventListener("pointerleave", () => tell(selected));

  /** @param {import("../api.js").Trace | null} trace */
  async function load(trace) {
    const mine = ++turn;
    beam.value = get("beam");
    wide.textContent = String(width());
    if (!trace) return refill(drawn), refill(hypotheses);
    element.setAttribute("aria-busy", "true");
    told.textContent = t(WORDS.wait);
    const answer = await look("beam", { ...asked(), beam: width() }).catch((error) => {
      if (mine === turn) told.textContent = String(error.message);
      return null;
    });
    if (mine !== turn) return;
    element.removeAttribute("aria-busy");
    found = answer;
    if (!found) return;
    selected = winner() ?? 0;
    refill(hypotheses, h("thead", {}, h("tr", {}, ["", t(WORDS.text), t(WORDS.score)].map((each) => h("th", { scope: "col" }, each || "#")))),
      h("tbody", {}, found.hypotheses.map((each, rank) => h("tr", {}, h("td", {}, rank), h("td", {}, each.text), h("td", {}, number(each.score))))));
    box.scrollLeft = 0;
    place();
    choose(selected, false);
  }

  /** The node on the winning path that was written at the current step. */
  function winner() {
    const step = Number(get("step")) + 1;
    return found?.nodes.find((node) => node.is_best && node.step === step)?.id ?? null;
  }

  function width() {
    return Math.max(1, index("beam", 4, 9));
  }

  function place() {
    if (!found) return;
    where = layout(found.nodes, pruned.checked);
    if (!where.places.has(selected)) selected = 0;
    drawn.style.width = `${where.width}px`;
    drawn.style.height = `${where.height}px`;
    draw();
    tell(selected);
  }

  /** Only what can be seen: a long sentence has thousands of nodes. */
  function draw() {
    if (!found || !where) return;
    const first = Math.floor(box.scrollLeft / WIDTH) - 1;
    refill(drawn, picture(found.nodes, where, selected, [first, first + Math.ceil(box.clientWidth / WIDTH) + 3]));
  }

  /** @param {Event} event */
  function under(event) {
    const group = /** @type {Element} */ (event.target).closest("[data-node]");
    return group ? Number(group.getAttribute("data-node")) : null;
  }

  /** @param {number | null} id */
  function describe(id) {
    const node = found?.nodes[id ?? -1];
    if (!node) return "";
    const fate = node.is_best ? `${t(WORDS.best)}, ${t(FATES[node.fate])}` : t(FATES[node.fate]);
    return t(WORDS.told, node.text, number(node.logprob), number(node.total), number(node.score), fate);
  }

  /** @param {number | null} id */
  function tell(id) {
    told.textContent = describe(id);
  }

  /**
   * @param {number | null} id
   * @param {boolean} [isSaid]
   */
  function choose(id, isSaid = true) {
    if (id === null || !where) return;
    selected = id;
    const at = where.places.get(id);
    if (at && (at.x < box.scrollLeft || at.x + WIDTH > box.scrollLeft + box.clientWidth)) box.scrollLeft = at.x - box.clientWidth / 2;
    draw();
    tell(id);
    if (isSaid) announce(describe(id));
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    if (!found || !where) return;
    const node = found.nodes[selected];
    const seen = found.nodes.filter((each) => where?.places.has(each.id));
    const abreast = seen.filter((each) => each.step === node.step).map((each) => each.id);
    const children = seen.filter((each) => each.parent === selected);
    /** @type {Record<string, number | undefined>} */
    const to = {
      ArrowLeft: node.parent < 0 ? undefined : node.parent,
      ArrowRight: (children.find((each) => each.is_best) ?? children[0])?.id,
      ArrowUp: abreast[abreast.indexOf(selected) - 1],
      ArrowDown: abreast[abreast.indexOf(selected) + 1],
      Home: 0,
      End: Math.max(...seen.filter((each) => each.is_best).map((each) => each.id)),
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    choose(to[event.key] ?? null);
  }

  /** @type {import("../api.js").Trace | null} */
  let last = null;
  const again = settled(250, () => load(last));
  return {
    element,
    show(trace) {
      last = trace;
      load(trace);
    },
    change(changed) {
      if (changed.has("step")) choose(winner(), false);
      if (!changed.has("beam")) return;
      wide.textContent = String(width());
      again();
    },
    end() {
      turn++;
      observer.disconnect();
    },
  };
}

// --- Where the nodes of a beam stand, and their picture: a column for each step, the likeliest on top.

/** @typedef {{places: Map<number, {x: number, y: number}>, width: number, height: number, steps: number}} Layout */

export const WIDTH = 152; // of a step
const [NODE, HEIGHT, LANE, MARGIN] = [120, 32, 44, 8];

/**
 * @param {Node[]} nodes
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
 * @param {Node[]} nodes
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
 * @param {Node} node
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
 * @param {Node} node
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
