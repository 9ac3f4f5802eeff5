/** What the views of a document ask the server. The names of operations and of their options stand here only. */

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./state.js").State} State */

/** @typedef {{kind: string, document?: string}} Reading how the server reads the query: `words`, `boolean`, `patent`, `claims` … */

/**
 * The options that say what is searched for.
 *
 * @param {State} state @param {Reading} [reading]
 * @returns {Record<string, unknown>}
 */
function asked(state, reading) {
  const query = state.query.trim();
  if (reading?.kind === "patent") return { patent: reading.document || query };
  if (reading?.kind === "claims") return { claims: query };
  return reading?.kind === "boolean" ? { query, syntax: "boolean" } : { query };
}

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
  return api.ask("landscape", { ...asked(state, reading), document: state.document, bins: BINS, sigma }, signal);
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
 * The score of a passage as a tree.
 *
 * @param {Api} api @param {State} state @param {Reading | undefined} reading @param {AbortSignal} signal
 * @returns {Promise<import("./reasons.js").Explained>}
 */
export function askExplanation(api, state, reading, signal) {
  return api.ask("explain", scored(state, reading), signal);
}

/**
 * The score of a passage by origin.
 *
 * @param {Api} api @param {State} state @param {Reading | undefined} reading @param {AbortSignal} signal
 * @returns {Promise<import("./reasons.js").Reasons>}
 */
export function askReasons(api, state, reading, signal) {
  return api.ask("reasons", scored(state, reading), signal);
}

/** @param {State} state @param {Reading | undefined} reading */
function scored(state, reading) {
  return { ...asked(state, reading), passage: state.explained, model: state.model, filter: state.filters.length ? [...state.filters] : undefined };
}
