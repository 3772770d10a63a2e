/** A card for one stage of the walk: its equation, its numbers, and Python code that computes the selected number again. */

import { announce, escapeXml, h, replaceContent } from "../dom.js";
import { sheetSvg, toCsv } from "../export.js";
import { formula } from "../formula.js";
import { formatNumber, t } from "../page_text.js";
import { panel } from "../panel.js";
import { vectorImage, VectorView } from "../vector_view.js";
import { python } from "./walk_python.js";

const TEXTS = {
  component: { en: "component", zh: "分量" },
  key: { en: "key", zh: "键" },
  copy: { en: "Copy the Python code", zh: "复制 Python 代码" },
  copied: { en: "Copied", zh: "已复制" },
  code: { en: "Python code for this number", zh: "计算这个数的 Python 代码" },
  vector: { en: "{0}: {1} numbers", zh: "{0}：{1} 个数" },
};

const SHOWN_NUMBERS = 6; // how many numbers are written out

/**
 * @typedef {object} CardContent
 * @property {import("./walk_python.js").WalkPosition} position
 * @property {import("./walk_stages.js").Stage} stage
 * @property {Float32Array} values
 * @property {number} index the selected component
 * @property {string[] | null} names of the components
 * @property {(index: number) => string} nameOf
 * @property {string} expression Python expression of the number
 */

/**
 * @typedef {object} StageCard
 * @property {HTMLElement} element
 * @property {(content: CardContent) => void} show
 * @property {() => void} dispose
 */

/**
 * @param {import("./walk_stages.js").Stage} stage
 * @param {(index: number) => void} onSelect
 * @returns {StageCard}
 */
export function stageCard(stage, onSelect) {
  /** @type {CardContent | null} */
  let content = null;
  const title = t(stage.title);
  const vectorView = new VectorView(onSelect);
  const equation = h("div", { class: "equations" });
  const input = h("input", { type: "number", min: 0, step: 1, "aria-label": `${title}: ${t(stage.axis === "keys" ? TEXTS.key : TEXTS.component)}`, onchange: onTyped });
  const name = h("span", { class: "cell-word" });
  const value = h("output", { class: "value" });
  const numbers = h("p", { class: "numbers" });
  const { element: snippet, show: showPython } = pythonBox(title);
  const element = panel(title, [
    equation, vectorView.element, numbers,
    h("div", { class: "readout" }, h("label", {}, h("span", { class: "note" }, t(stage.axis === "keys" ? TEXTS.key : TEXTS.component)), input), name, value), snippet,
  ], { svg, data: () => toCsv([["index", "value"], ...Array.from(content?.values ?? [], (value, index) => [index, value])]) });
  element.classList.add("stage");
  element.id = `stage-${stage.id}`;
  element.dataset.stage = stage.id;

  function onTyped() {
    const count = content?.values.length ?? 1;
    onSelect(Math.max(0, Math.min(count - 1, Math.round(Number(input.value)) || 0)));
  }

  function svg() {
    if (!content) return "<svg/>";
    const { values, index } = content;
    const image = vectorImage(vectorData(content), 640);
    const lines = [...content.stage.formula.split("\n"), firstNumbers(values), `${content.expression} = ${formatNumber(values[index])}`];
    return sheetSvg(title, 640, image.height + 120, `<image x="12" y="44" width="640" height="${image.height}" preserveAspectRatio="none" style="image-rendering: pixelated" href="${image.href}"/>` +
      lines.map((line, index) => `<text x="12" y="${image.height + 68 + 24 * index}">${escapeXml(line)}</text>`).join(""));
  }

  /** @param {CardContent} what */
  function vectorData({ stage, values, names, position }) {
    const width = position.trace.d_head;
    /** @type {[number, number] | null} */
    const mark = stage.id === "concatenation" ? [position.head * width, (position.head + 1) * width] : null;
    return { values, label: t(TEXTS.vector, title, values.length), isSigned: stage.isSigned, names, mark };
  }

  return {
    element,
    dispose: () => vectorView.dispose(),
    show(newContent) {
      const isNew = content?.stage.formula !== newContent.stage.formula;
      content = newContent;
      if (isNew) replaceContent(equation, newContent.stage.formula.split("\n").map(formula), h("p", { class: "note" }, t(newContent.stage.about)));
      vectorView.show(vectorData(newContent), newContent.index);
      input.max = String(newContent.values.length - 1);
      input.value = String(newContent.index);
      name.textContent = newContent.nameOf(newContent.index);
      value.textContent = formatNumber(newContent.values[newContent.index]);
      value.dataset.value = String(newContent.values[newContent.index]);
      numbers.textContent = firstNumbers(newContent.values);
      showPython(python(newContent.position, newContent.stage, newContent.index), newContent.expression);
    },
  };
}

/** @param {Float32Array} values */
function firstNumbers(values) {
  const text = Array.from(values.subarray(0, SHOWN_NUMBERS), formatNumber).join("  ");
  return values.length > SHOWN_NUMBERS ? `${text}  …` : text;
}

/**
 * A box with the Python code, closed at first, and a copy button.
 * @param {string} title
 */
export function pythonBox(title) {
  const code = h("code", {});
  const expression = h("code", { class: "where" });
  const copy = h("button", { type: "button", class: "subtle copy", "aria-label": `${title}: ${t(TEXTS.copy)}`, onclick: () => copyCode() }, t(TEXTS.copy));
  const box = h("details", {}, h("summary", { class: "note" }, t(TEXTS.code)), h("pre", { tabindex: 0 }, code));
  const element = h("div", { class: "python" }, expression, copy, box);

  async function copyCode() {
    const text = code.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // The clipboard API needs HTTPS or localhost; elsewhere the text is selected and copied with the old command.
      box.open = true;
      getSelection()?.selectAllChildren(code);
      document.execCommand("copy");
    }
    copy.textContent = t(TEXTS.copied);
    announce(t(TEXTS.copied));
    setTimeout(() => (copy.textContent = t(TEXTS.copy)), 1500);
  }

  return {
    element,
    /**
     * @param {string} text
     * @param {string} name
     */
    show(text, name) {
      code.textContent = text;
      expression.textContent = name;
    },
  };
}
