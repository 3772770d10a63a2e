/** Documents: dropped anywhere on the screen or picked, translated, and there to be fetched. */

import { fetchSettings, translateFile } from "../api.js";
import { announce, h } from "../dom.js";
import { t } from "../page_text.js";
import { getState } from "../url_state.js";

const TEXTS = {
  pick: { en: "Translate a document", zh: "翻译文档" },
  or: { en: "or drop it anywhere on this page: {0}", zh: "或将其拖放到页面任意处：{0}" },
  drop: { en: "Drop the document to translate it", zh: "松开即可翻译文档" },
  wait: { en: "translating…", zh: "正在翻译…" },
  fetch: { en: "Download {0}", zh: "下载 {0}" },
  done: { en: "{0} is translated", zh: "{0} 已翻译" },
  format: { en: "this kind of file cannot be translated", zh: "不支持此类文件" },
  remove: { en: "Remove {0} from the list", zh: "从列表中移除 {0}" },
  files: { en: "Documents", zh: "文档" },
};

/**
 * @param {(error: unknown) => string} describeError
 */
export function documentsSection(describeError) {
  /** @type {string[]} */
  let formats = [];
  const input = h("input", { type: "file", id: "file", class: "unseen", multiple: true, tabindex: -1, "aria-hidden": "true" });
  const hint = h("span", { class: "note" });
  const list = h("ul", { class: "files", "aria-label": t(TEXTS.files) });
  const dropOverlay = h("div", { class: "curtain", hidden: true }, h("strong", {}, t(TEXTS.drop)));
  const element = h("section", { class: "documents", "aria-label": t(TEXTS.files) },
    h("button", { type: "button", class: "quiet framed", id: "pick", onclick: () => input.click() }, t(TEXTS.pick)), input, hint, list, dropOverlay);

  fetchSettings().then((settings) => {
    formats = settings.supportedFilesFormat;
    input.accept = formats.join(",");
    hint.textContent = t(TEXTS.or, formats.join(" "));
  }).catch(() => {});
  input.addEventListener("change", () => {
    for (const file of input.files ?? []) addFile(file);
    input.value = "";
  });

  /** @param {File} file */
  async function addFile(file) {
    const bar = h("progress", { "aria-label": `${file.name}: ${t(TEXTS.wait)}` });
    const outcome = h("span", { class: "outcome-of-file" }, bar, h("span", { class: "note" }, t(TEXTS.wait)));
    const row = h("li", {}, h("span", { class: "file-name" }, file.name), outcome,
      h("button", { type: "button", class: "quiet", "aria-label": t(TEXTS.remove, file.name), onclick: () => row.remove() }, "✕"));
    list.append(row);
    const extension = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    try {
      if (formats.length && !formats.includes(extension)) throw new Error(t(TEXTS.format));
      const url = await translateFile(file, getState("from"), getState("to"));
      const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1)).replace(/^[^.]*\./, "");
      outcome.replaceChildren(h("a", { href: url, download: name }, t(TEXTS.fetch, name)));
      announce(t(TEXTS.done, file.name));
    } catch (error) {
      outcome.replaceChildren(h("span", { class: "wrong", role: "alert" }, describeError(error)));
    }
  }

  /** @param {DragEvent} event */
  const isFile = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  const listeners = new AbortController();
  const options = { signal: listeners.signal };
  for (const eventName of /** @type {const} */ (["dragenter", "dragover"]))
    document.addEventListener(eventName, (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      dropOverlay.hidden = false;
    }, options);
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) dropOverlay.hidden = true;
  }, options);
  document.addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    dropOverlay.hidden = true;
    for (const file of event.dataTransfer?.files ?? []) addFile(file);
  }, options);
  return { element, dispose: () => listeners.abort() };
}
