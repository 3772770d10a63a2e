/** Files that the page saves: tables and heat maps as standalone SVG, and as CSV. */

import { escapeXml } from "./dom.js";
import { renderCells } from "./heat_map.js";
import { textWidth } from "./page_text.js";

/** @typedef {string | {text: string, fraction: number}} Cell a text, or a text with a bar whose length is a fraction */

export const FONT_FAMILY = "ui-sans-serif, system-ui, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif";
const [ROW_HEIGHT, BAR_WIDTH] = [24, 160];

/**
 * Return an SVG file with a white background, a title and this content.
 * @param {string} title
 * @param {number} width
 * @param {number} height of the content below the title
 * @param {string} body SVG elements; the first line starts at y = 48
 */
export function sheetSvg(title, width, height, body) {
  const [totalWidth, totalHeight] = [Math.max(width, 10 * textWidth(title)) + 24, height + 60];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${totalWidth}" height="${totalHeight}" viewBox="0 0 ${totalWidth} ${totalHeight}" ` +
    `font-family="${FONT_FAMILY}" font-size="13" fill="#191c26"><rect width="100%" height="100%" fill="#fff"/>` +
    `<text x="12" y="26" font-size="15" font-weight="600">${escapeXml(title)}</text>${body}</svg>`;
}

/**
 * @param {string} title
 * @param {Cell[][]} rows the first row is the header
 */
export function tableSvg(title, rows) {
  const cellText = (/** @type {Cell} */ cell) => (typeof cell === "string" ? cell : cell.text);
  const columnCount = Math.max(...rows.map((row) => row.length));
  const columns = Array.from({ length: columnCount }, (_, column) => column);
  const hasBar = columns.map((column) => rows.some((row) => typeof row[column] === "object"));
  const widths = columns.map((column) => (hasBar[column] ? BAR_WIDTH : 0) + 24 + 7.5 * Math.max(...rows.map((row) => textWidth(cellText(row[column] ?? "")))));
  const lefts = columns.map((column) => 12 + widths.slice(0, column).reduce((sum, columnWidth) => sum + columnWidth, 0));
  const body = rows.map((row, rowIndex) => row.map((cell, column) => {
    const y = 60 + rowIndex * ROW_HEIGHT;
    const colour = rowIndex === 0 ? "#555b6e" : "#191c26";
    const bar = typeof cell === "object" ? `<rect x="${lefts[column]}" y="${y - 10}" width="${Math.max(1, BAR_WIDTH * cell.fraction)}" height="12" fill="#4455c7"/>` : "";
    const textOffset = typeof cell === "object" ? BAR_WIDTH + 8 : 0;
    return `${bar}<text x="${lefts[column] + textOffset}" y="${y}" fill="${colour}">${escapeXml(cellText(cell))}</text>`;
  }).join(""));
  return sheetSvg(title, lefts[columnCount - 1] + widths[columnCount - 1], rows.length * ROW_HEIGHT + 12, body.join(""));
}

/**
 * Return the rows as CSV.
 * @param {(string | number)[][]} rows
 */
export function toCsv(rows) {
  return rows.map((row) => row.map((cell) => (typeof cell === "number" ? cell : `"${cell.replaceAll('"', '""')}"`)).join(",")).join("\n");
}

/**
 * Return an SVG of the page as text, with CSS variables replaced by their current values.
 * @param {SVGElement} svg
 */
export function serializeSvg(svg) {
  const style = getComputedStyle(document.documentElement);
  return new XMLSerializer().serializeToString(svg).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim().replaceAll('"', "'"));
}

// --- heat maps ------------------------------------------------------------------------------------------------------

/** @typedef {import("./heat_map.js").HeatMapData} HeatMapData */

/**
 * Return an SVG file of exactly this size, with a white background, a title and this content.
 * @param {number} width
 * @param {number} height
 * @param {string} title
 * @param {string} body
 */
export function figureSvg(width, height, title, body) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="${FONT_FAMILY}" font-size="12" fill="#23262f"><rect width="100%" height="100%" fill="#fff"/>` +
    `<text x="12" y="22" font-size="15" font-weight="600">${escapeXml(title)}</text>${body}</svg>`;
}

/**
 * Return the SVG elements of a heat map and their size.
 * @param {HeatMapData} data
 * @returns {{body: string, width: number, height: number}}
 */
export function heatMapBody(data) {
  const cellSize = Math.max(2, Math.min(28, 900 / data.columns.length));
  const maxWidth = (/** @type {string[]} */ labels) => Math.max(...labels.map(textWidth), 1);
  const left = 16 + 8 * maxWidth(data.rows);
  const top = 56 + 6.5 * maxWidth(data.columns);
  const [width, height] = [data.columns.length * cellSize, data.rows.length * cellSize];
  const labelStep = Math.ceil(12 / cellSize);
  const rows = data.rows.map((label, row) => row % labelStep ? "" :
    `<text x="${left - 6}" y="${top + (row + 0.5) * cellSize}" text-anchor="end" dominant-baseline="middle">${escapeXml(label)}</text>`);
  const columns = data.columns.map((label, column) => column % labelStep ? "" :
    `<text transform="translate(${left + (column + 0.5) * cellSize} ${top - 6}) rotate(-60)">${escapeXml(label)}</text>`);
  const body = `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="#eceef3"/>` +
    `<image x="${left}" y="${top}" width="${width}" height="${height}" preserveAspectRatio="none" ` +
    `style="image-rendering: pixelated" href="${renderCells(data, "light").toDataURL()}"/>${rows.join("")}${columns.join("")}`;
  return { body, width: left + width + 60, height: top + height + 16 };
}

/**
 * Return a heat map as an SVG file in light colours.
 * @param {HeatMapData} data
 * @param {string} [title]
 */
export function heatMapSvg(data, title = data.label) {
  const { body, width, height } = heatMapBody(data);
  return figureSvg(width, height, title, body);
}

/**
 * Return a heat map as CSV, with one line per row label.
 * @param {HeatMapData} data
 */
export function heatMapCsv(data) {
  const quoted = (/** @type {string | number} */ cell) => `"${String(cell).replaceAll('"', '""')}"`;
  const lines = data.rows.map((label, row) =>
    [quoted(label), ...data.columns.map((_, column) => data.values[row * data.columns.length + column])].join(","));
  return [["", ...data.columns].map(quoted).join(","), ...lines].join("\n");
}
