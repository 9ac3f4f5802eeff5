/** An open document: its outline, its text with the words of the query, and the relevance landscape along the edge. */

import { askDocument, askLandscape, askOutline } from "./document-asking.js";
import { documentHead } from "./document-head.js";
import { DocumentText, partName } from "./document-text.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { LandscapeStrip } from "./landscape-strip.js";
import { passageName } from "./names.js";
import { OutlineTree } from "./outline-tree.js";
import { printable } from "./shown.js";
import { addressOf } from "./state.js";
import { t } from "./texts.js";

/** @typedef {import("./state.js").State} State */

/** Milliseconds without typing after which the words of a changed query are marked. */
const PAUSE = 300;
/** The usual number of characters of a word, with a space. */
const CHARACTERS = 6;

export class DocumentPage extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store;
  /** @type {import("./api.js").Api} */
  api;
  /** The search of the page, which knows how the query is read. @type {{read(): Promise<import("./document-asking.js").Reading>} | undefined} */
  search;
  /** What the index contains, and whether the server shows files. @type {import("./types.js").IndexSummary | undefined} */
  summary;
  #text = new DocumentText();
  #outline = new OutlineTree();
  #strip = new LandscapeStrip();
  #head = h("header", { class: "document-head" });
  #position = h("span", { class: "position", role: "status" });
  #steps = h("div", { class: "steps", role: "group", "aria-label": t.document.hitSteps }, this.#position,
    this.#button("up", t.document.previousHit, () => this.#step(-1)), this.#button("up", t.document.nextHit, () => this.#step(1), "down"));
  #bar = h("div", { class: "document-bar" });
  #tools = h("div", { class: "passage-tools", role: "group", "aria-label": t.document.tools },
    this.#button("why", t.document.explain, () => this.#act("explain")), this.#button("keep", t.document.keep, () => this.#act("keep")),
    this.#button("cite", t.document.cite, () => this.#act("cite")), this.#button("file", t.document.original, () => this.#act("original")));
  /** The number of the current hit; -1 for none. */
  #hit = -1;
  /** The number of the current text; -1 for none. */
  #at = -1;
  #asking = new AbortController();
  #pause = 0;
  #frame = 0;
  #changed = (/** @type {Event} */ event) => this.#update(/** @type {CustomEvent} */ (event).detail.before);
  #commanded = (/** @type {Event} */ event) => this.#command(/** @type {CustomEvent} */ (event).detail);
  #scrolled = () => (this.#frame ||= requestAnimationFrame(() => this.#follow()));

  connectedCallback() {
    // The main part of the page is the document, unless it stands in one.
    if (!this.closest("main")) this.setAttribute("role", "main");
    this.#outline.addressOf = this.#text.addressOf = (passage) => addressOf({ ...this.store.state, passage, explained: "" });
    this.#strip.headingAt = (character) => this.#placeName(this.#text.at(character));
    const back = h("button", { type: "button", class: "back", onclick: () => this.store.change({ document: "", passage: "" }) }, icon("up"), t.document.back);
    const outline = h("details", { class: "outline-place", open: matchMedia("(min-width: 60rem)").matches },
      h("summary", {}, t.document.outline), h("nav", { "aria-label": t.document.outline }, this.#outline));
    fill(this.#bar, back, this.#steps);
    fill(this, this.#bar, h("div", { class: "document-columns" }, outline,
      h("article", {}, this.#head, this.#text), this.#strip));
    this.addEventListener("place", (event) => this.#goTo(this.#text.at(/** @type {CustomEvent} */ (event).detail.character)));
    this.addEventListener("click", (event) => this.#click(event));
    for (const name of ["pointerover", "focusin"]) this.#text.addEventListener(name, (event) => this.#offer(event.target));
    this.store.addEventListener("change", this.#changed);
    document.addEventListener("command", this.#commanded);
    document.addEventListener("scroll", this.#scrolled, { capture: true, passive: true });
    addEventListener("resize", this.#scrolled);
    this.#update(null);
  }

  disconnectedCallback() {
    this.#asking.abort();
    clearTimeout(this.#pause);
    this.store.removeEventListener("change", this.#changed);
    document.removeEventListener("command", this.#commanded);
    document.removeEventListener("scroll", this.#scrolled, { capture: true });
    removeEventListener("resize", this.#scrolled);
  }

  /** @param {State | null} before */
  #update(before) {
    const { state } = this.store;
    this.hidden = !state.document;
    if (this.hidden) return;
    if (before?.document !== state.document || before.index !== state.index) this.#open(true);
    else if (before.query !== state.query) {
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => this.#open(false), PAUSE);
    } else if (before.passage !== state.passage && this.#text.view?.texts[this.#at]?.id !== state.passage) this.#goToPassage(state.passage);
  }

  /** Load and show the document. @param {boolean} isNew whether it was not shown before, with other words marked */
  async #open(isNew) {
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    const { state } = this.store;
    this.setAttribute("aria-busy", "true");
    if (isNew) this.#clear();
    const asked = askDocument(this.api, state, signal);
    const outline = askOutline(this.api, state.document, signal);
    // The text does not wait for the outline, and without it, it is still a text.
    outline.catch(() => {});
    try {
      const view = await asked;
      const around = isNew ? view.texts.findIndex(({ id, kind }) => id === state.passage && kind === "passage") : this.#text.visible(this.header)[0];
      this.#text.show(view, Math.max(around, 0));
      this.#hit = -1;
      fill(this.#head, ...documentHead(view, this.store, this.summary?.originals ? () => this.#openFile(view.document) : null));
      this.#showSteps();
      if (isNew) this.#arrive(around);
      else this.#text.element(around)?.scrollIntoView({ block: "start" });
      const hits = this.#text.hits.map(({ text, hit }) => view.texts[text].start + view.texts[text].highlights[hit][0]);
      const landscape = hits.length ? this.#influence(state, view, signal).catch(() => null) : null;
      const tree = await outline;
      if (signal.aborted) return;
      this.#outline.show(tree, hits);
      this.#follow();
      const influence = await landscape;
      if (signal.aborted) return;
      this.#strip.show(influence);
      this.#follow();
    } catch (error) {
      if (signal.aborted) return;
      const detail = error instanceof Error && error.message ? error.message : t.app.unreachable;
      fill(this.#head, h("p", { class: "problem", role: "alert" }, printable(detail)));
    }
    this.removeAttribute("aria-busy");
  }

  #clear() {
    this.#at = this.#hit = -1;
    for (const part of [this.#head, this.#text, this.#outline]) fill(part);
    this.#strip.show(null);
    this.#steps.hidden = true;
  }

  /** Show the passage that was asked for, or the beginning. @param {number} number */
  #arrive(number) {
    if (number >= 0) this.#goTo(number, { replace: true });
    else scrollTo(0, 0);
    // The reader begins at the title, unless the user is typing.
    if (!document.activeElement?.closest("input, textarea")) this.#head.querySelector("h1")?.focus({ preventScroll: true });
  }

  /** @param {string} passage */
  #goToPassage(passage) {
    const number = this.#text.view ? this.#text.find(passage) : -1;
    if (number >= 0) this.#goTo(number, { replace: true });
    else scrollTo(0, 0);
  }

  /**
   * Go to a text. The address names its passage, or the next one after a title.
   *
   * @param {number} number
   * @param {{hit?: number, replace?: boolean}} [how]
   */
  #goTo(number, { hit, replace = false } = {}) {
    const { texts } = this.#text.view;
    const passage = texts.findIndex(({ kind }, at) => at >= number && kind === "passage");
    this.#at = passage < 0 ? number : passage;
    this.#text.go(number, { hit });
    this.#offer(this.#text.element(this.#at));
    if (passage >= 0) this.store.change({ passage: texts[passage].id }, { replace });
  }

  /** Go to the next or previous hit, counted from the current one, or from the window. @param {number} by */
  #step(by) {
    const { hits } = this.#text;
    if (!hits.length) return;
    const [first] = this.#text.visible(this.header);
    const from = this.#at >= 0 ? this.#at : first;
    let next = this.#hit + by;
    if (this.#hit < 0 || hits[this.#hit].text !== this.#at) next = by > 0 ? hits.findIndex(({ text }) => text >= from) : hits.findLastIndex(({ text }) => text < from);
    if (next < 0) next = by > 0 ? 0 : hits.length - 1;
    this.#hit = next % hits.length;
    this.#goTo(hits[this.#hit].text, { hit: hits[this.#hit].hit, replace: true });
    this.#at = hits[this.#hit].text;
    this.#showSteps();
  }

  /** @param {State} state @param {import("./types.js").DocumentView} view @param {AbortSignal} signal */
  async #influence(state, view, signal) {
    return askLandscape(this.api, state, await this.search?.read(), reachIn(view), signal);
  }

  #showSteps() {
    const all = this.#text.hits.length;
    this.#steps.hidden = !this.store.state.query.trim();
    this.#position.textContent = this.#hit < 0 ? t.document.hits(all, count(all)) : t.document.hitOf(count(this.#hit + 1), count(all));
    for (const button of this.#steps.querySelectorAll("button")) button.disabled = !all;
  }

  /** @param {string} name */
  #command(name) {
    if (name === "nextHit") this.#step(1);
    else if (name === "previousHit") this.#step(-1);
    else if (["explain", "keep", "discard", "cite"].includes(name)) this.#act(name);
  }

  /** Do something with the passage that has the tools, the current one, or the first one in the window. @param {string} name */
  #act(name) {
    const { view } = this.#text;
    if (!view) return;
    const near = this.#tools.closest("[data-text]");
    const [first, last] = this.#text.visible(this.header);
    const from = near instanceof HTMLElement ? Number(near.dataset.text) : this.#at >= first && this.#at <= last ? this.#at : first;
    const number = view.texts.findIndex(({ kind }, at) => at >= from && kind === "passage");
    if (number < 0) return;
    const { id, text, citation, part, tag, language, start, end, highlights } = view.texts[number];
    if (name === "explain") {
      if (this.store.state.query.trim()) this.store.change({ explained: passageName(view.document, id), passage: id, panel: "" });
      return;
    }
    if (name === "original") return void this.#openFile(passageName(view.document, id));
    const hit = {
      rank: 0, score: 0, document: view.document, passage: id, title: view.title, path: this.#headings(number), text, highlights, part, tag, language, start, end,
      before: "", after: "", place: null, metadata: view.metadata, source: view.source, citation: citation && `${view.metadata.publication ?? view.document} ${citation}`,
    };
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail: hit }));
  }

  /** Show the file of a passage or document, given by its name. @param {string} name */
  async #openFile(name) {
    const { openOriginal } = await import("./original.js");
    await openOriginal(this.api, name);
  }

  /** The nearest title of a text, or the name of its part if there is only the title of the document. @param {number} number */
  #placeName(number) {
    const titles = this.#headings(number);
    const { part } = this.#text.view.texts[number];
    return (titles.length < 2 && part ? partName(part) : titles.at(-1)) ?? "";
  }

  /** The titles above a text, from the document down. @param {number} number @returns {string[]} */
  #headings(number) {
    const { texts } = this.#text.view;
    /** @type {string[]} */
    const titles = [];
    let depth = Infinity;
    for (let at = number; at >= 0 && depth > 0; at--) {
      const { kind, depth: own, text } = texts[at];
      if (kind !== "title" || own >= depth || (at !== number && own > texts[number].depth)) continue;
      titles.unshift(text);
      depth = own;
    }
    const { title } = this.#text.view;
    return title && titles[0] !== title ? [title, ...titles] : titles;
  }

  /** Follow links inside of the document without loading the page. @param {MouseEvent} event */
  #click(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { target, passage, document: id } = link.dataset;
    if (target === undefined && passage === undefined && id === undefined) return;
    event.preventDefault();
    if (id !== undefined) this.store.change({ document: id, passage: "" });
    else this.#goTo(target === undefined ? this.#text.find(passage ?? "") : Number(target));
  }

  /** Put the tools at a passage. @param {EventTarget | null} where */
  #offer(where) {
    const passage = where instanceof Element ? where.closest(".text.is-passage") : null;
    if (passage && this.#tools.parentNode !== passage) passage.append(this.#tools);
    // A row of a table has no room for tools, and those of another passage must not act for it.
    else if (!passage && where instanceof Element && where.closest("[data-text]")) this.#tools.remove();
    const [explain, , , original] = this.#tools.querySelectorAll("button");
    explain.hidden = !this.store.state.query.trim();
    original.hidden = !this.summary?.originals;
  }

  /** Show in outline and strip where the window is. */
  #follow() {
    this.#frame = 0;
    const { view } = this.#text;
    if (!view?.texts.length || this.hidden) return;
    const { header } = this;
    this.style.setProperty("--header", `${header}px`);
    const [first, last] = this.#text.visible(header + this.#bar.offsetHeight).map((number) => Math.min(number, view.texts.length - 1));
    this.#strip.showWindow(view.texts[first].start, view.texts[last].end);
    this.#outline.mark(view.texts[first <= this.#at && this.#at <= last ? this.#at : first].start);
  }

  /** The height of what stays above the document when it is scrolled. */
  get header() {
    const above = this.closest("pk-app")?.querySelector(":scope > header");
    return above instanceof HTMLElement && getComputedStyle(above).position !== "static" ? above.offsetHeight : 0;
  }

  /** @param {Parameters<typeof icon>[0]} drawing @param {string} name @param {() => void} act @param {string} [style] */
  #button(drawing, name, act, style = "") {
    return h("button", { type: "button", class: style, title: name, "aria-label": name, onclick: act }, icon(drawing));
  }
}
customElements.define("pk-document", DocumentPage);

/** How far a word reaches in a landscape, in words: less in a short document, whose places would be all alike. @param {import("./types.js").DocumentView} view */
function reachIn(view) {
  const words = (view.texts.at(-1)?.end ?? 0) / CHARACTERS;
  return Math.round(Math.min(Math.max(words / 40, 4), 85));
}
