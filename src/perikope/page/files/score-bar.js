/** The bar that shows how much of a score came from the passage, its titles, its sections, its document, … */

import { fill, h } from "./dom.js";
import { percent, score } from "./format.js";
import { sharesOf } from "./reasons.js";
import { t } from "./texts.js";

/** @typedef {import("./reasons.js").Part} Part */

/** Shares below this are not drawn. */
const DRAWN = 0.005;

/** `parts` is the score by origin, `best` the largest score of the list: the bar is as long as the score is large. */
export class ScoreBar extends HTMLElement {
  /** @type {readonly Part[]} */
  #parts = [];
  /** The score of the first hit; 0 for a bar of full length. */
  best = 0;

  get parts() {
    return this.#parts;
  }

  set parts(parts) {
    this.#parts = parts;
    this.#render();
  }

  #render() {
    const shares = sharesOf(this.#parts).filter(({ share }) => share >= DRAWN);
    this.hidden = !shares.length;
    if (this.hidden) return;
    const total = this.#parts.reduce((sum, part) => sum + part.value, 0);
    const length = this.best > 0 && total > 0 ? Math.max(total / this.best, 0.04) : 1;
    const named = shares.map(({ origin, share }) => `${t.origins[origin]} ${percent(share)}`);
    const pieces = shares.map(({ origin, share, value }) => {
      const piece = h("span", { class: value < 0 ? "piece negative" : "piece" });
      piece.style.setProperty("flex-grow", String(share));
      piece.style.setProperty("--color", `var(--${origin})`);
      return piece;
    });
    const bar = h("span", { class: "pieces" }, pieces);
    bar.style.setProperty("width", `${Math.min(length, 1) * 100}%`);
    const main = h("span", { class: "main-origin" }, named[0]);
    main.style.setProperty("--color", `var(--${shares[0].origin})`);
    this.setAttribute("role", "img");
    this.setAttribute("aria-label", t.score.made(score(total), named.join(", ")));
    this.title = named.join(" · ");
    fill(this, h("span", { class: "track" }, bar), main);
  }
}
customElements.define("pk-score-bar", ScoreBar);
