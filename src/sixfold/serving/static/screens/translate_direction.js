/** From which language into which: chosen, or told by the script of the text; and the way back. */

import { models } from "../api.js";
import { h } from "../dom.js";
import { languageName, t } from "../language.js";
import { get, set } from "../state.js";

const WORDS = {
  direction: { en: "Direction", zh: "方向" },
  auto: { en: "By script", zh: "自动识别" },
  found: { en: "By script: {0} → {1}", zh: "自动识别：{0} → {1}" },
  swap: { en: "Swap the languages, and translate back", zh: "交换语言并回译" },
};

/** @param {() => void} onTurn */
export function directionChooser(onTurn) {
  const select = h("select", { id: "direction", "aria-label": t(WORDS.direction), class: "plain" }, h("option", { value: "" }, t(WORDS.auto)));
  const swap = h("button", { type: "button", class: "swap", id: "swap", "aria-label": t(WORDS.swap), title: t(WORDS.swap), onclick: onTurn }, "⇄");
  /** @type {{from: string, to: string} | null} */
  let told = null;

  /** @param {{from: string, to: string} | null} languages of the translation that is shown, if any is */
  function show(languages) {
    told = languages;
    select.options[0].textContent = told && !get("from") ? t(WORDS.found, languageName(told.from), languageName(told.to)) : t(WORDS.auto);
    select.value = get("from") ? `${get("from")}>${get("to")}` : "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
    const back = `${get("to")}>${get("from")}`;
    swap.disabled = get("from") ? ![...select.options].some(({ value }) => value === back) : !told;
  }

  select.addEventListener("change", () => {
    const [from, to] = select.value ? select.value.split(">") : ["", ""];
    set({ from, to });
  });
  models().then(({ directions }) => {
    for (const [from, to] of directions) select.append(h("option", { value: `${from}>${to}` }, `${languageName(from)} → ${languageName(to)}`));
    show(told);
  }).catch(() => {});
  return { select, swap, show };
}
