/** Rows as a spreadsheet: one sheet with headings that stay visible and have filters. Every text is stored as text. */

import { sheetOf, withoutControls } from "./columns.js";
import { zip } from "./zip.js";

const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
/** The longest text of a cell; longer ones are cut. */
const MOST = 32767;
/** @type {Record<string, number>} */
const WIDTHS = { text: 80, note: 40, title: 40, path: 40, rank: 6, score: 9, state: 9 };

/** @param {readonly import("./columns.js").Row[]} rows */
export function file(rows) {
  const { columns, cells } = sheetOf(rows);
  const last = `${letters(columns.length - 1)}${cells.length + 1}`;
  const widths = columns.map((name, at) => `<col min="${at + 1}" max="${at + 1}" width="${WIDTHS[name] ?? 20}" customWidth="1" style="1"/>`);
  const lines = [columns, ...cells].map((row, at) => `<row r="${at + 1}">${row.map((value, column) => cell(value, column, at)).join("")}</row>`);
  return zip({
    "[Content_Types].xml": `${HEAD}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>${
      ["workbook:sheet.main", "styles:styles", "sheet:worksheet"].map((pair) => part(.../** @type {[string, string]} */ (pair.split(":")))).join("")}</Types>`,
    "_rels/.rels": relations(`<Relationship Id="r1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/>`),
    "xl/workbook.xml": `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="perikope" sheetId="1" r:id="r1"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations(`<Relationship Id="r1" Type="${OFFICE}/worksheet" Target="sheet.xml"/><Relationship Id="r2" Type="${OFFICE}/styles" Target="styles.xml"/>`),
    "xl/styles.xml": `${HEAD}<styleSheet xmlns="${MAIN}"><fonts count="2"><font/><font><b/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf/><xf applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf><xf fontId="1" applyFont="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`,
    "xl/sheet.xml": `${HEAD}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>${widths.join("")}</cols><sheetData>${lines.join("")}</sheetData><autoFilter ref="A1:${last}"/></worksheet>`,
  });
}

/** @param {string} name @param {string} kind */
function part(name, kind) {
  return `<Override PartName="/xl/${name}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.${kind}+xml"/>`;
}

/** @param {string} content */
function relations(content) {
  return `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${content}</Relationships>`;
}

/** @param {import("./columns.js").Cell} value @param {number} column @param {number} row */
function cell(value, column, row) {
  const place = `r="${letters(column)}${row + 1}" s="${row ? 1 : 2}"`;
  if (value === null || value === "") return "";
  if (typeof value === "boolean") return `<c ${place} t="b"><v>${Number(value)}</v></c>`;
  if (typeof value === "number" && Math.abs(value) < 1e15) return `<c ${place}><v>${value}</v></c>`;
  return `<c ${place} t="inlineStr"><is><t xml:space="preserve">${escaped(String(value))}</t></is></c>`;
}

/** Text for XML that fits into a cell, without characters that XML cannot have. @param {string} value */
function escaped(value) {
  const text = withoutControls(value).replace(/[\ufffe\uffff]/g, " ").toWellFormed();
  const cut = text.length <= MOST ? text : `${text.slice(0, MOST - 1).replace(/[\ud800-\udbff]$/, "")}…`;
  return cut.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(/_x[0-9a-fA-F]{4}_/g, "_x005F$&");
}

/** The letters of a column: A, B, …, Z, AA. @param {number} column from 0 @returns {string} */
function letters(column) {
  return (column >= 26 ? letters(Math.floor(column / 26) - 1) : "") + String.fromCharCode(65 + (column % 26));
}
