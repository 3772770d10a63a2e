/** The state of the page, kept in its address so that a link opens the same view. */

export const DEFAULTS = {
  screen: "translate",
  text: "", // text to translate or explore
  given: "", // a translation for the model to read; "": its own
  from: "", // source and target language; "": detected
  to: "",
  model: "", // "": the first model
  kind: "cross", // kind of attention: encoder, decoder or cross
  layer: "", // "": the last layer
  head: "0",
  row: "", // query and key position; "": chosen by the screen
  column: "",
  off: "", // disabled heads: cross.1.3,encoder.0.2
  words: "", // "1": tokens joined into words
  other: "", // a second sentence or word to compare with
  otherModel: "",
  stage: "", // stage of the walk and selected component: query.5
  step: "0",
  temperature: "1", // sampling options of the decode screen
  topK: "5",
  topP: "0.9",
  beam: "4",
  drawK: "0", // options of the generate screen, beside the temperature
  drawP: "1",
  minP: "0",
  penalty: "1",
  maxTokens: "64",
  seed: "",
  view: "", // for screens with several views
  word: "", // word of the embeddings screen
  batch: "", // sentences of the masks screen, one per line
  map: "", // extra words on the map of embeddings
  lang: "", // interface language; "": that of the browser
  theme: "", // "": that of the system
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
 * Return a state value as an integer from 0 to count − 1; empty or invalid values give `fallback`.
 * @param {StateKey} name
 * @param {number} fallback
 * @param {number} count number of valid values
 */
export function stateIndex(name, fallback, count) {
  const value = current[name] === "" ? fallback : Number(current[name]);
  return Number.isInteger(value) ? Math.max(0, Math.min(count - 1, value)) : Math.max(0, Math.min(count - 1, fallback));
}

/**
 * Change state values. A new screen adds an entry to the browser history; other changes replace the current entry.
 * @param {StateChanges} changes
 */
export function setState(changes) {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) next[/** @type {StateKey} */ (name)] = String(value);
  applyState(next, next.screen !== current.screen);
}

/**
 * Return the address of the page with these changes.
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
 * Call a listener with the changed keys after each change. Returns a function that removes the listener.
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
