/** The piece of a long passage that has the most words of the query. */

/**
 * A piece of about `size` characters, and its highlights. A short text is returned as it is. Positions count code points.
 *
 * @param {string} text
 * @param {readonly (readonly [number, number])[]} highlights
 * @param {number} size
 * @returns {{text: string, highlights: [number, number][], isCut: boolean}}
 */
export function excerpt(text, highlights, size) {
  const whole = highlights.map(([start, end]) => /** @type {[number, number]} */ ([start, end]));
  if (text.length <= size * 1.25) return { text, highlights: whole, isCut: false };
  const characters = Array.from(text);
  if (characters.length <= size * 1.25) return { text, highlights: whole, isCut: false };
  let start = richest(whole, size);
  if (start + size > characters.length) start = characters.length - size;
  start = start < 80 ? 0 : wordStart(characters, start);
  const end = start + size >= characters.length ? characters.length : wordStart(characters, start + size);
  const before = start ? "… " : "", after = end < characters.length ? " …" : "";
  const shift = before.length - start;
  return {
    text: before + characters.slice(start, end).join("").trimEnd() + after,
    highlights: whole.filter(([first, last]) => first >= start && last <= end).map(([first, last]) => [first + shift, last + shift]),
    isCut: true,
  };
}

/** The start of the window with the most highlights. @param {readonly [number, number][]} highlights @param {number} size */
function richest(highlights, size) {
  let best = 0, most = 0, last = 0;
  for (let first = 0; first < highlights.length; first++) {
    while (last < highlights.length && highlights[last][1] <= highlights[first][0] + size - 60) last++;
    if (last - first > most) [most, best] = [last - first, highlights[first][0] - 60];
  }
  return Math.max(best, 0);
}

/** The start of the next word, at most 40 characters on. @param {readonly string[]} characters @param {number} at */
function wordStart(characters, at) {
  for (let next = at; next < Math.min(at + 40, characters.length); next++) if (/\s/.test(characters[next])) return next + 1;
  return at;
}
