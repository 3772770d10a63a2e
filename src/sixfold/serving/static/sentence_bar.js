/** The sentence that is looked into, above every screen of the explorer. */

import { asked, EXAMPLE, explore, models, Refused } from "./api.js";
import { h, refill, settled } from "./dom.js";
import { languageName, t } from "./page_text.js";
import { get, set, watch } from "./url_state.js";

const WORDS = {
  sentence: { en: "Sentence", zh: "句子" },
  given: { en: "Translation to read", zh: "给定译文" },
  own: { en: "the model's own", zh: "模型自己的译文" },
  said: { en: "Translation", zh: "译文" },
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "by script", zh: "自动识别" },
  off: { en: "Heads switched off", zh: "已关闭的头" },
  on: { en: "Switch {0} on again", zh: "重新打开 {0}" },
  model: { en: "Model", zh: "模型" },
  wait: { en: "Working…", zh: "计算中…" },
  failed: { en: "That did not work: {0}", zh: "出错了：{0}" },
};

/** @type {import("./url_state.js").Name[]} */
const PASS = ["text", "given", "from", "to", "off", "model"];

/**
 * Whether another pass is asked for: its trace is to come, and what is shown stays until then.
 * @param {Set<import("./url_state.js").Name>} changed
 */
export function isAnother(changed) {
  return PASS.some((name) => changed.has(name));
}

/**
 * @typedef {object} Sentence
 * @property {HTMLElement} element
 * @property {() => void} end
 */

/**
 * The bar; `onTrace` is called with each new pass, and with null while there is none.
 * @param {(trace: import("./api.js").Trace | null) => void} onTrace
 * @returns {Sentence}
 */
export function sentence(onTrace) {
  const text = h("input", { type: "text", value: get("text") || EXAMPLE, "aria-label": t(WORDS.sentence), id: "sentence", autocomplete: "off" });
  const given = h("input", { type: "text", value: get("given"), placeholder: t(WORDS.own), "aria-label": t(WORDS.given), id: "given", autocomplete: "off" });
  const said = h("output", { class: "said", id: "said", "aria-label": t(WORDS.said) });
  const direction = h("select", { "aria-label": t(WORDS.direction), id: "direction" }, h("option", { value: "" }, t(WORDS.auto)));
  const model = h("select", { "aria-label": t(WORDS.model), id: "model", hidden: true });
  const chips = h("div", { class: "chips" });
  const element = h("section", { class: "sentence", "aria-label": t(WORDS.sentence) },
    h("div", { class: "fields" }, text, direction, model, given), h("div", { class: "outcome" }, said, chips));

  text.addEventListener("input", settled(350, () => set({ text: text.value, row: "", column: "", step: "0" })));
  given.addEventListener("input", settled(350, () => set({ given: given.value, row: "", step: "0" })));
  direction.addEventListener("change", () => {
    const [from, to] = direction.value ? direction.value.split(">") : ["", ""];
    set({ from, to, row: "", column: "" });
  });
  model.addEventListener("change", () => set({ model: model.value }));
  models().then((open) => {
    for (const [from, to] of open.directions)
      direction.append(h("option", { value: `${from}>${to}` }, `${languageName(from)} → ${languageName(to)}`));
    direction.value = get("from") ? `${get("from")}>${get("to")}` : "";
    for (const each of open.models) model.append(h("option", { value: each.name }, each.name));
    model.hidden = open.models.length < 2;
    model.value = get("model") || open.models[0].name;
  }).catch(() => {});

  let turn = 0;
  async function ask() {
    const mine = ++turn;
    element.setAttribute("aria-busy", "true");
    const waiting = setTimeout(() => mine === turn && (said.textContent = t(WORDS.wait)), 300);
    try {
      const found = await explore(asked());
      if (mine !== turn) return;
      said.textContent = found.translation;
      said.classList.remove("wrong");
      onTrace(found);
    } catch (error) {
      if (mine !== turn) return;
      const told = error instanceof Refused ? `${error.message}${error.hint ? ` (${error.hint})` : ""}` : String(error);
      said.textContent = t(WORDS.failed, told);
      said.classList.add("wrong");
      onTrace(null);
    } finally {
      clearTimeout(waiting);
      if (mine === turn) element.removeAttribute("aria-busy");
    }
  }

  function showOff() {
    const off = get("off") ? get("off").split(",") : [];
    refill(chips, off.length > 0 && h("span", { class: "note" }, t(WORDS.off)), off.map((name) =>
      h("button", { type: "button", class: "chip", "aria-label": t(WORDS.on, name),
        onclick: () => set({ off: off.filter((each) => each !== name).join(",") }) }, `${name} ×`)));
  }

  const end = watch((changed) => {
    if (changed.has("text") && document.activeElement !== text) text.value = get("text") || EXAMPLE;
    if (changed.has("given") && document.activeElement !== given) given.value = get("given");
    if (changed.has("off")) showOff();
    if (isAnother(changed)) ask();
  });
  showOff();
  ask();
  return { element, end };
}
