/** Formulas in a small subset of TeX, converted to MathML: x_i, x^{2}, \frac{a}{b}, \sqrt{d}, \softmax. */

import { h } from "./dom.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const WORDS = new Set(["\\if", "\\else"]); // written as upright words

/**
 * @param {string} tag
 * @param {...(Node | string)} children
 */
function mathElement(tag, ...children) {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
export function formula(text) {
  const math = mathElement("math", parseRow(text.match(/\\[a-zA-Z]+|\d+(\.\d+)?|\S/gu) ?? []));
  math.setAttribute("display", "block");
  return h("div", { class: "formula", dataset: { formula: text } }, math);
}

/**
 * Parse signs up to a closing brace or the end. The signs that were read are removed from the list.
 * @param {string[]} signs
 */
function parseRow(signs) {
  const element = mathElement("mrow");
  while (signs.length && signs[0] !== "}") element.append(parseScripts(signs));
  signs.shift();
  return element;
}

/**
 * Parse one atom with its subscript and superscript.
 * @param {string[]} signs
 */
function parseScripts(signs) {
  const base = parseAtom(signs);
  /** @type {Record<string, Element>} */
  const scripts = {};
  while (signs[0] === "_" || signs[0] === "^") scripts[/** @type {string} */ (signs.shift())] = parseAtom(signs);
  if (scripts._ && scripts["^"]) return mathElement("msubsup", base, scripts._, scripts["^"]);
  if (scripts._) return mathElement("msub", base, scripts._);
  return scripts["^"] ? mathElement("msup", base, scripts["^"]) : base;
}

/**
 * @param {string[]} signs
 * @returns {Element}
 */
function parseAtom(signs) {
  const sign = signs.shift() ?? "";
  if (sign === "{") return parseRow(signs);
  if (sign === "\\frac") return mathElement("mfrac", parseAtom(signs), parseAtom(signs));
  if (sign === "\\sqrt") return mathElement("msqrt", parseAtom(signs));
  if (WORDS.has(sign)) return mathElement("mtext", `\u00a0${sign.slice(1)}\u00a0`);
  if (sign.startsWith("\\")) return mathElement("mi", sign.slice(1)); // function names are set upright
  if (/^\d/.test(sign)) return mathElement("mn", sign);
  return /\p{L}/u.test(sign) && sign !== "Σ" ? mathElement("mi", sign) : mathElement("mo", sign);
}
