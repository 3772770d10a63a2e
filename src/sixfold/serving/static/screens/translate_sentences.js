/** A translation as sentences and words, with the probability of each word and the source word it comes from. */

/** @typedef {import("../api.js").Span} Span */
/** @typedef {import("../api.js").Translation} Translation */
/**
 * @typedef {object} Word
 * @property {string} text
 * @property {Span} span in the translation of its sentence
 * @property {Span} source in the source sentence
 * @property {number} weight share of the attention on that source word
 * @property {number} probability product over its tokens
 * @property {{text: string, probability: number}[]} pieces
 * @property {boolean} hasWarning a warning covers this word
 */
/**
 * @typedef {object} Sentence A unit that was translated separately.
 * @property {number} offset offset in the whole source text
 * @property {string} text
 * @property {string} translation
 * @property {Word[]} words empty: not loaded
 * @property {boolean} isChanged the user chose another translation
 * @property {boolean} isClosed lines of a long text whose words are not loaded
 */
/** @typedef {string | Sentence} Item a sentence, or the text between two sentences */

/**
 * Return a function that converts character offsets, as the server counts, to UTF-16 code units, as JavaScript counts.
 * @param {string} text
 * @returns {(index: number) => number}
 */
export function codeUnitOffsets(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (index) => index;
  const offsets = [0];
  for (const character of text) offsets.push(offsets[offsets.length - 1] + character.length);
  return (index) => offsets[Math.min(index, offsets.length - 1)];
}

/**
 * @param {Translation} result
 * @param {number} [start] offset of its text in the whole source
 * @returns {Item[]}
 */
export function splitSentences(result, start = 0) {
  const sourceOffset = codeUnitOffsets(result.source);
  const targetOffset = codeUnitOffsets(result.translation);
  const warnedSpans = result.warnings.flatMap(({ span }) => (span ? [[targetOffset(span[0]), targetOffset(span[1])]] : []));
  /** @type {Item[]} */
  const items = [];
  let end = 0;
  for (const { source, target } of result.sentences ?? []) {
    const [sourceStart, sourceEnd, targetStart, targetEnd] = [sourceOffset(source[0]), sourceOffset(source[1]), targetOffset(target[0]), targetOffset(target[1])];
    const words = wordsOf(result, target).map((word) => ({
      ...word,
      text: result.translation.slice(targetOffset(word.span[0]), targetOffset(word.span[1])),
      span: /** @type {Span} */ ([targetOffset(word.span[0]) - targetStart, targetOffset(word.span[1]) - targetStart]),
      source: /** @type {Span} */ ([sourceOffset(word.source[0]) - sourceStart, sourceOffset(word.source[1]) - sourceStart]),
      hasWarning: warnedSpans.some(([start, end]) => start < targetOffset(word.span[1]) && targetOffset(word.span[0]) < end),
    }));
    items.push(result.translation.slice(end, targetStart));
    items.push({ offset: start + sourceStart, text: result.source.slice(sourceStart, sourceEnd), translation: result.translation.slice(targetStart, targetEnd), words,
      isChanged: false, isClosed: false });
    end = targetEnd;
  }
  items.push(result.translation.slice(end));
  return items.filter((item) => item !== "");
}

/**
 * Return the words of one sentence, with spans in the whole text. Byte tokens that are part of a character have an empty
 * span and belong to the next word.
 * @param {Translation} result
 * @param {Span} target
 */
function wordsOf(result, target) {
  const links = (result.alignment ?? []).filter((link) => target[0] <= link.target[0] && link.target[1] <= target[1]);
  const tokens = (result.tokens ?? []).filter(({ span }) => target[0] <= span[0] && span[1] <= target[1]);
  let next = 0;
  return links.map((link) => {
    const pieces = [];
    while (next < tokens.length && tokens[next].span[0] < link.target[1]) pieces.push(tokens[next++]);
    return {
      span: link.target,
      source: link.source,
      weight: link.weight,
      probability: pieces.reduce((product, piece) => product * piece.probability, 1),
      pieces: pieces.map(({ text, probability }) => ({ text, probability })),
    };
  });
}

/**
 * Split a long text, which was translated without details, into parts of whole lines that can be loaded one by one.
 * @param {Translation} result
 * @param {number} maxLength characters per part, unless a single line is longer
 * @returns {Item[]}
 */
export function splitLongText(result, maxLength) {
  const translatedLines = result.translation.split("\n");
  /** @type {Sentence[]} */
  const parts = [];
  let offset = 0;
  for (const [index, line] of result.source.split("\n").entries()) {
    const last = parts[parts.length - 1];
    if (last) [last.text, last.translation] = [`${last.text}\n`, `${last.translation}\n`];
    if (last && last.text.length + line.length <= maxLength) [last.text, last.translation] = [last.text + line, last.translation + translatedLines[index]];
    else parts.push({ offset, text: line, translation: translatedLines[index], words: [], isChanged: false, isClosed: true });
    offset += line.length + 1;
  }
  return parts;
}

/**
 * @param {Item[]} items
 * @returns {string}
 */
export function joinItems(items) {
  return items.map((item) => (typeof item === "string" ? item : item.translation)).join("");
}

/** @param {number} probability */
export function formatPercent(probability) {
  const percent = 100 * probability;
  return `${percent >= 99.95 || percent < 0.05 ? Math.round(percent) : percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}
