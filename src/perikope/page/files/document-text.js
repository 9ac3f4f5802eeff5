/**
 * The text of a document. A long one has thousands of passages, so it is made in slices: those near the window at once,
 * the others while the browser has nothing else to do. The browser lays out only what is near the window.
 */

import { h } from "./dom.js";
import { printable } from "./shown.js";
import { elementOf, itemsOf, levelsOf, listsOf } from "./text-blocks.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").DocumentView} DocumentView */
/** @typedef {import("./types.js").ViewedText} ViewedText */
/** @typedef {import("./text-blocks.js").Item} Item */
/** @typedef {{items: Item[], first: number, end: number, element: HTMLElement, isMade: boolean}} Slice */
/** @typedef {{text: number, hit: number}} Hit a word of the query: the number of its text, and its number in the text */

/** The number of items of a slice. */
const SIZE = 30;
/** Milliseconds that making slices may take until the browser has its turn. */
const TURN = 8;

export class DocumentText extends HTMLElement {
  /** @type {DocumentView} */
  view;
  /** Makes the address of a passage of this document. @type {(passage: string) => string} */
  addressOf = () => "";
  /** @type {Hit[]} */
  hits = [];
  /** @type {Slice[]} */
  #slices = [];
  /** @type {import("./text-blocks.js").Showing} */
  #showing;
  #near = new IntersectionObserver((entries) => this.#approach(entries), { rootMargin: "1200px 0px" });
  /** @type {Element | null} */
  #current = null;
  #making = 0;

  /**
   * Show a document, with the slices around a text made at once.
   *
   * @param {DocumentView} view
   * @param {number} around
   */
  show(view, around) {
    this.view = view;
    this.hits = view.texts.flatMap((text, number) => text.highlights.map((_, hit) => ({ text: number, hit })));
    this.#showing = { view, lists: listsOf(view), levels: levelsOf(view), linkTo: (target) => this.#linkTo(target), placeLink: (text) => this.#placeLink(text) };
    this.#near.disconnect();
    this.#slices = [];
    this.#current = null;
    const items = itemsOf(view);
    // The title of the document is shown above the text.
    const first = titleOf(view) ? 1 : 0;
    for (let at = first; at < items.length; at += SIZE) this.#slices.push(this.#slice(items.slice(at, at + SIZE)));
    this.replaceChildren(...this.#slices.map(({ element }) => element));
    this.#make(this.#sliceOf(around));
    for (const { element } of this.#slices) this.#near.observe(element);
    const making = ++this.#making;
    later(() => this.#makeRest(making));
  }

  disconnectedCallback() {
    this.#making++;
    this.#near.disconnect();
  }

  /** The number of the text that has a passage, or -1. @param {string} passage */
  find(passage) {
    return this.view.texts.findIndex((text) => text.id === passage && text.kind === "passage");
  }

  /** The number of the text at a character of the document, or the nearest before it. @param {number} character */
  at(character) {
    const { texts } = this.view;
    let low = 0, high = texts.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (texts[middle].start <= character) low = middle;
      else high = middle;
    }
    return low;
  }

  /**
   * Scroll to a text and mark it as the current one. With titles right above it, they are shown too.
   *
   * @param {number} number
   * @param {{hit?: number}} [which] a word of the query in the text
   */
  go(number, { hit } = {}) {
    const element = this.element(number);
    if (!element) return;
    this.#current?.classList.remove("current");
    this.#current?.removeAttribute("aria-current");
    for (const mark of this.querySelectorAll("mark.current")) mark.classList.remove("current");
    this.#current = element;
    element.classList.add("current");
    element.setAttribute("aria-current", "true");
    const mark = hit === undefined ? null : element.querySelector(`mark[data-hit="${hit}"]`);
    mark?.classList.add("current");
    let top = number;
    while (!mark && top > 1 && this.view.texts[top - 1].kind === "title") top--;
    const target = mark ?? this.element(top) ?? element;
    const scroll = () => target.scrollIntoView({ block: mark ? "center" : "start", behavior: "instant" });
    scroll();
    // Slices that come into the window get their real heights, which may move the text.
    requestAnimationFrame(() => requestAnimationFrame(() => target.isConnected && scroll()));
  }

  /** The element of a text, made if it was not. @param {number} number @returns {HTMLElement | null} */
  element(number) {
    const slice = this.#sliceOf(number);
    this.#make(slice);
    return slice?.element.querySelector(`[data-text="${number}"]`) ?? null;
  }

  /** The first and the last text in the window. @param {number} top where the window begins, below a header @returns {[number, number]} */
  visible(top) {
    const first = this.#firstBelow(top), last = this.#firstBelow(innerHeight);
    return [first, Math.max(first, last - 1)];
  }

  /** The first text whose end is below a line of the window. @param {number} line */
  #firstBelow(line) {
    /** @param {number} count @param {(number: number) => Element} elementOf */
    const search = (count, elementOf) => {
      let low = 0, high = count;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (elementOf(middle).getBoundingClientRect().bottom > line) high = middle;
        else low = middle + 1;
      }
      return low;
    };
    const found = search(this.#slices.length, (number) => this.#slices[number].element);
    if (found === this.#slices.length) return this.view.texts.length;
    const slice = this.#slices[found];
    if (!slice.isMade) return slice.first;
    const texts = slice.element.querySelectorAll("[data-text]");
    const text = texts[search(texts.length, (number) => texts[number])];
    return text instanceof HTMLElement ? Number(text.dataset.text) : slice.end;
  }

  /** @param {Item[]} items @returns {Slice} */
  #slice(items) {
    const first = items[0].first, end = items[items.length - 1].end;
    const element = h("div", { class: "slice" });
    // About 75 characters per line of 27 pixels, and a space between texts.
    const height = this.view.texts.slice(first, end).reduce((sum, { text }) => sum + Math.ceil(text.length / 75) * 27 + 14, 0);
    element.style.setProperty("--height", `${height}px`);
    return { items, first, end, element, isMade: false };
  }

  /** @param {number} text */
  #sliceOf(text) {
    return this.#slices.findLast((slice) => slice.first <= text) ?? this.#slices[0];
  }

  /** @param {Slice | undefined} slice */
  #make(slice) {
    if (!slice || slice.isMade) return;
    slice.isMade = true;
    const { texts } = this.view;
    /** @type {HTMLElement[]} */
    const elements = [];
    for (const item of slice.items) {
      const { part } = texts[item.first];
      if (part && part !== "title" && part !== texts[item.first - 1]?.part) elements.push(h("div", { class: "part" }, partName(part)));
      elements.push(elementOf(item, this.#showing));
    }
    slice.element.append(...elements);
    slice.element.classList.add("made");
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #approach(entries) {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      this.#near.unobserve(target);
      this.#make(this.#slices.find(({ element }) => element === target));
    }
  }

  /** @param {number} making */
  #makeRest(making) {
    const end = performance.now() + TURN;
    while (performance.now() < end) {
      if (making !== this.#making) return;
      const slice = this.#slices.find(({ isMade }) => !isMade);
      if (!slice) {
        this.classList.add("complete");
        return;
      }
      this.#make(slice);
    }
    later(() => this.#makeRest(making));
  }

  /** @param {number} target */
  #linkTo(target) {
    const { texts } = this.view;
    const passage = texts.slice(target).find(({ kind }) => kind === "passage")?.id ?? "";
    return h("a", { href: this.addressOf(passage), class: "inside", "data-passage": passage, "data-target": target });
  }

  /** @param {ViewedText} text */
  #placeLink(text) {
    if (!text.id) return null;
    const name = printable(text.citation || text.id);
    return h("a", { class: "place", href: this.addressOf(text.id), tabIndex: -1, "data-passage": text.id, title: t.document.linkTo(name) }, name);
  }
}
customElements.define("pk-document-text", DocumentText);

/** The title of the document, if it is the first text. @param {DocumentView} view @returns {ViewedText | null} */
export function titleOf(view) {
  const [first] = view.texts;
  return first?.kind === "title" && first.text === view.title ? first : null;
}

/** The name of a part of a document, such as `claims`. @param {string} part */
export function partName(part) {
  return printable(/** @type {Record<string, string>} */ (t.parts)[part] ?? part);
}

/** @param {() => void} task */
function later(task) {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(task, { timeout: 500 });
  else setTimeout(task, 16);
}
