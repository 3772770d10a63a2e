/** A panel of a screen: a title, its content, and buttons that save it as PNG, SVG and data. */

import { h } from "./dom.js";
import { t } from "./page_text.js";

const TEXTS = {
  save: { en: "Save {0} as {1}", zh: "将“{0}”保存为 {1}" },
  data: { en: "data", zh: "数据" },
};

/**
 * @typedef {object} Exports
 * @property {() => string | Promise<string>} svg the content as an SVG file
 * @property {() => string | object | Promise<string | object>} data a string is saved as CSV, anything else as JSON
 */

let count = 0;

/**
 * @param {string} title
 * @param {(import("./dom.js").Child)[]} body
 * @param {Exports | null} [exports]
 * @param {string} [note] text below the title
 */
export function panel(title, body, exports = null, note = "") {
  const id = `panel-${++count}`;
  return h(
    "section",
    { class: "panel", "aria-labelledby": id },
    h("div", { class: "panel-head" }, h("h2", { id }, title), exports && exportButtons(title, exports)),
    note && h("p", { class: "note" }, note),
    ...body,
  );
}

/**
 * @param {string} title
 * @param {Exports} exports
 */
export function exportButtons(title, exports) {
  const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  /** @type {[string, string, () => void][]} */
  const kinds = [
    ["PNG", "png", async () => download(`${name}.png`, await renderPng(await exports.svg()))],
    ["SVG", "svg", async () => download(`${name}.svg`, new Blob([await exports.svg()], { type: "image/svg+xml" }))],
    [t(TEXTS.data), "data", async () => downloadData(name, await exports.data())],
  ];
  return h("div", { class: "exports" }, kinds.map(([label, kind, save]) =>
    h("button", { class: "subtle", type: "button", onclick: save, dataset: { export: kind }, "aria-label": t(TEXTS.save, title, label) }, label)));
}

/**
 * @param {string} name
 * @param {string | object} data
 */
function downloadData(name, data) {
  const isTable = typeof data === "string";
  const text = isTable ? data : JSON.stringify(data, null, 1);
  download(`${name}.${isTable ? "csv" : "json"}`, new Blob([text], { type: isTable ? "text/csv" : "application/json" }));
}

/**
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * Render an SVG as PNG at twice its size, for high-resolution screens.
 * @param {string} svg
 * @returns {Promise<Blob>}
 */
async function renderPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(2, 2);
  context.drawImage(image, 0, 0);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser could not create the image"))), "image/png"));
}
