/**
 * What the page asks the server, as options of operations. The names of options stand here only, so that a change of
 * the API changes this file and no other.
 */

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./api.js").Api} Api */

/** How the server reads a text of the search box. @typedef {import("./types.js").Interpretation} Reading */

/** @type {Reading} */
export const WORDS = Object.freeze({ kind: "words", options: {}, document: "", passage: "", missing: "", problem: null });

/** The largest number of values of a facet; the bars of a range of dates need most of them. */
const FACET_VALUES = 1000;
/** The number of hits that are asked for at once. */
export const PAGE = 20;
/** The largest number of hits that are asked for in all, as the server limits it by default. */
export const MOST = 1000;

/** The limits of a search with a patent, by their names in the address. */
export const LIMITS = { class: "code_filter", date: "date_limit", family: "family_filter" };

/**
 * What is searched for.
 *
 * @param {State} state
 * @param {Reading} reading
 * @returns {Record<string, unknown>}
 */
export function asked(state, reading) {
  const names = reading.kind === "patent" || reading.kind === "claims" ? state.unlimited.split(",") : [];
  const off = Object.entries(LIMITS).filter(([name]) => names.includes(name)).map(([, option]) => [option, false]);
  return { ...reading.options, ...Object.fromEntries(off) };
}

/**
 * The options of a search.
 *
 * @param {State} state
 * @param {Reading} reading
 * @param {{model?: string, k?: number, offset?: number}} [how]
 * @returns {Record<string, unknown>}
 */
export function searchOptions(state, reading, { model = state.model, k = PAGE, offset = 0 } = {}) {
  const one_per = state.group === "document" ? ["document"] : state.group ? [`metadata.${state.group}`, "document"] : undefined;
  return { ...asked(state, reading), model, filter: list(state.filters), one_per, k, offset: offset || undefined, reasons: true };
}

/**
 * The options that find further passages of the group of a hit.
 *
 * @param {State} state
 * @param {Reading} reading
 * @param {string} document the document of the hit
 * @param {string} condition the condition that keeps the group, if it is not the document alone
 * @param {number} k
 * @returns {Record<string, unknown>}
 */
export function groupOptions(state, reading, document, condition, k) {
  const filter = list(condition ? [...state.filters, condition] : state.filters);
  return { ...asked(state, reading), model: state.model, filter, ids: condition ? undefined : [document], k, reasons: true };
}

/**
 * The options that count the values of fields. The model has no influence on them.
 *
 * @param {State} state
 * @param {Reading} reading
 * @param {readonly string[]} fields
 * @param {readonly string[]} filters
 * @returns {Record<string, unknown>}
 */
export function facetOptions(state, reading, fields, filters) {
  return { ...asked(state, reading), filter: list(filters), fields: list(fields), level: "subclass", values: FACET_VALUES };
}

/**
 * How the server reads a text: as words, a Boolean query, the number of a patent, …
 *
 * @param {Api} api
 * @param {string} text
 * @returns {Promise<Reading>}
 */
export function interpret(api, text) {
  return api.ask("interpret", { text });
}

/**
 * Words that complete the last word of a text.
 *
 * @param {Api} api
 * @param {string} prefix
 * @param {AbortSignal} signal
 * @returns {Promise<{word: string, documents: number}[]>}
 */
export function suggest(api, prefix, signal) {
  return api.ask("suggest", { prefix, k: 7 }, signal);
}

/**
 * The most frequent values of a field, with their number of documents.
 *
 * @param {Api} api
 * @param {string} field
 * @returns {Promise<Record<string, number>>}
 */
export function frequentValues(api, field) {
  return api.ask("values", { field, k: 40 });
}

/**
 * The score of one passage by origin, for a model.
 *
 * @param {Api} api
 * @param {State} state
 * @param {Reading} reading
 * @param {string} model
 * @param {string} passage the name of the passage
 * @param {AbortSignal} signal
 * @returns {Promise<import("./reasons.js").Reasons>}
 */
export function reasonsOf(api, state, reading, model, passage, signal) {
  return api.ask("reasons", { ...asked(state, reading), model, filter: list(state.filters), passage }, signal);
}

/** @template T @param {readonly T[]} values */
function list(values) {
  return values.length ? [...values] : undefined;
}
