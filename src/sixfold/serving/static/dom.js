/** Elements made in one expression: a tag, its properties, what is inside. */

/** @typedef {Node | string | number | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. A property that begins with `on` is a listener, `dataset` and `style` are tables, the rest are
 * attributes; what is null, undefined or false is left out.
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
 * An SVG element.
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
 * Everything in it replaced.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replaceContent(element, ...children) {
  element.replaceChildren(
    ...children.flat().filter(isPresent).map((child) => (typeof child === "number" ? String(child) : child)),
  );
}

/**
 * Said to who listens to the page instead of looking at it.
 * @param {string} text
 */
export function announce(text) {
  const liveRegion = document.getElementById("live");
  if (liveRegion) liveRegion.textContent = text;
}

/**
 * The last call of a quick series, after a rest.
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
 * Text that is safe inside of markup.
 * @param {unknown} text
 */
export function escapeXml(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// --- Rows of words and numbers on the page.

/** @typedef {(string | number)[]} TableRow */

/**
 * On the page; the first row is the head, the first column names the rows.
 * @param {TableRow[]} rows
 * @param {string} [className] a class of its own
 */
export function dataTable([header, ...rows], className = "") {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": header.join(", ") }, h("table", { class: className },
    h("thead", {}, h("tr", {}, header.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell)))))));
}
