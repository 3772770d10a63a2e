/** A matrix as a picture by itself and as a table, to be saved. */

import { escape } from "./dom.js";
import { breadth } from "./lettering.js";
import { raster } from "./raster.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */

export const FAMILY = `font-family="ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"`;

/**
 * A picture around what is drawn, on white.
 * @param {number} width
 * @param {number} height
 * @param {string} title
 * @param {string} body
 */
export function svgFrame(width, height, title, body) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `${FAMILY} font-size="12" fill="#23262f"><rect width="100%" height="100%" fill="#fff"/>` +
    `<text x="12" y="22" font-size="15" font-weight="600">${escape(title)}</text>${body}</svg>`;
}

/**
 * The matrix without a frame, and the room that it takes.
 * @param {MatrixData} data
 * @returns {{body: string, width: number, height: number}}
 */
export function matrixBody(data) {
  const side = Math.max(2, Math.min(28, 900 / data.columns.length));
  const longest = (/** @type {string[]} */ words) => Math.max(...words.map(breadth), 1);
  const left = 16 + 8 * longest(data.rows);
  const top = 56 + 6.5 * longest(data.columns);
  const [width, height] = [data.columns.length * side, data.rows.length * side];
  const every = Math.ceil(12 / side);
  const rows = data.rows.map((label, row) => row % every ? "" :
    `<text x="${left - 6}" y="${top + (row + 0.5) * side}" text-anchor="end" dominant-baseline="middle">${escape(label)}</text>`);
  const columns = data.columns.map((label, column) => column % every ? "" :
    `<text transform="translate(${left + (column + 0.5) * side} ${top - 6}) rotate(-60)">${escape(label)}</text>`);
  const body = `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="#eceef3"/>` +
    `<image x="${left}" y="${top}" width="${width}" height="${height}" preserveAspectRatio="none" ` +
    `style="image-rendering: pixelated" href="${raster(data, "light").toDataURL()}"/>${rows.join("")}${columns.join("")}`;
  return { body, width: left + width + 60, height: top + height + 16 };
}

/**
 * The matrix as a picture by itself, in light colours.
 * @param {MatrixData} data
 * @param {string} [title]
 */
export function matrixSvg(data, title = data.label) {
  const { body, width, height } = matrixBody(data);
  return svgFrame(width, height, title, body);
}

/**
 * A row for each label, for spreadsheets.
 * @param {MatrixData} data
 */
export function matrixCsv(data) {
  const quoted = (/** @type {string | number} */ cell) => `"${String(cell).replaceAll('"', '""')}"`;
  const lines = data.rows.map((label, row) =>
    [quoted(label), ...data.columns.map((_, column) => data.values[row * data.columns.length + column])].join(","));
  return [["", ...data.columns].map(quoted).join(","), ...lines].join("\n");
}
