/** The generate screen: a decoder-only model continues a text, and every token shows what else it could have been. */

import { fetchModels, streamWriting } from "../api.js";
import { announce, h, replaceContent } from "../dom.js";
import { t } from "../page_text.js";
import { describeFailure } from "../retry.js";
import { getState, onStateChange, setState } from "../url_state.js";
import { nextTokensPanel } from "./generate_next.js";
import { optionFields, samplingOptions } from "./generate_options.js";
import { tokensPane } from "./generate_tokens.js";

export const TITLE = { en: "Generate", zh: "生成" };

const TEXTS = {
  lead: {
    en: "Continues a text, token by token. Open a token to see what else could stand there, and go on from another choice.",
    zh: "逐个词元地续写文本。点开任意词元，看看此处还可能是什么，也可以换一个词元接着写。",
  },
  prompt: { en: "Beginning of the text", zh: "文本的开头" },
  message: { en: "Message", zh: "消息" },
  text: { en: "Text", zh: "文本" },
  write: { en: "Write", zh: "续写" },
  stop: { en: "Stop", zh: "停止" },
  model: { en: "Model", zh: "模型" },
  asChat: { en: "as a message of a conversation", zh: "作为对话中的消息" },
  none: {
    en: "This server has no model that writes texts. Start it with such a model: sixfold serve --model MODEL.",
    zh: "此服务器没有可以续写文本的模型。请这样启动：sixfold serve --model 模型文件。",
  },
  ended: { en: "The model ended the text here.", zh: "模型在此结束了文本。" },
  limit: { en: "The limit of tokens is reached.", zh: "已达到词元数上限。" },
  stopped: { en: "Stopped.", zh: "已停止。" },
  first: { en: "Once upon a time", zh: "Once upon a time" },
};

const LONG_TEXT = 2000; // characters: longer beginnings are not put into the address

/** @typedef {import("../api.js").WrittenToken} WrittenToken */
/** @typedef {{prompt: string, model: string, ids: number[], pieces: string[], tokens: WrittenToken[], finish: string}} WrittenText */

/** @type {WrittenText | null} */
let written = null; // outlives the screen: a change of language or theme keeps the text

/**
 * @param {HTMLElement} root
 * @returns {() => void}
 */
export function mount(root) {
  let abortController = new AbortController();
  let isWriting = false;
  const area = h("textarea", { id: "prompt", rows: 3, maxlength: 100_000, "aria-label": t(TEXTS.prompt), oninput: keepPrompt, onkeydown: writeOnEnter });
  area.value = getState("text") || written?.prompt || t(TEXTS.first);
  const model = h("select", { id: "model", "aria-label": t(TEXTS.model), hidden: true, onchange: () => setState({ model: model.value }) });
  const asChat = h("input", { type: "checkbox", id: "chat" });
  const button = h("button", { type: "button", class: "button", id: "write", onclick: () => (isWriting ? stop() : write()) });
  const status = h("p", { class: "note", role: "status", id: "writing-status" });
  const next = nextTokensPanel((index, token) => continueWith(index, token));
  const tokens = tokensPane((index) => next.show(placeOf(index)));
  const options = optionFields();
  const body = h("div", { class: "panels" },
    h("section", { class: "panel generate", "aria-label": t(TEXTS.text) }, area,
      h("div", { class: "controls" }, button, model, h("label", {}, asChat, t(TEXTS.asChat))),
      options.element, tokens.element, status),
    next.element);
  replaceContent(root, h("div", {}, h("h1", {}, t(TITLE)), h("p", { class: "lead" }, t(TEXTS.lead))), body);

  fetchModels().then(({ writing }) => {
    if (!writing.length) return replaceContent(body, h("p", { class: "panel" }, t(TEXTS.none)));
    replaceContent(model, writing.map((/** @type {string} */ name) => h("option", { value: name, selected: name === getState("model") }, name)));
    model.hidden = writing.length < 2;
  }).catch(showFailure);

  function keepPrompt() {
    setState({ text: area.value.length > LONG_TEXT ? "" : area.value });
  }

  /** @param {KeyboardEvent} event */
  function writeOnEnter(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) write();
  }

  /**
   * Return a place of the text: the tokens before it, those that are there, and what was written in it.
   * @param {number} index
   * @returns {import("./generate_next.js").Place | null}
   */
  function placeOf(index) {
    if (!written) return null;
    const before = written.tokens.slice(0, index).map((token) => token.id);
    return { index, ids: [...written.ids, ...before], model: written.model, written: written.tokens[index] ?? null };
  }

  function write() {
    const prompt = asChat.checked ? [{ role: "user", content: area.value }] : area.value;
    written = { prompt: area.value, model: model.value || getState("model"), ids: [], pieces: [], tokens: [], finish: "" };
    send(prompt);
  }

  /**
   * Write on from another token in a place of the text.
   * @param {number} index
   * @param {WrittenToken} token
   */
  function continueWith(index, token) {
    if (!written) return;
    const tokens = [...written.tokens.slice(0, index), { ...token, isPicked: true }];
    written = { ...written, tokens, finish: "" };
    send([...written.ids, ...tokens.map((each) => each.id)]);
  }

  /** @param {string | number[] | {role: string, content: string}[]} prompt */
  async function send(prompt) {
    abortController.abort();
    abortController = new AbortController();
    const { signal } = abortController;
    const text = /** @type {WrittenText} */ (written);
    setWriting(true);
    replaceContent(status);
    next.show(null);
    tokens.show(text);
    try {
      await streamWriting({ prompt, model: text.model || null, ...samplingOptions(), max_tokens: Number(getState("maxTokens")) || 64 }, {
        onPrompt(model, ids, pieces) {
          text.model = model;
          if (!text.ids.length) [text.ids, text.pieces] = [ids, pieces];
        },
        onTokens(newTokens, finish) {
          text.tokens.push(...newTokens);
          text.finish = finish ?? text.finish;
          tokens.show(text);
        },
      }, signal);
      if (signal.aborted) return;
      replaceContent(status, t(text.finish === "stop" ? TEXTS.ended : TEXTS.limit));
      announce(text.tokens.map((token) => token.text).join(""));
    } catch (error) {
      if (!signal.aborted) showFailure(error);
    }
    if (!signal.aborted) setWriting(false);
  }

  function stop() {
    abortController.abort();
    setWriting(false);
    replaceContent(status, t(TEXTS.stopped));
  }

  /** @param {boolean} value */
  function setWriting(value) {
    isWriting = value;
    replaceContent(button, t(value ? TEXTS.stop : TEXTS.write));
    tokens.element.setAttribute("aria-busy", String(value));
  }

  /** @param {unknown} error */
  function showFailure(error) {
    setWriting(false);
    replaceContent(status, h("span", { class: "error" }, describeFailure(error)));
  }

  setWriting(false);
  if (written) tokens.show(written);
  const stopListening = onStateChange(() => {
    options.draw();
    next.update();
  });
  return () => {
    abortController.abort();
    next.dispose();
    stopListening();
  };
}
