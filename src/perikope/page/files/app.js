/** The whole page: it loads the language, finds the index, and puts the components together. */

import { Api, ApiError, indexNames } from "./api.js";
import { fill, h } from "./dom.js";
import { facetFields } from "./facet-fields.js";
import { FacetPanel } from "./facet-panel.js";
import { HeaderBar } from "./header-bar.js";
import { icon } from "./icons.js";
import { keyList } from "./key-list.js";
import { listenToKeys } from "./keys.js";
import { landing } from "./landing.js";
import { ResultList } from "./result-list.js";
import { ResultTools } from "./result-tools.js";
import { SearchBox } from "./search-box.js";
import { nameOf, Search } from "./search.js";
import { printable } from "./shown.js";
import { Store } from "./state.js";
import { loadLanguage, t } from "./texts.js";
import { applyTheme } from "./theme.js";
import { askForToken } from "./token-prompt.js";

/** @typedef {import("./types.js").IndexSummary} IndexSummary */
/** @typedef {import("./search.js").Hit} Hit */

applyTheme();
await loadLanguage();

/** Components that are loaded when they are first shown, by the name of their element. */
const LOADED = {
  "pk-document": () => import("./document-view.js"),
  "pk-explanation": () => import("./explanation-view.js"),
  "pk-work-list": () => import("./work-list.js"),
  "pk-models": () => import("./model-panel.js"),
  "pk-compare": () => import("./compare-view.js"),
};

class App extends HTMLElement {
  store = new Store();
  api = new Api("");
  search = new Search(this.store, this.api);
  /** @type {IndexSummary | null} */
  #summary = null;
  /** @type {import("./types.js").ModelSummary[]} */
  #models = [];
  /** What the user keeps and discards. @type {any} */
  #work = null;
  #error = h("div", { class: "error-line", role: "alert", hidden: true });
  #header = Object.assign(new HeaderBar(), { store: this.store, box: Object.assign(new SearchBox(), { store: this.store, search: this.search }) });
  #top = h("header", {}, this.#header);
  #list = Object.assign(new ResultList(), { store: this.store, search: this.search, stateOf: (/** @type {string} */ name) => this.#work?.stateOf(name) ?? "" });
  #tools = Object.assign(new ResultTools(), { store: this.store, search: this.search });
  #facets = Object.assign(new FacetPanel(), { store: this.store, search: this.search });
  #filters = h("details", { class: "filters", open: matchMedia("(min-width: 60rem)").matches }, h("summary", { class: "quiet-button" }, icon("filter"), t.facets.title), this.#facets);
  #hits = h("div", { class: "hits" }, this.#tools, this.#list);
  #landing = h("div", { class: "landing-place" });
  #main = h("main", { id: "main", tabIndex: -1 }, this.#landing, this.#hits);
  #document = h("div", { class: "document-place", hidden: true });
  #side = h("aside", { class: "side-panel", hidden: true });
  #toast = h("p", { class: "toast", role: "status", hidden: true });
  /** The elements that had the focus before a document and before a panel was opened. @type {Record<"document" | "panel", HTMLElement | null>} */
  #focused = { document: null, panel: null };
  #scrolled = 0;

  connectedCallback() {
    fill(this, h("a", { class: "skip", href: "#main" }, t.app.skip), this.#top, this.#error,
      h("div", { class: "columns" }, h("nav", { class: "facet-place", "aria-label": t.facets.title }, this.#filters), this.#main, this.#side), this.#document, this.#toast);
    history.scrollRestoration = "manual";
    new ResizeObserver(([{ target }]) => this.style.setProperty("--header", `${/** @type {HTMLElement} */ (target).offsetHeight}px`)).observe(this.#top);
    listenToKeys(this.store);
    this.store.addEventListener("change", (event) => this.#follow(/** @type {CustomEvent} */ (event).detail.before));
    this.search.addEventListener("change", () => this.#showProblem(this.search.problem));
    document.addEventListener("command", (event) => this.#command(/** @type {CustomEvent} */ (event).detail));
    for (const name of ["keep", "discard", "cite"]) this.addEventListener(name, (event) => this.#route(name, /** @type {CustomEvent} */ (event).detail));
    this.#start();
  }

  async #start() {
    // Letters are keys of the page, so a text that is typed at once must go into the box.
    if (!this.store.state.query && !this.store.state.document && matchMedia("(hover: hover)").matches) this.#header.box.focusBox();
    try {
      const names = await indexNames();
      this.#header.indexes = names;
      this.api.index = this.store.state.index || names[0];
      this.search.run();
      await Promise.all([this.#showState(), this.#learn()]);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Find out what the index contains. */
  async #learn() {
    const [summary, { models }] = await Promise.all([this.api.ask(""), this.api.ask("models")]);
    [this.#summary, this.#models] = [summary, models];
    this.#list.showsLanguage = Object.keys(summary.languages).length > 1;
    this.#list.showsFiles = summary.originals;
    fill(this.#landing, landing(summary));
    this.#loadWork();
    await this.#showState();
    const fields = await facetFields(this.api, summary);
    this.#facets.fields = fields;
    this.#tools.groups = fields.map((field) => field.name).filter((name) => name === "family");
  }

  // The state

  /** @param {import("./state.js").State} before */
  #follow(before) {
    const { state } = this.store;
    if (state.index !== before.index) {
      this.api.index = state.index || this.api.index;
      this.#summary = null;
      this.#learn().catch((error) => this.#failed(error));
    }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    if (!before.panel && !before.explained && (state.panel || state.explained)) this.#focused.panel = focused;
    if (state.document && !before.document) [this.#focused.document, this.#scrolled] = [focused, scrollY];
    this.#showState(before).catch((error) => this.#failed(error));
  }

  /** Show what the state says. @param {import("./state.js").State} [before] */
  async #showState(before) {
    const { state } = this.store;
    const isLanding = !state.query && !state.document;
    this.classList.toggle("landing", isLanding);
    this.classList.toggle("reading", state.document !== "");
    this.classList.toggle("comparing", state.compare !== "" && !isLanding);
    document.title = [printable(state.document || state.query), t.app.title].filter(Boolean).join(" · ");
    this.#landing.hidden = !isLanding;
    this.#hits.hidden = isLanding;
    this.#document.hidden = !state.document;
    for (const part of [this.#main, this.#filters]) part.hidden = state.document !== "";
    if (state.panel === "keys" && !document.querySelector("dialog.keys")) this.#showKeys();
    await Promise.all([this.#place(this.#document, state.document ? "pk-document" : ""), this.#showSide(), this.#showCompared()]);
    if (before?.document && !state.document) this.#back();
    else if (before && (before.panel || before.explained) && !state.panel && !state.explained) this.#restoreFocus("panel");
  }

  async #showSide() {
    const { explained, panel } = this.store.state;
    const name = explained ? "pk-explanation" : panel === "models" && this.#summary ? "pk-models" : panel === "worklist" ? "pk-work-list" : "";
    const title = explained ? t.app.explanation : panel === "models" ? t.models.title : t.app.worklist;
    this.#side.hidden = !name;
    this.classList.toggle("with-side", name !== "" && name !== "pk-explanation");
    this.#side.classList.toggle("wide", name === "pk-explanation");
    if (this.#side.dataset.shown === name) return;
    this.#side.dataset.shown = name;
    if (!name) return fill(this.#side);
    const place = h("div", { class: "side-content" }), heading = h("h2", { tabIndex: -1 }, title);
    this.#side.setAttribute("aria-label", title);
    fill(this.#side, h("header", {}, heading, h("button", { class: "icon-button", type: "button", "aria-label": t.app.close, title: t.app.close, onclick: () => this.#close() }, icon("close"))), place);
    await this.#place(place, name);
    heading.focus({ preventScroll: true });
  }

  async #showCompared() {
    const isCompared = this.store.state.compare !== "" && this.store.state.query !== "";
    let place = this.#hits.querySelector(".compare-place");
    this.#list.classList.toggle("replaced", isCompared);
    if (isCompared && !place) this.#hits.append((place = h("div", { class: "compare-place" })));
    if (place) await this.#place(place, isCompared ? "pk-compare" : "");
  }

  /** Put a component into a place, which then has it only. @param {Element} place @param {keyof typeof LOADED | ""} name */
  async #place(place, name) {
    if (!name) return fill(place);
    if (place.firstElementChild?.localName === name) return;
    fill(place);
    await Promise.all([LOADED[name](), this.search.read().catch(() => null)]);
    const element = document.createElement(name);
    Object.assign(element, { store: this.store, api: this.api, search: this.search, worklist: this.#work, models: this.#models, summary: this.#summary ?? undefined });
    if (!place.firstElementChild) place.append(element);
  }

  #showKeys() {
    const dialog = keyList(() => this.store.change({ panel: "" }));
    document.body.append(dialog);
    dialog.showModal();
  }

  /** Return from a document to the hits, to the place and hit where the user was. */
  #back() {
    scrollTo(0, this.#scrolled);
    this.#restoreFocus("document");
  }

  /** @param {"document" | "panel"} closed */
  #restoreFocus(closed) {
    if (this.#focused[closed]?.isConnected) this.#focused[closed]?.focus({ preventScroll: true });
    this.#focused[closed] = null;
  }

  // Commands

  /** @param {string} name */
  #command(name) {
    if (name === "close") this.#close();
    else if (name === "models" || name === "worklist" || name === "keys") {
      const { panel, explained } = this.store.state;
      this.store.change({ panel: panel === name && !explained ? "" : name, explained: "" });
    } else if (name === "filters") this.#filters.open = true;
  }

  /** Close what was opened last. */
  #close() {
    const { explained, panel, document: id } = this.store.state;
    if (explained) this.store.change({ explained: "" });
    else if (panel) this.store.change({ panel: "" });
    else if (id) this.store.change({ document: "", passage: "" });
  }

  // The work list

  async #loadWork() {
    const { WorkList } = await import("./worklist.js");
    this.#work = new WorkList(this.api.index);
    this.#work.addEventListener("change", () => this.#list.markAll());
    this.#list.markAll();
  }

  /** @param {string} name @param {Hit} hit */
  async #route(name, hit) {
    if (name === "cite") return this.#cite(hit);
    const state = name === "keep" ? this.#work?.keep(hit) : this.#work?.discard(hit);
    this.#say(state === "keep" ? t.app.kept : state === "discard" ? t.app.discarded : t.app.undone);
  }

  /** @param {Hit} hit */
  async #cite(hit) {
    const citation = printable(hit.citation || nameOf(hit));
    await navigator.clipboard.writeText(citation);
    this.#say(t.app.copied(citation));
  }

  /** Show a sentence for a moment. @param {string} text */
  #say(text) {
    this.#toast.textContent = text;
    this.#toast.hidden = false;
    clearTimeout(this.#hiding);
    this.#hiding = setTimeout(() => (this.#toast.hidden = true), 2500);
  }
  #hiding = 0;

  // What goes wrong

  /** @param {unknown} error */
  #failed(error) {
    if (!(error instanceof ApiError)) throw error;
    this.#showProblem(error);
  }

  /** Mistakes of the query are shown by the search box; all others in a line above the hits. @param {ApiError | null} problem */
  async #showProblem(problem) {
    const isShown = problem !== null && problem.status !== 400 && problem.status !== 401;
    this.#error.hidden = !isShown;
    if (isShown) fill(this.#error, problem.status === 0 ? t.app.unreachable : printable(problem.message), " ", h("button", { class: "inline-button", type: "button", onclick: () => this.#start() }, t.app.again));
    if (problem?.status !== 401 || document.querySelector("dialog.token")) return;
    const token = await askForToken();
    if (!token) return;
    sessionStorage.setItem("token", token);
    this.api.token = token;
    this.#start();
  }
}
customElements.define("pk-app", App);
