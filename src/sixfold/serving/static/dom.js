/** Create HTML and SVG elements in one expression, announce messages to screen readers, debounce input. */

/** @typedef {Node | string | number | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an HTML element. Properties that start with `on` are listeners; `dataset` and `style` are objects; all others are
 * attributes. Values and children that are null, undefined or false are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  populate(element, properties, children);
  return element;
}

/**
 * Return an SVG element; the parameters are those of `h`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function s(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  populate(element, properties, children);
  return element;
}

/**
 * @param {HTMLElement | SVGElement} element
 * @param {Record<string, any>} properties
 * @param {(Child | Child[])[]} children
 */
function populate(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") for (const [property, propertyValue] of Object.entries(value)) element.style.setProperty(property, String(propertyValue));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(isPresent).map((child) => (typeof child === "number" ? String(child) : child)));
}

/**
 * @param {Child} child
 * @returns {child is Node | string | number}
 */
function isPresent(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * Replace all children of an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replaceContent(element, ...children) {
  element.replaceChildren(
    ...children.flat().filter(isPresent).map((child) => (typeof child === "number" ? String(child) : child)),
  );
}

/**
 * Announce a text to screen readers.
 * @param {string} text
 */
export function announce(text) {
  const liveRegion = document.getElementById("live");
  if (liveRegion) liveRegion.textContent = text;
}

/**
 * Return a function that calls `callback` once no call has come for this long.
 * @template {any[]} Arguments
 * @param {number} milliseconds
 * @param {(...parameters: Arguments) => void} callback
 * @returns {(...parameters: Arguments) => void}
 */
export function debounce(milliseconds, callback) {
  let timer = 0;
  return (...parameters) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => callback(...parameters), milliseconds);
  };
}

/**
 * Escape a text for XML.
 * @param {unknown} text
 */
export function escapeXml(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// --- tables ---------------------------------------------------------------------------------------------------------

/** @typedef {(string | number)[]} TableRow */

/**
 * Return an HTML table that can scroll. The first row is the header; the first column holds the row names.
 * @param {TableRow[]} rows
 * @param {string} [className] CSS class
 */
export function dataTable([header, ...rows], className = "") {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": header.join(", ") }, h("table", { class: className },
    h("thead", {}, h("tr", {}, header.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell)))))));
}
