/** Why a passage has its score: first a sentence, then the parts, then the section tree with the score, then all values. */

import { askOutline, askPassage, askReasons } from "./document-asking.js";
import { fill, h } from "./dom.js";
import { treeOf } from "./explanation-tree.js";
import { percent, score } from "./format.js";
import { splitName } from "./names.js";
import { namedWords, sentenceOf, sharesOf } from "./reasons.js";
import { printable } from "./shown.js";
import { addressOf } from "./state.js";
import { language, t } from "./texts.js";
import "./flow-drawing.js";

/** @typedef {import("./reasons.js").Part} Part */
/** @typedef {import("./state.js").State} State */

/** What an explanation depends on. @type {(keyof State)[]} */
const ASKED = ["index", "query", "model", "filters", "explained"];

export class ExplanationView extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store;
  /** @type {import("./api.js").Api} */
  api;
  /** The search of the page, which knows how the query is read. @type {{read(): Promise<import("./document-asking.js").Reading>} | undefined} */
  search;
  #changed = (/** @type {Event} */ event) => this.#update(/** @type {CustomEvent} */ (event).detail.before);
  /** @type {AbortController | null} */
  #asking = null;

  connectedCallback() {
    this.store.addEventListener("change", this.#changed);
    this.#update(null);
  }

  disconnectedCallback() {
    this.store.removeEventListener("change", this.#changed);
    this.#asking?.abort();
  }

  /** @param {State | null} before */
  #update(before) {
    const { state } = this.store;
    this.hidden = !state.explained;
    if (before && ASKED.every((name) => String(before[name]) === String(state[name]))) return;
    this.#asking?.abort();
    if (this.hidden) return this.replaceChildren();
    this.#asking = new AbortController();
    this.#show(state, this.#asking.signal, !before?.explained);
  }

  /** @param {State} state @param {AbortSignal} signal @param {boolean} isNew */
  async #show(state, signal, isNew) {
    const [id] = splitName(state.explained);
    this.setAttribute("aria-busy", "true");
    if (isNew) fill(this, h("p", { class: "waiting" }, t.explanation.waiting));
    try {
      const reading = await this.search?.read();
      const [reasons, passage, tree] = await Promise.all([askReasons(this.api, state, reading, signal),
        askPassage(this.api, state.explained, signal), askOutline(this.api, id, signal)]);
      const flow = /** @type {import("./flow-drawing.js").FlowDrawing} */ (document.createElement("pk-flow"));
      fill(this,
        h("p", { class: "sentence" }, sentenceOf(reasons.parts, t.reasons, language).map(pieceOf)),
        this.#passage(passage, reasons.score),
        h("section", {}, h("h3", {}, t.explanation.parts), partsOf(reasons.parts)),
        h("section", {}, h("h3", {}, t.explanation.flow), h("p", { class: "hint" }, t.explanation.flowHint), flow),
        h("section", {}, h("h3", {}, t.explanation.tree), reasons.tree && treeOf(reasons.tree)));
      flow.show(reasons.parts, passage, tree);
      this.dataset.model = state.model;
    } catch (error) {
      if (signal.aborted) return;
      const detail = error instanceof Error && error.message ? error.message : t.app.unreachable;
      fill(this, h("p", { class: "problem", role: "alert" }, printable(detail)));
    }
    this.removeAttribute("aria-busy");
  }

  /** @param {import("./types.js").PassageView} passage @param {number} total */
  #passage(passage, total) {
    const { document: id, passage: number } = passage;
    const href = addressOf({ ...this.store.state, document: id, passage: number, explained: "" });
    const open = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.store.change({ document: id, passage: number, explained: "" });
    };
    const path = passage.path.map((title) => h("bdi", {}, printable(title)));
    return h("blockquote", {},
      h("p", { class: "path" }, path.flatMap((title, at) => (at ? [" › ", title] : [title]))),
      h("p", { class: "quoted", dir: "auto", lang: passage.language === "und" ? "" : passage.language }, printable(passage.text)),
      h("footer", {}, h("a", { href, onclick: open }, printable(passage.citation || passage.name)), h("span", {}, t.explanation.score(score(total)))));
  }
}
customElements.define("pk-explanation", ExplanationView);

/** @param {import("./reasons.js").Piece} piece */
function pieceOf({ text, word, origin }) {
  if (word) return h("em", {}, printable(text));
  if (!origin) return text;
  const element = h("span", { class: "origin", "data-origin": origin }, text);
  element.style.setProperty("--color", `var(--${origin})`);
  return element;
}

/** The parts as rows with bars: origin, share, value and words. @param {Part[]} parts */
function partsOf(parts) {
  const rows = sharesOf(parts).map((share) => {
    const bar = h("span", { class: share.value < 0 ? "gauge negative" : "gauge" });
    bar.style.setProperty("--share", String(share.share));
    const named = new Set(namedWords(share));
    const words = share.words.slice(0, 8).map(({ word, value }) => h("span", { class: named.has(word) ? "word named" : "word" }, printable(word), " ", h("small", {}, score(value))));
    const row = h("tr", { "data-origin": share.origin }, h("th", { scope: "row" }, t.origins[share.origin]), h("td", { class: "graph", "aria-hidden": "true" }, bar),
      h("td", { class: "number" }, percent(share.share)), h("td", { class: "number quiet" }, score(share.value)), h("td", { class: "words" }, words));
    row.style.setProperty("--color", `var(--${share.origin})`);
    return row;
  });
  const heads = [t.explanation.origin, "", t.explanation.share, t.explanation.value, t.explanation.words];
  return h("table", { class: "parts" }, h("thead", { class: "unseen" }, h("tr", {}, heads.map((head) => (head ? h("th", { scope: "col" }, head) : h("td"))))), h("tbody", {}, rows));
}
