/** The documents of rows as RIS, for reference managers: one record per document, with the passages as notes. */

import { passageName } from "../names.js";
import { flat } from "./columns.js";

/** @typedef {import("./columns.js").Row} Row */

// Metadata fields by the tags of RIS, as Zotero and EndNote read them. Of several fields, the first one is used.
const PEOPLE = ["inventor", "inventors", "author", "authors", "creator"];
/** @type {Record<string, string[]>} */
const OF_PATENTS = {
  PB: ["assignee", "assignees", "applicant", "applicants"], SN: ["publication", "id"], C1: ["application_date", "filed"], C3: ["country"],
  OP: ["priorities"],
};
/** @type {Record<string, string[]>} */
const OF_ARTICLES = { T2: ["journal"], VL: ["volume"], IS: ["issue"], SN: ["issn", "isbn"], PB: ["publisher"] };
/** @type {Record<string, string[]>} */
const OF_ALL = { DO: ["doi"], UR: ["url"] };
const KEYWORDS = ["keywords", "keyword", "tags", "ipc", "cpc"];
// Tags whose values are joined, because a record has them once.
const JOINED = new Set(["PB", "OP"]);
const ONLY_PATENTS_HAVE = ["publication", "ipc", "ipcr", "cpc", "ecla"];

/** @param {readonly Row[]} rows */
export function file(rows) {
  /** @type {Map<string, Row[]>} */
  const byDocument = new Map();
  for (const row of rows) byDocument.set(row.document ?? "", [...(byDocument.get(row.document ?? "") ?? []), row]);
  // The standard demands these line ends, and a space after the last dash.
  return [...byDocument.values()].flatMap(record).map(([tag, value]) => `${tag}  - ${oneLine(value)}\r\n`).join("");
}

/** @param {Row[]} found the rows of one document @returns {string[][]} */
function record(found) {
  const [row] = found;
  const values = new Map([["id", row.document], ...flat(row.metadata ?? {})]);
  const kind = values.has("journal") ? "JOUR" : ONLY_PATENTS_HAVE.some((name) => values.has(name)) ? "PAT" : "GEN";
  const lines = [["TY", kind], ["TI", row.title || row.document || ""]];
  lines.push(...first(values, PEOPLE).map((name) => ["AU", name]));
  for (const [tag, names] of Object.entries({ ...(kind === "PAT" ? OF_PATENTS : OF_ARTICLES), ...OF_ALL })) {
    const found = first(values, names);
    if (found.length) lines.push([tag, JOINED.has(tag) ? found.join("; ") : found[0]]);
  }
  const date = /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?!\d)/.exec(first(values, ["date", "year"])[0] ?? "");
  if (date) lines.push(["PY", date[1]], ["DA", `${date[1]}/${date[2] ?? ""}/${date[3] ?? ""}/`]);
  lines.push(...KEYWORDS.flatMap((name) => texts(values.get(name)).map((word) => ["KW", word])), ["ID", row.document ?? ""]);
  for (const { citation, document = "", passage = "", text = "", note } of found) {
    lines.push(["N1", `${citation || passageName(document, passage)}: ${text}`]);
    if (note) lines.push(["N1", note]);
  }
  return [...lines, ["ER", ""]];
}

/** The texts of the first field that has a value. @param {Map<string, any>} values @param {string[]} names */
function first(values, names) {
  return names.map((name) => texts(values.get(name))).find((found) => found.length) ?? [];
}

/** @param {any} value @returns {string[]} */
function texts(value) {
  return (Array.isArray(value) ? value : [value]).filter((item) => ["string", "number"].includes(typeof item)).map(String).filter((text) => text.trim());
}

/** Text without line breaks and control characters, since a line break would begin a new field. @param {string} text */
function oneLine(text) {
  return text.replace(/[\u0000-\u001f\u007f\s]+/g, " ").trim();
}
