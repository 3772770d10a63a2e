/** The same head on a second sentence or in a second model, beside the first, in the same colours. */

import { asked, explore, models, Refused } from "../api.js";
import { h, refill, settled } from "../dom.js";
import { Matrix } from "../heat_map.js";
import { t } from "../page_text.js";
import { panel } from "../panel.js";
import { get, set } from "../url_state.js";
import { besideSvg } from "./attention_heat_maps.js";
import { Weights } from "./attention_weights.js";

/** @typedef {import("./attention_weights.js").Shown} Shown */
/** @typedef {import("../heat_map.js").MatrixData} MatrixData */

const WORDS = {
  title: { en: "Compare", zh: "对比" },
  note: { en: "The same head on a second sentence, in the same colours.", zh: "同一个头用于第二个句子，颜色标度相同。" },
  other: { en: "Second sentence", zh: "第二个句子" },
  model: { en: "Second model", zh: "第二个模型" },
  sameModel: { en: "the same model", zh: "同一模型" },
  clear: { en: "Clear", zh: "清除" },
  difference: { en: "The first less the second", zh: "第一个减第二个" },
  unlike: { en: "The two have not the same number of pieces, so no difference is drawn.", zh: "两者的词元数不同，因此不画差值。" },
  most: { en: "When “{0}” asks, these heads differ most:", zh: "当“{0}”发问时，差别最大的头：" },
  go: { en: "Show {0}: {1} of the weight moves", zh: "查看 {0}：有 {1} 的权重移动" },
  failed: { en: "That did not work: {0}", zh: "出错了：{0}" },
};

/** @returns {import("./attention_weights.js").Part} */
export function comparePart() {
  /** @type {Shown | null} */
  let now = null;
  /** @type {Weights | null} */
  let second = null;
  /** @type {MatrixData[]} */
  let drawn = [];
  let last = "";
  let turn = 0;
  const said = h("p", { class: "wrong", hidden: true });
  const fields = inputs();
  const matrices = Array.from({ length: 3 }, () => new Matrix({ onSelect: (row, column) => set({ row, column }) }));
  const titles = matrices.map(() => h("h3", {}));
  const sides = matrices.map((matrix, place) => h("div", { id: `side-${place}` }, titles[place], matrix.element));
  const heads = h("div", { class: "actions", id: "most-different" });
  const unlike = h("p", { class: "note" }, t(WORDS.unlike));
  const body = h("div", { hidden: true }, heads, unlike, h("div", { class: "columns beside" }, sides));
  const element = panel(t(WORDS.title), [fields.element, said, body], {
    svg: () => besideSvg(t(WORDS.title), drawn.length ? drawn : now ? [now.weights.get(now.layer, now.head)] : []),
    data: () => ({ sentences: [now?.weights.trace.text, second?.trace.text], matrices: drawn.map(plain) }),
  }, t(WORDS.note));

  /** @param {Shown} shown */
  async function load(shown) {
    const mine = ++turn;
    const text = get("other") || shown.weights.trace.text;
    const question = asked({ text, ...(get("other") && { translation: null }), ...(get("otherModel") && { model: get("otherModel") }) });
    try {
      const trace = await explore(question);
      const found = await Weights.load(question, trace, shown.weights.kind, shown.weights.isWords);
      if (mine !== turn) return;
      [second, said.hidden] = [found, true];
      if (now) draw(now);
    } catch (error) {
      if (mine !== turn) return;
      [body.hidden, said.hidden] = [true, false];
      said.textContent = t(WORDS.failed, error instanceof Refused ? error.message : String(error));
    }
  }

  /** @param {Shown} shown */
  function draw({ weights, layer, head, row, column }) {
    if (!second) return;
    const other = second;
    const [one, its] = [weights.get(layer, head), other.get(Math.min(layer, other.layers - 1), Math.min(head, other.heads - 1))];
    const isAlike = one.rows.length === its.rows.length && one.columns.length === its.columns.length;
    if (drawn[0] !== one || drawn[1] !== its) drawn = [one, its, ...(isAlike ? [less(one, its)] : [])];
    body.hidden = false;
    const names = [weights, other].map(({ trace }) => (get("otherModel") ? `${trace.text} (${trace.model})` : trace.text));
    [...names, t(WORDS.difference)].forEach((name, place) => (titles[place].textContent = name));
    sides[2].hidden = !isAlike;
    unlike.hidden = isAlike;
    drawn.forEach((data, place) => matrices[place].show(data, [Math.min(row, data.rows.length - 1), Math.min(column, data.columns.length - 1)]));
    refill(heads, isAlike && weights.layers === other.layers && [h("span", { class: "note" }, t(WORDS.most, weights.rows.texts[row])),
      ...differing(weights, other, row).map(({ name, moved, layer: its_, head: place }) => h("button", {
        type: "button", class: "outlined", "aria-label": t(WORDS.go, name, percent(moved)), dataset: { head: name },
        onclick: () => set({ layer: its_, head: place, row, column: "" }) }, `${name} · ${percent(moved)}`))]);
  }

  return {
    element,
    show(shown) {
      now = shown;
      fields.show();
      const { weights } = shown;
      const wanted = get("other") || get("otherModel") ? JSON.stringify([weights.asked, weights.kind, weights.isWords, get("other"), get("otherModel")]) : "";
      if (wanted === last) return draw(shown);
      last = wanted;
      [second, drawn] = [null, []];
      if (wanted) load(shown);
      else [turn, body.hidden, said.hidden] = [turn + 1, true, true];
    },
  };
}

/** The second sentence, and the second model where several are open. */
function inputs() {
  const text = h("input", { type: "text", id: "other", value: get("other"), placeholder: t(WORDS.other), "aria-label": t(WORDS.other), autocomplete: "off" });
  const model = h("select", { id: "other-model", "aria-label": t(WORDS.model), hidden: true }, h("option", { value: "" }, t(WORDS.sameModel)));
  const clear = h("button", { type: "button", class: "outlined", onclick: () => set({ other: "", otherModel: "" }) }, t(WORDS.clear));
  text.addEventListener("input", settled(350, () => set({ other: text.value })));
  model.addEventListener("change", () => set({ otherModel: model.value }));
  models().then((open) => {
    for (const { name } of open.models) model.append(h("option", { value: name }, name));
    model.hidden = open.models.length < 2;
    model.value = get("otherModel");
  }).catch(() => {});
  return {
    element: h("div", { class: "compared" }, text, model, clear),
    show() {
      if (document.activeElement !== text) text.value = get("other");
      model.value = get("otherModel");
    },
  };
}

/** @param {number} part */
const percent = (part) => `${Math.round(100 * part)}%`;

/**
 * @param {MatrixData} one
 * @param {MatrixData} other
 * @returns {MatrixData}
 */
function less(one, other) {
  const rows = one.rows.map((text, row) => (text === other.rows[row] ? text : `${text} | ${other.rows[row]}`));
  const columns = one.columns.map((text, column) => (text === other.columns[column] ? text : `${text} | ${other.columns[column]}`));
  const values = one.values.map((value, place) => value - other.values[place]);
  return { rows, columns, values, isOpen: one.isOpen, isSigned: true, most: 1, label: t(WORDS.difference) };
}

/**
 * The heads in which most of a row's weight goes elsewhere.
 * @param {Weights} one
 * @param {Weights} other
 * @param {number} row
 */
function differing(one, other, row) {
  const found = [];
  for (let layer = 0; layer < one.layers; layer++)
    for (let head = 0; head < Math.min(one.heads, other.heads); head++) {
      const [first, second] = [one.row(layer, head, row), other.row(layer, head, row)];
      let moved = 0;
      for (let place = 0; place < first.length; place++) moved += Math.abs(first[place] - second[place]) / 2;
      found.push({ name: `${one.kind}.${layer}.${head}`, layer, head, moved });
    }
  return found.sort((a, b) => b.moved - a.moved).slice(0, 5);
}

/** @param {MatrixData} data */
function plain({ label, rows, columns, values }) {
  return { label, rows, columns, values: rows.map((_, row) => [...values.subarray(row * columns.length, (row + 1) * columns.length)]) };
}
