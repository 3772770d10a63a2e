/** What is shown lives in the address of the page, so that a link shows it again. */

export const DEFAULTS = {
  screen: "translate",
  text: "", // what is translated or looked into
  given: "", // a translation that the model is made to read; none: its own
  from: "", // languages; none: told by the script
  to: "",
  model: "", // one of several that are open
  kind: "cross", // of attention: encoder, decoder or cross
  layer: "", // none: the last
  head: "0",
  row: "", // the place that asks, and the one looked at
  column: "",
  off: "", // heads that are switched off: cross.1.3,encoder.0.2
  words: "", // 1: pieces joined into words
  other: "", // a second sentence to compare with
  otherModel: "",
  stage: "", // of the computation, and the component that is looked at: query.5
  step: "0",
  temperature: "1", // what the logits are divided by, and where sampling would cut
  topK: "5",
  topP: "0.9",
  beam: "4",
  view: "", // of a screen that has several
  word: "", // whose neighbours are looked for
  batch: "", // sentences that are padded to one length, a line each
  map: "", // words that are put on the map
  lang: "", // of the interface; none: the browser's
  theme: "", // none: the system's
};

/** @typedef {keyof typeof DEFAULTS} Name */
/** @typedef {Partial<Record<Name, string | number>>} Changes */

/** @type {Record<Name, string>} */
let now = read();
/** @type {Set<(changed: Set<Name>) => void>} */
const listeners = new Set();

function read() {
  const found = { ...DEFAULTS };
  for (const [name, value] of new URLSearchParams(location.search)) if (name in found) found[/** @type {Name} */ (name)] = value;
  return found;
}

/** @param {Record<Name, string>} values */
function address(values) {
  const query = new URLSearchParams();
  for (const name of /** @type {Name[]} */ (Object.keys(DEFAULTS))) if (values[name] !== DEFAULTS[name]) query.set(name, values[name]);
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
}

/**
 * @param {Name} name
 * @returns {string}
 */
export function get(name) {
  return now[name];
}

/**
 * As a whole number within its limits; what is empty or no number is `fallback`.
 * @param {Name} name
 * @param {number} fallback
 * @param {number} count numbers from 0 to below this are fine
 */
export function index(name, fallback, count) {
  const value = now[name] === "" ? fallback : Number(now[name]);
  return Number.isInteger(value) ? Math.max(0, Math.min(count - 1, value)) : Math.max(0, Math.min(count - 1, fallback));
}

/**
 * Change some of it; a new screen is a new entry in the history, the rest replaces the last one.
 * @param {Changes} changes
 */
export function set(changes) {
  const next = { ...now };
  for (const [name, value] of Object.entries(changes)) next[/** @type {Name} */ (name)] = String(value);
  move(next, next.screen !== now.screen);
}

/**
 * Where a link with these changes leads.
 * @param {Changes} changes
 */
export function link(changes) {
  const next = { ...now };
  for (const [name, value] of Object.entries(changes)) next[/** @type {Name} */ (name)] = String(value);
  return address(next);
}

/**
 * @param {Record<Name, string>} next
 * @param {boolean} isNew
 */
function move(next, isNew) {
  const changed = differing(now, next);
  if (changed.size === 0) return;
  now = next;
  if (isNew) history.pushState(null, "", address(now));
  else history.replaceState(null, "", address(now));
  for (const listener of [...listeners]) listener(changed);
}

/**
 * @param {Record<Name, string>} one
 * @param {Record<Name, string>} other
 */
function differing(one, other) {
  const names = /** @type {Name[]} */ (Object.keys(DEFAULTS));
  return new Set(names.filter((name) => one[name] !== other[name]));
}

/**
 * Called with the names of what has changed; returns what ends it.
 * @param {(changed: Set<Name>) => void} listener
 * @returns {() => void}
 */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

window.addEventListener("popstate", () => {
  const next = read();
  const changed = differing(now, next);
  now = next;
  for (const listener of [...listeners]) listener(changed);
});
