/** The original: the file that a passage was read from, as text at the line of the passage, or a PDF at its page. */

import { ApiError } from "./api.js";
import { fill, h } from "./dom.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").OriginalLines} OriginalLines */

/** The address of the last PDF in the memory of the browser. Windows that have opened it keep what they show. */
let address = "";

/**
 * Show the file of a passage in a dialog. `summary.originals` of the index says whether the server allows it.
 *
 * @param {import("./api.js").Api} api
 * @param {string} passage the name of the passage, document#passage, or the id of a document
 */
export async function openOriginal(api, passage) {
  let found;
  try {
    found = await api.ask("original", { passage, pdf: true });
  } catch (error) {
    const detail = error instanceof ApiError ? error.message || t.app.unreachable : String(error);
    return void show(t.document.original, [h("p", { class: "problem", role: "alert" }, printable(detail))]);
  }
  const notes = sentences(found).map((text) => h("p", { class: "help" }, text));
  if (found.kind === "text") {
    const lines = linesOf(found);
    show(found.file, [...notes, lines]);
    lines.querySelector(".here")?.scrollIntoView({ block: "center" });
    lines.focus({ preventScroll: true });
  } else {
    const link = found.data ? h("a", { class: "button original-pdf", href: addressOf(found), target: "_blank", rel: "noopener" },
      found.page ? t.original.openPage(found.page) : t.original.open) : null;
    show(found.file, [...notes, ...(link ? [h("p", {}, link)] : [])]);
    link?.focus();
  }
}

/** @param {string} file @param {HTMLElement[]} content */
function show(file, content) {
  const title = printable(file);
  const dialog = h("dialog", { class: "original", "aria-label": t.original.title(title), onclose: () => dialog.remove() });
  fill(dialog,
    h("header", {}, h("h2", { dir: "auto" }, title), h("button", { type: "button", onclick: () => dialog.close() }, t.original.close)),
    content);
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {OriginalLines} found */
function linesOf(found) {
  return h("ol", { class: "original-lines", tabIndex: 0, "aria-label": printable(found.file) }, found.text.split("\n").map((line, at) => {
    const number = found.first_line + at;
    return h("li", { value: number, class: number === found.line ? "original-line here" : "original-line", "aria-current": number === found.line && "true" },
      h("code", { dir: "auto" }, printable(line) || " "));
  }));
}

/**
 * The address of a PDF in the memory of this window, at a page. The viewer of the browser opens it; so the file needs no
 * address of its own on the server, and no token in an address.
 *
 * @param {OriginalLines} found
 */
function addressOf(found) {
  if (address) URL.revokeObjectURL(address);
  const bytes = Uint8Array.from(atob(found.data), (character) => character.charCodeAt(0));
  address = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
  return found.page ? `${address}#page=${found.page}` : address;
}

/** What the user must know about the file. @param {OriginalLines} found */
function sentences(found) {
  const shown = found.text.split("\n").length;
  const isText = found.kind === "text";
  return [
    isText && (found.line ? t.original.line(found.line) : t.original.notFound),
    !isText && found.page > 0 && t.original.page(found.page),
    found.kind === "other" && t.original.notText,
    found.changed && t.original.changed,
    isText && shown < found.lines && t.original.part(found.first_line, found.first_line + shown - 1, found.lines),
  ].filter((text) => text !== false);
}
