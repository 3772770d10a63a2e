/** What the page asks of the server. */

import { parse } from "./safetensors.js";
import { get } from "./url_state.js";

/** @typedef {[number, number]} Span */
/** @typedef {{ids: number[], texts: string[], spans: Span[], words: number[][]}} Pieces */
/** @typedef {{id: number, text: string, logit: number, probability: number}} Choice */
/** @typedef {{read: string, wrote: string, probability: number, rank: number, entropy: number, choices: Choice[]}} Step */
/** @typedef {"encoder" | "decoder" | "cross"} Kind */
/**
 * @typedef {object} Trace What explorer/trace.py tells of a pass.
 * @property {string} text
 * @property {string} translation
 * @property {string} from
 * @property {string} to
 * @property {string} model
 * @property {string[]} off
 * @property {Partial<Record<Kind, number>>} kinds layers of each kind of attention
 * @property {number} heads
 * @property {number} d_model
 * @property {number} d_head
 * @property {Record<string, any>} config every option of the model, as in config.py
 * @property {Pieces} source
 * @property {Pieces} target what the decoder reads, <bos> first
 * @property {Pieces} predicted what comes next at each place, <eos> last
 * @property {Step[]} steps
 * @property {Record<string, number[]>} arrays
 */
/**
 * @typedef {object} Asked
 * @property {string} text
 * @property {string | null} [translation]
 * @property {string | null} [source]
 * @property {string | null} [target]
 * @property {string | null} [model]
 * @property {string[]} [off]
 */
/** @typedef {{text: string, span: Span, probability: number, source: Span}} Token */
/** @typedef {{target: Span, source: Span, weight: number}} Link */
/** @typedef {{kind: string, message: string, span: Span | null}} Notice */
/**
 * @typedef {object} Translation
 * @property {string} source
 * @property {string} translation
 * @property {number} score
 * @property {number | null} confidence
 * @property {string} from
 * @property {string} to
 * @property {{text: string, score: number}[]} n_best
 * @property {Notice[]} warnings
 * @property {Token[]} [tokens]
 * @property {Link[]} [alignment]
 * @property {{source: Span, target: Span}[]} [sentences]
 */

/** The server said no, and why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} [hint]
   */
  constructor(status, message, hint = "") {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

const KEY = "sixfold-key";

/** @returns {string} the API key, where the user has given one; it stays in this browser */
export function key() {
  return localStorage.getItem(KEY) ?? "";
}

/** @param {string} value */
export function setKey(value) {
  localStorage.setItem(KEY, value);
}

/**
 * @param {string} path
 * @param {object | FormData | null} body none: it is only read
 * @param {AbortSignal} [signal]
 */
async function ask(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = key() ? { Authorization: `Bearer ${key()}` } : {};
  const isForm = body instanceof FormData;
  if (body && !isForm) headers["Content-Type"] = "application/json";
  const sent = body && !isForm ? JSON.stringify(body) : /** @type {FormData | null} */ (body);
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: sent, signal });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, said.error ?? answer.statusText, said.hint);
}

/**
 * @param {string} path
 * @param {object | null} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function json(path, body = null, signal = undefined) {
  return (await ask(path, body, signal)).json();
}

/**
 * @param {string[]} texts
 * @param {{source?: string | null, target?: string | null, beam?: number, n_best?: number, prefix?: string, guard?: boolean, details?: boolean}} options
 * @param {AbortSignal} [signal]
 * @returns {Promise<Translation[]>}
 */
export async function translate(texts, options, signal) {
  return (await json("/api/v1/translate", { texts, ...options }, signal)).translations;
}

/**
 * @param {{text: string, prefix: string, count?: number, source?: string | null, target?: string | null}} asked
 * @param {AbortSignal} [signal]
 * @returns {Promise<Translation[]>}
 */
export async function alternatives(asked, signal) {
  return (await json("/api/v1/alternatives", asked, signal)).translations;
}

/**
 * A document; where the translated one is.
 * @param {File} file
 * @param {string} source
 * @param {string} target
 * @returns {Promise<string>}
 */
export async function translateFile(file, source, target) {
  const form = new FormData();
  form.set("file", file);
  form.set("source", source || "auto");
  form.set("target", target || "auto");
  if (key()) form.set("api_key", key());
  const said = await (await ask("/translate_file", form)).json();
  return new URL(said.translatedFileUrl).pathname;
}

/** @returns {Promise<{directions: [string, string][], models: {name: string, bytes: number, card: any}[]}>} */
export const models = once(() => json("/api/v1/models"));

/** @returns {Promise<{keyRequired: boolean, charLimit: number, supportedFilesFormat: string[]}>} */
export const settings = once(() => json("/frontend/settings"));

/**
 * @template Result
 * @param {() => Promise<Result>} work
 * @returns {() => Promise<Result>}
 */
function once(work) {
  /** @type {Promise<Result> | null} */
  let found = null;
  return () => {
    found = found ?? work().catch((error) => {
      found = null;
      throw error;
    });
    return found;
  };
}

// --- the explorer ----------------------------------------------------------------------------------------------------

export const EXAMPLE = "The animal didn't cross the street because it was too tired";

/**
 * What the address of the page asks to look into.
 * @param {Partial<Asked>} [changes]
 * @returns {Asked}
 */
export function asked(changes = {}) {
  return {
    text: get("text") || EXAMPLE,
    translation: get("given") || null,
    source: get("from") || null,
    target: get("to") || null,
    model: get("model") || null,
    off: get("off") ? get("off").split(",") : [],
    ...changes,
  };
}

/** @type {Map<string, Promise<any>>} */
const known = new Map();
const MOST = 24; // answers that are remembered

/**
 * Asked once for the same; a failure is forgotten.
 * @template Result
 * @param {string} name
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
function remembered(name, work) {
  const found = known.get(name) ?? work();
  known.delete(name);
  known.set(name, found);
  found.catch(() => known.delete(name));
  while (known.size > MOST) known.delete(/** @type {string} */ (known.keys().next().value));
  return found;
}

/**
 * @param {Asked} what
 * @returns {Promise<Trace>}
 */
export function explore(what) {
  return look("", what);
}

/**
 * Another of the explorer's answers in JSON: `beam`, `heads`, `free` …
 * @param {string} path below /api/v1/explore
 * @param {object} what
 * @returns {Promise<any>}
 */
export function look(path, what) {
  const where = `/api/v1/explore${path && `/${path}`}`;
  return remembered(`${where} ${JSON.stringify(what)}`, () => json(where, what));
}

/**
 * Arrays of a pass by name: `half` in 16 bits, `row` of one place in 32.
 * @param {Asked} what
 * @param {string[]} names
 * @param {{half?: boolean, row?: number | null}} [how]
 * @returns {Promise<Map<string, import("./safetensors.js").Tensor>>}
 */
export function arrays(what, names, how = {}) {
  return binary("arrays", { ...what, names, ...how });
}

/**
 * @param {string} path below /api/v1/explore
 * @param {object} what
 * @returns {Promise<Map<string, import("./safetensors.js").Tensor>>}
 */
export function binary(path, what) {
  const where = `/api/v1/explore/${path}`;
  return remembered(`${where} ${JSON.stringify(what)}`, async () => parse(await (await ask(where, what)).arrayBuffer()));
}

/** @type {Record<Kind, (layer: number) => string>} */
const PLACES = {
  encoder: (layer) => `encoder.layers.${layer}.self_attention`,
  decoder: (layer) => `decoder.layers.${layer}.self_attention`,
  cross: (layer) => `decoder.layers.${layer}.cross_attention`,
};

/**
 * Of an attention, in the names of arrays.
 * @param {Kind} kind
 * @param {number} layer
 */
export function place(kind, layer) {
  return PLACES[kind](layer);
}

/**
 * Of rows and columns; a row of the decoder is what it reads and what comes next.
 * @param {Trace} trace
 * @param {Kind} kind
 * @returns {[string[], string[]]}
 */
export function labels(trace, kind) {
  if (kind === "encoder") return [trace.source.texts, trace.source.texts];
  const rows = trace.target.texts.map((read, at) => `${read} → ${trace.predicted.texts[at]}`);
  return [rows, kind === "cross" ? trace.source.texts : trace.target.texts];
}
