/** Colours in light and dark mode: scales for numbers, and the colours of diagrams. Lightness alone orders a scale, so it survives grey prints and colour blindness. */

/** @typedef {[number, number, number]} Rgb */

// The same anchors as in explorer/drawing.py.
/** @type {Record<"light" | "dark", Rgb[]>} */
const SEQUENTIAL = {
  light: [[255, 255, 255], [214, 222, 245], [150, 170, 226], [84, 104, 196], [38, 46, 130], [16, 18, 66]],
  dark: [[22, 24, 32], [38, 46, 92], [62, 80, 160], [104, 132, 218], [170, 194, 246], [240, 246, 255]],
};
/** @type {Record<"light" | "dark", Rgb[]>} */
const DIVERGING = {
  light: [[150, 70, 10], [224, 140, 60], [250, 220, 186], [255, 255, 255], [196, 210, 244], [92, 116, 206], [30, 40, 124]],
  dark: [[255, 206, 150], [226, 140, 60], [120, 66, 22], [22, 24, 32], [40, 52, 110], [92, 120, 214], [190, 208, 252]],
};

/** @returns {"light" | "dark"} */
export function currentTheme() {
  const chosenTheme = document.documentElement.dataset.theme;
  if (chosenTheme === "light" || chosenTheme === "dark") return chosenTheme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * @param {Rgb[]} anchors
 * @param {number} fraction from 0 to 1
 * @returns {Rgb}
 */
function interpolate(anchors, fraction) {
  const position = Math.min(1, Math.max(0, fraction)) * (anchors.length - 1);
  const low = Math.min(anchors.length - 2, Math.floor(position));
  const remainder = position - low;
  const mixed = [0, 1, 2].map((channel) => Math.round(anchors[low][channel] * (1 - remainder) + anchors[low + 1][channel] * remainder));
  return [mixed[0], mixed[1], mixed[2]];
}

/** @type {Map<Rgb[], Rgb[]>} */
const scaleCache = new Map();

/** @param {Rgb[]} anchors */
function colourScale(anchors) {
  const colours = scaleCache.get(anchors) ?? Array.from({ length: 256 }, (_, index) => interpolate(anchors, index / 255));
  scaleCache.set(anchors, colours);
  return colours;
}

/**
 * Return 256 colours from zero to the maximum.
 * @param {"light" | "dark"} [theme]
 * @returns {Rgb[]}
 */
export function sequentialScale(theme = currentTheme()) {
  return colourScale(SEQUENTIAL[theme]);
}

/**
 * Return 256 colours from the minimum to the maximum; zero in the middle has the colour of the background.
 * @param {"light" | "dark"} [theme]
 * @returns {Rgb[]}
 */
export function divergingScale(theme = currentTheme()) {
  return colourScale(DIVERGING[theme]);
}

/** @param {Rgb} colour */
export function cssColour(colour) {
  return `rgb(${colour[0]} ${colour[1]} ${colour[2]})`;
}

/**
 * Return black or white, whichever has the higher contrast on this colour.
 * @param {Rgb} colour
 */
export function contrastColour(colour) {
  const [red, green, blue] = colour.map((channel) => (channel / 255 <= 0.04045 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** @typedef {typeof PAGE_COLOURS} DiagramColours */

/** Colours of diagrams on the page: they follow the theme. */
export const PAGE_COLOURS = {
  theme: /** @type {"light" | "dark" | undefined} */ (undefined), // undefined: the theme of the page
  ink: "var(--ink)", mutedInk: "var(--ink-muted)", line: "var(--line)", surface: "var(--surface)", empty: "var(--masked)",
  accent: "var(--accent)", accentInk: "var(--accent-ink)", accentSoft: "var(--accent-soft)", selected: "var(--highlight)",
};

/** Colours of saved diagrams, always light. @type {DiagramColours} */
export const EXPORT_COLOURS = {
  theme: "light",
  ink: "#191c26", mutedInk: "#555b6e", line: "#d9dce6", surface: "#ffffff", empty: "#eceef3",
  accent: "#4455c7", accentInk: "#3040ad", accentSoft: "#e8ebfa", selected: "#c2570c",
};
