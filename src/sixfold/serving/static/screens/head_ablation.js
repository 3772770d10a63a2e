/** Head ablation: the translation with all heads beside the one without the disabled heads, with different words marked. */

import { exploreRequest, fetchTrace } from "../api.js";
import { escapeXml, h, replaceContent } from "../dom.js";
import { figureSvg } from "../export.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { getState } from "../url_state.js";
import { disabledHeads } from "./attention_heat_maps.js";

/** @typedef {import("../api.js").Trace} Trace */
/** @typedef {{text: string, isChanged: boolean}[]} MarkedText */

const TEXTS = {
  title: { en: "With and without these heads", zh: "关闭这些头前后的译文" },
  none: { en: "All heads are on. Switch the selected head off to see the translation without it.", zh: "所有头都开着。关闭选中的头，看看没有它时的译文。" },
  before: { en: "All heads on", zh: "所有头都打开" },
  after: { en: "Without {0}", zh: "去掉 {0}" },
  many: { en: "{0} heads", zh: "{0} 个头" },
  meanProbability: { en: "probability per token, geometric mean: {0}", zh: "每个词元的概率（几何平均）：{0}" },
  same: { en: "The translation does not change.", zh: "译文不变。" },
  differs: { en: "{0} words differ.", zh: "有 {0} 个词不同。" },
};

/** @returns {import("./attention_weights.js").AttentionPanel} */
export function headAblationPanel() {
  /** @type {{before: Trace, after: Trace} | null} */
  let traces = null;
  let latestNumber = 0;
  let shownRequest = "";
  const body = h("div", { id: "ablation" });
  const element = panel(t(TEXTS.title), [body], { svg: () => ablationSvg(traces), data: () => exportData(traces) });

  async function compare() {
    const requestNumber = ++latestNumber;
    const changes = getState("given") ? { translation: null } : {};
    const [before, after] = await Promise.all([fetchTrace(exploreRequest({ ...changes, off: [] })), fetchTrace(exploreRequest(changes))]);
    if (requestNumber !== latestNumber) return;
    traces = { before, after };
    const [markedBefore, markedAfter] = markDifferences(before, after);
    const count = markedAfter.filter((part) => part.isChanged).length || markedBefore.filter((part) => part.isChanged).length;
    replaceContent(body,
      h("p", { class: "note", id: "difference" }, count ? t(TEXTS.differs, count) : t(TEXTS.same)),
      h("div", { class: "columns" }, translationColumn(t(TEXTS.before), before, markedBefore, "before"), translationColumn(ablationTitle(), after, markedAfter, "after")));
  }

  return {
    element,
    show({ weights }) {
      const neededRequest = JSON.stringify(weights.request);
      if (neededRequest === shownRequest) return;
      shownRequest = neededRequest;
      if (disabledHeads().length > 0) {
        compare().catch((error) => replaceContent(body, h("p", { class: "error" }, String(error.message))));
        return;
      }
      latestNumber++;
      traces = { before: weights.trace, after: weights.trace };
      replaceContent(body, h("p", { class: "note" }, t(TEXTS.none)));
    },
  };
}

function ablationTitle() {
  const off = disabledHeads();
  return t(TEXTS.after, off.length > 4 ? t(TEXTS.many, off.length) : off.join(", "));
}

/**
 * @param {string} title
 * @param {Trace} trace
 * @param {MarkedText} parts
 * @param {string} id
 */
function translationColumn(title, trace, parts, id) {
  return h("div", {}, h("h3", {}, title),
    h("p", { class: "translation-text", id }, parts.map(({ text, isChanged }) => (isChanged ? h("mark", {}, text) : text))),
    h("p", { class: "note" }, t(TEXTS.meanProbability, formatNumber(meanProbability(trace)))));
}

/** @param {Trace} trace */
function meanProbability(trace) {
  const logs = trace.steps.map((step) => Math.log(step.probability));
  return Math.exp(logs.reduce((sum, value) => sum + value, 0) / Math.max(1, logs.length));
}

/**
 * Return the words of a translation and the gaps after them. Spans count characters, not UTF-16 code units.
 * @param {Trace} trace
 */
function wordsOf(trace) {
  const characters = [...trace.translation];
  const { words, spans } = trace.predicted;
  return words.map((word) => ({ start: spans[word[0]][0], end: spans[word[word.length - 1]][1] }))
    .filter(({ start, end }) => end > start)
    .map(({ start, end }, index, words) => ({ text: characters.slice(start, end).join(""), gap: characters.slice(end, words[index + 1]?.start ?? characters.length).join("") }));
}

/**
 * Mark the words of each translation that are not in the longest common subsequence.
 * @param {Trace} before
 * @param {Trace} after
 * @returns {[MarkedText, MarkedText]}
 */
export function markDifferences(before, after) {
  const [beforeWords, afterWords] = [wordsOf(before), wordsOf(after)];
  const commonLength = beforeWords.map(() => new Array(afterWords.length + 1).fill(0)).concat([new Array(afterWords.length + 1).fill(0)]);
  for (let i = beforeWords.length - 1; i >= 0; i--)
    for (let j = afterWords.length - 1; j >= 0; j--)
      commonLength[i][j] = beforeWords[i].text === afterWords[j].text ? commonLength[i + 1][j + 1] + 1 : Math.max(commonLength[i + 1][j], commonLength[i][j + 1]);
  /** @type {[Set<number>, Set<number>]} */
  const unchanged = [new Set(), new Set()];
  for (let i = 0, j = 0; i < beforeWords.length && j < afterWords.length;) {
    if (beforeWords[i].text === afterWords[j].text) {
      unchanged[0].add(i++);
      unchanged[1].add(j++);
    } else if (commonLength[i + 1][j] >= commonLength[i][j + 1]) i++;
    else j++;
  }
  const markWords = (/** @type {typeof beforeWords} */ words, /** @type {Set<number>} */ unchangedWords) => words.flatMap(({ text, gap }, index) =>
    [{ text, isChanged: !unchangedWords.has(index) }, ...(gap ? [{ text: gap, isChanged: false }] : [])]);
  return [markWords(beforeWords, unchanged[0]), markWords(afterWords, unchanged[1])];
}

/** @param {{before: Trace, after: Trace} | null} traces */
function exportData(traces) {
  if (!traces) return {};
  const summary = (/** @type {Trace} */ trace) => ({ translation: trace.translation, probability: meanProbability(trace), off: trace.off });
  return { text: traces.before.text, before: summary(traces.before), after: summary(traces.after) };
}

/** @param {{before: Trace, after: Trace} | null} traces */
function ablationSvg(traces) {
  if (!traces) return figureSvg(200, 40, t(TEXTS.title), "");
  const lines = markDifferences(traces.before, traces.after).map((parts, index) =>
    `<text x="12" y="${58 + 62 * index}" fill="#555b6e">${escapeXml(index ? ablationTitle() : t(TEXTS.before))}</text>` +
    `<text x="12" y="${82 + 62 * index}" font-size="18">${parts.map(({ text, isChanged }) =>
      `<tspan${isChanged ? ' fill="#c2570c" font-weight="600"' : ""}>${escapeXml(text)}</tspan>`).join("")}</text>`);
  const longest = Math.max(traces.before.translation.length, traces.after.translation.length);
  return figureSvg(Math.max(320, 24 + 18 * longest), 164, traces.before.text, lines.join(""));
}
