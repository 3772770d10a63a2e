/** Colours of numbers: lightness alone tells the order, so that grey paper and colour-blind eyes read it too. */

/** @typedef {[number, number, number]} Rgb */

// The same anchors as in explorer/colours.py.
/** @type {Record<"light" | "dark", Rgb[]>} */
const SEQUENCE = {
  light: [[255, 255, 255], [214, 222, 245], [150, 170, 226], [84, 104, 196], [38, 46, 130], [16, 18, 66]],
  dark: [[22, 24, 32], [38, 46, 92], [62, 80, 160], [104, 132, 218], [170, 194, 246], [240, 246, 255]],
};
/** @type {Record<"light" | "dark", Rgb[]>} */
const SIGNED = {
  light: [[150, 70, 10], [224, 140, 60], [250, 220, 186], [255, 255, 255], [196, 210, 244], [92, 116, 206], [30, 40, 124]],
  dark: [[255, 206, 150], [226, 140, 60], [120, 66, 22], [22, 24, 32], [40, 52, 110], [92, 120, 214], [190, 208, 252]],
};

/** @returns {"light" | "dark"} */
export function theme() {
  const told = document.documentElement.dataset.theme;
  if (told === "light" || told === "dark") return told;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * @param {Rgb[]} anchors
 * @param {number} at from 0 to 1
 * @returns {Rgb}
 */
function between(anchors, at) {
  const place = Math.min(1, Math.max(0, at)) * (anchors.length - 1);
  const low = Math.min(anchors.length - 2, Math.floor(place));
  const part = place - low;
  const mixed = [0, 1, 2].map((part_) => Math.round(anchors[low][part_] * (1 - part) + anchors[low + 1][part_] * part));
  return [mixed[0], mixed[1], mixed[2]];
}

/** @type {Map<Rgb[], Rgb[]>} */
const scales = new Map();

/** @param {Rgb[]} anchors */
function scale(anchors) {
  const found = scales.get(anchors) ?? Array.from({ length: 256 }, (_, place) => between(anchors, place / 255));
  scales.set(anchors, found);
  return found;
}

/**
 * 256 colours from none to most.
 * @param {"light" | "dark"} [which]
 * @returns {Rgb[]}
 */
export function sequence(which = theme()) {
  return scale(SEQUENCE[which]);
}

/**
 * 256 colours from the least to the most, nothing in the middle.
 * @param {"light" | "dark"} [which]
 * @returns {Rgb[]}
 */
export function signed(which = theme()) {
  return scale(SIGNED[which]);
}

/** @param {Rgb} colour */
export function css(colour) {
  return `rgb(${colour[0]} ${colour[1]} ${colour[2]})`;
}

/**
 * Black or white, whichever has the higher contrast on it.
 * @param {Rgb} colour
 */
export function ink(colour) {
  const [red, green, blue] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** @typedef {typeof PAGE} Paints */

export const PAGE = {
  theme: /** @type {"light" | "dark" | undefined} */ (undefined), // that of the page
  ink: "var(--ink)", soft: "var(--ink-2)", line: "var(--line)", card: "var(--card)", empty: "var(--masked)",
  accent: "var(--accent)", accentInk: "var(--accent-ink)", accentSoft: "var(--accent-soft)", chosen: "var(--accent-2)",
};

/** @type {Paints} */
export const PAPER = {
  theme: "light",
  ink: "#191c26", soft: "#555b6e", line: "#d9dce6", card: "#ffffff", empty: "#eceef3",
  accent: "#4455c7", accentInk: "#3040ad", accentSoft: "#e8ebfa", chosen: "#c2570c",
};
