/** Numbers and labels as people read them. */

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
