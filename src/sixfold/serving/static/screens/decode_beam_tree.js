/** The beam tree: beam search as a tree that grows from left to right, with one selected node. */

import { exploreRequest, fetchExplorer } from "../api.js";
import { announce, debounce, h, replaceContent, s } from "../dom.js";
import { serializeSvg } from "../export.js";
import { formatNumber, t, textWidth, truncate } from "../page_text.js";
import { panel } from "../panel.js";
import { getState, setState, stateIndex } from "../url_state.js";

/** @typedef {"kept" | "pruned" | "ended"} Fate */
/** @typedef {{id: number, parent: number, step: number, token: number, text: string, logprob: number, total: number, score: number, fate: Fate, is_best: boolean}} BeamNode */
/** @typedef {{nodes: BeamNode[], hypotheses: {text: string, score: number}[]}} BeamTree */

const TEXTS = {
  title: { en: "Beam tree", zh: "集束搜索树" },
  note: {
    en: "At every step the beam keeps the best hypotheses. A node shows a token and its log-probability. The sum along a path, divided by its length, is the score.",
    zh: "每一步，集束只保留得分最高的几个候选。节点上是词元和它的对数概率；沿路径求和再除以长度，就是得分。",
  },
  beam: { en: "Beam size", zh: "集束宽度" },
  showPruned: { en: "Show pruned branches", zh: "显示被剪掉的分支" },
  tree: {
    en: "Search tree. Left and right go to the parent and to the best child; up and down go to other nodes of the step.",
    zh: "搜索树。左右键到父节点和最佳子节点，上下键到同一步的其他节点。",
  },
  keys: { en: "← parent, → child, ↑ ↓ same step", zh: "← 父节点，→ 子节点，↑ ↓ 同一步" },
  wait: { en: "Searching…", zh: "正在搜索…" },
  nodeDescription: { en: "{0}: log p {1}, total {2}, score {3}; {4}", zh: "{0}：log p {1}，总和 {2}，得分 {3}；{4}" },
  best: { en: "on the best path", zh: "在最佳路径上" },
  kept: { en: "kept", zh: "已保留" },
  pruned: { en: "pruned", zh: "已剪掉" },
  ended: { en: "ended", zh: "已结束" },
  hypotheses: { en: "Finished hypotheses, best first", zh: "完成的候选，最好的在前" },
  text: { en: "Text", zh: "文本" },
  score: { en: "Score", zh: "得分" },
};

/** @type {Record<Fate, import("../page_text.js").BilingualText>} */
const FATES = { kept: TEXTS.kept, pruned: TEXTS.pruned, ended: TEXTS.ended };

/** @returns {import("./decode.js").DecodePanel} */
export function beamTreePanel() {
  /** @type {BeamTree | null} */
  let tree = null;
  /** @type {TreeLayout | null} */
  let treeLayout = null;
  let [latestNumber, selected] = [0, 0];
  const beam = h("input", { type: "range", id: "beam", min: 1, max: 8, step: 1, oninput: () => setState({ beam: beam.value }) });
  const beamSize = h("output", { for: "beam", class: "number" });
  const showPruned = h("input", { type: "checkbox", id: "pruned", checked: true, onchange: () => updateLayout() });
  const nodeText = h("output", { class: "node-description", id: "node" });
  const canvas = h("div", { class: "beam-tree", id: "tree", tabindex: 0, role: "img", "aria-label": t(TEXTS.tree), onkeydown: moveSelection });
  const viewport = h("div", { class: "scroll" }, canvas);
  const hypotheses = h("table", { id: "hypotheses" });
  const element = panel(t(TEXTS.title), [
    h("div", { class: "controls beam-controls" }, h("label", {}, t(TEXTS.beam), beam, beamSize), h("label", {}, showPruned, t(TEXTS.showPruned)), h("span", { class: "note" }, t(TEXTS.keys))),
    viewport, nodeText, h("h3", {}, t(TEXTS.hypotheses)), h("div", { class: "scroll hypothesis-list", tabindex: 0, role: "region", "aria-label": t(TEXTS.hypotheses) }, hypotheses),
  ], { svg: () => (tree && treeLayout ? serializeSvg(drawTree(tree.nodes, treeLayout, selected)) : "<svg/>"), data: () => tree ?? {} }, t(TEXTS.note));

  viewport.addEventListener("scroll", () => requestAnimationFrame(draw));
  const observer = new ResizeObserver(() => draw());
  observer.observe(viewport);
  canvas.addEventListener("click", (event) => selectNode(nodeUnder(event)));
  canvas.addEventListener("pointerover", (event) => nodeUnder(event) !== null && showNode(nodeUnder(event)));
  canvas.addEventListener("pointerleave", () => showNode(selected));

  /** @param {import("../api.js").Trace | null} trace */
  async function load(trace) {
    const requestNumber = ++latestNumber;
    beam.value = getState("beam");
    beamSize.textContent = String(beamWidth());
    if (!trace) return replaceContent(canvas), replaceContent(hypotheses);
    element.setAttribute("aria-busy", "true");
    nodeText.textContent = t(TEXTS.wait);
    const result = await fetchExplorer("beam", { ...exploreRequest(), beam: beamWidth() }).catch((error) => {
      if (requestNumber === latestNumber) nodeText.textContent = String(error.message);
      return null;
    });
    if (requestNumber !== latestNumber) return;
    element.removeAttribute("aria-busy");
    tree = result;
    if (!tree) return;
    selected = bestNodeOfStep() ?? 0;
    replaceContent(hypotheses, h("thead", {}, h("tr", {}, ["", t(TEXTS.text), t(TEXTS.score)].map((title) => h("th", { scope: "col" }, title || "#")))),
      h("tbody", {}, tree.hypotheses.map((hypothesis, rank) => h("tr", {}, h("td", {}, rank), h("td", {}, hypothesis.text), h("td", {}, formatNumber(hypothesis.score))))));
    viewport.scrollLeft = 0;
    updateLayout();
    selectNode(selected, false);
  }

  /** Return the node of the best path that was written at the current step. */
  function bestNodeOfStep() {
    const step = Number(getState("step")) + 1;
    return tree?.nodes.find((node) => node.is_best && node.step === step)?.id ?? null;
  }

  function beamWidth() {
    return Math.max(1, stateIndex("beam", 4, 9));
  }

  function updateLayout() {
    if (!tree) return;
    treeLayout = layoutTree(tree.nodes, showPruned.checked);
    if (!treeLayout.positions.has(selected)) selected = 0;
    canvas.style.width = `${treeLayout.width}px`;
    canvas.style.height = `${treeLayout.height}px`;
    draw();
    showNode(selected);
  }

  /** Draw the visible steps only: a long sentence has thousands of nodes. */
  function draw() {
    if (!tree || !treeLayout) return;
    const first = Math.floor(viewport.scrollLeft / STEP_WIDTH) - 1;
    replaceContent(canvas, drawTree(tree.nodes, treeLayout, selected, [first, first + Math.ceil(viewport.clientWidth / STEP_WIDTH) + 3]));
  }

  /** @param {Event} event */
  function nodeUnder(event) {
    const group = /** @type {Element} */ (event.target).closest("[data-node]");
    return group ? Number(group.getAttribute("data-node")) : null;
  }

  /** @param {number | null} id */
  function describe(id) {
    const node = tree?.nodes[id ?? -1];
    if (!node) return "";
    const fate = node.is_best ? `${t(TEXTS.best)}, ${t(FATES[node.fate])}` : t(FATES[node.fate]);
    return t(TEXTS.nodeDescription, node.text, formatNumber(node.logprob), formatNumber(node.total), formatNumber(node.score), fate);
  }

  /** @param {number | null} id */
  function showNode(id) {
    nodeText.textContent = describe(id);
  }

  /**
   * @param {number | null} id
   * @param {boolean} [isAnnounced]
   */
  function selectNode(id, isAnnounced = true) {
    if (id === null || !treeLayout) return;
    selected = id;
    const position = treeLayout.positions.get(id);
    if (position && (position.x < viewport.scrollLeft || position.x + STEP_WIDTH > viewport.scrollLeft + viewport.clientWidth)) viewport.scrollLeft = position.x - viewport.clientWidth / 2;
    draw();
    showNode(id);
    if (isAnnounced) announce(describe(id));
  }

  /** @param {KeyboardEvent} event */
  function moveSelection(event) {
    if (!tree || !treeLayout) return;
    const node = tree.nodes[selected];
    const visible = tree.nodes.filter((node) => treeLayout?.positions.has(node.id));
    const sameStep = visible.filter(({ step }) => step === node.step).map(({ id }) => id);
    const children = visible.filter((node) => node.parent === selected);
    /** @type {Record<string, number | undefined>} */
    const targets = {
      ArrowLeft: node.parent < 0 ? undefined : node.parent,
      ArrowRight: (children.find((node) => node.is_best) ?? children[0])?.id,
      ArrowUp: sameStep[sameStep.indexOf(selected) - 1],
      ArrowDown: sameStep[sameStep.indexOf(selected) + 1],
      Home: 0,
      End: Math.max(...visible.filter((node) => node.is_best).map((node) => node.id)),
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    selectNode(targets[event.key] ?? null);
  }

  /** @type {import("../api.js").Trace | null} */
  let latestTrace = null;
  const reload = debounce(250, () => load(latestTrace));
  return {
    element,
    show(trace) {
      latestTrace = trace;
      load(trace);
    },
    update(changed) {
      if (changed.has("step")) selectNode(bestNodeOfStep(), false);
      if (!changed.has("beam")) return;
      beamSize.textContent = String(beamWidth());
      reload();
    },
    dispose() {
      latestNumber++;
      observer.disconnect();
    },
  };
}

// --- layout and drawing: one column per step, the most likely node on top -------------------------------------------

/** @typedef {{positions: Map<number, {x: number, y: number}>, width: number, height: number, steps: number}} TreeLayout */

export const STEP_WIDTH = 152; // CSS pixels per step
const [NODE_WIDTH, NODE_HEIGHT, ROW_HEIGHT, MARGIN] = [120, 32, 44, 8];

/**
 * @param {BeamNode[]} nodes
 * @param {boolean} includesPruned
 * @returns {TreeLayout}
 */
export function layoutTree(nodes, includesPruned) {
  const positions = new Map();
  /** @type {number[]} */
  const rowsUsed = [];
  for (const node of nodes) {
    if (node.fate === "pruned" && !includesPruned && !node.is_best) continue;
    const row = rowsUsed[node.step] ?? 0;
    rowsUsed[node.step] = row + 1;
    positions.set(node.id, { x: MARGIN + node.step * STEP_WIDTH, y: MARGIN + row * ROW_HEIGHT });
  }
  return { positions, width: rowsUsed.length * STEP_WIDTH + MARGIN, height: Math.max(...rowsUsed) * ROW_HEIGHT + MARGIN, steps: rowsUsed.length };
}

/**
 * Draw the tree. Colours are CSS variables of the page.
 * @param {BeamNode[]} nodes
 * @param {TreeLayout} treeLayout
 * @param {number} selected
 * @param {[number, number]} [steps] first and last step to draw
 */
export function drawTree(nodes, treeLayout, selected, steps = [0, treeLayout.steps]) {
  const visible = nodes.filter((node) => treeLayout.positions.has(node.id) && node.step >= steps[0] && node.step <= steps[1]);
  const children = visible.filter((node) => node.parent >= 0).sort((first, second) => Number(first.is_best) - Number(second.is_best));
  return s("svg", { xmlns: "http://www.w3.org/2000/svg", width: treeLayout.width, height: treeLayout.height, "font-size": 13, "font-family": "var(--sans)", "aria-hidden": "true" },
    s("rect", { width: "100%", height: "100%", fill: "var(--surface)" }),
    children.map((node) => drawEdge(node, treeLayout)), visible.map((node) => drawNode(node, treeLayout, node.id === selected)));
}

/**
 * @param {BeamNode} node
 * @param {TreeLayout} treeLayout
 */
function drawEdge(node, treeLayout) {
  const [from, to] = [treeLayout.positions.get(node.parent), treeLayout.positions.get(node.id)];
  if (!from || !to) return null;
  const [x, y, middle] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2, (from.x + NODE_WIDTH + to.x) / 2];
  return s("path", {
    d: `M${x} ${y}C${middle} ${y} ${middle} ${to.y + NODE_HEIGHT / 2} ${to.x} ${to.y + NODE_HEIGHT / 2}`, fill: "none",
    stroke: node.is_best ? "var(--accent)" : node.fate === "pruned" ? "var(--line)" : "var(--ink-muted)",
    "stroke-width": node.is_best ? 3 : 1, "stroke-dasharray": node.fate === "pruned" ? "3 3" : null,
  });
}

/**
 * @param {BeamNode} node
 * @param {TreeLayout} treeLayout
 * @param {boolean} isSelected
 */
function drawNode(node, treeLayout, isSelected) {
  const { x, y } = /** @type {{x: number, y: number}} */ (treeLayout.positions.get(node.id));
  const isPruned = node.fate === "pruned";
  const textColour = node.is_best ? "var(--on-accent)" : isPruned ? "var(--ink-muted)" : "var(--ink)";
  const logprob = node.parent < 0 ? "" : node.logprob.toFixed(2).replace("-", "−");
  return s("g", { "data-node": node.id, "data-fate": node.fate, "data-best": node.is_best ? "true" : null, transform: `translate(${x} ${y})` },
    s("rect", {
      width: NODE_WIDTH, height: NODE_HEIGHT, rx: 8, fill: node.is_best ? "var(--accent)" : "var(--surface)",
      stroke: isSelected ? "var(--highlight)" : node.is_best ? "var(--accent)" : isPruned ? "var(--line)" : "var(--ink-muted)",
      "stroke-width": isSelected ? 3 : 1, "stroke-dasharray": isPruned && !isSelected ? "3 3" : null,
    }),
    s("text", { x: 10, y: 21, fill: textColour }, truncate(node.text, 14 - textWidth(logprob))),
    s("text", { x: NODE_WIDTH - 10, y: 21, fill: textColour, "text-anchor": "end" }, logprob),
    node.fate === "ended" && s("rect", { x: NODE_WIDTH + 4, y: 8, width: 4, height: NODE_HEIGHT - 16, rx: 2, fill: node.is_best ? "var(--accent)" : "var(--ink-muted)" }));
}
