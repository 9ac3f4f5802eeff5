/** Names of passages, `document#passage`, as the server writes them. */

/** @param {string} text */
function encoded(text) {
  return text.replace(/[#%\s\p{Cc}]|(?![\u200c\u200d])\p{Cf}/gu, (character) => encodeURIComponent(character));
}

/** @param {string} document @param {string} passage */
export function passageName(document, passage) {
  return `${encoded(document)}#${encoded(passage)}`;
}

/**
 * The ids of the document and the passage in a name. The passage is empty if the name has no `#`.
 *
 * @param {string} name
 * @returns {[string, string]}
 */
export function splitName(name) {
  const at = name.lastIndexOf("#");
  return at < 0 ? [decoded(name), ""] : [decoded(name.slice(0, at)), decoded(name.slice(at + 1))];
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
