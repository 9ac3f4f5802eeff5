/** Rows as JSON, with the names that the server uses. */

/** @param {readonly import("./columns.js").Row[]} rows */
export function file(rows) {
  return `${JSON.stringify(rows, null, 2)}\n`;
}
