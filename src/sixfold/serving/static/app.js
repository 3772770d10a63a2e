/** The page around the screens: the navigation bar, the language and theme buttons, and loading the chosen screen. */

import { apiKey, fetchModels, fetchSettings, saveApiKey } from "./api.js";
import { announce, h, replaceContent } from "./dom.js";
import { interfaceLanguage, t } from "./page_text.js";
import { getState, linkTo, onStateChange, setState } from "./url_state.js";

/** @typedef {{mount: (root: HTMLElement) => (() => void), TITLE: import("./page_text.js").BilingualText}} Screen */

// The screens that need a model that writes texts have `writes`, those that need one that translates `translates`.
/** @type {Record<string, {name: import("./page_text.js").BilingualText, writes?: boolean, translates?: boolean, load: () => Promise<Screen>}>} */
const SCREENS = {
  translate: { name: { en: "Translate", zh: "翻译" }, translates: true, load: () => import("./screens/translate.js") },
  generate: { name: { en: "Generate", zh: "生成" }, writes: true, load: () => import("./screens/generate.js") },
  attention: { name: { en: "Attention", zh: "注意力" }, load: () => import("./screens/attention.js") },
  decode: { name: { en: "Decode", zh: "解码" }, load: () => import("./screens/decode.js") },
  walk: { name: { en: "Walk", zh: "逐步计算" }, load: () => import("./screens/walk.js") },
  masks: { name: { en: "Masks", zh: "掩码" }, load: () => import("./screens/masks.js") },
  positions: { name: { en: "Positions", zh: "位置" }, load: () => import("./screens/positions.js") },
  embeddings: { name: { en: "Embeddings", zh: "词向量" }, load: () => import("./screens/embeddings.js") },
  shapes: { name: { en: "Shapes", zh: "结构" }, load: () => import("./screens/shapes.js") },
};

const TEXTS = {
  screens: { en: "Screens", zh: "页面" },
  otherLanguage: { en: "中文", zh: "English" },
  dark: { en: "Dark mode", zh: "深色模式" },
  light: { en: "Light mode", zh: "浅色模式" },
  skip: { en: "Skip to the content", zh: "跳到正文" },
  key: { en: "API key", zh: "API 密钥" },
  failed: { en: "This screen could not be opened: {0}", zh: "无法打开这个页面：{0}" },
};

const bar = /** @type {HTMLElement} */ (document.getElementById("bar"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {() => void} */
let unmount = () => {};
let latestNumber = 0;
const models = { translate: true, write: false }; // what the server has, as far as it is known

function isDark() {
  return getState("theme") ? getState("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyLanguageAndTheme() {
  document.documentElement.lang = interfaceLanguage() === "zh" ? "zh-CN" : "en";
  if (getState("theme")) document.documentElement.dataset.theme = getState("theme");
  else delete document.documentElement.dataset.theme;
}

function drawBar() {
  const skip = document.getElementById("skip");
  if (skip) skip.textContent = t(TEXTS.skip);
  const followLink = (/** @type {MouseEvent} */ event, /** @type {string} */ screen) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setState({ screen });
    main.focus({ preventScroll: true });
  };
  replaceContent(bar,
    h("a", { class: "brand", href: linkTo({ screen: "translate" }), onclick: (/** @type {MouseEvent} */ event) => followLink(event, "translate") },
      h("img", { src: new URL("mark.svg", import.meta.url).pathname, alt: "", width: 24, height: 24 }), "Sixfold"),
    h("nav", { "aria-label": t(TEXTS.screens) }, Object.entries(SCREENS).filter(([name, entry]) => isAvailable(entry) || name === currentScreen()).map(([name, entry]) =>
      h("a", { href: linkTo({ screen: name }), "aria-current": name === currentScreen() ? "page" : null, dataset: { screen: name },
        onclick: (/** @type {MouseEvent} */ event) => followLink(event, name) }, t(entry.name)))),
    h("div", { class: "tools" },
      h("button", { type: "button", class: "subtle", id: "language", lang: interfaceLanguage() === "zh" ? "en" : "zh-CN",
        onclick: () => setState({ lang: interfaceLanguage() === "zh" ? "en" : "zh" }) }, t(TEXTS.otherLanguage)),
      h("button", { type: "button", class: "subtle", id: "theme", "aria-label": t(isDark() ? TEXTS.light : TEXTS.dark),
        onclick: () => setState({ theme: isDark() ? "light" : "dark" }) }, isDark() ? "☀" : "☾")));
  fetchSettings().then((entry) => {
    if (entry.keyRequired) bar.querySelector(".tools")?.prepend(h("input", { type: "password", id: "key", value: apiKey(),
      placeholder: t(TEXTS.key), "aria-label": t(TEXTS.key), onchange: (/** @type {Event} */ event) => {
        saveApiKey(/** @type {HTMLInputElement} */ (event.target).value);
        learnModels();
        openScreen();
      } }));
  }).catch(() => {});
}

/** @param {{writes?: boolean, translates?: boolean}} entry */
function isAvailable(entry) {
  return (!entry.writes || models.write) && (!entry.translates || models.translate);
}

function currentScreen() {
  return getState("screen") in SCREENS ? getState("screen") : "translate";
}

/** Show the screens for the models that the server has. */
function learnModels() {
  fetchModels().then(({ directions, writing }) => {
    [models.translate, models.write] = [directions.length > 0, writing.length > 0];
    drawBar();
    if (!models.translate && models.write && !isAvailable(SCREENS[currentScreen()])) setState({ screen: "generate" });
  }).catch(() => {}); // the screens say what is wrong
}

async function openScreen() {
  const requestNumber = ++latestNumber;
  const name = currentScreen();
  unmount();
  unmount = () => {};
  replaceContent(main);
  main.dataset.screen = "";
  try {
    const screen = await SCREENS[name].load();
    if (requestNumber !== latestNumber) return;
    document.title = `${t(screen.TITLE)} · Sixfold`;
    unmount = screen.mount(main);
    main.dataset.screen = name;
  } catch (error) {
    if (requestNumber === latestNumber) replaceContent(main, h("p", { class: "error" }, t(TEXTS.failed, String(error))));
  }
}

onStateChange((changed) => {
  const needsReload = ["screen", "lang", "theme"].some((name) => changed.has(/** @type {any} */ (name)));
  if (needsReload) applyLanguageAndTheme();
  drawBar();
  if (needsReload) openScreen();
  if (changed.has("screen")) announce(t(SCREENS[currentScreen()].name));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => !getState("theme") && openScreen());
applyLanguageAndTheme();
drawBar();
openScreen();
learnModels();
