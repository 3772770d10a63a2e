/** A stage of the walk as a card: what it is, its equation, its numbers, and the Python that computes one of them again. */

import { announce, escape, h, refill } from "../dom.js";
import { csv, sheet } from "../export.js";
import { formula } from "../formula.js";
import { number, t } from "../page_text.js";
import { panel } from "../panel.js";
import { Ribbon, ribbonImage } from "../vector_view.js";
import { python } from "./walk_python.js";

const WORDS = {
  component: { en: "component", zh: "分量" },
  looked: { en: "key", zh: "键" },
  copy: { en: "Copy the Python", zh: "复制 Python" },
  copied: { en: "Copied", zh: "已复制" },
  code: { en: "Python for this number", zh: "算出它的 Python" },
  vector: { en: "{0}: {1} numbers", zh: "{0}：{1} 个数" },
};

const FIRST = 6; // numbers that are written out

/**
 * @typedef {object} Shown
 * @property {import("./walk_python.js").Spot} spot
 * @property {import("./walk_stages.js").Stage} stage
 * @property {Float32Array} values
 * @property {number} index the component that is looked at
 * @property {string[] | null} names of the components
 * @property {(index: number) => string} nameOf
 * @property {string} where the number as Python would index it
 */

/**
 * @typedef {object} Card
 * @property {HTMLElement} element
 * @property {(shown: Shown) => void} show
 * @property {() => void} end
 */

/**
 * @param {import("./walk_stages.js").Stage} stage
 * @param {(index: number) => void} onSelect
 * @returns {Card}
 */
export function card(stage, onSelect) {
  /** @type {Shown | null} */
  let shown = null;
  const title = t(stage.title);
  const ribbon = new Ribbon(onSelect);
  const equation = h("div", { class: "law" });
  const input = h("input", { type: "number", min: 0, step: 1, "aria-label": `${title}: ${t(stage.axis === "keys" ? WORDS.looked : WORDS.component)}`, onchange: typed });
  const name = h("span", { class: "cell-word" });
  const value = h("output", { class: "value" });
  const numbers = h("p", { class: "numbers" });
  const { element: snippet, show: showPython } = pythonBox(title);
  const element = panel(title, [
    equation, ribbon.element, numbers,
    h("div", { class: "readout" }, h("label", {}, h("span", { class: "note" }, t(stage.axis === "keys" ? WORDS.looked : WORDS.component)), input), name, value), snippet,
  ], { svg, data: () => csv([["index", "value"], ...Array.from(shown?.values ?? [], (each, at) => [at, each])]) });
  element.classList.add("stage");
  element.id = `stage-${stage.id}`;
  element.dataset.stage = stage.id;

  function typed() {
    const count = shown?.values.length ?? 1;
    onSelect(Math.max(0, Math.min(count - 1, Math.round(Number(input.value)) || 0)));
  }

  function svg() {
    if (!shown) return "<svg/>";
    const { values, index } = shown;
    const image = ribbonImage(data(shown), 640);
    const lines = [...shown.stage.formula.split("\n"), first(values), `${shown.where} = ${number(values[index])}`];
    return sheet(title, 640, image.height + 120, `<image x="12" y="44" width="640" height="${image.height}" preserveAspectRatio="none" style="image-rendering: pixelated" href="${image.href}"/>` +
      lines.map((line, at) => `<text x="12" y="${image.height + 68 + 24 * at}">${escape(line)}</text>`).join(""));
  }

  /** @param {Shown} what */
  function data({ stage: its, values, names, spot }) {
    const width = spot.trace.d_head;
    /** @type {[number, number] | null} */
    const mark = its.id === "concatenation" ? [spot.head * width, (spot.head + 1) * width] : null;
    return { values, label: t(WORDS.vector, title, values.length), isSigned: its.isSigned, names, mark };
  }

  return {
    element,
    end: () => ribbon.end(),
    show(what) {
      const isNew = shown?.stage.formula !== what.stage.formula;
      shown = what;
      if (isNew) refill(equation, what.stage.formula.split("\n").map(formula), h("p", { class: "note" }, t(what.stage.about)));
      ribbon.show(data(what), what.index);
      input.max = String(what.values.length - 1);
      input.value = String(what.index);
      name.textContent = what.nameOf(what.index);
      value.textContent = number(what.values[what.index]);
      value.dataset.value = String(what.values[what.index]);
      numbers.textContent = first(what.values);
      showPython(python(what.spot, what.stage, what.index), what.where);
    },
  };
}

/** @param {Float32Array} values */
function first(values) {
  const shown = Array.from(values.subarray(0, FIRST), number).join("  ");
  return values.length > FIRST ? `${shown}  …` : shown;
}

/**
 * The code, folded away, and the button that copies it.
 * @param {string} title
 */
export function pythonBox(title) {
  const code = h("code", {});
  const where = h("code", { class: "where" });
  const copy = h("button", { type: "button", class: "quiet copy", "aria-label": `${title}: ${t(WORDS.copy)}`, onclick: () => take() }, t(WORDS.copy));
  const box = h("details", {}, h("summary", { class: "note" }, t(WORDS.code)), h("pre", { tabindex: 0 }, code));
  const element = h("div", { class: "python" }, where, copy, box);

  async function take() {
    const text = code.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Browsers lend the clipboard to safe origins only; elsewhere the text is selected, and they may still copy that.
      box.open = true;
      getSelection()?.selectAllChildren(code);
      document.execCommand("copy");
    }
    copy.textContent = t(WORDS.copied);
    announce(t(WORDS.copied));
    setTimeout(() => (copy.textContent = t(WORDS.copy)), 1500);
  }

  return {
    element,
    /**
     * @param {string} text
     * @param {string} name
     */
    show(text, name) {
      code.textContent = text;
      where.textContent = name;
    },
  };
}
