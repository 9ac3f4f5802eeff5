/** The line above the hits: conditions, grouping, the model, the meaning of the colours, and export. */

import { fill, GIVEN, h } from "./dom.js";
import { fieldLabel } from "./facet-fields.js";
import { icon } from "./icons.js";
import { command } from "./keys.js";
import { readCondition } from "./conditions.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** @typedef {import("./reasons.js").Origin} Origin */

const FORMATS = /** @type {const} */ (["csv", "xlsx", "json", "ris"]);

export class ResultTools extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;
  /** Metadata fields that hits can be grouped by. @type {string[]} */
  #groups = [];
  #chips = h("ul", { class: "chips", "aria-label": t.facets.active });
  #tools = h("div", { class: "result-tools" });
  #legend = h("ul", { class: "legend", "aria-label": t.results.legend });
  #shown = "";

  /** @param {string[]} fields */
  set groups(fields) {
    this.#groups = fields;
    this.#render();
  }

  connectedCallback() {
    fill(this, this.#chips, this.#tools, this.#legend);
    this.search.addEventListener("change", () => this.#render());
    this.store.addEventListener("change", () => this.#render());
    document.addEventListener("command", (event) => {
      if (/** @type {CustomEvent} */ (event).detail === "group") this.#nextGroup();
    });
    this.#render();
  }

  #render() {
    const { state } = this.store;
    const model = this.search.problem ? "" : this.search.answer?.model ?? "";
    const origins = this.#origins();
    const shown = JSON.stringify([state.filters, state.group, state.compare, model, this.#groups, origins]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#tools.hidden = this.#legend.hidden = !model;
    this.#chips.hidden = !state.filters.length;
    fill(this.#chips, state.filters.map((filter, number) => h("li", {}, h("button", {
      class: "chip", type: "button", "aria-label": t.facets.remove(printable(shortCondition(filter))),
      onclick: () => this.store.change({ filters: state.filters.filter((_, at) => at !== number) }),
    }, h("span", { dir: "auto" }, printable(shortCondition(filter))), icon("close")))),
    state.filters.length > 1 && h("li", {}, h("button", { class: "inline-button", type: "button", onclick: () => this.store.change({ filters: [] }) }, t.facets.removeAll)));
    fill(this.#tools, this.#grouping(),
      h("button", { class: "quiet-button", type: "button", onclick: () => command("models") }, icon("sliders"), h("span", { class: "unseen" }, t.results.model), h("span", { class: "model-name" }, model)),
      state.compare && h("button", { class: "quiet-button", type: "button", onclick: () => this.store.change({ compare: "" }) }, icon("close"), t.models.endCompare),
      this.#exports());
    fill(this.#legend, origins.map((origin) => {
      const dot = h("span", { class: "dot" });
      dot.style.setProperty("--color", `var(--${origin})`);
      return h("li", {}, dot, t.origins[origin]);
    }));
  }

  /** The origins that the scores of the shown hits come from, in the order of the texts. */
  #origins() {
    const found = new Set([...this.search.reasons.values()].flatMap((reasons) => reasons.parts.map((part) => part.origin)));
    return /** @type {Origin[]} */ (Object.keys(t.origins)).filter((origin) => found.has(origin));
  }

  #grouping() {
    const { group } = this.store.state;
    const fields = [...new Set([...this.#groups, ...(group && group !== "document" ? [group] : [])])];
    return h("label", { class: "grouping" }, h("span", {}, t.results.group), h("select", {
      onchange: (/** @type {Event} */ event) => this.store.change({ group: /** @type {HTMLSelectElement} */ (event.target).value }),
    }, ["", "document", ...fields].map((name) => h("option", { value: name, selected: name === group },
      name === "" ? t.results.noGroup : name === "document" ? t.results.byDocument : name === "family" ? t.results.byFamily : printable(fieldLabel(name))))));
  }

  #nextGroup() {
    const names = ["", "document", ...this.#groups];
    this.store.change({ group: names[(names.indexOf(this.store.state.group) + 1) % names.length] });
  }

  #exports() {
    return h("details", { class: "menu" },
      h("summary", { class: "quiet-button" }, icon("export"), t.results.export),
      h("div", { class: "menu-items" }, FORMATS.map((format) => h("button", { type: "button", onclick: (/** @type {Event} */ event) => this.#download(event, format) }, format.toUpperCase()))));
  }

  /** @param {Event} event @param {typeof FORMATS[number]} format */
  async #download(event, format) {
    /** @type {Element} */ (event.target).closest("details")?.removeAttribute("open");
    const { download, rowsOfHits } = await import("./export/index.js");
    download(rowsOfHits(this.search.hits), format, this.store.state.query);
  }
}
customElements.define("pk-result-tools", ResultTools);

/** A condition without the quotes that it is written with. @param {string} text */
function shortCondition(text) {
  const condition = readCondition(text);
  if (!condition) return text;
  const { field, operator, values } = condition;
  return `${fieldLabel(field)} ${{ "=": ":", ">=": "≥", "<=": "≤" }[operator]} ${values.join(", ")}`.replace(" :", ":");
}
