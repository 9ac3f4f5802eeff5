/** The top of the page: name, search box, choice of the index, panels, theme and language. */

import { fill, GIVEN, h } from "./dom.js";
import { icon } from "./icons.js";
import { command } from "./keys.js";
import { printable } from "./shown.js";
import { EMPTY } from "./state.js";
import { chooseLanguage, language, LANGUAGES, t } from "./texts.js";
import { nextTheme, theme } from "./theme.js";

export class HeaderBar extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** The search box. @type {HTMLElement} */
  box = GIVEN;
  /** @type {string[]} */
  #names = [];
  #index = h("span", { class: "index-choice" });
  #theme = h("button", { class: "icon-button", type: "button", onclick: () => command("theme") });

  /** The names of the indexes. @param {string[]} names */
  set indexes(names) {
    this.#names = names;
    this.#showIndexes();
  }

  connectedCallback() {
    /** @param {"models" | "worklist" | "keys"} name @param {"sliders" | "list" | "keys"} drawing */
    const button = (name, drawing) => h("button", {
      class: "icon-button", type: "button", title: t.keys.commands[name], "aria-label": t.keys.commands[name], "data-panel": name, onclick: () => command(name),
    }, icon(drawing));
    const languages = h("select", {
      class: "language", "aria-label": t.header.language, onchange: (/** @type {Event} */ event) => chooseLanguage(/** @type {HTMLSelectElement} */ (event.target).value),
    }, Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, selected: code === language }, name)));
    fill(this,
      h("a", { class: "brand", href: "/", onclick: (/** @type {MouseEvent} */ event) => this.#home(event) }, t.app.title),
      this.box,
      h("div", { class: "tools" }, this.#index, button("models", "sliders"), button("worklist", "list"), button("keys", "keys"), this.#theme, languages));
    this.store.addEventListener("change", () => this.#follow());
    document.addEventListener("command", (event) => {
      if (/** @type {CustomEvent} */ (event).detail !== "theme") return;
      nextTheme();
      this.#showTheme();
    });
    this.#showTheme();
    this.#follow();
  }

  /** @param {MouseEvent} event */
  #home(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.store.change({ ...EMPTY, index: this.store.state.index });
  }

  #follow() {
    const { panel } = this.store.state;
    for (const button of this.querySelectorAll("[data-panel]")) button.setAttribute("aria-expanded", String(/** @type {HTMLElement} */ (button).dataset.panel === panel));
    this.#showIndexes();
  }

  #showIndexes() {
    const chosen = this.store.state.index || this.#names[0];
    fill(this.#index, this.#names.length > 1 && h("select", {
      "aria-label": t.header.index,
      onchange: (/** @type {Event} */ event) => this.store.change({ ...EMPTY, index: /** @type {HTMLSelectElement} */ (event.target).value, query: this.store.state.query }),
    }, this.#names.map((name) => h("option", { value: name, selected: name === chosen }, printable(name)))));
  }

  #showTheme() {
    const chosen = theme();
    const label = t.header.themes[chosen || "system"];
    this.#theme.title = label;
    this.#theme.setAttribute("aria-label", label);
    fill(this.#theme, icon(chosen === "light" ? "sun" : chosen === "dark" ? "moon" : "half"));
  }
}
customElements.define("pk-header", HeaderBar);
