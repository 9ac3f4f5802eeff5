/** Facets: values of metadata with their numbers of documents, to restrict the search by. */

import { facetOptions } from "./asking.js";
import { chosenValues, limits, without, withLimits, withValues } from "./conditions.js";
import { fill, GIVEN, h } from "./dom.js";
import { count } from "./format.js";
import { fieldLabel } from "./facet-fields.js";
import { bars, rangeFacet } from "./range-facet.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./facet-fields.js").Field} Field */

/** The number of values that are shown at first, and on request. */
const FEW = 6, MANY = 60;
/** The number of facets that are open at first. */
const OPEN = 4;

export class FacetPanel extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;
  /** @type {Field[]} */
  #fields = [];
  /** @type {Map<string, Record<string, number>>} */
  #counts = new Map();
  /** Fields whose values are all shown. @type {Set<string>} */
  #whole = new Set();
  /** Facets that the user has opened or closed. @type {Map<string, boolean>} */
  #toggled = new Map();
  #asked = "";
  #stop = new AbortController();

  /** The facets of the index. @param {Field[]} fields */
  set fields(fields) {
    this.#fields = fields;
    this.#asked = "";
    this.#ask();
  }

  connectedCallback() {
    this.search.addEventListener("change", () => this.#ask());
    document.addEventListener("command", (event) => {
      if (/** @type {CustomEvent} */ (event).detail === "filters") this.querySelector("summary")?.focus();
    });
  }

  /** Count the values again if the query or a condition has changed. The hits come first. */
  async #ask() {
    const { search } = this, { state } = this.store;
    this.hidden = !this.#fields.length || !search.answer;
    if (this.hidden || search.isRunning || search.problem) return;
    const asked = JSON.stringify([state.index, state.query, state.filters, state.unlimited]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#stop.abort();
    const { signal } = (this.#stop = new AbortController());
    // The values of a restricted field are counted without its own condition, so that others of them can be added.
    const restricted = this.#fields.filter(({ name }) => without(state.filters, name).length < state.filters.length);
    const free = this.#fields.filter((field) => !restricted.includes(field));
    /** @param {Field[]} fields @param {readonly string[]} filters */
    const counted = (fields, filters) => search.api.ask("facets", facetOptions(state, search.reading, fields.map(({ name }) => name), filters), signal);
    try {
      const answers = await Promise.all([
        free.length ? counted(free, state.filters) : {},
        ...restricted.map((field) => counted([field], without(state.filters, field.name))),
      ]);
      this.#counts = new Map(answers.flatMap((answer) => Object.entries(answer)).map(([name, counts]) => [name, counts.values]));
      this.#render();
    } catch {
      // The search itself reports what is wrong.
      if (!signal.aborted) this.#asked = "";
    }
  }

  #render() {
    const focused = document.activeElement instanceof HTMLElement && this.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
    let number = 0;
    fill(this, h("h2", { class: "unseen" }, t.facets.title), this.#fields.map((field) => {
      const counts = this.#counts.get(field.name) ?? {};
      const isUsed = without(this.store.state.filters, field.name).length < this.store.state.filters.length;
      if (!isUsed && Object.keys(counts).length < 2) return null;
      const isOpen = this.#toggled.get(field.name) ?? (isUsed || (number < OPEN && (field.kind !== "date" || number === 0)));
      number += Number(isOpen);
      return h("details", {
        open: isOpen, class: "facet", ontoggle: (/** @type {Event} */ event) => this.#toggled.set(field.name, /** @type {HTMLDetailsElement} */ (event.target).open),
      }, h("summary", { "data-focus": field.name }, printable(fieldLabel(field.name))), field.kind === "date" || field.kind === "number" ? this.#range(field, field.kind, counts) : this.#values(field, counts));
    }));
    if (focused) /** @type {HTMLElement | null} */ (this.querySelector(`[data-focus="${CSS.escape(focused)}"]`))?.focus();
  }

  /** @param {Field} field @param {"date" | "number"} kind @param {Record<string, number>} counts */
  #range(field, kind, counts) {
    return rangeFacet(fieldLabel(field.name), bars(counts, kind), limits(this.store.state.filters, field.name),
      (part) => {
        const { filters } = this.store.state, { low, high } = { ...limits(filters, field.name), ...part };
        this.store.change({ filters: withLimits(filters, field.name, low, high) });
      });
  }

  /** @param {Field} field @param {Record<string, number>} counts */
  #values(field, counts) {
    const chosen = chosenValues(this.store.state.filters, field.name);
    const values = Object.keys(counts);
    const listed = [...chosen.filter((value) => !(value in counts)), ...values];
    const shown = this.#whole.has(field.name) ? listed.slice(0, MANY) : listed.filter((value, at) => at < FEW || chosen.includes(value));
    return h("ul", { class: "values" },
      shown.map((value) => h("li", {}, h("label", { class: "value" },
        h("input", {
          type: "checkbox", checked: chosen.includes(value), "data-focus": `${field.name} ${value}`,
          onchange: () => this.store.change({ filters: withValues(this.store.state.filters, field.name, toggled(chosenValues(this.store.state.filters, field.name), value)) }),
        }),
        h("span", { class: "name", dir: "auto" }, printable(value)), h("span", { class: "count" }, count(counts[value] ?? 0))))),
      listed.length > shown.length && !this.#whole.has(field.name) && h("li", {}, h("button", {
        class: "inline-button", type: "button", onclick: () => { this.#whole.add(field.name); this.#render(); },
      }, t.facets.more(count(listed.length - shown.length)))));
  }
}
customElements.define("pk-facets", FacetPanel);

/** @param {string[]} values @param {string} value */
function toggled(values, value) {
  return values.includes(value) ? values.filter((other) => other !== value) : [...values, value];
}
