/** The inside of a text of a document: words of the query, marks of the source file, and links. */

import { h } from "./dom.js";
import { printable, safeAddress } from "./shown.js";

/** @typedef {import("./types.js").ViewedText} ViewedText */
/** @typedef {Pick<ViewedText, "text" | "highlights" | "marks" | "links">} Inline */
/** @typedef {(target: number) => HTMLAnchorElement} LinkTo makes a link to another text of the document */
/** @typedef {{start: number, end: number, tag?: string, hit?: number, target?: number}} Stretch */

/** The elements of marks, by their tags in the source file. Other marks are not shown. @type {Record<string, keyof HTMLElementTagNameMap>} */
const ELEMENTS = { b: "b", strong: "b", it: "i", i: "i", em: "i", code: "code", sub: "sub", sup: "sup", u: "u", s: "s" };
const ADDRESS = /https?:\/\/[^\s<>"'`()[\]{}]*[^\s<>"'`()[\]{}.,;:!?]/g;

/** The characters of a text, as Python counts them: code points, not units of UTF-16. @param {string} text */
export function characters(text) {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
}

/** @param {string | string[]} all @param {number} start @param {number} end */
function slice(all, start, end) {
  const part = all.slice(start, end);
  return typeof part === "string" ? part : part.join("");
}

/**
 * A part of a text, with what is marked in it.
 *
 * @param {Inline} inline @param {number} start @param {number} end
 * @returns {Inline}
 */
export function partOf(inline, start, end) {
  /** @template {[number, number, ...any[]]} T @param {T[]} stretches @returns {T[]} */
  const inside = (stretches) => stretches
    .filter(([first, last]) => first < end && last > start)
    .map(([first, last, ...rest]) => /** @type {any} */ ([Math.max(first, start) - start, Math.min(last, end) - start, ...rest]));
  return {
    text: slice(characters(inline.text), start, end), highlights: inside(inline.highlights),
    marks: inside(inline.marks), links: inside(inline.links),
  };
}

/**
 * A text as nodes. The first node of each word of the query has its number in `data-hit`.
 *
 * @param {Inline} inline
 * @param {LinkTo} linkTo
 * @param {number} [firstHit] the number of the first word
 * @returns {Node[]}
 */
export function nodesOf(inline, linkTo, firstHit = 0) {
  const { text, highlights, marks, links } = inline;
  if (!highlights.length && !marks.length && !links.length) return plain(text);
  /** @type {Stretch[]} */
  const stretches = [
    ...marks.filter(([, , tag]) => Object.hasOwn(ELEMENTS, tag)).map(([start, end, tag]) => ({ start, end, tag })),
    ...highlights.map(([start, end], number) => ({ start, end, hit: firstHit + number })),
    ...links.map(([start, end, target]) => ({ start, end, target })),
  ].filter(({ start, end }) => start < end).sort((one, other) => one.start - other.start);
  const all = characters(text);
  const borders = [...new Set([0, all.length, ...stretches.flatMap(({ start, end }) => [start, end])])].sort((one, other) => one - other);
  /** @type {Node[]} */
  const result = [];
  /** @type {Stretch[]} */
  let active = [];
  let link = /** @type {{stretch: Stretch, element: HTMLAnchorElement} | null} */ (null);
  let next = 0;
  for (let number = 0; number + 1 < borders.length; number++) {
    const start = borders[number];
    active = active.filter(({ end }) => end > start);
    while (next < stretches.length && stretches[next].start <= start) active.push(stretches[next++]);
    const leading = active.find(({ target }) => target !== undefined);
    const nodes = wrapped(slice(all, start, borders[number + 1]), active, start, Boolean(leading));
    if (!leading) {
      result.push(...nodes);
      continue;
    }
    if (link?.stretch !== leading) {
      link = { stretch: leading, element: linkTo(/** @type {number} */ (leading.target)) };
      result.push(link.element);
    }
    link.element.append(...nodes);
  }
  return result;
}

/**
 * @param {string} text @param {Stretch[]} active @param {number} start @param {boolean} isLink
 * @returns {Node[]}
 */
function wrapped(text, active, start, isLink) {
  let nodes = isLink ? [document.createTextNode(printable(text))] : plain(text);
  const hit = active.find((stretch) => stretch.hit !== undefined);
  if (hit) nodes = [h("mark", hit.start === start ? { "data-hit": hit.hit } : {}, nodes)];
  for (const { tag } of active.toReversed()) if (tag) nodes = [h(ELEMENTS[tag], {}, nodes)];
  return nodes;
}

/** A text with its addresses as links. @param {string} text @returns {Node[]} */
function plain(text) {
  if (!text.includes("://")) return [document.createTextNode(printable(text))];
  /** @type {Node[]} */
  const result = [];
  let at = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const address = safeAddress(match[0]);
    if (!address) continue;
    result.push(document.createTextNode(printable(text.slice(at, match.index))), outside(address, match[0]));
    at = match.index + match[0].length;
  }
  result.push(document.createTextNode(printable(text.slice(at))));
  return result;
}

/** A link to another web site, which does not learn where it was. @param {string} address @param {string} text */
export function outside(address, text) {
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer", class: "outside" }, printable(text));
}
