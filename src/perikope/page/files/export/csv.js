/** Rows as CSV. A cell that a spreadsheet would run as a formula gets an apostrophe before it. */

import { sheetOf, withoutControls } from "./columns.js";

// The number of a passage, such as `@3`, calls nothing, and other programs need it unchanged.
const FORMULA = /^(?!@[0-9]+$)[=+\-@\t\r\n＝＋－＠]/;

/** @param {readonly import("./columns.js").Row[]} rows */
export function file(rows) {
  const { columns, cells } = sheetOf(rows);
  // Without the mark at the beginning, Excel takes the file for one of another encoding.
  return `\ufeff${[columns, ...cells].map((row) => `${row.map(written).join(",")}\r\n`).join("")}`;
}

/** @param {import("./columns.js").Cell} value */
function written(value) {
  if (typeof value !== "string") return value === null ? "" : String(value);
  const text = withoutControls(value);
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
