/** The outline of a document: its sections, how often the query occurs in each, and where the reader is. */

import { count } from "./format.js";
import { fill, h } from "./dom.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").DocumentTree} DocumentTree */

/** With fewer sections, all are open at first. */
const FEW = 80;

/** The event `place` has the first character and the first passage of the chosen section in its `detail`. */
export class OutlineTree extends HTMLElement {
  /** @type {DocumentTree | null} */
  #tree = null;
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();
  /** @type {number[][]} */
  #children = [];
  /** Makes the address of a passage of this document. @type {(passage: string) => string} */
  addressOf = () => "";
  #current = -1;

  /**
   * @param {DocumentTree} tree
   * @param {readonly number[]} hits the characters of the words of the query, in order
   */
  show(tree, hits) {
    this.#tree = tree;
    this.#rows.clear();
    this.#current = -1;
    const { nodes } = tree;
    this.#children = nodes.map(() => []);
    nodes.forEach((node, number) => node.parent >= 0 && this.#children[node.parent].push(number));
    const counts = nodes.map(({ start, end }) => below(hits, end) - below(hits, start));
    const most = Math.max(...counts.slice(1), 1);
    fill(this, this.#list(0, counts, most, nodes.length <= FEW));
    this.hidden = nodes.length < 2;
  }

  /** Mark the section at a character as the current one. @param {number} character */
  mark(character) {
    if (!this.#tree) return;
    const { nodes } = this.#tree;
    let found = 0;
    for (let inner = 0; inner !== -1;) {
      found = inner;
      inner = this.#children[found].findLast((number) => nodes[number].start <= character && character < Math.max(nodes[number].end, nodes[number].start + 1)) ?? -1;
    }
    if (found === this.#current) return;
    this.#rows.get(this.#current)?.querySelector("a")?.removeAttribute("aria-current");
    this.#current = found;
    let shown = found;
    for (let number = nodes[found].parent; number > 0; number = nodes[number].parent) {
      const row = this.#rows.get(number);
      if (row && !row.classList.contains("open")) shown = number;
    }
    const link = this.#rows.get(shown)?.querySelector("a");
    link?.setAttribute("aria-current", "location");
    this.#current = shown;
    if (link && this.scrollHeight > this.clientHeight) {
      const { top, bottom } = link.getBoundingClientRect(), box = this.getBoundingClientRect();
      if (top < box.top || bottom > box.bottom) this.scrollTop += top - box.top - box.height / 3;
    }
  }

  /** @param {number} parent @param {number[]} counts @param {number} most @param {boolean} isOpen @returns {HTMLElement} */
  #list(parent, counts, most, isOpen) {
    return h("ol", {}, this.#children[parent].map((number) => this.#row(number, counts, most, isOpen)));
  }

  /** @param {number} number @param {number[]} counts @param {number} most @param {boolean} isOpen */
  #row(number, counts, most, isOpen) {
    const node = /** @type {DocumentTree} */ (this.#tree).nodes[number];
    const inner = this.#children[number];
    const isTable = /\/table\[\d+\]$/.test(node.step);
    const title = printable((isTable ? `${t.document.table}: ${node.title.replaceAll(" | ", ", ")}` : node.title) || node.id || /** @type {Record<string, string>} */ (t.parts)[node.part] || node.part || t.document.untitled);
    const link = h("a", { href: this.addressOf(node.first_passage), onclick: (/** @type {MouseEvent} */ event) => this.#choose(event, number) },
      h("span", { class: "name", dir: "auto" }, title),
      counts[number] ? h("span", { class: "tally", "aria-label": t.document.hits(counts[number]) }, count(counts[number])) : null);
    link.style.setProperty("--share", String(Math.sqrt(counts[number] / most)));
    const row = h("li", { class: isOpen ? "open" : "" });
    /** @type {HTMLElement | null} */
    let list = inner.length && isOpen ? this.#list(number, counts, most, isOpen) : null;
    const toggle = inner.length ? h("button", {
      class: "toggle", type: "button", "aria-expanded": String(isOpen), "aria-label": t.document.open(title),
      onclick: () => {
        const opens = row.classList.toggle("open");
        toggle?.setAttribute("aria-expanded", String(opens));
        if (opens && !list) row.append(list = this.#list(number, counts, most, false));
      },
    }) : null;
    row.append(h("div", { class: "row" }, toggle ?? h("span", { class: "toggle" }), link), ...(list ? [list] : []));
    this.#rows.set(number, row);
    return row;
  }

  /** @param {MouseEvent} event @param {number} number */
  #choose(event, number) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { start, first_passage: passage } = /** @type {DocumentTree} */ (this.#tree).nodes[number];
    this.dispatchEvent(new CustomEvent("place", { bubbles: true, detail: { character: start, passage } }));
  }
}
customElements.define("pk-outline", OutlineTree);

/** The number of values below a limit. @param {readonly number[]} sorted @param {number} limit */
function below(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
