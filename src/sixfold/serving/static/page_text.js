/** Text of the page in English or Chinese, and numbers and labels as people read them. Each screen has its own table of texts. */

import { getState } from "./url_state.js";

/** @typedef {{en: string, zh: string}} BilingualText */

/** @returns {"en" | "zh"} */
export function interfaceLanguage() {
  const chosen = getState("lang") || navigator.language;
  return chosen.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/**
 * Return a text in the language of the interface; {0}, {1}, … are replaced by the values.
 * @param {BilingualText} text
 * @param {...(string | number)} values
 */
export function t(text, ...values) {
  return text[interfaceLanguage()].replace(/\{(\d)\}/g, (_, index) => String(values[Number(index)] ?? ""));
}

/** @type {Record<string, BilingualText>} */
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
 * Return the name of a language, or its code if it has no name here.
 * @param {string} code
 */
export function languageName(code) {
  return code in LANGUAGES ? t(LANGUAGES[code]) : code;
}

// --- numbers and labels ---------------------------------------------------------------------------------------------

/**
 * Format a number with four significant digits.
 * @param {number} value
 */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : String(value);
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  const text = magnitude >= 1e5 || magnitude < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
}

/**
 * Format a count with thousands separators.
 * @param {number} value
 */
export function formatCount(value) {
  return value.toLocaleString("en-US");
}

/**
 * Format a fraction as whole percent.
 * @param {number} fraction
 */
export function wholePercent(fraction) {
  return `${Math.round(100 * fraction)}%`;
}

const WIDE_CHARACTER = /[⺀-鿿가-힯＀-｠]/;

/**
 * Return the approximate width of a text in Latin letters; a Han character is 1.8 letters wide.
 * @param {string} text
 */
export function textWidth(text) {
  let width = 0;
  for (const character of text) width += WIDE_CHARACTER.test(character) ? 1.8 : 1;
  return width;
}

/**
 * @param {string} text
 * @param {number} maxWidth
 */
export function truncate(text, maxWidth) {
  if (textWidth(text) <= maxWidth) return text;
  let shortened = "";
  for (const character of text) {
    if (textWidth(shortened + character) > maxWidth - 1) break;
    shortened += character;
  }
  return `${shortened}…`;
}
