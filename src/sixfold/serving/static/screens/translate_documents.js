/** Document translation: files are dropped on the page or chosen, translated, and offered for download. */

import { fetchSettings, translateFile } from "../api.js";
import { announce, h } from "../dom.js";
import { t } from "../page_text.js";
import { describeFailure, retryUntilDone } from "../retry.js";
import { getState } from "../url_state.js";
import { sentenceProgress } from "./translate_progress.js";

const TEXTS = {
  pick: { en: "Translate a document", zh: "翻译文档" },
  orDrop: { en: "or drop it anywhere on this page: {0}", zh: "或者把文件拖到页面任意位置：{0}" },
  drop: { en: "Drop the document to translate it", zh: "松开鼠标即可翻译文档" },
  wait: { en: "translating…", zh: "正在翻译…" },
  download: { en: "Download {0}", zh: "下载 {0}" },
  done: { en: "{0} is translated", zh: "{0} 已翻译完成" },
  unsupported: { en: "this file type cannot be translated", zh: "不支持这种文件类型" },
  unreadable: { en: "this file can no longer be read", zh: "无法再读取这个文件" },
  cancel: { en: "Cancel the translation of {0}", zh: "取消翻译 {0}" },
  cancelled: { en: "The translation of {0} is cancelled", zh: "已取消翻译 {0}" },
  remove: { en: "Remove {0} from the list", zh: "从列表中移除 {0}" },
  files: { en: "Documents", zh: "文档" },
};

/** Return the section for documents; `dispose` cancels those that are being translated. */
export function documentsSection() {
  const lifetime = new AbortController();
  const disposed = lifetime.signal;
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
    const work = new AbortController();
    const progress = sentenceProgress(`${file.name}: ${t(TEXTS.wait)}`, t(TEXTS.wait));
    const outcome = h("span", { class: "file-result" }, progress.element);
    const notice = h("span", { class: "error", role: "alert" });
    const remove = h("button", { type: "button", class: "subtle", "aria-label": t(TEXTS.cancel, file.name), onclick: () => {
      if (row.contains(progress.element)) announce(t(TEXTS.cancelled, file.name));
      work.abort();
      row.remove();
      URL.revokeObjectURL(row.querySelector("a")?.href ?? "");
    } }, "✕");
    const row = h("li", {}, h("span", { class: "file-name" }, file.name), outcome, notice, remove);
    list.append(row);
    disposed.addEventListener("abort", () => work.abort(), { signal: work.signal });
    try {
      const { name, content } = await translate(file, progress.show, notice, work.signal);
      outcome.replaceChildren(h("a", { href: URL.createObjectURL(content), download: name }, t(TEXTS.download, name)));
      announce(t(TEXTS.done, file.name));
    } catch (error) {
      if (work.signal.aborted) return;
      progress.element.remove();
      notice.textContent = describeFailure(error);
    }
    remove.setAttribute("aria-label", t(TEXTS.remove, file.name));
  }

  /**
   * Translate a file, and if the server fails, say so in the notice and try again.
   * @param {File} file
   * @param {(progress: import("../api.js").Progress) => void} showProgress
   * @param {HTMLElement} notice
   * @param {AbortSignal} signal
   */
  async function translate(file, showProgress, notice, signal) {
    const extension = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    if (formats.length && !formats.includes(extension)) throw new Error(t(TEXTS.unsupported));
    const languages = { source: getState("from"), target: getState("to") };
    let mostDone = 0;
    return retryUntilDone(async (onProgress) => {
      // A file that was changed or deleted looks to fetch like a connection that fails.
      await file.slice(0, 1).arrayBuffer().catch(() => { throw new Error(t(TEXTS.unreadable)); });
      return translateFile(file, languages, (progress) => {
        if (progress.done > mostDone) onProgress();
        mostDone = Math.max(mostDone, progress.done);
        notice.textContent = "";
        showProgress(progress);
      }, signal);
    }, (message) => {
      if (notice.textContent !== message) notice.textContent = message;
    }, signal);
  }

  /** @param {DragEvent} event */
  const isFile = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  const options = { signal: disposed };
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
  return { element, dispose: () => lifetime.abort() };
}
