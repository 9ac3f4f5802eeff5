/** Hits and entries of the work list as files. A format is loaded when it is first used. */

/** @typedef {import("./columns.js").Row} Row */
/** @typedef {"csv" | "xlsx" | "json" | "ris"} Format */

/** @type {Record<Format, string>} */
const TYPES = {
  csv: "text/csv;charset=utf-8",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  json: "application/json",
  ris: "application/x-research-info-systems",
};

/** The formats, in the order in which they are offered. */
export const FORMATS = /** @type {Format[]} */ (Object.keys(TYPES));

/**
 * Rows for `download`: hits without the positions of marked words.
 *
 * @param {readonly import("../types.js").Hit[]} hits
 * @returns {Row[]}
 */
export function rowsOfHits(hits) {
  return hits.map(({ highlights, before, after, ...row }) => row);
}

/**
 * Save rows as a file.
 *
 * @param {readonly Row[]} rows
 * @param {Format} format
 * @param {string} name what the rows are, such as the query; a part of the name of the file
 */
export async function download(rows, format, name) {
  const { file } = await import(`./${format}.js`);
  save(file(rows), format, name);
}

/** @param {BlobPart} content @param {Format} format @param {string} name */
export function save(content, format, name) {
  const short = name.normalize().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60).replace(/^-|-$/g, "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: TYPES[format] }));
  link.download = `${short || "perikope"}.${format}`;
  link.click();
  // The browser reads the content after this function has returned.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
