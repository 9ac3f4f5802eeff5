/**
 * The state of the page. All of it that a link must reopen is in the address, so that links, back and forward work.
 *
 * A component reads `store.state`, listens to `change`, and calls `store.change({...})`. It never changes the address
 * itself.
 */

/**
 * @typedef {object} State
 * @property {string} index the name of the index; empty for the only one
 * @property {string} query what is in the search box
 * @property {string} model the model with its parameters, such as `bm25(k1=1.5)`; empty for the default of the index
 * @property {string} compare a second model to compare with; empty for none
 * @property {readonly string[]} filters conditions, such as `year>=2010`
 * @property {string} group a metadata field by which hits are grouped, or `document`; empty for none
 * @property {string} unlimited limits of a search with a patent that are off, such as `class,date`; empty for none
 * @property {string} document the id of the open document; empty for none
 * @property {string} passage the id of the passage in the open document
 * @property {string} explained the name of the passage whose score is explained; empty for none
 * @property {string} panel an open panel: `models`, `worklist` or `keys`; empty for none
 */

/** @type {State} */
export const EMPTY = Object.freeze({
  index: "", query: "", model: "", compare: "", filters: Object.freeze([]), group: "", unlimited: "",
  document: "", passage: "", explained: "", panel: "",
});

/** @type {Record<Exclude<keyof State, "filters">, string>} */
const NAMES = {
  index: "index", query: "q", model: "model", compare: "compare", group: "group", unlimited: "unlimited",
  document: "document", passage: "passage", explained: "explain", panel: "panel",
};

/**
 * The state in an address.
 *
 * @param {URL} url
 * @returns {State}
 */
export function stateOf(url) {
  const given = url.searchParams;
  const texts = Object.fromEntries(Object.entries(NAMES).map(([name, key]) => [name, given.get(key) ?? ""]));
  return Object.freeze({ ...EMPTY, ...texts, filters: Object.freeze(given.getAll("filter")) });
}

/**
 * The address of a state, without the host.
 *
 * @param {State} state
 */
export function addressOf(state) {
  const given = new URLSearchParams();
  for (const [name, key] of Object.entries(NAMES)) {
    const value = state[/** @type {keyof typeof NAMES} */ (name)];
    if (value) given.set(key, value);
  }
  for (const filter of state.filters) given.append("filter", filter);
  const text = given.toString();
  return text ? `/?${text}` : "/";
}

/** The current state. The event `change` has `before`, the state until then, in its `detail`. */
export class Store extends EventTarget {
  /** @type {State} */
  state = stateOf(new URL(location.href));

  constructor() {
    super();
    addEventListener("popstate", () => this.#set(stateOf(new URL(location.href))));
  }

  /**
   * Change a part of the state.
   *
   * @param {Partial<State>} part
   * @param {{replace?: boolean}} [how] with `replace`, the change is no step of its own for the back button, as while
   *     typing or dragging a slider
   */
  change(part, { replace = false } = {}) {
    const state = Object.freeze({ ...this.state, ...part });
    const address = addressOf(state);
    if (address === addressOf(this.state)) return;
    if (replace) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#set(state);
  }

  /** @param {State} state */
  #set(state) {
    const before = this.state;
    this.state = state;
    this.dispatchEvent(new CustomEvent("change", { detail: { before } }));
  }
}
