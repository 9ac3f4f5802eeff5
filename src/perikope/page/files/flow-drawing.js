/**
 * A drawing of the section tree around a passage, with the score flowing along it. Rows are the document, the sections
 * above the passage, and its neighbours. A band per origin begins at the rows of this origin and ends at the passage, and
 * is as wide as its share. It does not say how much each row of an origin adds, since only their sum is known.
 */

import { fill, h, svg } from "./dom.js";
import { count, percent } from "./format.js";
import { sharesOf } from "./reasons.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./reasons.js").Origin} Origin */
/** @typedef {import("./reasons.js").Share} Share */
/** @typedef {import("./types.js").DocumentTree} DocumentTree */
/** @typedef {import("./types.js").PassageView} PassageView */
/** @typedef {{element: HTMLElement, origins: Origin[]}} Row */

/** The width of all bands together where they enter the passage, in pixels. */
const WHOLE = 34;
/** The space between two bands, for the share of the first. */
const GAP = 36;

export class FlowDrawing extends HTMLElement {
  /** @type {Row[]} */
  #rows = [];
  /** @type {Share[]} */
  #shares = [];
  /** @type {HTMLElement} */
  #passage;
  #bands = svg("svg", { class: "bands", "aria-hidden": "true" });
  #resized = new ResizeObserver(() => this.#draw());

  disconnectedCallback() {
    this.#resized.disconnect();
  }

  /**
   * @param {import("./reasons.js").Part[]} parts
   * @param {PassageView} passage
   * @param {DocumentTree} tree
   */
  show(parts, passage, tree) {
    this.#shares = sharesOf(parts).filter(({ share }) => share >= 0.005);
    this.#rows = rowsOf(passage, tree, new Set(this.#shares.map(({ origin }) => origin)));
    this.#passage = /** @type {Row} */ (this.#rows.find(({ origins }) => origins.includes("passage"))).element;
    fill(this, h("ol", { class: "rows" }, this.#rows.map(({ element }) => element)), this.#bands);
    this.#resized.disconnect();
    this.#resized.observe(this);
    this.#draw();
  }

  #draw() {
    const box = this.getBoundingClientRect();
    if (!box.width) return;
    /** @type {Map<Origin, number>} */
    const lanes = new Map();
    let right = 18;
    for (const { origin, share } of this.#shares) {
      if (origin === "passage") continue;
      lanes.set(origin, right + widthOf(share) / 2 + 8);
      right += widthOf(share) + GAP;
    }
    const width = right + 16;
    this.style.setProperty("--bands", `${width}px`);
    this.#bands.setAttribute("width", String(width));
    this.#bands.setAttribute("height", String(box.height));
    /** @param {Element} element */
    const middle = (element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return (top + bottom) / 2 - this.getBoundingClientRect().top;
    };
    const goal = middle(this.#passage);
    let at = goal - WHOLE / 2;
    /** @type {SVGElement[]} */
    const drawn = [];
    for (const { origin, value, share } of this.#shares) {
      const wide = widthOf(share), end = at + wide / 2;
      at += share * WHOLE;
      const style = value < 0 ? "band negative" : "band";
      const band = svg("g", { class: style }, svg("title", {}, `${t.origins[origin]} ${percent(share)}`));
      band.style.setProperty("--color", `var(--${origin})`);
      const x = lanes.get(origin);
      if (x === undefined) band.append(svg("path", { d: `M2 ${end}h12`, "stroke-width": wide }));
      else {
        const starts = this.#rows.filter(({ origins }) => origins.includes(origin)).map(({ element }) => middle(element));
        for (const y of starts) band.append(svg("circle", { cx: 5, cy: y, r: 3 }), svg("path", { class: "thin", d: `M5 ${y}H${x - wide / 2}` }));
        band.append(svg("path", { d: entry(end, x, starts, wide), "stroke-width": wide }));
        const middleOfLane = (Math.min(...starts, end) + Math.max(...starts, end)) / 2;
        if (share >= 0.02) band.append(svg("text", { x: x + wide / 2 + 4, y: middleOfLane + 4 }, percent(share)));
      }
      drawn.push(band);
    }
    fill(this.#bands, drawn);
  }
}
customElements.define("pk-flow", FlowDrawing);

/** @param {number} share */
function widthOf(share) {
  return Math.max(share * WHOLE, 1.5);
}

/** The band in its lane, from the row that is farthest from the passage, and into the passage. @param {number} end @param {number} x @param {number[]} starts @param {number} wide */
function entry(end, x, starts, wide) {
  const radius = Math.min(8 + wide / 2, x - 9);
  const above = starts.filter((y) => y < end - 1), below = starts.filter((y) => y > end + 1);
  const paths = [];
  if (above.length) paths.push(`M${x} ${Math.min(...above) - 1}V${end - radius}Q${x} ${end} ${x - radius} ${end}H2`);
  if (below.length) paths.push(`M${x} ${Math.max(...below) + 1}V${end + radius}Q${x} ${end} ${x - radius} ${end}H2`);
  return paths.join("") || `M${x} ${end}H2`;
}

/** @param {PassageView} passage @param {DocumentTree} tree @param {Set<Origin>} origins @returns {Row[]} */
function rowsOf(passage, tree, origins) {
  /** @type {number[]} */
  const above = [0];
  for (let inner = 0; inner >= 0;) {
    const parent = inner;
    inner = tree.nodes.findIndex((node, number) => node.parent === parent && number > parent && node.start <= passage.start && passage.end <= node.end && node.end > node.start);
    if (inner >= 0) above.push(inner);
  }
  /** @type {Row[]} */
  const rows = [];
  /** @param {number} depth @param {string} kind @param {string} text @param {Origin[]} from @param {string} [label] */
  const add = (depth, kind, text, from, label) => {
    const element = h("li", { class: `row row-${kind}` }, label && h("span", { class: "kind" }, label), h("span", { class: "name", dir: "auto" }, printable(text)));
    element.style.setProperty("--depth", String(depth));
    rows.push({ element, origins: from });
  };
  above.forEach((number, depth) => {
    const node = tree.nodes[number];
    const title = node.title || (number ? node.part || t.document.untitled : passage.title || passage.document);
    add(depth, number ? "section" : "document", title, number ? ["titles", "sections"] : ["titles", "document"], number ? "" : t.origins.document);
    const siblings = tree.nodes.filter(({ parent }) => parent === number).length - (above[depth + 1] ? 1 : 0);
    if (siblings) add(depth + 1, "others", t.explanation.otherSections(count(siblings), siblings), []);
  });
  const depth = above.length;
  for (const { text } of passage.before) add(depth, "neighbor", text, ["neighbors"]);
  add(depth, "passage", passage.text, ["passage"]);
  for (const { text } of passage.after) add(depth, "neighbor", text, ["neighbors"]);
  for (const origin of /** @type {const} */ (["references", "other"])) if (origins.has(origin)) add(0, "beside", t.explanation.beside[origin], [origin]);
  return rows;
}
