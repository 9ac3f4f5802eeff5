/** Which metadata fields of an index are facets, and of which kind. */

import { frequentValues } from "./asking.js";
import { t } from "./texts.js";

/** @typedef {"date" | "number" | "code" | "text"} Kind */
/** @typedef {{name: string, kind: Kind, top: number}} Field */

const CODES = new Set(["ipc", "ipcr", "cpc", "ecla"]);
const DATE = /^\d{4}(-\d\d(-\d\d)?)?$/;
/** @type {Record<Kind, number>} */
const ORDER = { date: 1, code: 2, number: 3, text: 3 };

/** Where a field is shown: the date of documents first. @param {Field} field */
const place = (field) => (field.name === "date" || field.name === "year" ? 0 : ORDER[field.kind]);

/**
 * The facets of an index, in the order in which they are shown. A field whose values are all different is none: it
 * identifies documents.
 *
 * @param {import("./api.js").Api} api
 * @param {{documents: number, fields: Record<string, number>, file_fields: readonly string[]}} summary
 * @returns {Promise<Field[]>}
 */
export async function facetFields(api, summary) {
  const names = [...Object.keys(summary.fields), ...summary.file_fields.filter((name) => name === "folder")];
  const fields = await Promise.all([...new Set(names)].map((name) => fieldOf(api, name, summary.documents)));
  return fields.filter((field) => field !== null).sort((one, other) => place(one) - place(other) || other.top - one.top);
}

/**
 * @param {import("./api.js").Api} api
 * @param {string} name
 * @param {number} documents
 * @returns {Promise<Field | null>}
 */
async function fieldOf(api, name, documents) {
  const counts = await frequentValues(api, name);
  const values = Object.keys(counts), top = Math.max(0, ...Object.values(counts));
  if (values.length < 2) return null;
  const kind = CODES.has(name) ? "code" : kindOf(values);
  const isIdentifier = top < 2 && (kind === "text" || kind === "number") && documents > 1;
  return isIdentifier ? null : { name, kind, top };
}

/** How a field is called. @param {string} name */
export function fieldLabel(name) {
  const known = t.facets.fields[/** @type {keyof typeof t.facets.fields} */ (name)];
  return known ?? name.slice(0, 1).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

/** @param {string[]} values @returns {Kind} */
function kindOf(values) {
  if (values.every((value) => DATE.test(value) && Number(value.slice(0, 4)) >= 1000 && Number(value.slice(0, 4)) < 2200)) return "date";
  // Numbers with many digits name something, such as a family of patents.
  return values.every((value) => /^-?\d{1,6}(\.\d+)?$/.test(value)) ? "number" : "text";
}
