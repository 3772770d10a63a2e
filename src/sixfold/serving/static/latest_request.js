/** A request that is sent again when the input changes: only the latest result is shown, with a waiting or error message. */

import { describeError } from "./api.js";
import { h, replaceContent } from "./dom.js";
import { t } from "./page_text.js";

const TEXTS = {
  wait: { en: "Working…", zh: "正在计算…" },
  failed: { en: "Something went wrong: {0}", zh: "出错了：{0}" },
};

/**
 * Return a request that can be repeated. Only the result of the latest one is shown; an error stays in
 * `status` until the next success.
 * @template Result
 * @param {() => Promise<Result>} send
 * @param {(result: Result) => void} show
 */
export function latestRequest(send, show) {
  const status = h("p", { class: "note", role: "status", hidden: true });
  let latestNumber = 0;

  async function request() {
    const requestNumber = ++latestNumber;
    const waitTimer = setTimeout(() => showStatus(t(TEXTS.wait), false), 300);
    try {
      const result = await send();
      if (requestNumber !== latestNumber) return;
      status.hidden = true;
      show(result);
    } catch (error) {
      if (requestNumber === latestNumber) showStatus(t(TEXTS.failed, describeError(error)), true);
    } finally {
      clearTimeout(waitTimer);
    }

    /**
     * @param {string} text
     * @param {boolean} isError
     */
    function showStatus(text, isError) {
      if (requestNumber !== latestNumber) return;
      replaceContent(status, text);
      status.classList.toggle("error", isError);
      status.hidden = false;
    }
  }
  return { request, status, dispose: () => void latestNumber++ };
}
