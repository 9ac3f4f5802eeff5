/** One hit: heading path, passage with marked words, where it comes from, and what made its score. */

import { groupOptions } from "./asking.js";
import { writeCondition } from "./conditions.js";
import { fill, GIVEN, h } from "./dom.js";
import { excerpt } from "./excerpt.js";
import { count, day, score } from "./format.js";
import { icon } from "./icons.js";
import { nameOf } from "./search.js";
import { marked, printable } from "./shown.js";
import { addressOf } from "./state.js";
import { t } from "./texts.js";
import "./score-bar.js";

/** @typedef {import("./search.js").Hit} Hit */
/** @typedef {import("./reasons.js").Reasons} Reasons */

/** The number of characters of a passage that are shown at first. */
const SHOWN = 520;
/** The number of further passages of a group that are shown on request. */
const FURTHER = 10;

/**
 * A hit of a list. `update` shows a hit; for another rank or score of the same hit, it changes only those.
 * Its events `keep`, `discard` and `cite` have the hit as their `detail`.
 */
export class ResultItem extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;
  /** @type {Hit} */
  hit = GIVEN;
  /** Whether the hit stands for its group, whose other passages can be shown. */
  isGroup = false;
  /** Whether languages are shown, since there are several. */
  showsLanguage = false;
  /** Whether the server shows the files of documents. */
  showsFiles = false;

  #rank = h("span", { class: "rank" });
  #moved = h("span", { class: "moved", "aria-hidden": "true" });
  #score = h("span", { class: "score" });
  #bar = /** @type {import("./score-bar.js").ScoreBar} */ (document.createElement("pk-score-bar"));
  #text = h("p", { class: "passage", dir: "auto" });
  #before = h("p", { class: "neighbor", dir: "auto", hidden: true });
  #after = h("p", { class: "neighbor", dir: "auto", hidden: true });
  #further = h("div", { class: "further" });
  #isWhole = false;

  /**
   * @param {Hit} hit
   * @param {Reasons | undefined} reasons
   * @param {number} best the score of the first hit
   */
  update(hit, reasons, best) {
    const isSame = this.hit && this.hit.text === hit.text && String(this.hit.highlights) === String(hit.highlights) && this.hit.before === hit.before;
    this.hit = hit;
    this.#rank.textContent = String(hit.rank);
    this.#score.textContent = score(hit.score);
    this.#bar.best = best;
    this.#bar.parts = reasons?.parts ?? [];
    if (!isSame) this.#render();
  }

  /** Show for a moment by how many ranks the hit has risen. @param {number} ranks */
  showMove(ranks) {
    this.#moved.textContent = ranks ? `${ranks > 0 ? "▲" : "▼"} ${Math.abs(ranks)}` : "";
    this.#moved.className = ranks > 0 ? "moved up" : "moved down";
  }

  /** Do what a command asks of the hit. @param {string} name */
  command(name) {
    const { document: id, passage } = this.hit;
    if (name === "open") this.store.change({ document: id, passage });
    else if (name === "explain") this.store.change({ explained: nameOf(this.hit), panel: "" });
    else if (name === "neighbors") this.#toggleNeighbors();
    else this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail: this.hit }));
  }

  /** Show in which list of the user the hit is. @param {string} state */
  mark(state) {
    this.dataset.kept = state;
    for (const name of ["keep", "discard"]) this.querySelector(`[data-command=${name}]`)?.setAttribute("aria-pressed", String(state === name));
  }

  #render() {
    const { hit } = this;
    this.classList.add("result");
    this.tabIndex = -1;
    this.setAttribute("role", "article");
    this.setAttribute("aria-label", t.results.item(printable(hit.title || hit.document)));
    this.#showText();
    this.#before.hidden = this.#after.hidden = true;
    fill(this,
      h("div", { class: "result-margin" }, this.#rank, this.#moved),
      this.#actions(),
      h("div", { class: "result-body" },
        this.#heading(), this.#before, this.#text, this.#after,
        h("div", { class: "result-foot" },
          h("div", { class: "why" }, this.#bar, this.#score),
          h("ul", { class: "facts" }, this.#facts().map((fact) => h("li", { dir: "auto" }, this.#fact(fact))))),
        this.#further));
    fill(this.#further, this.isGroup && h("button", { class: "quiet-button", type: "button", onclick: () => this.#showGroup() }, t.results.moreOfGroup));
  }

  #heading() {
    const { hit, store } = this;
    const path = hit.path.length ? hit.path : [hit.title || hit.document];
    const link = h("a", {
      href: addressOf({ ...store.state, document: hit.document, passage: hit.passage, explained: "", panel: "" }), dir: "auto",
      onclick: (/** @type {MouseEvent} */ event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.command("open");
      },
    }, printable(path[0]));
    return h("h3", { class: "heading" }, link, path.slice(1).map((title) => h("span", { class: "step", dir: "auto" }, printable(title))));
  }

  #showText() {
    const { text, highlights } = this.hit;
    const piece = this.#isWhole ? { text, highlights, isCut: false } : excerpt(text, highlights, SHOWN);
    const more = piece.isCut && h("button", {
      class: "inline-button", type: "button", onclick: () => { this.#isWhole = true; this.#showText(); },
    }, t.results.whole);
    fill(this.#text, marked(piece.text, piece.highlights), more && " ", more);
    this.#text.classList.toggle("code", this.hit.tag === "pre" || this.hit.tag === "code");
    if (this.hit.language && this.hit.language !== "und") this.#text.lang = this.hit.language;
  }

  #facts() {
    const { hit } = this;
    const { date, year, publication } = hit.metadata;
    const name = hit.citation || (typeof publication === "string" ? publication : hit.document);
    const facts = [name, typeof date === "string" ? day(date) : year !== undefined ? String(year) : ""];
    if (this.showsLanguage && hit.language !== "und") facts.push(hit.language);
    if (hit.source && (hit.source !== hit.document || (this.showsFiles && !facts.includes(hit.source)))) facts.push(hit.source);
    return facts.filter(Boolean);
  }

  /** A fact; the name of the file opens the file. @param {string} fact */
  #fact(fact) {
    if (!this.showsFiles || fact !== this.hit.source) return printable(fact);
    const open = async () => (await import("./original.js")).openOriginal(this.search.api, nameOf(this.hit));
    return h("button", { type: "button", class: "inline-button", title: t.document.original, onclick: open }, printable(fact));
  }

  #actions() {
    /** @param {"why" | "neighbors" | "keep" | "discard" | "cite"} drawing @param {"explain" | "neighbors" | "keep" | "discard" | "cite"} name */
    const button = (drawing, name) => h("button", {
      class: "icon-button", type: "button", title: t.keys.commands[name], "aria-label": t.keys.commands[name], "data-command": name,
      onclick: () => this.command(name),
    }, icon(drawing));
    return h("div", { class: "actions", role: "group", "aria-label": t.results.actions },
      button("why", "explain"), button("neighbors", "neighbors"), button("keep", "keep"), button("discard", "discard"), button("cite", "cite"));
  }

  #toggleNeighbors() {
    const isShown = !this.#before.hidden || !this.#after.hidden;
    this.querySelector("[data-command=neighbors]")?.setAttribute("aria-expanded", String(!isShown));
    /** @param {HTMLElement} element @param {string} text @param {string} label */
    const show = (element, text, label) => {
      element.hidden = isShown || !text;
      fill(element, h("span", { class: "label" }, label), " ", printable(text));
    };
    show(this.#before, this.hit.before, t.results.before);
    show(this.#after, this.hit.after || (this.hit.before ? "" : t.results.noNeighbors), this.hit.after ? t.results.after : "");
  }

  async #showGroup() {
    const { store, search, hit } = this, { group } = store.state;
    const value = group !== "document" ? hit.metadata[group] : undefined;
    const condition = value === undefined ? "" : writeCondition(group, "=", [value].flat().map(String));
    const answer = await search.api.ask("search", groupOptions(store.state, search.reading, hit.document, condition, FURTHER + 1));
    const others = /** @type {Hit[]} */ (answer.hits).filter((other) => nameOf(other) !== nameOf(hit));
    fill(this.#further, h("p", { class: "label" }, others.length ? t.results.ofGroup(count(others.length)) : t.results.noMoreOfGroup),
      h("ol", { class: "compact" }, others.map((other) => h("li", {}, this.#compact(other)))));
  }

  /** A further hit of the group, in a few lines. @param {Hit} hit */
  #compact(hit) {
    const piece = excerpt(hit.text, hit.highlights, 180);
    const steps = (hit.document === this.hit.document ? hit.path.slice(1) : hit.path).join(" › ");
    return h("a", {
      href: addressOf({ ...this.store.state, document: hit.document, passage: hit.passage }), dir: "auto",
      onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.store.change({ document: hit.document, passage: hit.passage });
      },
    }, h("span", { class: "label" }, printable(steps || hit.citation || hit.document)), " ", marked(piece.text, piece.highlights));
  }
}
customElements.define("pk-result", ResultItem);
