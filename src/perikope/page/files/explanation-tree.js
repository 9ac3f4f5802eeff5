/** The score of a passage as a tree that is opened step by step: each value, and how it is computed from those below. */

import { h } from "./dom.js";
import { score } from "./format.js";
import { flattened } from "./reasons.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./reasons.js").Explained} Explained */

/** Nodes above this depth are open at first. */
const OPEN = 2;

/**
 * @param {Explained} node
 * @returns {HTMLElement}
 */
export function treeOf(node) {
  const root = flattened(node);
  // The label of a sum repeats what stands below it.
  const label = root.label === root.children.map((child) => child.label).join(" + ") ? t.explanation.total : root.label;
  return h("ul", { class: "tree" }, nodeOf({ ...root, label }, 0, 1));
}

/** @param {Explained} node @param {number} depth @param {number} share of the sum that the node is a summand of */
function nodeOf(node, depth, share) {
  const children = node.children ?? [];
  const line = [h("span", { class: "amount" }, score(node.value)), h("span", { class: "label" }, printable(node.label)), operationOf(node)];
  const item = h("li", { class: children.length ? "" : "leaf" });
  item.style.setProperty("--share", String(share));
  const [origin] = Object.keys(node.origins ?? {});
  if (origin) item.style.setProperty("--color", `var(--${origin})`);
  if (!children.length) {
    item.append(h("div", { class: "line" }, line));
    return item;
  }
  const whole = children.reduce((sum, child) => sum + Math.abs(child.value), 0);
  const list = h("ul");
  const details = h("details", { open: depth < OPEN, ontoggle: () => fillOnce() }, h("summary", { class: "line" }, line), list);
  // Children are made when they are first seen: a claim as a query gives thousands of nodes.
  const fillOnce = () => {
    if (!details.open || list.childElementCount) return;
    list.append(...children.map((child) => nodeOf(child, depth + 1, node.operation === "sum" && whole ? Math.abs(child.value) / whole : 0)));
  };
  fillOnce();
  item.append(details);
  return item;
}

/** @param {Explained} node */
function operationOf(node) {
  const { operation, slope, intercept } = node;
  if (operation === "fact") return null;
  const words = operation === "affine" ? `${score(slope)} × …${intercept ? ` ${intercept < 0 ? "−" : "+"} ${score(Math.abs(intercept))}` : ""}`
    : !node.children?.length ? t.explanation.noWord : /** @type {Record<string, string>} */ (t.explanation.operations)[operation] ?? operation;
  return h("span", { class: "operation" }, words);
}
