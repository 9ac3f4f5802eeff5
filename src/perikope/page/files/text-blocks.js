/** The texts of a document as elements: headings, paragraphs, list items, code, and tables from their rows. */

import { h } from "./dom.js";
import { printable } from "./shown.js";
import { characters, nodesOf, partOf } from "./text-pieces.js";
import { t } from "./texts.js";

/** @typedef {import("./types.js").DocumentView} DocumentView */
/** @typedef {import("./types.js").ViewedText} ViewedText */
/** @typedef {import("./text-pieces.js").Inline} Inline */
/** @typedef {import("./text-pieces.js").LinkTo} LinkTo */
/** @typedef {{first: number, end: number, table: boolean}} Item one text, or the texts of a table (`end` is exclusive) */
/** @typedef {{view: DocumentView, lists: Listed[], levels: number[], linkTo: LinkTo, placeLink: (text: ViewedText) => HTMLElement | null}} Showing */
/** @typedef {{level: number, marker: string}} Listed the number of lists around a text, and what is before it */

const TABLES = new Set(["table", "tgroup", "informaltable", "texttable"]);
const LISTS = new Set(["ul", "ol", "list", "dl", "itemizedlist", "orderedlist"]);
const NUMBERED = new Set(["ol", "orderedlist"]);
const ITEMS = new Set(["li", "list-item", "listitem", "item", "t"]);
const ROWS = new Set(["tr", "row"]);
const QUOTES = new Set(["blockquote", "disp-quote", "quote", "q"]);
const CODE = new Set(["code", "pre", "programlisting", "screen", "sourcecode", "artwork", "literallayout", "code-block"]);
/** A longer table is cut, so that a part of it can be shown alone. */
const LONGEST_TABLE = 100;

/**
 * The texts of a document, where the texts of a table are one item.
 *
 * @param {DocumentView} view
 * @returns {Item[]}
 */
export function itemsOf(view) {
  /** @type {Item[]} */
  const items = [];
  let table = -1;
  view.texts.forEach((text, number) => {
    const around = tableAround(view, text.block);
    const last = items.at(-1);
    if (around >= 0 && around === table && last && last.end - last.first < LONGEST_TABLE) last.end = number + 1;
    else items.push({ first: number, end: number + 1, table: around >= 0 });
    table = around;
  });
  return items;
}

/** The innermost table around a block; -1 if there is none. @param {DocumentView} view @param {number} block */
function tableAround(view, block) {
  while (block >= 0 && !TABLES.has(view.blocks[block].tag)) block = view.blocks[block].parent;
  return block;
}

/**
 * The place of each text in lists.
 *
 * @param {DocumentView} view
 * @returns {Listed[]}
 */
export function listsOf(view) {
  /** @type {Map<number, number>} */
  const counted = new Map();
  const seen = new Set();
  return view.texts.map((text) => {
    let level = 0, list = -1, item = -1;
    for (let block = text.block; block >= 0; block = view.blocks[block].parent) {
      const { tag } = view.blocks[block];
      if (LISTS.has(tag)) {
        level++;
        if (list < 0) list = block;
      } else if (list < 0 && ITEMS.has(tag)) item = block;
    }
    const begins = list >= 0 && (item < 0 ? ITEMS.has(text.tag) : !seen.has(item));
    if (!begins) return { level, marker: "" };
    seen.add(item);
    const number = (counted.get(list) ?? 0) + 1;
    counted.set(list, number);
    return { level, marker: NUMBERED.has(view.blocks[list].tag) ? `${number}.` : "•" };
  });
}

/**
 * The level of each title as a heading, from 2 on. Sections without a title do not count, so that no level is left out.
 *
 * @param {DocumentView} view
 * @returns {number[]}
 */
export function levelsOf(view) {
  /** @type {number[]} */
  const above = [];
  return view.texts.map(({ kind, depth, text }, number) => {
    if (kind !== "title" || (!number && text === view.title)) return 0;
    while (above.length && above[above.length - 1] >= depth) above.pop();
    above.push(depth);
    return Math.min(above.length + 1, 6);
  });
}

/**
 * The element of an item.
 *
 * @param {Item} item
 * @param {Showing} showing
 * @returns {HTMLElement}
 */
export function elementOf(item, showing) {
  return item.table ? tableOf(item, showing) : textOf(item.first, showing);
}

/** @param {number} number @param {Showing} showing */
function textOf(number, showing) {
  const text = showing.view.texts[number];
  const { level, marker } = showing.lists[number];
  const inside = nodesOf(text, showing.linkTo);
  const settings = { dir: "auto", lang: text.language !== showing.view.language ? text.language : undefined };
  const body = text.kind === "title" ? h(/** @type {"h2"} */ (`h${showing.levels[number]}`), settings, inside)
    : CODE.has(text.tag) ? h("pre", { ...settings, tabIndex: 0 }, h("code", {}, inside)) : h("p", settings, inside);
  const isQuote = text.block >= 0 && QUOTES.has(showing.view.blocks[text.block].tag);
  const names = ["text", `is-${text.kind}`, isQuote && "quote", level && "listed", text.tag === "claim" && "claim", text.text.includes("\n") && "lines"];
  const element = h("div", { class: names.filter(Boolean).join(" "), "data-text": number },
    text.kind === "title" ? null : showing.placeLink(text), marker && h("span", { class: "marker", "aria-hidden": "true" }, marker), body, further(text, showing));
  if (level) element.style.setProperty("--level", String(level));
  return element;
}

/** The references of a text whose words are not known, as links after it. @param {ViewedText} text @param {Showing} showing */
function further(text, showing) {
  const targets = text.links.filter(([start, end]) => start === end).map(([, , target]) => target);
  if (!targets.length) return null;
  return h("p", { class: "see" }, `${t.document.seeAlso} `, targets.flatMap((target, number) => {
    const { text: words, citation, id } = showing.view.texts[target];
    const link = showing.linkTo(target);
    link.append(printable(citation || (words.length < 60 ? words : id) || id));
    return number ? [", ", link] : [link];
  }));
}

/** @param {Item} item @param {Showing} showing */
function tableOf(item, showing) {
  const head = h("thead"), body = h("tbody");
  /** @type {HTMLElement[]} */
  const captions = [];
  for (let number = item.first; number < item.end; number++) {
    const text = showing.view.texts[number];
    const isHead = text.kind === "title";
    let hit = 0;
    if (!isHead && !ROWS.has(text.tag)) {
      captions.push(h("div", { class: "text caption", dir: "auto", "data-text": number }, nodesOf(text, showing.linkTo)));
      continue;
    }
    for (const cells of rowsOf(text)) {
      const row = h("tr", { class: "text", "data-text": number });
      for (const cell of cells) {
        row.append(h(isHead ? "th" : "td", isHead ? { scope: "col", dir: "auto" } : { dir: "auto" }, nodesOf(cell, showing.linkTo, hit)));
        hit += cell.highlights.length;
      }
      (isHead ? head : body).append(row);
    }
  }
  const table = h("table", {}, head.childElementCount ? head : null, body);
  if (!body.childElementCount && !head.childElementCount) return h("div", { class: "table" }, captions);
  return h("div", { class: "table" }, captions, h("div", { class: "scrolling", tabIndex: 0, role: "region", "aria-label": t.document.table }, table));
}

/** The rows and cells of a text, as the index separates them: lines, and ` | ` between cells. @param {Inline} inline @returns {Inline[][]} */
function rowsOf(inline) {
  const all = characters(inline.text);
  /** @type {Inline[][]} */
  const rows = [[]];
  let start = 0;
  for (let at = 0; at <= all.length; at++) {
    const isEnd = at === all.length, isLine = all[at] === "\n";
    const isBar = all[at] === " " && all[at + 1] === "|" && (at + 2 === all.length || all[at + 2] === " ");
    if (!isEnd && !isLine && !isBar) continue;
    rows[rows.length - 1].push(partOf(inline, start, at));
    start = isBar ? Math.min(at + 3, all.length) : at + 1;
    if (isBar) at++;
    if (isLine) rows.push([]);
  }
  return rows;
}
