/** The hits of the current search, with more on scrolling. Hits that stay only move, so that the eye can follow them. */

import { fill, GIVEN, h } from "./dom.js";
import { count } from "./format.js";
import { nameOf } from "./search.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";
import { ResultItem } from "./result-item.js";

/** @typedef {import("./search.js").Hit} Hit */

const RESULT_COMMANDS = new Set(["open", "explain", "neighbors", "keep", "discard", "cite"]);

export class ResultList extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;
  /** Whether the index has several languages. */
  showsLanguage = false;
  /** Whether the server shows the files of documents. */
  showsFiles = false;
  /** In which list of the user a hit is. @type {(name: string) => string} */
  stateOf = () => "";

  #status = h("p", { class: "status", role: "status" });
  #notes = h("div", { class: "notes" });
  #items = h("div", { class: "results" });
  #more = h("button", { class: "more", type: "button", onclick: () => this.search.more() }, t.results.more);
  /** @type {Map<string, ResultItem>} */
  #itemOf = new Map();
  #watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.search.more(), { rootMargin: "600px" });
  #stop = new AbortController();

  connectedCallback() {
    const { signal } = (this.#stop = new AbortController());
    fill(this, this.#status, this.#notes, this.#items, this.#more);
    this.search.addEventListener("change", () => this.#render(), { signal });
    document.addEventListener("command", (event) => this.#command(/** @type {CustomEvent} */ (event).detail), { signal });
    this.#watch.observe(this.#more);
    this.#render();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#watch.disconnect();
  }

  /** Show again in which lists of the user the hits are. */
  markAll() {
    for (const [name, item] of this.#itemOf) item.mark(this.stateOf(name));
  }

  #render() {
    const { search } = this;
    this.setAttribute("aria-busy", String(search.isRunning));
    this.hidden = !search.answer && !search.isRunning;
    this.#more.hidden = search.isComplete;
    if (search.problem) {
      // A mistake with a place is shown there. Others, such as a word that is in every text, are said without alarm.
      const isHere = search.problem.status === 400 && search.problem.place.start === undefined;
      this.#status.textContent = isHere ? printable(search.problem.message) : "";
      this.hidden = !isHere;
      if (search.problem.status === 400) this.#showHits([]);
      fill(this.#notes);
      return;
    }
    if (!search.answer) return;
    const { hits, answer } = search;
    if (!search.isRunning) this.#status.textContent = hits.length ? t.results.found(count(hits.length), count(Math.round(search.took))) : search.reading.kind === "patent" ? t.results.noneForPatent : t.results.none;
    this.#showNotes([...answer.notes, ...answer.warnings]);
    this.#showHits(hits);
    // The end of a short list may still be visible. Only a new observation says so.
    this.#watch.unobserve(this.#more);
    this.#watch.observe(this.#more);
  }

  /** @param {string[]} notes */
  #showNotes(notes) {
    // The note about misspelt words is shown as a question, below the search box.
    const others = this.search.answer.suggestions.query ? notes.slice(0, -1) : notes;
    fill(this.#notes, others.map((note) => h("p", { class: "note" }, printable(note))));
  }

  /** @param {Hit[]} hits */
  #showHits(hits) {
    const { search } = this;
    const before = new Map([...this.#itemOf].map(([name, item]) => [name, item.hit?.rank ?? 0]));
    const places = search.isReranked ? this.#places() : null;
    const best = hits[0]?.score ?? 0;
    /** @type {Map<string, ResultItem>} */
    const itemOf = new Map();
    for (const hit of hits) {
      const name = nameOf(hit);
      const item = this.#itemOf.get(name) ?? this.#newItem();
      item.isGroup = this.store.state.group !== "";
      item.update(hit, search.reasons.get(name), best);
      item.showMove(search.isReranked && before.has(name) ? (before.get(name) ?? 0) - hit.rank : 0);
      item.mark(this.stateOf(name));
      itemOf.set(name, item);
    }
    this.#itemOf = itemOf;
    const isSame = this.#items.childElementCount === itemOf.size && [...itemOf.values()].every((item, number) => this.#items.children[number] === item);
    if (!isSame) this.#place([...itemOf.values()]);
    this.#items.classList.toggle("grouped", this.store.state.group !== "");
    if (places) this.#animate(places);
  }

  /** Put items in their order. The item with the focus keeps it. @param {ResultItem[]} items */
  #place(items) {
    const focused = this.#items.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
    fill(this.#items, items);
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  }

  #newItem() {
    const item = /** @type {ResultItem} */ (document.createElement("pk-result"));
    return Object.assign(item, { store: this.store, search: this.search, showsLanguage: this.showsLanguage, showsFiles: this.showsFiles });
  }

  /** The heights at which the visible items are. @returns {Map<Element, number>} */
  #places() {
    const places = new Map();
    for (const item of this.#items.children) {
      const { top, bottom } = item.getBoundingClientRect();
      if (top > innerHeight) break;
      if (bottom > 0) places.set(item, top);
    }
    return places;
  }

  /** Let items move from where they were. @param {Map<Element, number>} places */
  #animate(places) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const [item, top] of places) {
      if (!item.isConnected) continue;
      const distance = top - item.getBoundingClientRect().top;
      if (Math.abs(distance) < 2) continue;
      item.animate([{ transform: `translateY(${Math.max(Math.min(distance, 900), -900)}px)` }, { transform: "none" }], { duration: 220, easing: "cubic-bezier(.2,.8,.2,1)" });
    }
  }

  /** @param {string} name */
  #command(name) {
    if (this.store.state.document || this.hidden) return;
    const items = [...this.#items.querySelectorAll(".result")];
    const current = document.activeElement?.closest(".result") ?? null;
    const at = current ? items.indexOf(current) : -1;
    if (name === "next" || name === "previous") {
      const next = items[Math.min(Math.max(at + (name === "next" ? 1 : -1), 0), items.length - 1)];
      if (!(next instanceof HTMLElement)) return;
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    } else if (current instanceof ResultItem && RESULT_COMMANDS.has(name)) current.command(name);
  }
}
customElements.define("pk-results", ResultList);
