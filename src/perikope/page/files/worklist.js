/** The work list: passages that the user has kept or discarded, with notes. It is stored in the browser, per index. */

import { passageName } from "./names.js";

/** @typedef {import("./types.js").Hit} Hit */
/** @typedef {"keep" | "discard" | ""} Decision */
/**
 * @typedef {object} Entry
 * @property {Decision} state
 * @property {string} note
 * @property {string} added when the entry was made, such as `2026-01-31T10:00:00.000Z`
 * @property {string} document
 * @property {string} passage
 * @property {string} title
 * @property {string[]} path
 * @property {string} text
 * @property {string} language
 * @property {string} part
 * @property {string} source
 * @property {string} citation
 * @property {Record<string, any>} metadata
 */

/** What a file of the work list says about itself. */
const KIND = "perikope work list";
/** The most entries of a list, and characters of a text. The storage of a browser holds about five million characters. */
const MOST = 5000, LONGEST = 4000;

/** The event `change` says that entries were added, changed or removed, here or in another window. */
export class WorkList extends EventTarget {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** Whether the last change could be stored. */
  isStored = true;

  /** @param {string} index the name of the index */
  constructor(index) {
    super();
    this.index = index;
    this.#load();
    addEventListener("storage", (event) => {
      if (event.key !== this.#key) return;
      this.#load();
      this.dispatchEvent(new Event("change"));
    });
  }

  get #key() {
    return `worklist:${this.index}`;
  }

  /** The entries, newest first. @returns {Entry[]} */
  get entries() {
    return [...this.#entries.values()].reverse();
  }

  /** What the user has decided about a passage. @param {string} name document#passage @returns {Decision} */
  stateOf(name) {
    return this.#entries.get(name)?.state ?? "";
  }

  /** Keep a hit; a second time takes it back. @param {Hit | Entry} hit @returns {Decision} what holds now */
  keep(hit) {
    return this.#decide(hit, "keep");
  }

  /** Discard a hit; a second time takes it back. @param {Hit | Entry} hit @returns {Decision} what holds now */
  discard(hit) {
    return this.#decide(hit, "discard");
  }

  /** Write a note about an entry. @param {string} name document#passage @param {string} text */
  note(name, text) {
    const entry = this.#entries.get(name);
    if (!entry || entry.note === text) return;
    this.#entries.set(name, { ...entry, note: text.slice(0, LONGEST) });
    this.#store();
  }

  /** Take an entry off the list, with its note. @param {string} name document#passage */
  remove(name) {
    if (this.#entries.delete(name)) this.#store();
  }

  /** Remove all entries. */
  clear() {
    this.#entries.clear();
    this.#store();
  }

  /** The list as a file that `import` reads. */
  export() {
    return `${JSON.stringify({ kind: KIND, index: this.index, entries: [...this.#entries.values()] }, null, 2)}\n`;
  }

  /**
   * Add the entries of a file. An entry of the file replaces one that is here.
   *
   * @param {string} json
   * @returns {number} the number of entries that were read
   * @throws {TypeError} if the file is not a work list
   */
  import(json) {
    let content;
    try {
      content = JSON.parse(json);
    } catch {
      throw new TypeError("not JSON");
    }
    const listed = Array.isArray(content) ? content : content?.kind === KIND ? content.entries : null;
    if (!Array.isArray(listed)) throw new TypeError("not a work list");
    const entries = listed.slice(0, MOST).map(entryOf).filter((entry) => entry !== null);
    for (const entry of entries) this.#put(entry);
    this.#store();
    return entries.length;
  }

  /** @param {Hit | Entry} hit @param {Decision} wanted @returns {Decision} */
  #decide(hit, wanted) {
    const name = nameOfEntry(hit), known = this.#entries.get(name);
    const state = known?.state === wanted ? "" : wanted;
    const entry = known ?? entryOf(hit);
    if (!entry) return "";
    if (!state && !entry.note) this.#entries.delete(name);
    else if (known) this.#entries.set(name, { ...entry, state });
    else this.#put({ ...entry, state, note: "", added: new Date().toISOString() });
    this.#store();
    return state;
  }

  /** @param {Entry} entry */
  #put(entry) {
    const name = nameOfEntry(entry);
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    if (this.#entries.size > MOST) this.#entries.delete([...this.#entries.keys()][0]);
  }

  #load() {
    this.#entries.clear();
    try {
      const stored = JSON.parse(localStorage.getItem(this.#key) ?? "[]");
      for (const item of Array.isArray(stored) ? stored : []) {
        const entry = entryOf(item);
        if (entry) this.#put(entry);
      }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }

  #store() {
    try {
      localStorage.setItem(this.#key, JSON.stringify([...this.#entries.values()]));
      this.isStored = true;
    } catch {
      this.isStored = false; // the storage is full, or the browser has none
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** The name of a passage: document#passage. @param {{document: string, passage: string}} entry */
export function nameOfEntry(entry) {
  return passageName(entry.document, entry.passage);
}

/**
 * An entry with the known properties only, each of the right type; null if there is no document. What is read may come
 * from a file that somebody else has made.
 *
 * @param {any} given
 * @returns {Entry | null}
 */
function entryOf(given) {
  if (typeof given?.document !== "string" || !given.document || typeof given.passage !== "string") return null;
  /** @param {unknown} value */
  const text = (value) => (typeof value === "string" ? value.slice(0, LONGEST) : "");
  const { metadata, path } = given;
  return {
    state: given.state === "keep" || given.state === "discard" ? given.state : "",
    note: text(given.note), added: text(given.added), document: text(given.document), passage: text(given.passage), title: text(given.title),
    path: Array.isArray(path) ? path.map(text) : [], text: text(given.text), language: text(given.language), part: text(given.part),
    source: text(given.source), citation: text(given.citation),
    metadata: metadata !== null && typeof metadata === "object" && !Array.isArray(metadata) ? metadata : {},
  };
}
