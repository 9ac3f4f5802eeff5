/** A facet of dates or numbers: a histogram over its values, and two fields for the limits. */

import { h } from "./dom.js";
import { count } from "./format.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** The largest number of bars. */
const BARS = 24;

/**
 * @typedef {object} Bar
 * @property {string} low the smallest value, as a limit of a filter
 * @property {string} high the largest value
 * @property {number} documents
 */

/**
 * The bars of a histogram. Dates are counted by year or by several years, and numbers in equal steps.
 *
 * @param {Record<string, number>} counts
 * @param {"date" | "number"} kind
 * @returns {Bar[]}
 */
export function bars(counts, kind) {
  /** @type {Map<number, number>} */
  const documents = new Map();
  for (const [value, number] of Object.entries(counts)) {
    const at = kind === "date" ? Number(value.slice(0, 4)) : Number(value);
    if (Number.isFinite(at)) documents.set(at, (documents.get(at) ?? 0) + number);
  }
  if (!documents.size) return [];
  const low = Math.min(...documents.keys()), high = Math.max(...documents.keys());
  const isWhole = [...documents.keys()].every(Number.isInteger);
  const step = isWhole ? Math.max(1, Math.ceil((high - low + 1) / BARS)) : (high - low) / BARS || 1;
  const length = Math.min(BARS, isWhole ? Math.ceil((high - low + 1) / step) : BARS);
  const result = Array.from({ length }, (_, number) => {
    const start = low + number * step;
    return { low: plain(start), high: plain(isWhole ? start + step - 1 : start + step), documents: 0 };
  });
  for (const [at, number] of documents) result[Math.min(Math.floor((at - low) / step), length - 1)].documents += number;
  return result;
}

/**
 * @param {string} name
 * @param {Bar[]} shown
 * @param {{low: string, high: string}} limits
 * @param {(part: {low?: string, high?: string}) => void} change called with the limits that are new
 * @returns {HTMLElement}
 */
export function rangeFacet(name, shown, limits, change) {
  const most = Math.max(1, ...shown.map((bar) => bar.documents));
  /** @type {number | null} */
  let from = null;
  /** @param {number} at */
  const select = (at) => {
    const first = Math.min(from ?? at, at), last = Math.max(from ?? at, at);
    from = null;
    const isSame = limits.low === shown[first].low && limits.high === shown[last].high;
    change(isSame ? { low: "", high: "" } : { low: shown[first].low, high: shown[last].high });
  };
  const histogram = h("div", { class: "histogram", role: "group", "aria-label": t.facets.distribution(printable(name)) }, shown.map((bar, at) => {
    const inside = isInside(bar, limits);
    const label = `${bar.low === bar.high ? bar.low : `${bar.low}–${bar.high}`}: ${t.facets.documents(count(bar.documents))}`;
    const button = h("button", {
      type: "button", class: inside ? "bar inside" : "bar", title: label, "aria-label": label, tabIndex: bar.documents ? 0 : -1,
      onpointerdown: () => (from = at), onpointerup: () => select(at),
      onkeydown: (/** @type {KeyboardEvent} */ event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), select(at)),
    }, h("span", {}));
    button.style.setProperty("--height", String(bar.documents ? Math.max(bar.documents / most, 0.06) : 0));
    return button;
  }));
  /** @param {"low" | "high"} side */
  const input = (side) => h("input", {
    type: "text", inputMode: "numeric", value: limits[side], placeholder: shown.length ? (side === "low" ? shown[0].low : shown[shown.length - 1].high) : "",
    pattern: "-?[0-9][0-9.\\-]*", "aria-label": `${printable(name)}: ${side === "low" ? t.facets.from : t.facets.to}`,
    onchange: (/** @type {Event} */ event) => {
      const field = /** @type {HTMLInputElement} */ (event.target);
      if (field.checkValidity()) change({ [side]: field.value });
    },
  });
  return h("div", { class: "range" }, shown.length > 1 && histogram, h("div", { class: "limits" }, input("low"), h("span", { "aria-hidden": "true" }, "–"), input("high")));
}

/** @param {Bar} bar @param {{low: string, high: string}} limits */
function isInside(bar, limits) {
  const low = limits.low ? Number.parseFloat(limits.low) : -Infinity, high = limits.high ? Number.parseFloat(limits.high) : Infinity;
  return Number(bar.high) >= low && Number(bar.low) <= high;
}

/** @param {number} value */
function plain(value) {
  return String(Number(value.toPrecision(6)));
}
