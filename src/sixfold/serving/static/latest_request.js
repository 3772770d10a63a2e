/** What a part of a screen shows while the server is asked, and when it says no. */

import { Refused } from "./api.js";
import { h, refill } from "./dom.js";
import { t } from "./page_text.js";

const WORDS = {
  wait: { en: "Working…", zh: "计算中…" },
  failed: { en: "That did not work: {0}", zh: "出错了：{0}" },
};

/**
 * Asks again and again; of several answers only that to the last question is shown. What has gone wrong stands in
 * `said` until the next one goes well.
 * @template Found
 * @param {() => Promise<Found>} work
 * @param {(found: Found) => void} show
 */
export function asking(work, show) {
  const said = h("p", { class: "note", role: "status", hidden: true });
  let turn = 0;

  async function ask() {
    const mine = ++turn;
    const waiting = setTimeout(() => tell(t(WORDS.wait), false), 300);
    try {
      const found = await work();
      if (mine !== turn) return;
      said.hidden = true;
      show(found);
    } catch (error) {
      if (mine === turn) tell(t(WORDS.failed, reason(error)), true);
    } finally {
      clearTimeout(waiting);
    }

    /**
     * @param {string} text
     * @param {boolean} isWrong
     */
    function tell(text, isWrong) {
      if (mine !== turn) return;
      refill(said, text);
      said.classList.toggle("wrong", isWrong);
      said.hidden = false;
    }
  }
  return { ask, said, end: () => void turn++ };
}

/** @param {unknown} error */
function reason(error) {
  return error instanceof Refused ? `${error.message}${error.hint ? ` (${error.hint})` : ""}` : String(error);
}
