/** Two models side by side: the same query, both rankings, what moved between them, and why. */

import { searchOptions, reasonsOf } from "./asking.js";
import { ApiError } from "./api.js";
import { fill, GIVEN, h, svg } from "./dom.js";
import { excerpt } from "./excerpt.js";
import { percent, score } from "./format.js";
import { nameOf, reasonsByName } from "./search.js";
import { sharesOf } from "./reasons.js";
import { marked, printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./search.js").Hit} Hit */
/** @typedef {import("./reasons.js").Reasons} Reasons */
/** @typedef {{model: string, hits: Hit[], reasons: Map<string, Reasons>, rankOf: Map<string, number>}} Ranking */

/** The number of hits per model that are shown, and that ranks are known of. */
const SHOWN = 12, KNOWN = 60;

export class CompareView extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;
  /** @type {[Ranking, Ranking] | null} */
  #rankings = null;
  /** @type {Map<string, Ranking>} */
  #cache = new Map();
  #isRunning = false;
  #isStale = false;
  #stop = new AbortController();
  #status = h("p", { class: "status", role: "status" });
  #sides = [h("ol", { class: "side" }), h("ol", { class: "side" })];
  #heads = [h("h2", { class: "model-name" }), h("h2", { class: "model-name" })];
  #links = svg("svg", { class: "links", "aria-hidden": "true" });
  #resized = new ResizeObserver(() => this.#drawLinks());

  connectedCallback() {
    const { signal } = (this.#stop = new AbortController());
    this.search.addEventListener("change", () => this.#ask(), { signal });
    this.store.addEventListener("change", () => this.#ask(), { signal });
    document.addEventListener("command", (event) => this.#command(/** @type {CustomEvent} */ (event).detail), { signal });
    fill(this, this.#status, h("div", { class: "compared" },
      h("section", { "aria-label": t.models.left }, this.#heads[0], this.#sides[0]), this.#links,
      h("section", { "aria-label": t.models.right }, this.#heads[1], this.#sides[1])));
    this.#resized.observe(this.#sides[0]);
    this.#resized.observe(this.#sides[1]);
    this.#ask();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#resized.disconnect();
  }

  /** Ask for both rankings. A request is not stopped while a slider is dragged: the last value is asked next. */
  async #ask() {
    const { state } = this.store;
    if (!state.compare || !state.query.trim() || this.search.problem) return;
    if (this.#isRunning) return void (this.#isStale = true);
    this.#isRunning = true;
    this.#isStale = false;
    try {
      await this.search.read();
      this.#rankings = await Promise.all([this.#ranking(state.model), this.#ranking(state.compare)]);
      if (!this.isConnected) return;
      this.#render(this.#rankings);
      await this.#explainMissing(this.#rankings);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;  // the comparison was ended
      if (!(error instanceof ApiError)) throw error;
      this.#status.textContent = printable(error.message);
    } finally {
      this.#isRunning = false;
    }
    if (this.#isStale) this.#ask();
  }

  /** @param {string} model @returns {Promise<Ranking>} */
  async #ranking(model) {
    const options = searchOptions(this.store.state, this.search.reading, { model, k: KNOWN });
    const key = JSON.stringify([this.search.api.index, options]);
    const known = this.#cache.get(key);
    if (known) return known;
    const answer = await this.search.api.ask("search", options);
    const rankOf = new Map(answer.hits.map((/** @type {Hit} */ hit) => [nameOf(hit), hit.rank]));
    const ranking = { model: answer.model, hits: answer.hits, reasons: reasonsByName(answer), rankOf };
    if (this.#cache.size > 8) this.#cache.clear();
    this.#cache.set(key, ranking);
    return ranking;
  }

  /** Ask why hits of one model that the other ranks far below have their scores there. @param {[Ranking, Ranking]} rankings */
  async #explainMissing(rankings) {
    const { state } = this.store, { signal } = this.#stop;
    for (const [side, ranking] of rankings.entries()) {
      const other = rankings[1 - side], model = side === 0 ? state.compare : state.model;
      const missing = ranking.hits.slice(0, SHOWN).map(nameOf).filter((name) => !other.reasons.has(name));
      await Promise.all(missing.map(async (name) => other.reasons.set(name, await reasonsOf(this.search.api, state, this.search.reading, model, name, signal))));
    }
    if (this.#rankings === rankings && this.isConnected) this.#render(rankings);
  }

  /** @param {[Ranking, Ranking]} rankings */
  #render(rankings) {
    const shown = rankings.map((ranking) => ranking.hits.slice(0, SHOWN));
    const names = shown.map((hits) => new Set(hits.map(nameOf)));
    const common = [...names[0]].filter((name) => names[1].has(name)).length;
    this.#status.textContent = t.compare.common(common, Math.min(SHOWN, ...rankings.map(({ hits }) => hits.length)));
    for (const [side, ranking] of rankings.entries()) {
      this.#heads[side].textContent = ranking.model;
      fill(this.#sides[side], shown[side].map((hit) => this.#item(hit, ranking, rankings[1 - side], side)));
    }
    this.#drawLinks();
  }

  /** @param {Hit} hit @param {Ranking} own @param {Ranking} other @param {number} side */
  #item(hit, own, other, side) {
    const name = nameOf(hit), there = other.rankOf.get(name);
    const bar = /** @type {import("./score-bar.js").ScoreBar} */ (document.createElement("pk-score-bar"));
    bar.best = own.hits[0].score;
    bar.parts = own.reasons.get(name)?.parts ?? [];
    const piece = excerpt(hit.text, hit.highlights, 150);
    const moved = there === undefined ? 0 : there - hit.rank;
    return h("li", { class: "compared-hit", "data-name": name, onpointerenter: () => this.#emphasize(name), onpointerleave: () => this.#emphasize("") },
      h("button", { type: "button", class: "result", onclick: () => this.store.change({ document: hit.document, passage: hit.passage }), onfocus: () => this.#emphasize(name) },
        h("span", { class: "rank" }, hit.rank),
        h("span", { class: "heading", dir: "auto" }, printable((hit.path.length ? [hit.path[0], hit.path[hit.path.length - 1]] : [hit.document]).filter((title, at, all) => !at || title !== all[0]).join(" › "))),
        h("span", { class: "score" }, score(hit.score)),
        h("span", { class: "passage", dir: "auto" }, marked(piece.text, piece.highlights))),
      bar,
      h("p", { class: "move" },
        there === undefined ? h("strong", { class: "up" }, "▲") : moved ? h("strong", { class: moved > 0 ? "up" : "down" }, `${moved > 0 ? "▲" : "▼"} ${Math.abs(moved)}`) : null, " ",
        there === undefined ? other.hits.length < KNOWN ? t.compare.notFound : t.compare.beyond(KNOWN) : moved ? t.compare.rank(there) : t.compare.same,
        this.#why(own.reasons.get(name), other.reasons.get(name), there === undefined ? 1 : moved)),
      h("span", { class: "unseen" }, side === 0 ? t.models.left : t.models.right));
  }

  /**
   * Why a hit has another rank: the origin that adds more to the score in the list in which the hit is higher.
   *
   * @param {Reasons | undefined} own
   * @param {Reasons | undefined} other
   * @param {number} moved by how many ranks the hit is higher here
   */
  #why(own, other, moved) {
    if (!own || !other || !moved) return "";
    const [here, there] = [own, other].map(({ parts }) => new Map(sharesOf(parts).map(({ origin, share }) => [origin, share])));
    const gain = (/** @type {import("./reasons.js").Origin} */ origin) => Math.sign(moved) * ((here.get(origin) ?? 0) - (there.get(origin) ?? 0));
    const [first] = [...new Set([...here.keys(), ...there.keys()])].sort((one, another) => gain(another) - gain(one));
    if (!first || gain(first) < 0.02) return "";
    return ` · ${t.compare.because(t.origins[first], percent(here.get(first) ?? 0), percent(there.get(first) ?? 0))}`;
  }

  /** Draw a line between the two places of each hit that both lists show. */
  #drawLinks() {
    const box = this.#links.getBoundingClientRect();
    if (!box.width) return fill(this.#links);
    const right = new Map([...this.#sides[1].children].map((item) => [/** @type {HTMLElement} */ (item).dataset.name, item]));
    const lines = [...this.#sides[0].children].map((item) => {
      const name = /** @type {HTMLElement} */ (item).dataset.name, other = right.get(name);
      if (!other) return null;
      const [from, to] = [item, other].map((one) => one.getBoundingClientRect().top + 18 - box.top);
      const kind = Math.abs(from - to) < 4 ? "same" : to < from ? "up" : "down";
      return svg("path", { d: `M0 ${from} C${box.width / 2} ${from} ${box.width / 2} ${to} ${box.width} ${to}`, class: kind, "data-name": name });
    });
    fill(this.#links, lines);
  }

  /** @param {string} name */
  #emphasize(name) {
    for (const element of this.querySelectorAll("[data-name]")) {
      element.classList.toggle("emphasized", name !== "" && /** @type {HTMLElement | SVGElement} */ (element).dataset.name === name);
    }
  }

  /** @param {string} name */
  #command(name) {
    if (this.store.state.document || (name !== "next" && name !== "previous")) return;
    const items = [...this.querySelectorAll("button.result")];
    const at = items.findIndex((item) => item === document.activeElement);
    const next = items[Math.min(Math.max(at + (name === "next" ? 1 : -1), 0), items.length - 1)];
    if (next instanceof HTMLElement) next.focus();
  }
}
customElements.define("pk-compare", CompareView);
