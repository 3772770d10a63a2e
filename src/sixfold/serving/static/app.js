/** The page: a bar to choose the screen, the language and the colours, and the screen below it. */

import { key, setKey, settings } from "./api.js";
import { announce, h, refill } from "./dom.js";
import { language, t } from "./page_text.js";
import { get, link, set, watch } from "./url_state.js";

/** @typedef {{mount: (root: HTMLElement) => (() => void), TITLE: import("./page_text.js").Words}} Screen */

/** @type {Record<string, {name: import("./page_text.js").Words, load: () => Promise<Screen>}>} */
const SCREENS = {
  translate: { name: { en: "Translate", zh: "翻译" }, load: () => import("./screens/translate.js") },
  attention: { name: { en: "Attention", zh: "注意力" }, load: () => import("./screens/attention.js") },
  decode: { name: { en: "Decode", zh: "解码" }, load: () => import("./screens/decode.js") },
  walk: { name: { en: "Walk", zh: "逐步计算" }, load: () => import("./screens/walk.js") },
  masks: { name: { en: "Masks", zh: "掩码" }, load: () => import("./screens/masks.js") },
  positions: { name: { en: "Positions", zh: "位置" }, load: () => import("./screens/positions.js") },
  embeddings: { name: { en: "Embeddings", zh: "词向量" }, load: () => import("./screens/embeddings.js") },
  shapes: { name: { en: "Shapes", zh: "结构" }, load: () => import("./screens/shapes.js") },
};

const WORDS = {
  screens: { en: "Screens", zh: "页面" },
  other: { en: "中文", zh: "English" },
  dark: { en: "Dark colours", zh: "深色" },
  light: { en: "Light colours", zh: "浅色" },
  skip: { en: "Skip to the content", zh: "跳到正文" },
  key: { en: "API key", zh: "API 密钥" },
  failed: { en: "This screen could not be opened: {0}", zh: "无法打开此页面：{0}" },
};

const bar = /** @type {HTMLElement} */ (document.getElementById("bar"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {() => void} */
let unmount = () => {};
let turn = 0;

function isDark() {
  return get("theme") ? get("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function dress() {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  if (get("theme")) document.documentElement.dataset.theme = get("theme");
  else delete document.documentElement.dataset.theme;
}

function drawBar() {
  const skip = document.getElementById("skip");
  if (skip) skip.textContent = t(WORDS.skip);
  const follow = (/** @type {MouseEvent} */ event, /** @type {string} */ screen) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    set({ screen });
    main.focus({ preventScroll: true });
  };
  refill(bar,
    h("a", { class: "brand", href: link({ screen: "translate" }), onclick: (/** @type {MouseEvent} */ event) => follow(event, "translate") },
      h("img", { src: "/static/mark.svg", alt: "", width: 24, height: 24 }), "Sixfold"),
    h("nav", { "aria-label": t(WORDS.screens) }, Object.entries(SCREENS).map(([name, its]) =>
      h("a", { href: link({ screen: name }), "aria-current": name === current() ? "page" : null, dataset: { screen: name },
        onclick: (/** @type {MouseEvent} */ event) => follow(event, name) }, t(its.name)))),
    h("div", { class: "tools" },
      h("button", { type: "button", class: "quiet", id: "language", lang: language() === "zh" ? "en" : "zh-CN",
        onclick: () => set({ lang: language() === "zh" ? "en" : "zh" }) }, t(WORDS.other)),
      h("button", { type: "button", class: "quiet", id: "theme", "aria-label": t(isDark() ? WORDS.light : WORDS.dark),
        onclick: () => set({ theme: isDark() ? "light" : "dark" }) }, isDark() ? "☀" : "☾")));
  settings().then((its) => {
    if (its.keyRequired) bar.querySelector(".tools")?.prepend(h("input", { type: "password", id: "key", value: key(),
      placeholder: t(WORDS.key), "aria-label": t(WORDS.key), onchange: (/** @type {Event} */ event) => {
        setKey(/** @type {HTMLInputElement} */ (event.target).value);
        open();
      } }));
  }).catch(() => {});
}

function current() {
  return get("screen") in SCREENS ? get("screen") : "translate";
}

async function open() {
  const mine = ++turn;
  const name = current();
  unmount();
  unmount = () => {};
  refill(main);
  main.dataset.screen = "";
  try {
    const screen = await SCREENS[name].load();
    if (mine !== turn) return;
    document.title = `${t(screen.TITLE)} · Sixfold`;
    unmount = screen.mount(main);
    main.dataset.screen = name;
  } catch (error) {
    if (mine === turn) refill(main, h("p", { class: "wrong" }, t(WORDS.failed, String(error))));
  }
}

watch((changed) => {
  const isAnew = ["screen", "lang", "theme"].some((name) => changed.has(/** @type {any} */ (name)));
  if (isAnew) dress();
  drawBar();
  if (isAnew) open();
  if (changed.has("screen")) announce(t(SCREENS[current()].name));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => !get("theme") && open());
dress();
drawBar();
open();
