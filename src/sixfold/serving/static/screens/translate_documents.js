/** Document translation: files are dropped on the page or chosen, translated, and offered for download. */

import { fetchSettings, translateFile } from "../api.js";
import { announce, h } from "../dom.js";
import { t } from "../page_text.js";
import { getState } from "../url_state.js";

const TEXTS = {
  pick: { en: "Translate a document", zh: "翻译文档" },
  orDrop: { en: "or drop it anywhere on this page: {0}", zh: "或者把文件拖到页面任意位置：{0}" },
  drop: { en: "Drop the document to translate it", zh: "松开鼠标即可翻译文档" },
  wait: { en: "translating…", zh: "正在翻译…" },
  download: { en: "Download {0}", zh: "下载 {0}" },
  done: { en: "{0} is translated", zh: "{0} 已翻译完成" },
  unsupported: { en: "this file type cannot be translated", zh: "不支持这种文件类型" },
  remove: { en: "Remove {0} from the list", zh: "从列表中移除 {0}" },
  files: { en: "Documents", zh: "文档" },
};

/**
 * @param {(error: unknown) => string} describeError
 */
export function documentsSection(describeError) {
  /** @type {string[]} */
  let formats = [];
  const input = h("input", { type: "file", id: "file", class: "visually-hidden", multiple: true, tabindex: -1, "aria-hidden": "true" });
  const hint = h("span", { class: "note" });
  const list = h("ul", { class: "files", "aria-label": t(TEXTS.files) });
  const dropOverlay = h("div", { class: "drop-overlay", hidden: true }, h("strong", {}, t(TEXTS.drop)));
  const element = h("section", { class: "documents", "aria-label": t(TEXTS.files) },
    h("button", { type: "button", class: "subtle bordered", id: "pick", onclick: () => input.click() }, t(TEXTS.pick)), input, hint, list, dropOverlay);

  fetchSettings().then((settings) => {
    formats = settings.supportedFilesFormat;
    input.accept = formats.join(",");
    hint.textContent = t(TEXTS.orDrop, formats.join(" "));
  }).catch(() => {});
  input.addEventListener("change", () => {
    for (const file of input.files ?? []) addFile(file);
    input.value = "";
  });

  /** @param {File} file */
  async function addFile(file) {
    const bar = h("progress", { "aria-label": `${file.name}: ${t(TEXTS.wait)}` });
    const outcome = h("span", { class: "file-result" }, bar, h("span", { class: "note" }, t(TEXTS.wait)));
    const row = h("li", {}, h("span", { class: "file-name" }, file.name), outcome,
      h("button", { type: "button", class: "subtle", "aria-label": t(TEXTS.remove, file.name), onclick: () => row.remove() }, "✕"));
    list.append(row);
    const extension = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    try {
      if (formats.length && !formats.includes(extension)) throw new Error(t(TEXTS.unsupported));
      const url = await translateFile(file, getState("from"), getState("to"));
      const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1)).replace(/^[^.]*\./, "");
      outcome.replaceChildren(h("a", { href: url, download: name }, t(TEXTS.download, name)));
      announce(t(TEXTS.done, file.name));
    } catch (error) {
      outcome.replaceChildren(h("span", { class: "error", role: "alert" }, describeError(error)));
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
