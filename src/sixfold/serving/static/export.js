/** Pictures that stand by themselves: a sheet of cells, some with bars, and an SVG of the page with its colours filled in. */

import { escape } from "./dom.js";
import { raster } from "./heat_map.js";
import { breadth } from "./page_text.js";

/** @typedef {string | {text: string, part: number}} Cell a text, or one with a bar from 0 to 1 beside it */

const FONT = "ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif";
const [LINE, BAR] = [24, 160];

/**
 * Text in the font of the page, on white.
 * @param {string} title
 * @param {number} width
 * @param {number} height below the title
 * @param {string} body begins at y = 48
 */
export function sheet(title, width, height, body) {
  const [wide, high] = [Math.max(width, 10 * breadth(title)) + 24, height + 60];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${wide} ${high}" ` +
    `font-family="${FONT}" font-size="13" fill="#191c26"><rect width="100%" height="100%" fill="#fff"/>` +
    `<text x="12" y="26" font-size="15" font-weight="600">${escape(title)}</text>${body}</svg>`;
}

/**
 * @param {string} title
 * @param {Cell[][]} rows the first one is the head
 */
export function tableSvg(title, rows) {
  const text = (/** @type {Cell} */ cell) => (typeof cell === "string" ? cell : cell.text);
  const count = Math.max(...rows.map((row) => row.length));
  const places = Array.from({ length: count }, (_, column) => column);
  const isBar = places.map((column) => rows.some((row) => typeof row[column] === "object"));
  const widths = places.map((column) => (isBar[column] ? BAR : 0) + 24 + 7.5 * Math.max(...rows.map((row) => breadth(text(row[column] ?? "")))));
  const lefts = places.map((column) => 12 + widths.slice(0, column).reduce((sum, each) => sum + each, 0));
  const body = rows.map((row, line) => row.map((cell, column) => {
    const y = 60 + line * LINE;
    const colour = line === 0 ? "#555b6e" : "#191c26";
    const bar = typeof cell === "object" ? `<rect x="${lefts[column]}" y="${y - 10}" width="${Math.max(1, BAR * cell.part)}" height="12" fill="#4455c7"/>` : "";
    const shift = typeof cell === "object" ? BAR + 8 : 0;
    return `${bar}<text x="${lefts[column] + shift}" y="${y}" fill="${colour}">${escape(text(cell))}</text>`;
  }).join(""));
  return sheet(title, lefts[count - 1] + widths[count - 1], rows.length * LINE + 12, body.join(""));
}

/**
 * The same rows for spreadsheets.
 * @param {(string | number)[][]} rows
 */
export function csv(rows) {
  return rows.map((row) => row.map((cell) => (typeof cell === "number" ? cell : `"${cell.replaceAll('"', '""')}"`)).join(",")).join("\n");
}

/**
 * An SVG of the page, with the colours that its variables have now.
 * @param {SVGElement} svg
 */
export function standing(svg) {
  const look = getComputedStyle(document.documentElement);
  return new XMLSerializer().serializeToString(svg).replace(/var\((--[\w-]+)\)/g, (_, name) => look.getPropertyValue(name).trim().replaceAll('"', "'"));
}

// --- A matrix as a picture by itself and as a table, to be saved.

/** @typedef {import("./heat_map.js").MatrixData} MatrixData */

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
