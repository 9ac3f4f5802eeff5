/** How texts of documents are shown: without control characters, with marked words, and with links that are safe. */

import { h } from "./dom.js";

// Characters that steer the direction of text, or that are invisible. Joiners remain, since some scripts need them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/**
 * Text without characters that are invisible or reverse the direction of other text. The length stays the same, so that
 * the positions of highlights remain right.
 *
 * @param {string} text
 */
export function printable(text) {
  return text.replace(HIDDEN, " ");
}

/**
 * A text with marked words, as nodes. Positions count code points, as in Python, not units of UTF-16.
 *
 * @param {string} text
 * @param {ReadonlyArray<readonly [number, number]>} highlights start and end (exclusive) of each word
 * @returns {Node[]}
 */
export function marked(text, highlights) {
  if (!highlights.length) return [document.createTextNode(printable(text))];
  const characters = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
  /** @param {number} first @param {number} [end] */
  const piece = (first, end) => {
    const part = characters.slice(first, end);
    return printable(typeof part === "string" ? part : part.join(""));
  };
  /** @type {Node[]} */
  const result = [];
  let at = 0;
  for (const [start, end] of highlights) {
    if (start < at) continue;
    if (start > at) result.push(document.createTextNode(piece(at, start)));
    result.push(h("mark", {}, piece(start, end)));
    at = end;
  }
  result.push(document.createTextNode(piece(at)));
  return result;
}

/**
 * An address that may be a link, or null. Only http and https are links: `javascript:` and `data:` are not.
 *
 * @param {string} address
 */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
