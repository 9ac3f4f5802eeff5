/**
 * The search box. It takes words, a Boolean query, a patent number or a pasted claim. Hits follow while the user types;
 * words of the index complete the last word; mistakes of a Boolean query are underlined at their place.
 */

import { LIMITS, suggest } from "./asking.js";
import { fill, GIVEN, h } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { splitName } from "./names.js";
import { printable } from "./shown.js";
import { t } from "./texts.js";

/** Milliseconds without a key after which hits are asked for. */
const PAUSE = 120;
/** A longer text is a claim or a paragraph: its words are not completed. */
const LONGEST = 200;

export class SearchBox extends HTMLElement {
  /** @type {import("./state.js").Store} */
  store = GIVEN;
  /** @type {import("./search.js").Search} */
  search = GIVEN;

  #box = h("textarea", {
    id: "search-box", rows: 1, spellcheck: false, autocomplete: "off", autocapitalize: "off", placeholder: t.search.placeholder, dir: "auto",
    role: "combobox", "aria-label": t.app.search, "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "suggestions",
    "aria-describedby": "search-problem", enterKeyHint: "search",
  });
  #mirror = h("div", { class: "mirror", "aria-hidden": "true", dir: "auto" });
  #clear = h("button", { class: "icon-button clear", type: "button", "aria-label": t.search.clear, title: t.search.clear, hidden: true, onclick: () => this.#empty() }, icon("close"));
  #list = h("ul", { class: "suggestions", id: "suggestions", role: "listbox", "aria-label": t.search.suggestions, hidden: true });
  #problem = h("p", { class: "problem", id: "search-problem", role: "alert", hidden: true });
  #below = h("div", { class: "below-box" });
  /** @type {string[]} */
  #words = [];
  #chosen = -1;
  #timer = 0;
  #stop = new AbortController();
  /** Whether the next change is a step for the back button. Further changes of the same typing are not. */
  #isNew = true;

  connectedCallback() {
    fill(this,
      h("div", { class: "box" }, icon("search"), h("div", { class: "field" }, this.#mirror, this.#box), this.#clear, this.#list),
      this.#problem, this.#below);
    this.#box.value = this.store.state.query;
    this.#box.addEventListener("input", () => this.#typed());
    this.#box.addEventListener("keydown", (event) => this.#key(event));
    this.#box.addEventListener("scroll", () => (this.#mirror.scrollTop = this.#box.scrollTop));
    this.#box.addEventListener("blur", () => {
      this.#isNew = true;
      this.#hideList();
    });
    this.store.addEventListener("change", () => this.#follow());
    this.search.addEventListener("change", () => this.#showAnswer());
    document.addEventListener("command", (event) => {
      if (/** @type {CustomEvent} */ (event).detail === "search") this.focusBox();
    });
    this.#fit();
    this.#showAnswer();
  }

  focusBox() {
    this.#box.focus();
    this.#box.select();
  }

  /** The state may have changed by the back button or by a link. */
  #follow() {
    const { query } = this.store.state;
    if (query === this.#box.value.trim()) return;
    if (document.activeElement === this.#box && this.#timer) return;
    this.#box.value = query;
    this.#fit();
  }

  #typed() {
    this.#fit();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#go(!this.#isNew), PAUSE);
    this.#complete();
  }

  /** Search for the text of the box; returns false if it is the same as before. @param {boolean} replace */
  #go(replace) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#isNew = false;
    const query = this.#box.value.trim();
    if (query !== this.store.state.query) this.store.change({ query, document: "", passage: "", explained: "" }, { replace });
    else return false;
    return true;
  }

  #empty() {
    this.#box.value = "";
    this.#isNew = true;
    this.#go(false);
    this.#fit();
    this.#hideList();
    this.#box.focus();
  }

  /** Make the box as high as its text, up to a limit. */
  #fit() {
    this.#clear.hidden = !this.#box.value;
    this.#box.style.setProperty("height", "auto");
    this.#box.style.setProperty("height", `${this.#box.scrollHeight}px`);
    fill(this.#mirror);
    this.#problem.hidden = true;
  }

  // Completion

  async #complete() {
    this.#stop.abort();
    const text = this.#box.value;
    if (!this.search.api.index || !text.trim() || text.length > LONGEST || this.#box.selectionEnd !== text.length) return this.#hideList();
    const { signal } = (this.#stop = new AbortController());
    try {
      const words = await suggest(this.search.api, text, signal);
      if (signal.aborted) return;
      const typed = lastWord(text).toLowerCase();
      this.#showWords(words.filter(({ word }) => word.toLowerCase() !== typed));
    } catch {
      // Without completion the box still works; the search itself reports what is wrong.
      if (!signal.aborted) this.#hideList();
    }
  }

  /** @param {{word: string, documents: number}[]} words */
  #showWords(words) {
    this.#words = words.map(({ word }) => word);
    this.#chosen = -1;
    const typed = lastWord(this.#box.value).length;
    fill(this.#list, words.map(({ word, documents }, number) => h("li", {
      role: "option", id: `suggestion-${number}`, "aria-selected": "false",
      onpointerdown: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.#take(number);
      },
    }, h("span", { class: "word" }, printable(word.slice(0, typed)), h("b", {}, printable(word.slice(typed)))), h("span", { class: "count" }, count(documents)))));
    const isShown = words.length > 0 && document.activeElement === this.#box;
    this.#list.hidden = !isShown;
    this.#box.setAttribute("aria-expanded", String(isShown));
    this.#box.removeAttribute("aria-activedescendant");
  }

  #hideList() {
    this.#stop.abort();
    this.#showWords([]);
  }

  /** @param {number} number */
  #choose(number) {
    this.#stop.abort();  // words that come later must not replace those that the user chooses from
    this.#chosen = (number + this.#words.length + 1) % (this.#words.length + 1);
    if (this.#chosen === this.#words.length) this.#chosen = -1;
    for (const [at, option] of [...this.#list.children].entries()) option.setAttribute("aria-selected", String(at === this.#chosen));
    if (this.#chosen < 0) this.#box.removeAttribute("aria-activedescendant");
    else this.#box.setAttribute("aria-activedescendant", `suggestion-${this.#chosen}`);
  }

  /** Put a word in the place of the last one. @param {number} number */
  #take(number) {
    const text = this.#box.value;
    this.#box.value = `${text.slice(0, text.length - lastWord(text).length)}${this.#words[number]} `;
    this.#hideList();
    this.#fit();
    this.#go(!this.#isNew);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const isOpen = !this.#list.hidden;
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (isOpen && this.#chosen >= 0) return this.#take(this.#chosen);
      this.#hideList();
      // The same text is asked again, since the index may have changed.
      if (!this.#go(!this.#isNew)) this.search.run();
      this.#isNew = true;
    } else if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.#choose(this.#chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (isOpen && event.key === "Tab" && this.#chosen >= 0) {
      event.preventDefault();
      this.#take(this.#chosen);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (isOpen) this.#hideList();
      else this.#box.blur();
    }
  }

  // What the server says about the text

  #showAnswer() {
    const { problem, answer, isRunning } = this.search;
    if (isRunning) return;
    this.#showProblem(problem?.place.start !== undefined ? problem : null);
    const corrected = answer && !problem ? answer.suggestions.query : "";
    const focused = this.#below.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus : undefined;
    fill(this.#below,
      corrected && h("p", { class: "did-you-mean" }, t.search.didYouMean, " ",
        h("button", { class: "inline-button", type: "button", onclick: () => this.store.change({ query: corrected }) }, printable(corrected))),
      !problem && answer && this.#reading());
    if (focused) /** @type {HTMLElement | null} */ (this.#below.querySelector(`[data-focus="${focused}"]`))?.focus();
  }

  /** How the text was read, if not as words, and the document that it names. */
  #reading() {
    const { kind, document: id, passage, missing } = this.search.reading;
    const text = missing ? t.search.missing(missing) : kind === "words" ? "" : t.search.readings[kind];
    return text && h("p", { class: "reading" }, text, id && " ", id && h("button", {
      class: "inline-button", type: "button", onclick: () => this.store.change({ document: id, passage: splitName(passage)[1] }),
    }, t.search.open(printable(id))), kind === "patent" && this.#limits());
  }

  /** Which documents a search with a patent is limited to. */
  #limits() {
    /** @param {string} name */
    const isOff = (name) => this.store.state.unlimited.split(",").includes(name);
    const names = /** @type {(keyof typeof LIMITS)[]} */ (Object.keys(LIMITS));
    return h("span", { class: "limits-of-patent", role: "group", "aria-label": t.search.limits.title }, h("span", {}, t.search.limits.title), names.map((name) => h("label", {}, h("input", {
      type: "checkbox", checked: !isOff(name), "data-focus": name,
      onchange: () => this.store.change({ unlimited: names.filter((one) => isOff(one) !== (one === name)).join(",") }),
    }), t.search.limits[name])));
  }

  /** @param {import("./api.js").ApiError | null} problem */
  #showProblem(problem) {
    this.#box.setAttribute("aria-invalid", String(problem !== null));
    this.#problem.hidden = !problem;
    this.#problem.textContent = problem ? printable(problem.message) : "";
    const { start, end } = problem?.place ?? {};
    if (start === undefined || this.#box.value.trim() !== this.store.state.query) return fill(this.#mirror);
    // Places count characters, not units of UTF-16, and the text was sent as it is in the state.
    const characters = Array.from(this.store.state.query), last = Math.max(end ?? start + 1, start + 1);
    const wrong = characters.slice(start, last).join("") || "\u00a0\u00a0";
    const margin = this.#box.value.length - this.#box.value.trimStart().length;
    fill(this.#mirror, " ".repeat(margin), characters.slice(0, start).join(""), h("span", { class: "wrong" }, wrong), characters.slice(last).join(""));
  }
}
customElements.define("pk-search-box", SearchBox);

/** The word at the end of a text. @param {string} text */
function lastWord(text) {
  return /[\p{L}\p{N}_-]*$/u.exec(text)?.[0] ?? "";
}
