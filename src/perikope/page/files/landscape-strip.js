/**
 * The relevance landscape along the edge of a document: how near each place is to the words of the query. It is read,
 * clicked, and walked through with the arrow keys; the place under the pointer says which occurrences reach it.
 */

import { fill, h, svg } from "./dom.js";
import { count, percent } from "./format.js";
import { isListed, pathOf, reachingAt, tokenAt } from "./landscape.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").Landscape} Landscape */

const WIDTH = 100, HEIGHT = 1000;
/** The largest number of occurrences that are named at a place. */
const NAMED = 6;
/** An occurrence is named from this share on. */
const LEAST = 0.005;
/** More occurrences than this are not drawn as lines, since they would be one area. */
const DRAWN = 1500;

/** The event `place` has the character of the chosen place in its `detail`. */
export class LandscapeStrip extends HTMLElement {
  /** @type {Landscape | null} */
  #landscape = null;
  #bin = -1;
  #drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  #window = h("div", { class: "window" });
  #line = h("div", { class: "line", hidden: true });
  #reach = svg("path", { class: "reach" });
  #strip = h("div", {
    class: "strip", role: "slider", tabIndex: 0, "aria-orientation": "vertical", "aria-label": t.landscape.name, "aria-valuemin": "0",
    onpointermove: (/** @type {PointerEvent} */ event) => this.#point(this.#binUnder(event)),
    onpointerleave: () => document.activeElement !== this.#strip && this.#point(-1),
    onclick: (/** @type {MouseEvent} */ event) => this.#choose(this.#binUnder(event)),
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    onblur: () => this.#point(-1),
  });
  #card = h("div", { class: "card", hidden: true });
  /** The heading at a character of the document. @type {(character: number) => string} */
  headingAt = () => "";

  connectedCallback() {
    this.#strip.append(this.#drawing, this.#window, this.#line);
    fill(this, this.#strip, this.#card);
  }

  /** @param {Landscape | null} landscape */
  show(landscape) {
    this.#landscape = landscape;
    this.#bin = -1;
    this.hidden = !landscape?.occurrences.length;
    if (this.hidden || !landscape) return;
    const ticks = (landscape.all_occurrences > DRAWN ? [] : landscape.occurrences).map(({ position }) => `M0 ${((position / landscape.tokens) * HEIGHT).toFixed(1)}h14`);
    fill(this.#drawing, svg("path", { class: "area", d: pathOf(landscape, WIDTH, HEIGHT) }),
      svg("path", { class: "ticks", d: ticks.join("") }), this.#reach);
    this.#strip.setAttribute("aria-valuemax", String(landscape.bins.length - 1));
    this.#point(-1);
  }

  /** Show which part of the document is in the window. @param {number} start @param {number} end characters */
  showWindow(start, end) {
    if (!this.#landscape || this.hidden) return;
    const first = tokenAt(this.#landscape, start) / this.#landscape.tokens, last = tokenAt(this.#landscape, end) / this.#landscape.tokens;
    this.#window.style.setProperty("top", `${first * 100}%`);
    this.#window.style.setProperty("height", `${Math.max(last - first, 0.004) * 100}%`);
    if (this.#bin < 0) this.#say(this.#landscape.bins.findIndex((bin) => bin.end_character > start));
  }

  /** @param {MouseEvent} event */
  #binUnder(event) {
    const { top, height } = this.#strip.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientY - top) / height, 0), 0.9999);
    return Math.floor(share * (this.#landscape?.bins.length ?? 0));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!this.#landscape) return;
    const last = this.#landscape.bins.length - 1;
    const at = this.#bin < 0 ? Number(this.#strip.getAttribute("aria-valuenow") ?? 0) : this.#bin;
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -last, End: last };
    if (event.key === "Enter" || event.key === " ") this.#choose(at);
    else if (event.key in moves) this.#point(Math.min(Math.max(at + moves[event.key], 0), last));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} bin */
  #choose(bin) {
    const chosen = this.#landscape?.bins[bin];
    if (chosen) this.dispatchEvent(new CustomEvent("place", { bubbles: true, detail: { character: chosen.peak_character } }));
  }

  /** Say where the slider is. @param {number} number */
  #say(number) {
    const bin = this.#landscape?.bins[number];
    if (!this.#landscape || !bin) return;
    this.#strip.setAttribute("aria-valuenow", String(number));
    this.#strip.setAttribute("aria-valuetext", [t.landscape.at(percent(bin.peak / this.#landscape.tokens)), this.headingAt(bin.peak_character),
      t.landscape.influence(percent(bin.influence))].filter(Boolean).join(", "));
  }

  /** Show what reaches a bin; -1 for none. @param {number} number */
  #point(number) {
    this.#bin = number;
    const landscape = this.#landscape, bin = landscape?.bins[number];
    this.#line.hidden = this.#card.hidden = !bin;
    this.#reach.setAttribute("d", "");
    if (!landscape || !bin) return;
    const isKnown = isListed(landscape, bin.peak);
    const reaching = isKnown ? reachingAt(landscape, bin.peak).filter(({ share }) => share >= LEAST) : [];
    const at = (bin.peak / landscape.tokens) * 100;
    this.#line.style.setProperty("top", `${at}%`);
    this.#reach.setAttribute("d", reaching.map(({ occurrence }) => `M0 ${((occurrence.position / landscape.tokens) * HEIGHT).toFixed(1)}h40`).join(""));
    this.#say(number);
    const heading = this.headingAt(bin.peak_character);
    fill(this.#card,
      h("p", { class: "where" }, h("b", {}, t.landscape.influence(percent(bin.influence))), ` ${t.landscape.at(percent(bin.peak / landscape.tokens))}`),
      heading && h("p", { class: "heading", dir: "auto" }, heading),
      reaching.length ? h("ul", {}, reaching.slice(0, NAMED).map((one) => this.#reachingRow(one))) : h("p", {}, isKnown ? t.landscape.nothing : t.landscape.unknown(count(landscape.occurrences.length))),
      reaching.length > NAMED && h("p", { class: "rest" }, t.landscape.more(reaching.length - NAMED)));
    this.#card.style.setProperty("--at", `${at}%`);
  }

  /** @param {import("./landscape.js").Reaching} reaching */
  #reachingRow({ occurrence, distance, share }) {
    const bar = h("span", { class: "gauge", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(share));
    return h("li", {}, h("mark", {}, printable(occurrence.word)), h("span", { class: "distance" }, t.landscape.distance(distance)), bar, h("span", { class: "percent" }, percent(share)));
  }
}
customElements.define("pk-landscape", LandscapeStrip);
