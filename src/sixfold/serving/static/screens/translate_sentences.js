/** A translation as sentences of words: what each is made of, how sure the model is of it, and where it comes from. */

/** @typedef {import("../api.js").Span} Span */
/** @typedef {import("../api.js").Translation} Translation */
/**
 * @typedef {object} Word
 * @property {string} text
 * @property {Span} span in the translation of its sentence
 * @property {Span} source in its sentence
 * @property {number} weight the share of its attention that went there
 * @property {number} probability of all its pieces together
 * @property {{text: string, probability: number}[]} pieces
 * @property {boolean} isWary something is wrong here
 */
/**
 * @typedef {object} Sentence What was translated by itself.
 * @property {number} at where it stands in the whole source
 * @property {string} text
 * @property {string} said
 * @property {Word[]} words none: nothing is known of them yet
 * @property {boolean} isChanged somebody has chosen another translation
 * @property {boolean} isClosed some lines of a long text, whose words have not been asked for
 */
/** @typedef {string | Sentence} Item a sentence, or what lies between two */

/**
 * The server counts characters, scripts count halves of those above U+FFFF: from one to the other.
 * @param {string} text
 * @returns {(at: number) => number}
 */
export function places(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (at) => at;
  const found = [0];
  for (const letter of text) found.push(found[found.length - 1] + letter.length);
  return (at) => found[Math.min(at, found.length - 1)];
}

/**
 * @param {Translation} answer
 * @param {number} [start] where its text begins in the whole source
 * @returns {Item[]}
 */
export function laidOut(answer, start = 0) {
  const from = places(answer.source);
  const to = places(answer.translation);
  const wary = answer.warnings.flatMap(({ span }) => (span ? [[to(span[0]), to(span[1])]] : []));
  /** @type {Item[]} */
  const items = [];
  let end = 0;
  for (const { source, target } of answer.sentences ?? []) {
    const [first, last, begin, stop] = [from(source[0]), from(source[1]), to(target[0]), to(target[1])];
    const words = wordsOf(answer, target).map((word) => ({
      ...word,
      text: answer.translation.slice(to(word.span[0]), to(word.span[1])),
      span: /** @type {Span} */ ([to(word.span[0]) - begin, to(word.span[1]) - begin]),
      source: /** @type {Span} */ ([from(word.source[0]) - first, from(word.source[1]) - first]),
      isWary: wary.some(([one, other]) => one < to(word.span[1]) && to(word.span[0]) < other),
    }));
    items.push(answer.translation.slice(end, begin));
    items.push({ at: start + first, text: answer.source.slice(first, last), said: answer.translation.slice(begin, stop), words,
      isChanged: false, isClosed: false });
    end = stop;
  }
  items.push(answer.translation.slice(end));
  return items.filter((item) => item !== "");
}

/**
 * Of one sentence, in characters of the whole. Bytes that only together make a letter have no width: they go with the
 * word that comes next.
 * @param {Translation} answer
 * @param {Span} target
 */
function wordsOf(answer, target) {
  const links = (answer.alignment ?? []).filter((link) => target[0] <= link.target[0] && link.target[1] <= target[1]);
  const tokens = (answer.tokens ?? []).filter(({ span }) => target[0] <= span[0] && span[1] <= target[1]);
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
 * A long text, which came without details, in parts of whole lines that can be asked for one by one.
 * @param {Translation} answer
 * @param {number} most characters of a part, unless a line has more
 * @returns {Item[]}
 */
export function inParts(answer, most) {
  const said = answer.translation.split("\n");
  /** @type {Sentence[]} */
  const parts = [];
  let at = 0;
  for (const [place, line] of answer.source.split("\n").entries()) {
    const last = parts[parts.length - 1];
    if (last) [last.text, last.said] = [`${last.text}\n`, `${last.said}\n`];
    if (last && last.text.length + line.length <= most) [last.text, last.said] = [last.text + line, last.said + said[place]];
    else parts.push({ at, text: line, said: said[place], words: [], isChanged: false, isClosed: true });
    at += line.length + 1;
  }
  return parts;
}

/**
 * @param {Item[]} items
 * @returns {string}
 */
export function joined(items) {
  return items.map((item) => (typeof item === "string" ? item : item.said)).join("");
}

/** @param {number} share */
export function percent(share) {
  const hundredths = 100 * share;
  return `${hundredths >= 99.95 || hundredths < 0.05 ? Math.round(hundredths) : hundredths < 10 ? hundredths.toFixed(1) : Math.round(hundredths)} %`;
}
