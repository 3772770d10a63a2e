/** Every request that the page sends to the server, and the types of the responses. */

import { overConnection, readEvents } from "./event_stream.js";
import { parseSafetensors } from "./safetensors.js";
import { getState } from "./url_state.js";

/** @typedef {[number, number]} Span */
/** @typedef {{ids: number[], texts: string[], spans: Span[], words: number[][]}} TokenList */
/** @typedef {{id: number, text: string, logit: number, probability: number}} Choice */
/** @typedef {{read: string, wrote: string, probability: number, rank: number, entropy: number, choices: Choice[]}} Step */
/** @typedef {"encoder" | "decoder" | "cross"} AttentionKind */
/**
 * @typedef {object} Trace One forward pass, as explorer/trace.py describes it.
 * @property {string} text
 * @property {string} translation
 * @property {string} from
 * @property {string} to
 * @property {string} model
 * @property {string[]} off
 * @property {Partial<Record<AttentionKind, number>>} kinds number of layers with each kind of attention
 * @property {number} heads
 * @property {number} d_model
 * @property {number} d_head
 * @property {Record<string, any>} config every model option, named as in config.py
 * @property {TokenList} source null in a decoder-only model; see `isTextModel`
 * @property {TokenList} target tokens that the decoder reads, starting with <bos>
 * @property {TokenList} predicted token that follows at each position, ending with <eos>, or with the likeliest next token of a text
 * @property {Step[]} steps
 * @property {Record<string, number[]>} arrays
 */
/**
 * @typedef {object} ExploreRequest
 * @property {string} text
 * @property {string | null} [translation]
 * @property {string | null} [source]
 * @property {string | null} [target]
 * @property {string | null} [model]
 * @property {string[]} [off]
 */
/** @typedef {{text: string, span: Span, probability: number, source: Span}} Token */
/** @typedef {{target: Span, source: Span, weight: number}} Link */
/** @typedef {{kind: string, message: string, span: Span | null}} TranslationWarning */
/**
 * @typedef {object} Translation
 * @property {string} source
 * @property {string} translation
 * @property {number} score
 * @property {number | null} confidence
 * @property {string} from
 * @property {string} to
 * @property {{text: string, score: number}[]} n_best
 * @property {TranslationWarning[]} warnings
 * @property {Token[]} [tokens]
 * @property {Link[]} [alignment]
 * @property {{source: Span, target: Span}[]} [sentences]
 */

/** An error response of the server, with its message and hint, and the seconds after which to try again if it has them. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} [hint]
   * @param {number | null} [retryAfter]
   */
  constructor(status, message, hint = "", retryAfter = null) {
    super(message);
    this.status = status;
    this.hint = hint;
    this.retryAfter = retryAfter;
  }
}

/** A stream of events that has no result: it ended too early, or with an error event, whose message this error has. */
export class StreamError extends Error {}

/**
 * Return the message of an error, with the server's hint in brackets.
 * @param {unknown} error
 */
export function describeError(error) {
  return error instanceof ApiError ? `${error.message}${error.hint ? ` (${error.hint})` : ""}` : String(error);
}

const KEY_STORAGE_NAME = "sixfold-key";

/** @returns {string} the API key that the user entered, or ""; it is stored in this browser only */
export function apiKey() {
  return localStorage.getItem(KEY_STORAGE_NAME) ?? "";
}

/** @param {string} value */
export function saveApiKey(value) {
  localStorage.setItem(KEY_STORAGE_NAME, value);
}

// The server may serve everything below a prefix: the root of its paths is the parent of the folder of this file.
const SERVER_ROOT = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * @param {string} path below the root of the server, beginning with a slash
 * @param {object | FormData | null} body null: send a GET request
 * @param {AbortSignal} [signal]
 */
async function sendRequest(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = apiKey() ? { Authorization: `Bearer ${apiKey()}` } : {};
  const isForm = body instanceof FormData;
  if (body && !isForm) headers["Content-Type"] = "application/json";
  const requestBody = body && !isForm ? JSON.stringify(body) : /** @type {FormData | null} */ (body);
  const response = await overConnection(fetch(SERVER_ROOT + path, { method: body ? "POST" : "GET", headers, body: requestBody, signal }));
  if (response.ok) return response;
  const details = await response.json().catch(() => ({}));
  const retryAfter = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  throw new ApiError(response.status, details.error ?? response.statusText, details.hint, Number.isNaN(retryAfter) ? null : retryAfter);
}

/**
 * @param {string} path
 * @param {object | null} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function requestJson(path, body = null, signal = undefined) {
  return (await sendRequest(path, body, signal)).json();
}

/**
 * Send a request whose response is a stream of events, and return the data of the event that has the result.
 * @param {string} path
 * @param {object | FormData} body
 * @param {string} resultKind name of the event with the result
 * @param {(kind: string, data: any) => void} onEvent called for every other event
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function streamResult(path, body, resultKind, onEvent, signal) {
  const response = await sendRequest(path, body, signal);
  let result = null;
  for await (const { kind, data } of readEvents(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
    if (kind === "error") throw data.retry_after ? new ApiError(503, data.error, data.hint, data.retry_after) : new StreamError(data.error);
    if (kind === resultKind) result = data;
    else onEvent(kind, data);
  }
  if (result === null) throw new StreamError("the stream ended too early");
  return result;
}

/** @typedef {{done: number, total: number}} Progress sentences that are translated, and all sentences */

/**
 * Translate a text and report its sentences as they come: the texts of all sentences, joined, are the translation.
 * @param {string} text
 * @param {{source?: string | null, target?: string | null, n_best?: number, details?: boolean}} options
 * @param {(sentence: {text: string} & Progress) => void} onSentence
 * @param {AbortSignal} [signal]
 * @returns {Promise<Translation>}
 */
export async function streamTranslation(text, options, onSentence, signal) {
  return streamResult("/api/v1/translate/stream", { texts: [text], ...options }, "translation", (kind, data) => {
    if (kind === "sentence") onSentence(data);
  }, signal);
}

/**
 * @param {{text: string, prefix: string, count?: number, source?: string | null, target?: string | null}} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<Translation[]>}
 */
export async function fetchAlternatives(request, signal) {
  return (await requestJson("/api/v1/alternatives", request, signal)).translations;
}

/**
 * Translate a document and return the translated file. It is fetched here, because a link cannot send the API key.
 * @param {File} file
 * @param {{source: string, target: string}} languages
 * @param {(progress: Progress) => void} onProgress
 * @param {AbortSignal} [signal]
 * @returns {Promise<{name: string, content: Blob}>}
 */
export async function translateFile(file, { source, target }, onProgress, signal) {
  const form = new FormData();
  form.set("file", file);
  form.set("source", source || "auto");
  form.set("target", target || "auto");
  const result = await streamResult("/api/v1/translate_file/stream", form, "document", (_, data) => onProgress(data), signal);
  const address = new URL(result.translatedFileUrl).pathname.split("/").pop() ?? "";
  const content = await overConnection((await sendRequest(`/download_file/${address}`, null, signal)).blob());
  return { name: decodeURIComponent(address).replace(/^[^.]*\./, ""), content };
}

/** @typedef {{id: number, text: string, logprob: number, isPicked?: boolean}} WrittenToken */

/**
 * Continue a prompt, and report the tokens as they come.
 * @param {object} request
 * @param {{onPrompt: (model: string, ids: number[], pieces: string[]) => void, onTokens: (tokens: WrittenToken[], finish: string | null) => void}} listeners
 * @param {AbortSignal} signal
 */
export function streamWriting(request, { onPrompt, onTokens }, signal) {
  return streamResult("/api/v1/generate/stream", request, "done", (kind, data) => {
    if (kind === "prompt") onPrompt(data.model, data.ids, data.pieces);
    if (kind === "text") onTokens(data.tokens, data.finish);
  }, signal);
}

/** @returns {Promise<{directions: [string, string][], writing: string[], models: {name: string, bytes: number, card: any}[]}>} */
export const fetchModels = fetchOnce(() => requestJson("/api/v1/models"));

/** @returns {Promise<{keyRequired: boolean, charLimit: number, supportedFilesFormat: string[]}>} */
export const fetchSettings = fetchOnce(() => requestJson("/frontend/settings"));

/**
 * @template Result
 * @param {() => Promise<Result>} fetchResult
 * @returns {() => Promise<Result>}
 */
function fetchOnce(fetchResult) {
  /** @type {Promise<Result> | null} */
  let result = null;
  return () => {
    result = result ?? fetchResult().catch((error) => {
      result = null;
      throw error;
    });
    return result;
  };
}

// --- the explorer ---------------------------------------------------------------------------------------------------

export const EXAMPLE_SENTENCE = "The animal didn't cross the street because it was too tired";

/**
 * Return the explore request that the page's address describes.
 * @param {Partial<ExploreRequest>} [changes]
 * @returns {ExploreRequest}
 */
export function exploreRequest(changes = {}) {
  return {
    text: getState("text") || EXAMPLE_SENTENCE,
    translation: getState("given") || null,
    source: getState("from") || null,
    target: getState("to") || null,
    model: getState("model") || null,
    off: getState("off") ? getState("off").split(",") : [],
    ...changes,
  };
}

/** @type {Map<string, Promise<any>>} */
const cache = new Map();
const CACHE_SIZE = 24; // results

/**
 * Return the cached result of this request, or send it. Failed requests are not cached.
 * @template Result
 * @param {string} cacheKey
 * @param {() => Promise<Result>} fetchResult
 * @returns {Promise<Result>}
 */
function cached(cacheKey, fetchResult) {
  const result = cache.get(cacheKey) ?? fetchResult();
  cache.delete(cacheKey);
  cache.set(cacheKey, result);
  result.catch(() => cache.delete(cacheKey));
  while (cache.size > CACHE_SIZE) cache.delete(/** @type {string} */ (cache.keys().next().value));
  return result;
}

/**
 * @param {ExploreRequest} request
 * @returns {Promise<Trace>}
 */
export function fetchTrace(request) {
  return fetchExplorer("", request);
}

/**
 * Fetch one of the explorer's JSON results: `beam`, `heads`, `free`, …
 * @param {string} path below /api/v1/explore
 * @param {object} request
 * @returns {Promise<any>}
 */
export function fetchExplorer(path, request) {
  const url = `/api/v1/explore${path && `/${path}`}`;
  return cached(`${url} ${JSON.stringify(request)}`, () => requestJson(url, request));
}

/**
 * Fetch arrays of a pass by name. `half`: as 16-bit numbers; `row`: only this position, as 32-bit numbers.
 * @param {ExploreRequest} request
 * @param {string[]} names
 * @param {{half?: boolean, row?: number | null}} [options]
 * @returns {Promise<Map<string, import("./safetensors.js").Tensor>>}
 */
export function fetchArrays(request, names, options = {}) {
  return fetchTensors("arrays", { ...request, names, ...options });
}

/**
 * @param {string} path below /api/v1/explore
 * @param {object} request
 * @returns {Promise<Map<string, import("./safetensors.js").Tensor>>}
 */
export function fetchTensors(path, request) {
  const url = `/api/v1/explore/${path}`;
  return cached(`${url} ${JSON.stringify(request)}`, async () => parseSafetensors(await (await sendRequest(url, request)).arrayBuffer()));
}

/**
 * Return whether the model of a trace is decoder-only: it reads the text itself and translates nothing.
 * @param {Trace} trace
 */
export function isTextModel(trace) {
  return trace.source === null;
}

/** @type {Record<AttentionKind, (layer: number) => string>} */
const ATTENTION_PATHS = {
  encoder: (layer) => `encoder.layers.${layer}.self_attention`,
  decoder: (layer) => `decoder.layers.${layer}.self_attention`,
  cross: (layer) => `decoder.layers.${layer}.cross_attention`,
};

/**
 * Return the path of an attention module, as used in array names.
 * @param {AttentionKind} kind
 * @param {number} layer
 */
export function attentionPath(kind, layer) {
  return ATTENTION_PATHS[kind](layer);
}

/**
 * Return the labels of rows and columns. A decoder row shows the token that is read and the one that follows.
 * @param {Trace} trace
 * @param {AttentionKind} kind
 * @returns {[string[], string[]]}
 */
export function axisLabels(trace, kind) {
  if (kind === "encoder") return [trace.source.texts, trace.source.texts];
  const rows = trace.target.texts.map((token, position) => `${token} → ${trace.predicted.texts[position]}`);
  return [rows, kind === "cross" ? trace.source.texts : trace.target.texts];
}
