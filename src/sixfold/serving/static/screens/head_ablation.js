/** The translation with all heads on beside the one with some switched off, with the words that differ marked. */

import { asked, explore } from "../api.js";
import { escape, h, refill } from "../dom.js";
import { svgFrame } from "../export.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { get } from "../url_state.js";
import { switchedOff } from "./attention_heat_maps.js";

/** @typedef {import("../api.js").Trace} Trace */
/** @typedef {{text: string, isChanged: boolean}[]} Marked */

const WORDS = {
  title: { en: "With and without these heads", zh: "有无这些头的译文" },
  none: { en: "All heads are on. Switch the chosen one off to see what the model says without it.", zh: "所有头都开着。关闭选中的头，看看模型没有它会怎么译。" },
  before: { en: "All heads on", zh: "全部打开" },
  after: { en: "Without {0}", zh: "没有 {0}" },
  many: { en: "{0} heads", zh: "{0} 个头" },
  sure: { en: "probability of a piece, geometric mean: {0}", zh: "每个词元的概率（几何平均）：{0}" },
  same: { en: "The translation stays the same.", zh: "译文不变。" },
  differs: { en: "{0} words differ.", zh: "有 {0} 个词不同。" },
};

/** @returns {import("./attention_weights.js").Part} */
export function switchedPart() {
  /** @type {{before: Trace, after: Trace} | null} */
  let both = null;
  let turn = 0;
  let last = "";
  const body = h("div", { id: "switched" });
  const element = panel(t(WORDS.title), [body], { svg: () => svg(both), data: () => told(both) });

  async function compare() {
    const mine = ++turn;
    const own = get("given") ? { translation: null } : {};
    const [before, after] = await Promise.all([explore(asked({ ...own, off: [] })), explore(asked(own))]);
    if (mine !== turn) return;
    both = { before, after };
    const [one, other] = differing(before, after);
    const count = other.filter((part) => part.isChanged).length || one.filter((part) => part.isChanged).length;
    refill(body,
      h("p", { class: "note", id: "difference" }, count ? t(WORDS.differs, count) : t(WORDS.same)),
      h("div", { class: "columns" }, side(t(WORDS.before), before, one, "before"), side(named(), after, other, "after")));
  }

  return {
    element,
    show({ weights }) {
      const wanted = JSON.stringify(weights.asked);
      if (wanted === last) return;
      last = wanted;
      if (switchedOff().length > 0) {
        compare().catch((error) => refill(body, h("p", { class: "wrong" }, String(error.message))));
        return;
      }
      turn++;
      both = { before: weights.trace, after: weights.trace };
      refill(body, h("p", { class: "note" }, t(WORDS.none)));
    },
  };
}

function named() {
  const off = switchedOff();
  return t(WORDS.after, off.length > 4 ? t(WORDS.many, off.length) : off.join(", "));
}

/**
 * @param {string} title
 * @param {Trace} trace
 * @param {Marked} parts
 * @param {string} id
 */
function side(title, trace, parts, id) {
  return h("div", {}, h("h3", {}, title),
    h("p", { class: "said", id }, parts.map(({ text, isChanged }) => (isChanged ? h("mark", {}, text) : text))),
    h("p", { class: "note" }, t(WORDS.sure, number(surety(trace)))));
}

/** @param {Trace} trace */
function surety(trace) {
  const logs = trace.steps.map((step) => Math.log(step.probability));
  return Math.exp(logs.reduce((sum, each) => sum + each, 0) / Math.max(1, logs.length));
}

/**
 * The words of a translation with what stands between them; places count characters, not their halves.
 * @param {Trace} trace
 */
function wordsOf(trace) {
  const letters = [...trace.translation];
  const { words, spans } = trace.predicted;
  return words.map((word) => ({ start: spans[word[0]][0], end: spans[word[word.length - 1]][1] }))
    .filter(({ start, end }) => end > start)
    .map(({ start, end }, place, all) => ({ text: letters.slice(start, end).join(""), gap: letters.slice(end, all[place + 1]?.start ?? letters.length).join("") }));
}

/**
 * Both translations, with the words marked that the other one has not, by the longest row of words in common.
 * @param {Trace} before
 * @param {Trace} after
 * @returns {[Marked, Marked]}
 */
export function differing(before, after) {
  const [one, other] = [wordsOf(before), wordsOf(after)];
  const common = one.map(() => new Array(other.length + 1).fill(0)).concat([new Array(other.length + 1).fill(0)]);
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      common[i][j] = one[i].text === other[j].text ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  /** @type {[Set<number>, Set<number>]} */
  const kept = [new Set(), new Set()];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i].text === other[j].text) {
      kept[0].add(i++);
      kept[1].add(j++);
    } else if (common[i + 1][j] >= common[i][j + 1]) i++;
    else j++;
  }
  const marked = (/** @type {typeof one} */ words, /** @type {Set<number>} */ same) => words.flatMap(({ text, gap }, place) =>
    [{ text, isChanged: !same.has(place) }, ...(gap ? [{ text: gap, isChanged: false }] : [])]);
  return [marked(one, kept[0]), marked(other, kept[1])];
}

/** @param {{before: Trace, after: Trace} | null} both */
function told(both) {
  if (!both) return {};
  const its = (/** @type {Trace} */ trace) => ({ translation: trace.translation, probability: surety(trace), off: trace.off });
  return { text: both.before.text, before: its(both.before), after: its(both.after) };
}

/** @param {{before: Trace, after: Trace} | null} both */
function svg(both) {
  if (!both) return svgFrame(200, 40, t(WORDS.title), "");
  const lines = differing(both.before, both.after).map((parts, place) =>
    `<text x="12" y="${58 + 62 * place}" fill="#555b6e">${escape(place ? named() : t(WORDS.before))}</text>` +
    `<text x="12" y="${82 + 62 * place}" font-size="18">${parts.map(({ text, isChanged }) =>
      `<tspan${isChanged ? ' fill="#c2570c" font-weight="600"' : ""}>${escape(text)}</tspan>`).join("")}</text>`);
  const longest = Math.max(both.before.translation.length, both.after.translation.length);
  return svgFrame(Math.max(320, 24 + 18 * longest), 164, both.before.text, lines.join(""));
}
