/** Why a passage has its score: shares of origins, a sentence, and the tree without steps in between. Pure functions. */

/** @typedef {keyof typeof import("./texts/en.js").default["origins"]} Origin */
/** @typedef {{origin: Origin, value: number, words: Record<string, number>}} Part */
/** @typedef {{score: number, parts: Part[]}} Reasons */
/** @typedef {{origin: Origin, value: number, share: number, words: {word: string, value: number}[]}} Share */
/** @typedef {{text: string, word?: boolean, origin?: Origin}} Piece a piece of a sentence: a word of the query, an origin, or neither */
/** @typedef {typeof import("./texts/en.js").default["reasons"]} Texts */
/**
 * @typedef {object} Explained a node of an explanation
 * @property {string} label
 * @property {number} value
 * @property {string} operation
 * @property {number} slope
 * @property {number} intercept
 * @property {Record<string, number>} [origins]
 * @property {Explained[]} children
 */

/** A part is named in the sentence from this share on. */
const NAMED_SHARE = 0.08;
/** A word is named from this share of its part on. */
const NAMED_WORD = 0.15;
const ALMOST_ALL = 0.9, MOST = 0.5;
const MOST_WORDS = 3;

/**
 * The share of each origin in a score, largest first. Sizes are compared, since a part may be negative.
 *
 * @param {readonly Part[]} parts
 * @returns {Share[]}
 */
export function sharesOf(parts) {
  const whole = parts.reduce((sum, { value }) => sum + Math.abs(value), 0);
  return parts
    .filter(({ value }) => value)
    .map(({ origin, value, words }) => ({
      origin, value, share: Math.abs(value) / whole,
      words: Object.entries(words).filter(([word]) => word).map(([word, worth]) => ({ word, value: worth })).sort((one, other) => Math.abs(other.value) - Math.abs(one.value)),
    }))
    .sort((one, other) => other.share - one.share);
}

/**
 * The words that a part is named by: the few that have most of its value.
 *
 * @param {Share} share
 */
export function namedWords({ value, words }) {
  return words.filter((one) => one.value * value > 0 && Math.abs(one.value) >= NAMED_WORD * Math.abs(value)).slice(0, MOST_WORDS).map(({ word }) => word);
}

/**
 * The reason in one or two sentences, such as "Mostly because *descaling* and *KX-200* stand in the titles above it."
 *
 * @param {readonly Part[]} parts
 * @param {Texts} texts
 * @param {string} language
 * @returns {Piece[]}
 */
export function sentenceOf(parts, texts, language) {
  const shares = sharesOf(parts);
  const raising = shares.filter(({ value, share }, number) => value > 0 && (share >= NAMED_SHARE || !number)).slice(0, 3);
  const lowering = shares.find(({ value, share }) => value < 0 && share >= NAMED_SHARE);
  if (!raising.length && !lowering) return [{ text: texts.nothing }];
  /** @type {Piece[]} */
  const pieces = [];
  const largest = raising[0]?.share ?? 0;
  // The less the first part leaves, the fewer further parts are worth a clause.
  raising.length = Math.min(raising.length, largest >= ALMOST_ALL ? 1 : largest >= MOST ? 2 : 3);
  const [first, further] = largest >= ALMOST_ALL ? [texts.almostOnly, ""] : largest >= MOST ? [texts.mostly, texts.also] : [texts.partly, texts.partlyAgain];
  raising.forEach((share, number) => pieces.push({ text: number ? further : first }, ...clause(share, texts, language)));
  if (raising.length) pieces.push({ text: "." });
  if (lowering) pieces.push({ text: pieces.length ? " " : "" }, { text: texts.lowered[lowering.origin], origin: lowering.origin });
  return pieces;
}

/** @param {Share} share @param {Texts} texts @param {string} language @returns {Piece[]} */
function clause(share, texts, language) {
  const { origin } = share;
  const words = namedWords(share);
  if (!words.length) return [{ text: texts.becauseOf }, { text: texts.ofOrigin[origin], origin }];
  const list = new Intl.ListFormat(language, { type: "conjunction" }).formatToParts(words);
  const [before, verb, after] = texts.stands(words.length > 1);
  return [
    { text: texts.because },
    ...list.map(({ type, value }) => (type === "element" ? { text: value, word: true } : { text: value })),
    { text: before }, ...(verb ? [{ text: verb }] : []), { text: texts.inOrigin[origin], origin }, { text: after },
  ];
}

/**
 * The tree without sums of sums: a sum that only groups the summands of a larger sum is left out. The values stay true.
 *
 * @param {Explained} node
 * @returns {Explained}
 */
export function flattened(node) {
  const children = node.children.map(flattened);
  if (node.operation !== "sum") return { ...node, children };
  return { ...node, children: children.flatMap((child) => (child.operation === "sum" && isGroup(child) ? child.children : [child])) };
}

/** Whether a sum has no name of its own. @param {Explained} node */
function isGroup(node) {
  return node.children.length > 1 && node.label === node.children.map(({ label }) => label).join(" + ");
}
