/** The interface in English and Chinese: each screen has a table of its words, and this picks the side. */

import { get } from "./url_state.js";

/** @typedef {{en: string, zh: string}} Words */

/** @returns {"en" | "zh"} */
export function language() {
  const chosen = get("lang") || navigator.language;
  return chosen.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/**
 * The words in the language of the interface; {0}, {1} … are replaced by the values.
 * @param {Words} words
 * @param {...(string | number)} values
 */
export function t(words, ...values) {
  return words[language()].replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)] ?? ""));
}

/** @type {Record<string, Words>} */
const LANGUAGES = {
  zh: { en: "Chinese", zh: "中文" },
  en: { en: "English", zh: "英文" },
  de: { en: "German", zh: "德文" },
  fr: { en: "French", zh: "法文" },
  es: { en: "Spanish", zh: "西班牙文" },
  ja: { en: "Japanese", zh: "日文" },
  ko: { en: "Korean", zh: "韩文" },
  ru: { en: "Russian", zh: "俄文" },
};

/**
 * What a language is called; its code where that is all we know.
 * @param {string} code
 */
export function languageName(code) {
  return code in LANGUAGES ? t(LANGUAGES[code]) : code;
}

// --- Numbers and labels as people read them.

/**
 * Enough digits to tell it from its neighbours, and no more.
 * @param {number} value
 */
export function number(value) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
}

const WIDE = /[⺀-鿿가-힯＀-｠]/;

/**
 * In letters; a Han character counts for two.
 * @param {string} text
 */
export function breadth(text) {
  let width = 0;
  for (const letter of text) width += WIDE.test(letter) ? 1.8 : 1;
  return width;
}

/**
 * @param {string} text
 * @param {number} most
 */
export function cut(text, most) {
  if (breadth(text) <= most) return text;
  let kept = "";
  for (const letter of text) {
    if (breadth(kept + letter) > most - 1) break;
    kept += letter;
  }
  return `${kept}…`;
}
