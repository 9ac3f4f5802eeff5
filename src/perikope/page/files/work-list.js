/** The panel of the work list: kept and discarded passages with notes, and their export and import. */

import { fill, h } from "./dom.js";
import { download, FORMATS, save } from "./export/index.js";
import { printable } from "./shown.js";
import { addressOf } from "./state.js";
import { t } from "./texts.js";
import { nameOfEntry, WorkList } from "./worklist.js";

/** @typedef {import("./worklist.js").Entry} Entry */
/** @typedef {"keep" | "discard" | "all"} Shown */

/** The value of a property until its owner sets it, before the element is connected. @type {any} */
const GIVEN = undefined;
const SHOWN = /** @type {Shown[]} */ (["keep", "discard", "all"]);

export class WorkListPanel extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./api.js").Api} */
  api = GIVEN;
  /** The list; without it, that of the index of `api`. @type {WorkList | undefined} */
  worklist;

  /** @type {Shown} */
  #shown = "keep";
  #tabs = h("div", { class: "work-tabs", role: "group", "aria-label": t.worklist.shown });
  #entries = h("ol", { class: "work-entries" });
  #said = h("p", { class: "work-said", role: "status" });
  #tools = h("div", { class: "work-tools" });
  #file = h("input", { type: "file", accept: ".json,application/json", hidden: true, "aria-label": t.worklist.import, onchange: () => this.#import() });
  #heard = () => this.#render();

  get #list() {
    return (this.worklist ??= new WorkList(this.api.index));
  }

  connectedCallback() {
    fill(this, this.#tabs, this.#said, this.#entries, this.#tools, this.#file);
    this.#list.addEventListener("change", this.#heard);
    this.#render();
  }

  disconnectedCallback() {
    this.#list.removeEventListener("change", this.#heard);
  }

  #render() {
    const { entries } = this.#list;
    /** @param {Shown} shown */
    const of = (shown) => (shown === "all" ? entries : entries.filter((entry) => entry.state === shown));
    fill(this.#tabs, SHOWN.map((shown) => h("button", {
      class: "work-tab", type: "button", "aria-pressed": String(shown === this.#shown),
      onclick: () => { this.#shown = shown; this.#render(); this.#tab()?.focus(); },
    }, t.worklist.states[shown], h("span", { class: "count" }, String(of(shown).length)))));
    this.#showEntries(of(this.#shown));
    fill(this.#tools, this.#buttons(of(this.#shown), entries.length));
    if (!this.#list.isStored) this.#say(t.worklist.full);
  }

  #tab() {
    return /** @type {HTMLElement | null} */ (this.#tabs.querySelector("[aria-pressed=true]"));
  }

  /** Show entries. Those that are shown already remain, so that a note keeps the cursor. @param {Entry[]} entries */
  #showEntries(entries) {
    const known = new Map([...this.#entries.children].map((item) => [/** @type {HTMLElement} */ (item).dataset.name ?? "", item]));
    const focused = this.#entries.contains(document.activeElement);
    const at = [...this.#entries.children].findIndex((item) => item.contains(document.activeElement));
    const items = entries.map((entry) => {
      const item = known.get(nameOfEntry(entry)) ?? this.#item(entry);
      for (const state of ["keep", "discard"]) item.querySelector(`[data-state=${state}]`)?.setAttribute("aria-pressed", String(entry.state === state));
      const note = item.querySelector("textarea");
      if (note && note !== document.activeElement) note.value = entry.note;
      return item;
    });
    const isSame = items.length === this.#entries.children.length && items.every((item, number) => item === this.#entries.children[number]);
    if (!isSame) fill(this.#entries, items.length ? items : h("li", { class: "work-empty" }, t.worklist.empty[this.#shown]));
    // An entry that has left the list takes the focus with it; the next one gets it.
    if (focused && !this.#entries.contains(document.activeElement)) {
      const next = this.#entries.children[Math.min(at, items.length - 1)]?.querySelector("a");
      (next ?? this.#tab())?.focus();
    }
  }

  /** @param {Entry} entry */
  #item(entry) {
    const name = nameOfEntry(entry), titles = entry.path.length ? entry.path : [entry.title || entry.document];
    const { document, passage } = entry;
    return h("li", {
      class: "work-entry", "data-name": name,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLTextAreaElement) return;
        event.preventDefault();
        event.stopPropagation();
        this.#cite([entry]);
      },
    },
      h("p", { class: "work-heading", dir: "auto" },
        h("a", {
          href: addressOf({ ...this.store.state, document, passage, explained: "" }),
          onclick: (/** @type {MouseEvent} */ event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            this.store.change({ document, passage, explained: "" });
          },
        }, printable(titles[0])),
        titles.slice(1).map((title) => h("span", { class: "work-step" }, printable(title)))),
      h("p", { class: "work-text", dir: "auto", lang: entry.language && entry.language !== "und" ? entry.language : undefined }, printable(entry.text)),
      h("textarea", {
        class: "work-note", rows: 1, placeholder: t.worklist.note, "aria-label": t.worklist.noteOn(printable(entry.citation || titles[0])), value: entry.note,
        oninput: (/** @type {Event} */ event) => this.#list.note(name, /** @type {HTMLTextAreaElement} */ (event.target).value),
      }),
      h("div", { class: "work-actions" },
        h("button", { type: "button", "data-state": "keep", onclick: () => this.#list.keep(entry) }, t.worklist.keep),
        h("button", { type: "button", "data-state": "discard", onclick: () => this.#list.discard(entry) }, t.worklist.discard),
        h("button", { type: "button", onclick: () => this.#remove(name) }, t.worklist.remove),
        h("button", {
          class: "work-cite", type: "button", dir: "auto", title: t.worklist.copyCitation,
          "aria-label": entry.citation ? `${t.worklist.copyCitation}: ${printable(entry.citation)}` : undefined,
          onclick: () => this.#cite([entry]),
        }, entry.citation ? printable(entry.citation) : t.worklist.cite)));
  }

  /** @param {Entry[]} entries those that are shown @param {number} count the number of all entries */
  #buttons(entries, count) {
    return [
      entries.length > 0 && h("div", { class: "work-export", role: "group", "aria-label": t.worklist.export },
        h("span", { class: "label" }, t.worklist.export),
        FORMATS.map((format) => h("button", { type: "button", onclick: () => this.#export(entries, format) }, format.toUpperCase()))),
      entries.length > 0 && h("button", { type: "button", onclick: () => this.#cite(entries) }, t.worklist.citeAll(entries.length)),
      h("button", { type: "button", onclick: () => this.#file.click() }, t.worklist.import),
      count > 0 && h("button", { type: "button", onclick: () => this.#clear() }, t.worklist.clear),
    ];
  }

  /** @param {Entry[]} entries @param {import("./export/index.js").Format} format */
  #export(entries, format) {
    const name = `${t.worklist.file} ${this.#list.index}`;
    // A file of the work list has all entries, so that it can be imported elsewhere.
    if (format === "json") save(this.#list.export(), format, name);
    else download(entries.map(({ added, ...row }) => row), format, name);
  }

  async #import() {
    const [file] = this.#file.files ?? [];
    this.#file.value = "";
    if (!file) return;
    try {
      this.#say(t.worklist.imported(this.#list.import(await file.text())));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#say(t.worklist.notImported(printable(file.name)));
    }
  }

  /** Copy citations, such as `EP1130000B1 [0042]`. @param {Entry[]} entries */
  async #cite(entries) {
    const text = entries.map((entry) => printable(entry.citation || nameOfEntry(entry))).join("\n");
    await navigator.clipboard.writeText(text);
    this.#say(t.worklist.copied(entries.length === 1 ? text : String(entries.length)));
  }

  /** @param {string} name */
  #remove(name) {
    const before = this.#list.export();
    this.#list.remove(name);
    this.#say(t.worklist.removed, before);
  }

  #clear() {
    const before = this.#list.export();
    this.#list.clear();
    this.#say(t.worklist.cleared, before);
  }

  /** Say something, with a way back to an earlier list if there is one. @param {string} text @param {string} [before] */
  #say(text, before) {
    const undo = before !== undefined && h("button", {
      type: "button", onclick: () => { this.#list.clear(); this.#list.import(before); this.#say(t.worklist.undone); this.#tab()?.focus(); },
    }, t.worklist.undo);
    fill(this.#said, text, undo && " ", undo);
  }
}
customElements.define("pk-work-list", WorkListPanel);
