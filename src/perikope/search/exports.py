"""Results as files of other programs: CSV, spreadsheets (xlsx) and RIS for reference managers.

The text of a document may be hostile. A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula. In
CSV, such a text gets an apostrophe before it; in xlsx, every text is stored as text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO, StringIO
from typing import Any

from perikope.core.errors import MissingExtra, UsageError
from perikope.patents.codes import CODE_FIELDS
from perikope.search.columns import Cell, Listed, flat, sheet_of
from perikope.search.hits import Hit, RankedDocument

_FORMULA = re.compile(r"(?!@[0-9]+$)[=+\-@\t\r\n＝＋－＠]")
"""The beginning of a text that a spreadsheet may take for a formula (OWASP, CSV injection). The number of a passage,
such as `@3`, calls nothing, and other programs need it unchanged."""
_MOST_CHARACTERS = 32_767
"""The longest text of a cell of a spreadsheet; longer texts are cut, and end with an ellipsis."""
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?![0-9])")


def csv_file(items: Listed, kind: type[Hit] | type[RankedDocument] = Hit) -> bytes:
    """Results as CSV in UTF-8, with a line of headings. A cell that a spreadsheet would run is made harmless."""
    columns, rows = sheet_of(items, kind)
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_harmless, columns))
    writer.writerows(map(_harmless, row) for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _harmless(value: Cell) -> Cell:
    """A cell that no spreadsheet runs as a formula and that controls no terminal. Numbers are never formulas."""
    if not isinstance(value, str):
        return value
    text = _without_controls(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _without_controls(text: str) -> str:
    """Text whose control characters are spaces, except line feeds and tabs."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", " ", text)


def xlsx_file(items: Listed, kind: type[Hit] | type[RankedDocument] = Hit) -> bytes:
    """Results as a spreadsheet with a row of headings that stays visible and has filters."""
    try:
        import xlsxwriter
    except ImportError:
        raise MissingExtra("xlsxwriter", "sheets") from None
    columns, rows = sheet_of(items, kind)
    file = BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet = book.add_worksheet("results")
        heading, text = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
        for number, name in enumerate(columns):
            sheet.set_column(number, number, _width(name), text)
            sheet.write_string(0, number, _storable(name), heading)
        for line, row in enumerate(rows, 1):
            for number, value in enumerate(row):
                _write(sheet, line, number, value)
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, len(rows), len(columns) - 1)
    return file.getvalue()


def _write(sheet: Any, line: int, number: int, value: Cell) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(line, number, value)
    elif isinstance(value, (int, float)) and abs(value) < 1e15:
        sheet.write_number(line, number, value)
    elif value is not None:
        sheet.write_string(line, number, _storable(str(value)))


def _storable(text: str) -> str:
    """Text that fits into a cell, without halves of character pairs, which files in UTF-8 cannot hold."""
    whole = _without_controls(text).encode("utf-8", "replace").decode()
    return whole if len(whole) <= _MOST_CHARACTERS else whole[: _MOST_CHARACTERS - 1] + "…"


def _width(column: str) -> int:
    return {"text": 80, "title": 40, "path": 40, "rank": 6, "score": 9}.get(column, 20)


_PEOPLE = ("inventor", "inventors", "author", "authors", "creator")
_PATENT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "PB": ("assignee", "assignees", "applicant", "applicants"), "SN": ("publication", "id"), "C1": ("application_date", "filed"),
    "C3": ("country",), "OP": ("priorities",),
}  # fmt: skip
_ARTICLE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "T2": ("journal",), "VL": ("volume",), "IS": ("issue",), "SN": ("issn", "isbn"), "PB": ("publisher",),
}  # fmt: skip
_COMMON_FIELDS: Mapping[str, tuple[str, ...]] = {"DO": ("doi",), "UR": ("url",)}
_KEYWORDS = ("keywords", "keyword", "tags", "ipc", "cpc")
"""Metadata fields by the tags of RIS, as Zotero and EndNote read them. Of several fields, the first one is used;
keywords are taken from all fields."""
_SEVERAL = ("PB", "OP")
"""Tags whose values are joined, because a record has them once."""


def ris_file(items: Listed, kind: type[Hit] | type[RankedDocument] = Hit) -> bytes:
    """The documents of results as RIS, one record per document in the order of their best results.

    The passages that were found become notes of the record. Authors, journal, DOI, patent number and so on come from
    the metadata.
    """
    by_document: dict[str, list[Hit | RankedDocument]] = {}
    for item in items:
        by_document.setdefault(item.document, []).append(item)
    lines = [f"{tag}  - {_one_line(value)}".rstrip(" ") for found in by_document.values() for tag, value in _record(found)]
    # The standard demands these line ends, and a space after the last dash.
    return "".join(f"{line} \r\n" if line == "ER  -" else f"{line}\r\n" for line in lines).encode("utf-8", "replace")


def _record(found: list[Hit | RankedDocument]) -> Iterator[tuple[str, str]]:
    first = found[0]
    values = {"id": first.document, **dict(flat(first.metadata))}
    # Only patents have classification codes.
    is_patent = not {"publication", *CODE_FIELDS}.isdisjoint(values)
    kind = "JOUR" if "journal" in values else "PAT" if is_patent else "GEN"
    yield "TY", kind
    yield "TI", first.title or first.document
    yield from (("AU", name) for name in _first(values, _PEOPLE))
    specific = _PATENT_FIELDS if kind == "PAT" else _ARTICLE_FIELDS
    for tag, names in {**specific, **_COMMON_FIELDS}.items():
        texts = _first(values, names)
        yield from [(tag, "; ".join(texts) if tag in _SEVERAL else texts[0])] if texts else []
    for text in _first(values, ("date", "year"))[:1]:
        if date := _DATE.match(text):
            yield "PY", date[1]
            yield "DA", "/".join(part or "" for part in date.groups()) + "/"
    yield from (("KW", word) for name in _KEYWORDS for word in _texts(values.get(name)))
    yield "ID", first.document
    for item in found:
        if isinstance(item, Hit):
            yield "N1", f"{item.citation or item.name}: {item.text}"
    yield "ER", ""


def _first(values: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The texts of the first field that has a value."""
    return next((texts for name in names if (texts := _texts(values.get(name)))), [])


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [str(item) for item in items if isinstance(item, (str, int, float)) and str(item).strip()]


def _one_line(text: str) -> str:
    """Text without line breaks and control characters, since a line break would begin a new field."""
    return " ".join("".join(" " if ord(character) < 32 or character == "\x7f" else character for character in text).split())


EXPORTS: Mapping[str, Callable[..., bytes]] = {"csv": csv_file, "xlsx": xlsx_file, "ris": ris_file}
"""The functions that make files, by the suffix of the file."""


def export(form: str, items: Listed, kind: type[Hit] | type[RankedDocument] = Hit) -> bytes:
    """Results as the content of a file: `csv`, `xlsx` or `ris`."""
    if form not in EXPORTS:
        raise UsageError(f"results cannot be written as {form!r}; use {', '.join(EXPORTS)}")
    return EXPORTS[form](items, kind)
