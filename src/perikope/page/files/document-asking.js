/** What the views of a document ask the server. The names of operations and of their options stand here only. */

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./state.js").State} State */

/** @typedef {import("./asking.js").Reading} Reading */

import { asked } from "./asking.js";

/** The number of places of a landscape: about one per two pixels of a large screen. */
const BINS = 400;

/**
 * The open document, with the words of the query.
 *
 * @param {Api} api @param {State} state @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").DocumentView>}
 */
export function askDocument(api, state, signal) {
  return api.ask("document", { document: state.document, query: state.query.trim() }, signal);
}

/**
 * @param {Api} api @param {string} document @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").DocumentTree>}
 */
export function askOutline(api, document, signal) {
  return api.ask("outline", { document }, signal);
}

/**
 * @param {Api} api @param {State} state @param {Reading | undefined} reading @param {number} sigma how far a word reaches, in words @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").Landscape>}
 */
export function askLandscape(api, state, reading, sigma, signal) {
  return api.ask("landscape", { ...(reading?.options ?? { query: state.query.trim() }), document: state.document, bins: BINS, sigma }, signal);
}

/**
 * A passage with its neighbours.
 *
 * @param {Api} api @param {string} name @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").PassageView>}
 */
export function askPassage(api, name, signal) {
  return api.ask("passage", { passage: name, around: 1 }, signal);
}

/**
 * The score of a passage by origin, and as a tree.
 *
 * @param {Api} api @param {State} state @param {Reading | undefined} reading @param {AbortSignal} signal
 * @returns {Promise<import("./reasons.js").Reasons & {tree: import("./reasons.js").Explained | null}>}
 */
export function askReasons(api, state, reading, signal) {
  const what = reading ? asked(state, reading) : { query: state.query.trim() };
  const filter = state.filters.length ? [...state.filters] : undefined;
  return api.ask("reasons", { ...what, passage: state.explained, model: state.model, filter, tree: true }, signal);
}
