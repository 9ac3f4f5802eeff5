/** The columns of tables of hits. They are those of `perikope search --out`, after what the user has added. */

/** @typedef {Partial<import("../types.js").Hit> & {state?: string, note?: string}} Row a hit, or an entry of the work list */
/** @typedef {string | number | boolean | null} Cell */

/** @type {ReadonlyArray<Exclude<keyof Row, "metadata" | "place" | "highlights">>} */
const COLUMNS = ["state", "note", "rank", "score", "document", "passage", "title", "path", "text", "part", "tag", "language", "source", "citation"];

/**
 * The names of the columns, and one list of cells per row. Columns without any value are left out.
 *
 * @param {readonly Row[]} rows
 * @returns {{columns: string[], cells: Cell[][]}}
 */
export function sheetOf(rows) {
  const metadata = rows.map((row) => new Map(flat(row.metadata ?? {})));
  const fields = [...new Set(metadata.flatMap((values) => [...values.keys()]))];
  const columns = COLUMNS.filter((name) => rows.some((row) => row[name] !== undefined));
  return {
    columns: [...columns, ...fields.map((field) => `metadata.${field}`)],
    cells: rows.map((row, number) => [
      ...columns.map((name) => (name === "path" ? (row.path ?? []).join(" › ") : /** @type {Cell} */ (row[name] ?? null))),
      ...fields.map((field) => cell(metadata[number].get(field))),
    ]),
  };
}

/**
 * The fields of metadata with their values. A key of a nested object is a field such as `by.name`.
 *
 * @param {Record<string, any>} metadata
 * @returns {[string, any][]}
 */
export function flat(metadata) {
  /** @type {[string, any][]} */
  const found = [];
  const waiting = Object.entries(metadata).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [field, value] = next;
    if (value === null || typeof value !== "object" || Array.isArray(value)) found.push(next);
    else waiting.push(.../** @type {[string, any][]} */ (Object.entries(value).map(([name, item]) => [`${field}.${name}`, item])).reverse());
  }
  return found;
}

/**
 * A value as a cell: several texts or numbers are joined, and anything else that is not plain is written as JSON.
 *
 * @param {any} value
 * @returns {Cell}
 */
function cell(value) {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") return value;
  return Array.isArray(value) && value.every((item) => typeof item !== "object") ? value.join("; ") : JSON.stringify(value);
}

/** Text whose control characters are spaces, except line feeds and tabs. @param {string} text */
export function withoutControls(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ");
}
