/** The current search: what was asked, the hits so far, and what went wrong. Components show it and do not ask again. */

import { ApiError } from "./api.js";
import { interpret, MOST, PAGE, searchOptions, WORDS } from "./asking.js";
import { passageName } from "./names.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./asking.js").Reading} Reading */
/** @typedef {import("./reasons.js").Reasons} Reasons */

/** @typedef {import("./types.js").Hit} Hit */

/** The name of a hit: `document#passage`. @param {Hit} hit */
export const nameOf = (hit) => passageName(hit.document, hit.passage);

/** The parts of the state that change the hits. */
const ASKED = /** @type {const} */ (["index", "query", "filters", "group", "unlimited", "model"]);

/** The search of the state. The event `change` says that something of it is new. */
export class Search extends EventTarget {
  /** @type {Hit[]} */
  hits = [];
  /** Why each hit has its score, by name. @type {Map<string, Reasons>} */
  reasons = new Map();
  /** The last answer of the server; null before the first one. @type {any} */
  answer = null;
  /** @type {ApiError | null} */
  problem = null;
  /** How the server reads the text of the box. @type {Reading} */
  reading = WORDS;
  /** Whether an answer is awaited. */
  isRunning = false;
  /** Whether there are no further hits. */
  isComplete = true;
  /** Milliseconds from the request to the answer. */
  took = 0;
  /** Whether only the model has changed since the answer before, so that the same hits have moved. */
  isReranked = false;

  #stop = new AbortController();
  #isStale = false;
  /** The text that is read, and its reading. @type {{key: string, reading: Promise<Reading>}} */
  #read = { key: "", reading: Promise.resolve(WORDS) };

  /**
   * @param {import("./state.js").Store} store
   * @param {import("./api.js").Api} api
   */
  constructor(store, api) {
    super();
    this.store = store;
    this.api = api;
    store.addEventListener("change", (event) => this.#follow(/** @type {CustomEvent} */ (event).detail.before));
  }

  /** @param {State} before */
  #follow(before) {
    const state = this.store.state;
    const changed = ASKED.filter((name) => String(state[name]) !== String(before[name]));
    if (!changed.length) return;
    const onlyModel = changed.every((name) => name === "model");
    // While a slider is dragged, a request is never stopped: each answer is shown, and the last value is asked next.
    if (onlyModel && this.isRunning) this.#isStale = true;
    else this.run(onlyModel);
  }

  /**
   * Ask for the first hits.
   *
   * @param {boolean} [isReranked] whether only the model has changed
   */
  async run(isReranked = false) {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#isStale = false;
    // A user may type before the index is known. The search runs when it is.
    if (!this.api.index) return;
    const { state } = this.store, { signal } = this.#stop;
    if (!state.query.trim()) return this.#show({ hits: [], reasons: new Map(), answer: null, problem: null, reading: WORDS, isRunning: false, isComplete: true });
    this.isRunning = true;
    if (!isReranked) this.#show({});
    try {
      const reading = await this.read();
      if (signal.aborted) return;
      if (reading.problem) throw new ApiError(400, reading.problem.detail, reading.problem);
      const started = performance.now();
      const answer = await this.api.ask("search", searchOptions(state, reading), signal);
      const took = performance.now() - started;
      this.#show({
        hits: answer.hits, reasons: reasonsByName(answer), answer, problem: null, reading, isRunning: false,
        isComplete: answer.hits.length < PAGE, took, isReranked,
      });
    } catch (error) {
      if (signal.aborted) return;
      this.#show({ problem: asProblem(error), isRunning: false, isComplete: true });
    }
    if (this.#isStale) this.run(true);
  }

  /** Ask for further hits. */
  async more() {
    if (this.isRunning || this.isComplete) return;
    this.isRunning = true;
    const { state } = this.store, { signal } = this.#stop;
    const k = Math.min(PAGE, MOST - this.hits.length);
    try {
      const answer = await this.api.ask("search", searchOptions(state, this.reading, { k, offset: this.hits.length }), signal);
      const hits = [...this.hits, ...answer.hits];
      this.#show({
        hits, reasons: new Map([...this.reasons, ...reasonsByName(answer)]), isRunning: false,
        isComplete: answer.hits.length < k || hits.length >= MOST, isReranked: false,
      });
    } catch (error) {
      if (signal.aborted) return;
      this.#show({ problem: asProblem(error), isRunning: false, isComplete: true });
    }
    if (this.#isStale) this.run(true);
  }

  /**
   * How the server reads the text of the box. It is asked once per text.
   *
   * @returns {Promise<Reading>}
   */
  async read() {
    const { query } = this.store.state, key = `${this.api.index} ${query}`;
    if (this.#read.key !== key) this.#read = { key, reading: query.trim() ? interpret(this.api, query) : Promise.resolve(WORDS) };
    try {
      const reading = await this.#read.reading;
      if (this.#read.key === key) this.reading = reading;
      return reading;
    } catch (error) {
      if (this.#read.key === key) this.#read = { key: "", reading: Promise.resolve(WORDS) };
      throw error;
    }
  }

  /** @param {Partial<Search>} facts */
  #show(facts) {
    Object.assign(this, facts);
    this.dispatchEvent(new Event("change"));
  }
}

/**
 * Why each hit of an answer has its score.
 *
 * @param {{hits: Hit[], reasons?: Reasons[]}} answer
 * @returns {Map<string, Reasons>}
 */
export function reasonsByName(answer) {
  return new Map((answer.reasons ?? []).map((reasons, number) => [nameOf(answer.hits[number]), reasons]));
}

/** @param {unknown} error */
function asProblem(error) {
  if (error instanceof ApiError) return error;
  throw error;
}
