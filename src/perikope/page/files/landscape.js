/** The numbers behind the strip: which occurrences of the query reach a place of the document. Pure functions. */

/** @typedef {import("./types.js").Landscape} Landscape */
/** @typedef {import("./types.js").LandscapeOccurrence} Occurrence */
/** @typedef {{occurrence: Occurrence, distance: number, share: number}} Reaching `share` is what the occurrence adds to the influence */

/** Beyond this number of σ, an occurrence has no influence. It is the same on the server. */
const REACH = 4;

/**
 * The occurrences that make the influence at a token: for each word of the query the nearest one. Their shares add up to
 * the influence.
 *
 * @param {Landscape} landscape
 * @param {number} token
 * @returns {Reaching[]}
 */
export function reachingAt(landscape, token) {
  const whole = landscape.words.reduce((sum, { idf }) => sum + idf, 0);
  /** @type {Map<number, Occurrence>} */
  const nearest = new Map();
  for (const occurrence of landscape.occurrences) {
    for (const word of occurrence.words) {
      const best = nearest.get(word);
      if (!best || Math.abs(occurrence.position - token) < Math.abs(best.position - token)) nearest.set(word, occurrence);
    }
  }
  /** @type {Map<Occurrence, Reaching>} */
  const reaching = new Map();
  for (const [word, occurrence] of nearest) {
    const distance = occurrence.position - token;
    if (!whole || Math.abs(distance) > REACH * landscape.sigma) continue;
    const share = (landscape.words[word].idf / whole) * Math.exp(-0.5 * (distance / landscape.sigma) ** 2);
    const known = reaching.get(occurrence);
    reaching.set(occurrence, { occurrence, distance, share: share + (known?.share ?? 0) });
  }
  return [...reaching.values()].sort((one, other) => other.share - one.share);
}

/** Whether the occurrences near a token are listed: the server lists the first ones of a long document. @param {Landscape} landscape @param {number} token */
export function isListed(landscape, token) {
  const { occurrences, all_occurrences: all } = landscape;
  return occurrences.length === all || token < (occurrences.at(-1)?.position ?? 0);
}

/**
 * The token at a character, between the borders of bins.
 *
 * @param {Landscape} landscape
 * @param {number} character
 */
export function tokenAt(landscape, character) {
  const { bins } = landscape;
  const bin = bins.find(({ end_character: end }) => character < end) ?? bins[bins.length - 1];
  if (!bin) return 0;
  const share = (character - bin.first_character) / Math.max(bin.end_character - bin.first_character, 1);
  return bin.start + Math.min(Math.max(share, 0), 1) * (bin.end - bin.start);
}

/**
 * The outline of the influence as the path of a drawing, from the top down. The influence goes to the left.
 *
 * @param {Landscape} landscape
 * @param {number} width
 * @param {number} height
 */
export function pathOf(landscape, width, height) {
  const { bins, tokens } = landscape;
  /** @param {number} token */
  const y = (token) => ((token / Math.max(tokens, 1)) * height).toFixed(1);
  const points = bins.map(({ start, end, influence }) => `L${(width * (1 - influence)).toFixed(1)} ${y((start + end) / 2)}`);
  return `M${width} 0${points.join("")}L${width} ${height}Z`;
}
