/** Failed requests: what users are told about them, and trying again by itself when they may succeed later. */

import { ApiError, StreamError } from "./api.js";
import { ConnectionError } from "./event_stream.js";
import { t } from "./page_text.js";

const TEXTS = {
  noAnswer: { en: "The server does not answer. Is it still running?", zh: "服务器没有响应，它还在运行吗？" },
  brokeOff: { en: "The translation broke off.", zh: "翻译中断了。" },
  busy: { en: "The server is busy.", zh: "服务器正忙。" },
  tooMany: { en: "The server accepts no more requests from you at the moment.", zh: "请求过于频繁，服务器暂时不再接受。" },
  key: { en: "This server needs an API key. Enter a valid one at the top of the page.", zh: "此服务器需要 API 密钥，请在页面顶部输入有效的密钥。" },
  tooLarge: { en: "This is too large for the server.", zh: "内容过大，服务器无法接受。" },
  fault: { en: "Something went wrong in the server.", zh: "服务器内部出错。" },
  refused: { en: "The server cannot do this: {0}", zh: "服务器无法完成：{0}" },
  again: { en: "{0} Trying again until it works.", zh: "{0}正在自动重试。" },
};

const PASSING_STATUSES = [429, 502, 503];
const MAX_PAUSE = 15; // seconds
const MAX_STREAM_ERRORS = 4; // in a row: a stream that always fails at the same place is not tried for ever

/**
 * Return in the language of the page what went wrong.
 * @param {unknown} error
 */
export function describeFailure(error) {
  if (error instanceof StreamError) return t(TEXTS.brokeOff);
  if (error instanceof ConnectionError) return t(TEXTS.noAnswer);
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.status === 401 || error.status === 403 || /API key/.test(error.message)) return t(TEXTS.key);
  if (error.status === 429) return t(TEXTS.tooMany);
  if (PASSING_STATUSES.includes(error.status)) return t(TEXTS.busy);
  if (error.status === 413) return t(TEXTS.tooLarge);
  return error.status >= 500 && error.status !== 504 ? t(TEXTS.fault) : t(TEXTS.refused, `${error.message}${error.hint ? ` – ${error.hint}` : ""}`);
}

/**
 * Return the seconds after which a request may be tried again, or null if that is of no use.
 * @param {unknown} error
 * @param {number} failures that came before, one after the other
 */
function secondsUntilRetry(error, failures) {
  const growing = Math.min(MAX_PAUSE, 2 ** failures);
  if (error instanceof ConnectionError) return growing;
  if (error instanceof StreamError) return failures < MAX_STREAM_ERRORS ? growing : null;
  return error instanceof ApiError && PASSING_STATUSES.includes(error.status) ? error.retryAfter ?? growing : null;
}

/**
 * Do some work and return its result. After a failure that may pass, wait and do it again.
 * @template Result
 * @param {(onProgress: () => void) => Promise<Result>} work it calls `onProgress` when it is further than ever before
 * @param {(message: string, tryNow: () => void) => void} onPause called with what to tell users; `tryNow` ends the pause
 * @param {AbortSignal} signal ends the pause too, with an exception
 * @returns {Promise<Result>}
 */
export async function retryUntilDone(work, onPause, signal) {
  let failures = 0;
  for (;;) {
    try {
      return await work(() => (failures = 0));
    } catch (error) {
      const seconds = signal.aborted ? null : secondsUntilRetry(error, failures++);
      if (seconds === null) throw error;
      await pause(seconds, (tryNow) => onPause(t(TEXTS.again, describeFailure(error)), tryNow), signal);
    }
  }
}

/**
 * Wait until the time is over, the browser is online again, or `end` is called. Pages that failed together do not try
 * again at the same moment: each waits up to a quarter longer.
 * @param {number} seconds
 * @param {(end: () => void) => void} onStart
 * @param {AbortSignal} signal
 */
async function pause(seconds, onStart, signal) {
  const listeners = new AbortController();
  await /** @type {Promise<void>} */ (new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000 * seconds * (1 + Math.random() / 4));
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    window.addEventListener("online", end, { signal: listeners.signal });
    signal.addEventListener("abort", end, { signal: listeners.signal });
    onStart(end);
  }));
  listeners.abort();
  signal.throwIfAborted();
}
