/** The choice of a model, with a slider for each of its parameters. Hits are ranked again while a slider is dragged. */

import { fill, GIVEN, h } from "./dom.js";
import { score } from "./format.js";
import { control, readModel, scale, writeModel, written } from "./model-notation.js";
import { t } from "./texts.js";

/** @typedef {import("./model-notation.js").Model} Model */
/** @typedef {import("./model-notation.js").Parameter} Parameter */
/** @typedef {{model: string, stores: Record<string, string>}} Summary */

export class ModelPanel extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {Model[]} */
  models = [];
  /** What the index contains. @type {Summary} */
  summary = { model: "", stores: {} };
  /** Which of two compared models is shown. @type {"model" | "compare"} */
  #target = "model";
  #shown = "";
  /** @type {Map<string, (text: string) => void>} */
  #show = new Map();
  #stop = new AbortController();

  connectedCallback() {
    const { signal } = (this.#stop = new AbortController());
    this.store.addEventListener("change", () => this.#follow(), { signal });
    this.#render();
  }

  disconnectedCallback() {
    this.#stop.abort();
  }

  /** The model that is shown, as a text. */
  get #text() {
    return this.store.state[this.#target] || this.summary.model;
  }

  /** Controls stay while their values change, so that a slider is not replaced under the finger. */
  #follow() {
    const { state } = this.store;
    if (this.#target === "compare" && !state.compare) this.#target = "model";
    const { name, values } = readModel(this.#text);
    if (this.#shown !== this.#key(name)) return this.#render();
    for (const parameter of this.#model(name)?.parameters ?? []) this.#show.get(parameter.name)?.(values.get(parameter.name) ?? written(parameter.default));
  }

  /** @param {string} name */
  #key(name) {
    return `${this.#target} ${name} ${this.store.state.compare ? readModel(this.store.state.compare).name : ""}`;
  }

  /** @param {string} name */
  #model(name) {
    return this.models.find((model) => model.name === name);
  }

  #render() {
    const { name, values } = readModel(this.#text);
    const model = this.#model(name);
    this.#shown = this.#key(name);
    this.#show.clear();
    fill(this,
      this.store.state.compare && this.#tabs(),
      h("label", { class: "field-label" }, t.models.model, this.#picker(name, (chosen) => this.#set(chosen))),
      model && h("p", { class: "help" }, model.help),
      model?.parameters.map((parameter) => this.#control(model, parameter, values.get(parameter.name) ?? written(parameter.default))),
      model && model.parameters.some(control) && h("button", { class: "quiet-button", type: "button", onclick: () => this.#set(name) }, t.models.reset),
      h("hr"),
      this.store.state.compare
        ? h("button", { class: "quiet-button", type: "button", onclick: () => this.store.change({ compare: "" }) }, t.models.endCompare)
        : h("label", { class: "field-label" }, t.models.compareWith, this.#picker("", (chosen) => this.store.change({ compare: chosen }), true)));
  }

  #tabs() {
    return h("div", { class: "tabs", role: "group", "aria-label": t.models.which }, /** @type {const} */ (["model", "compare"]).map((target) => h("button", {
      type: "button", "aria-pressed": String(this.#target === target),
      onclick: () => { this.#target = target; this.#render(); },
    }, target === "model" ? t.models.left : t.models.right)));
  }

  /** @param {string} chosen @param {(name: string) => void} change @param {boolean} [isOptional] */
  #picker(chosen, change, isOptional = false) {
    const isThere = this.models.some((model) => model.name === chosen);
    return h("select", { onchange: (/** @type {Event} */ event) => change(/** @type {HTMLSelectElement} */ (event.target).value) },
      (isOptional || !isThere) && h("option", { value: chosen, selected: true }, chosen || t.models.none),
      this.models.map((model) => h("option", {
        value: model.name, selected: model.name === chosen, disabled: model.needs_store && !Object.keys(this.summary.stores).length,
      }, model.name === this.summary.model ? t.models.isDefault(model.name) : model.name)));
  }

  /** @param {string} text @param {boolean} [replace] */
  #set(text, replace = false) {
    const isDefault = this.#target === "model" && text === this.summary.model;
    this.store.change({ [this.#target]: isDefault ? "" : text }, { replace });
  }

  /** @param {Model} model @param {Parameter} parameter @param {string} value */
  #change(model, parameter, value) {
    const { values } = readModel(this.#text);
    this.#set(writeModel(model, values.set(parameter.name, value)), true);
  }

  /** @param {Model} model @param {Parameter} parameter @param {string} value */
  #control(model, parameter, value) {
    const kind = control(parameter);
    if (!kind) return null;
    const id = `parameter-${parameter.name}`;
    const [input, output] = { slider: () => this.#slider(model, parameter, value, id), checkbox: () => this.#checkbox(model, parameter, value, id), choice: () => this.#choice(model, parameter, value, id) }[kind]();
    return h("div", { class: `parameter ${kind}` },
      h("label", { for: id }, parameter.name), output, input, h("p", { class: "help", id: `${id}-help` }, parameter.help));
  }

  /** @param {Model} model @param {Parameter} parameter @param {string} value @param {string} id @returns {[HTMLElement, HTMLElement]} */
  #slider(model, parameter, value, id) {
    const { low, high, step, logarithmic } = scale(parameter);
    const [toSlider, toValue] = logarithmic ? [Math.log10, (/** @type {number} */ at) => Number((10 ** at).toPrecision(2))] : [Number, Number];
    const output = h("output", { for: id });
    const slider = h("input", { type: "range", id, min: String(toSlider(low)), max: String(toSlider(high)), step: String(step), "aria-describedby": `${id}-help` });
    slider.addEventListener("input", () => this.#change(model, parameter, String(toValue(Number(slider.value)))));
    const show = (/** @type {string} */ text) => {
      const number = text === "" || text === "none" ? null : Number(text);
      output.textContent = number === null ? t.models.automatic : score(number);
      slider.value = String(toSlider(number ?? Math.sqrt(Math.max(low, 1e-9) * high)));
      slider.setAttribute("aria-valuetext", output.textContent);
      slider.style.setProperty("--filled", `${((Number(slider.value) - toSlider(low)) / (toSlider(high) - toSlider(low))) * 100}%`);
    };
    show(value);
    this.#show.set(parameter.name, show);
    return [slider, output];
  }

  /** @param {Model} model @param {Parameter} parameter @param {string} value @param {string} id @returns {[HTMLElement, HTMLElement]} */
  #checkbox(model, parameter, value, id) {
    const input = h("input", { type: "checkbox", id, checked: value === "true", "aria-describedby": `${id}-help` });
    input.addEventListener("change", () => this.#change(model, parameter, String(input.checked)));
    this.#show.set(parameter.name, (text) => (input.checked = text === "true"));
    return [input, h("span")];
  }

  /** @param {Model} model @param {Parameter} parameter @param {string} value @param {string} id @returns {[HTMLElement, HTMLElement]} */
  #choice(model, parameter, value, id) {
    const plain = (/** @type {string} */ text) => text.replace(/^"(.*)"$/, "$1");
    const input = h("select", { id, "aria-describedby": `${id}-help` }, parameter.choices.map((choice) => h("option", { value: choice, selected: choice === plain(value) }, choice)));
    input.addEventListener("change", () => this.#change(model, parameter, input.value));
    this.#show.set(parameter.name, (text) => (input.value = plain(text)));
    return [input, h("span")];
  }
}
customElements.define("pk-models", ModelPanel);
