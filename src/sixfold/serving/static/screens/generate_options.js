/** How tokens are drawn: sliders for temperature and the limits, a seed, and the length of the text. */

import { h } from "../dom.js";
import { t } from "../page_text.js";
import { getState, setState } from "../url_state.js";

const TEXTS = {
  temperature: { en: "Temperature", zh: "温度" },
  drawK: { en: "Top-k (0: all)", zh: "前 k 个（0：全部）" },
  drawP: { en: "Top-p", zh: "累积概率 p（top-p）" },
  minP: { en: "Min-p", zh: "最小概率比（min-p）" },
  penalty: { en: "Repetition penalty", zh: "重复惩罚" },
  maxTokens: { en: "Tokens", zh: "词元数" },
  seed: { en: "Seed (empty: a new one each time)", zh: "随机种子（留空：每次不同）" },
};

/** @typedef {"temperature" | "drawK" | "drawP" | "minP" | "penalty" | "maxTokens"} OptionName */
/** @type {[OptionName, number, number, number][]} */
const SLIDERS = [["temperature", 0, 2, 0.05], ["drawK", 0, 100, 1], ["drawP", 0.05, 1, 0.05], ["minP", 0, 0.5, 0.01], ["penalty", 1, 2, 0.05], ["maxTokens", 1, 512, 1]];

/** Return the options as the server names them. */
export function samplingOptions() {
  return {
    temperature: Number(getState("temperature")), top_k: Number(getState("drawK")), top_p: Number(getState("drawP")),
    min_p: Number(getState("minP")), repetition_penalty: Number(getState("penalty")),
    seed: /^\d{1,15}$/.test(getState("seed")) ? Number(getState("seed")) : null,
  };
}

export function optionFields() {
  const sliders = SLIDERS.map(([name, min, max, step]) => {
    const input = h("input", { type: "range", min, max, step, id: name, oninput: () => setState({ [name]: input.value }) });
    const number = h("output", { class: "number", for: name });
    return { name, input, number, element: h("label", {}, h("span", { class: "note" }, t(TEXTS[name])), input, number) };
  });
  const seed = h("input", { type: "text", inputmode: "numeric", id: "seed", size: 8, oninput: () => setState({ seed: seed.value.trim() }) });
  function draw() {
    for (const { name, input, number } of sliders) {
      if (input.value !== getState(name)) input.value = getState(name);
      number.textContent = getState(name);
    }
    if (document.activeElement !== seed) seed.value = getState("seed");
  }
  draw();
  const element = h("div", { class: "sliders" }, sliders.map((slider) => slider.element), h("label", {}, h("span", { class: "note" }, t(TEXTS.seed)), seed));
  return { element, draw };
}
