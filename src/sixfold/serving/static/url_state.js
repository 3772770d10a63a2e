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

/** @typedef {keyof typeof DEFAULTS} StateKey */
/** @typedef {Partial<Record<StateKey, string | number>>} StateChanges */

/** @type {Record<StateKey, string>} */
let current = parseAddress();
/** @type {Set<(changed: Set<StateKey>) => void>} */
const listeners = new Set();

function parseAddress() {
  const state = { ...DEFAULTS };
  for (const [name, value] of new URLSearchParams(location.search)) if (name in state) state[/** @type {StateKey} */ (name)] = value;
  return state;
}

/** @param {Record<StateKey, string>} values */
function formatAddress(values) {
  const query = new URLSearchParams();
  for (const name of /** @type {StateKey[]} */ (Object.keys(DEFAULTS))) if (values[name] !== DEFAULTS[name]) query.set(name, values[name]);
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
}

/**
 * @param {StateKey} name
 * @returns {string}
 */
export function getState(name) {
  return current[name];
}

/**
 * As a whole number within its limits; what is empty or no number is `fallback`.
 * @param {StateKey} name
 * @param {number} fallback
 * @param {number} count numbers from 0 to below this are fine
 */
export function stateIndex(name, fallback, count) {
  const value = current[name] === "" ? fallback : Number(current[name]);
  return Number.isInteger(value) ? Math.max(0, Math.min(count - 1, value)) : Math.max(0, Math.min(count - 1, fallback));
}

/**
 * Change some of it; a new screen is a new entry in the history, the rest replaces the last one.
 * @param {StateChanges} changes
 */
export function setState(changes) {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) next[/** @type {StateKey} */ (name)] = String(value);
  applyState(next, next.screen !== current.screen);
}

/**
 * Where a link with these changes leads.
 * @param {StateChanges} changes
 */
export function linkTo(changes) {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) next[/** @type {StateKey} */ (name)] = String(value);
  return formatAddress(next);
}

/**
 * @param {Record<StateKey, string>} next
 * @param {boolean} isNewEntry
 */
function applyState(next, isNewEntry) {
  const changed = changedKeys(current, next);
  if (changed.size === 0) return;
  current = next;
  if (isNewEntry) history.pushState(null, "", formatAddress(current));
  else history.replaceState(null, "", formatAddress(current));
  for (const listener of [...listeners]) listener(changed);
}

/**
 * @param {Record<StateKey, string>} before
 * @param {Record<StateKey, string>} after
 */
function changedKeys(before, after) {
  const names = /** @type {StateKey[]} */ (Object.keys(DEFAULTS));
  return new Set(names.filter((name) => before[name] !== after[name]));
}

/**
 * Called with the names of what has changed; returns what ends it.
 * @param {(changed: Set<StateKey>) => void} listener
 * @returns {() => void}
 */
export function onStateChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

window.addEventListener("popstate", () => {
  const next = parseAddress();
  const changed = changedKeys(current, next);
  current = next;
  for (const listener of [...listeners]) listener(changed);
});
