/** Documents: dropped anywhere on the screen or picked, translated, and there to be fetched. */

import { settings, translateFile } from "../api.js";
import { announce, h } from "../dom.js";
import { t } from "../page_text.js";
import { get } from "../url_state.js";

const WORDS = {
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
 * @param {(error: unknown) => string} tell
 */
export function filesBar(tell) {
  /** @type {string[]} */
  let formats = [];
  const input = h("input", { type: "file", id: "file", class: "unseen", multiple: true, tabindex: -1, "aria-hidden": "true" });
  const hint = h("span", { class: "note" });
  const list = h("ul", { class: "files", "aria-label": t(WORDS.files) });
  const curtain = h("div", { class: "curtain", hidden: true }, h("strong", {}, t(WORDS.drop)));
  const element = h("section", { class: "documents", "aria-label": t(WORDS.files) },
    h("button", { type: "button", class: "quiet framed", id: "pick", onclick: () => input.click() }, t(WORDS.pick)), input, hint, list, curtain);

  settings().then((its) => {
    formats = its.supportedFilesFormat;
    input.accept = formats.join(",");
    hint.textContent = t(WORDS.or, formats.join(" "));
  }).catch(() => {});
  input.addEventListener("change", () => {
    for (const file of input.files ?? []) add(file);
    input.value = "";
  });

  /** @param {File} file */
  async function add(file) {
    const bar = h("progress", { "aria-label": `${file.name}: ${t(WORDS.wait)}` });
    const outcome = h("span", { class: "outcome-of-file" }, bar, h("span", { class: "note" }, t(WORDS.wait)));
    const row = h("li", {}, h("span", { class: "file-name" }, file.name), outcome,
      h("button", { type: "button", class: "quiet", "aria-label": t(WORDS.remove, file.name), onclick: () => row.remove() }, "✕"));
    list.append(row);
    const ending = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    try {
      if (formats.length && !formats.includes(ending)) throw new Error(t(WORDS.format));
      const where = await translateFile(file, get("from"), get("to"));
      const name = decodeURIComponent(where.slice(where.lastIndexOf("/") + 1)).replace(/^[^.]*\./, "");
      outcome.replaceChildren(h("a", { href: where, download: name }, t(WORDS.fetch, name)));
      announce(t(WORDS.done, file.name));
    } catch (error) {
      outcome.replaceChildren(h("span", { class: "wrong", role: "alert" }, tell(error)));
    }
  }

  /** @param {DragEvent} event */
  const isFile = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  const listeners = new AbortController();
  const how = { signal: listeners.signal };
  for (const kind of /** @type {const} */ (["dragenter", "dragover"]))
    document.addEventListener(kind, (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      curtain.hidden = false;
    }, how);
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) curtain.hidden = true;
  }, how);
  document.addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    curtain.hidden = true;
    for (const file of event.dataTransfer?.files ?? []) add(file);
  }, how);
  return { element, end: () => listeners.abort() };
}
