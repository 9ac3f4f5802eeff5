/** The original: the file that a passage was read from, as text, opened at the line of the passage. */

import { fill, h } from "./dom.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").OriginalLines} OriginalLines */

/**
 * Show the file of a passage in a dialog. `summary.originals` of the index says whether the server allows it.
 *
 * @param {import("./api.js").Api} api
 * @param {string} passage the name of the passage, document#passage, or the id of a document
 */
export async function openOriginal(api, passage) {
  const found = await api.ask("original", { passage });
  const title = printable(found.file);
  const lines = h("ol", { class: "original-lines", tabIndex: 0, "aria-label": title }, found.text.split("\n").map((line, at) => {
    const number = found.first_line + at;
    return h("li", { value: number, class: number === found.line ? "original-line here" : "original-line", "aria-current": number === found.line && "true" },
      h("code", { dir: "auto" }, printable(line) || " "));
  }));
  const dialog = h("dialog", { class: "original", "aria-label": t.original.title(title), onclose: () => dialog.remove() });
  fill(dialog,
    h("header", {}, h("h2", { dir: "auto" }, title), h("button", { type: "button", onclick: () => dialog.close() }, t.original.close)),
    sentences(found).map((text) => h("p", { class: "help" }, text)),
    lines);
  document.body.append(dialog);
  dialog.showModal();
  lines.querySelector(".here")?.scrollIntoView({ block: "center" });
  lines.focus({ preventScroll: true });
}

/** What the user must know about the file. @param {OriginalLines} found */
function sentences(found) {
  const shown = found.text.split("\n").length;
  return [
    found.line ? t.original.line(found.line) : t.original.notFound,
    found.changed && t.original.changed,
    shown < found.lines && t.original.part(found.first_line, found.first_line + shown - 1, found.lines),
  ].filter((text) => text !== false);
}
