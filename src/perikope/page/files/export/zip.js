/** Files as a ZIP archive, stored without compression. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** @param {Uint8Array} data */
function crc32(data) {
  let value = 0xffffffff;
  for (const byte of data) value = (value >>> 8) ^ TABLE[(value ^ byte) & 255];
  return (value ^ 0xffffffff) >>> 0;
}

/** Numbers in the order of ZIP, given as pairs of bytes and value. @param {...[2 | 4, number]} numbers */
function packed(...numbers) {
  const bytes = numbers.flatMap(([size, value]) => Array.from({ length: size }, (_, at) => (value >>> (8 * at)) & 255));
  return Uint8Array.from(bytes);
}

/**
 * @param {Record<string, string>} files texts by path
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function zip(files) {
  const encoder = new TextEncoder();
  /** @type {Uint8Array[]} */
  const pieces = [];
  /** @type {Uint8Array[]} */
  const list = [];
  let at = 0;
  for (const [path, text] of Object.entries(files)) {
    const name = encoder.encode(path), data = encoder.encode(text);
    // Version, names in UTF-8, stored, 1 January 1980, checksum, sizes.
    /** @type {[2 | 4, number][]} */
    const facts = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, 33], [4, crc32(data)], [4, data.length], [4, data.length], [2, name.length], [2, 0]];
    const head = packed([4, 0x04034b50], ...facts);
    pieces.push(head, name, data);
    list.push(packed([4, 0x02014b50], [2, 20], ...facts, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]), name);
    at += head.length + name.length + data.length;
  }
  const size = list.reduce((sum, piece) => sum + piece.length, 0), count = list.length / 2;
  const all = [...pieces, ...list, packed([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, at], [2, 0])];
  const result = new Uint8Array(all.reduce((sum, piece) => sum + piece.length, 0));
  let end = 0;
  for (const piece of all) {
    result.set(piece, end);
    end += piece.length;
  }
  return result;
}
