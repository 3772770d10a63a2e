/** A formula in a few signs of TeX as MathML, which browsers set by themselves: x_i, x^{2}, \frac{a}{b}, \sqrt{d}, \softmax. */

import { h } from "./dom.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const SPOKEN = new Set(["\\if", "\\else"]); // words between signs

/**
 * @param {string} tag
 * @param {...(Node | string)} children
 */
function m(tag, ...children) {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
export function formula(text) {
  const math = m("math", row(text.match(/\\[a-zA-Z]+|\d+(\.\d+)?|\S/gu) ?? []));
  math.setAttribute("display", "block");
  return h("div", { class: "formula", dataset: { formula: text } }, math);
}

/**
 * What is read away from the front of the signs, up to a closing brace or the end.
 * @param {string[]} signs
 */
function row(signs) {
  const found = m("mrow");
  while (signs.length && signs[0] !== "}") found.append(scripted(signs));
  signs.shift();
  return found;
}

/**
 * One thing with what stands below and above it.
 * @param {string[]} signs
 */
function scripted(signs) {
  const base = one(signs);
  /** @type {Record<string, Element>} */
  const scripts = {};
  while (signs[0] === "_" || signs[0] === "^") scripts[/** @type {string} */ (signs.shift())] = one(signs);
  if (scripts._ && scripts["^"]) return m("msubsup", base, scripts._, scripts["^"]);
  if (scripts._) return m("msub", base, scripts._);
  return scripts["^"] ? m("msup", base, scripts["^"]) : base;
}

/**
 * @param {string[]} signs
 * @returns {Element}
 */
function one(signs) {
  const sign = signs.shift() ?? "";
  if (sign === "{") return row(signs);
  if (sign === "\\frac") return m("mfrac", one(signs), one(signs));
  if (sign === "\\sqrt") return m("msqrt", one(signs));
  if (SPOKEN.has(sign)) return m("mtext", `\u00a0${sign.slice(1)}\u00a0`);
  if (sign.startsWith("\\")) return m("mi", sign.slice(1)); // several letters stand upright: a function's name
  if (/^\d/.test(sign)) return m("mn", sign);
  return /\p{L}/u.test(sign) && sign !== "Σ" ? m("mi", sign) : m("mo", sign);
}
