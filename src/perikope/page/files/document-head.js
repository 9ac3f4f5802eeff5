/** The head of a document: title, what is known about it, and what it cites. */

import { titleOf } from "./document-text.js";
import { h } from "./dom.js";
import { day } from "./format.js";
import { printable, safeAddress } from "./shown.js";
import { addressOf } from "./state.js";
import { nodesOf, outside } from "./text-pieces.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").DocumentView} DocumentView */

/** Facts that stand in the first line, by the name of their metadata field. */
const FIRST = ["publication", "date", "year", "journal", "author", "authors", "applicant", "assignee"];
/** The most values of a field, and the most cited documents, that are shown. */
const MOST = 40;

/**
 * @param {DocumentView} view
 * @param {import("./state.js").Store} store
 * @param {(() => void) | null} openFile shows the file of the document; null if the server does not show files
 * @returns {(HTMLElement | null)[]}
 */
export function documentHead(view, store, openFile) {
  const title = titleOf(view);
  const facts = FIRST.filter((name) => name in view.metadata).slice(0, 4).map((name) => values(view.metadata[name]).slice(0, 2).map(day).join(", "));
  if (!facts.includes(view.document)) facts.unshift(view.document);
  const fields = Object.entries(view.metadata).map(([name, value]) => [name, values(value)]).filter(([, all]) => all.length);
  if (view.source && view.source !== view.document) fields.push([t.document.source, [view.source]]);
  if (view.language) fields.push([t.document.language, [view.language]]);
  return [
    h("h1", { tabIndex: -1, dir: "auto", ...(title ? { "data-text": 0 } : {}) }, title ? nodesOf(title, () => h("a")) : printable(view.title || view.document)),
    h("p", { class: "document-facts" }, facts.filter(Boolean).map((fact) => h("bdi", {}, printable(fact))),
      openFile && view.source && h("bdi", {}, h("button", { type: "button", class: "inline-button", onclick: openFile }, t.document.original))),
    h("details", { class: "metadata" }, h("summary", {}, t.document.details),
      h("dl", {}, fields.map(([name, all]) => h("div", {}, h("dt", {}, printable(String(name))), h("dd", { dir: "auto" }, valueNodes(/** @type {string[]} */ (all))))))),
    view.cites.length ? citesOf(view, store) : null,
  ];
}

/** @param {string[]} all */
function valueNodes(all) {
  const shown = all.slice(0, MOST).flatMap((value, number) => {
    const address = safeAddress(value);
    const node = address ? outside(address, value) : printable(day(value));
    return number ? ["; ", node] : [node];
  });
  return all.length > MOST ? [...shown, " …"] : shown;
}

/** The values of a field as texts. @param {unknown} value @returns {string[]} */
function values(value) {
  if (value === null || value === undefined || value === "") return [];
  if (Array.isArray(value)) return value.flatMap(values);
  return [typeof value === "object" ? JSON.stringify(value) : String(value)];
}

/** @param {DocumentView} view @param {import("./state.js").Store} store */
function citesOf(view, store) {
  const cited = view.cites.map((name, number) => {
    const id = view.cites_found[number], address = safeAddress(name);
    if (id) return h("a", { href: addressOf({ ...store.state, document: id, passage: "", explained: "" }), "data-document": id }, printable(name));
    return address ? outside(address, name) : h("span", {}, printable(name));
  });
  // Those that can be opened come first.
  cited.sort((one, other) => Number(other.localName === "a") - Number(one.localName === "a"));
  return h("details", { class: "cites" }, h("summary", {}, t.document.cites(view.cites.length)), h("ul", {}, cited.slice(0, 200).map((one) => h("li", {}, one))));
}
