"""Files that the page makes: the same cells as those of the command line, and nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from lxml import etree

from perikope import Index
from perikope.search.exports import csv_file, ris_file
from perikope.search.hits import Hit
from tests.page.hostile import DOCUMENTS, FORMULA

SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
SAVE = """async ([hits, format, name]) => {
  const { download, rowsOfHits } = await import("/page/export/index.js");
  await download(rowsOfHits(hits), format, name);
}"""


@pytest.fixture(scope="module")
def hits(tmp_path_factory) -> list[Hit]:
    """Hits with everything that is hard to write: formulas, quotes, line breaks, control characters, odd metadata."""
    with Index.create(tmp_path_factory.mktemp("exports") / "index") as index:
        index.add(DOCUMENTS)
        index.add(
            [
                {
                    "id": "article",
                    "title": 'A "pump", or\ntwo',
                    "passages": ["The pump,\r\nwith \x07 a bell _x0041_ and 😀.", "-1 pump", "@3", "@pump(1)", "\tpump"],
                    "metadata": {
                        "journal": "Pumps", "authors": ["Ada", "Bob"], "year": 2011, "doi": "10.1/x", "open": True, "share": 0.25,
                        "by": {"name": "=pump()", "of": {"town": "X"}}, "list": [{"a": 1}], "nothing": None, "keywords": ["pump", "rotor"],
                    },
                },
                {
                    "id": "patent",
                    "passages": ["A pump."],
                    "metadata": {
                        "publication": "EP1A1", "ipc": ["F04D1/00"], "date": "2010-02-03", "inventor": ["Zoë"], "applicant": ["A", "B"],
                        "priorities": ["X", "Y"],
                    },
                },
            ]
        )  # fmt: skip
    return list(Index.open(index.folder).search("pump", k=100))


@pytest.fixture(scope="module")
def saved(browser, demo, hits, tmp_path_factory):
    """The content of the file of a format, as the browser saves it."""
    from tests.page.visiting import Visitor

    visitor = Visitor(browser)
    visited = visitor(demo)
    page = visited.go()
    folder = tmp_path_factory.mktemp("saved")

    def save(format: str, some: list[Hit] = hits) -> bytes:
        with page.expect_download() as started:
            page.evaluate(SAVE, [[json.loads(json.dumps(asdict(hit))) for hit in some], format, "pump / ../../x?"])
        assert started.value.suggested_filename == f"pump-x.{format}"
        started.value.save_as(folder / format)
        return Path(folder / format).read_bytes()

    yield save
    visitor.close()
    visitor.check()


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def _same(here: str, there: str) -> bool:
    """Whether two cells are equal. JavaScript writes numbers and JSON in another way than Python."""
    if here == there or (there in ("True", "False") and here == there.lower()):
        return True
    try:
        return math.isclose(float(here), float(there), rel_tol=1e-15)
    except ValueError:
        return here == there.replace(": ", ":")


def test_csv_has_the_cells_of_the_command_line(saved, hits):
    here, there = _cells(saved("csv").decode("utf-8-sig")), _cells(csv_file(hits).decode())
    assert here[0] == there[0]
    assert len(here) == len(there) == len(hits) + 1
    different = [(one, two) for a, b in zip(here, there, strict=True) for one, two in zip(a, b, strict=True) if not _same(one, two)]
    assert different == []


def test_no_cell_of_csv_is_a_formula(saved):
    content = _cells(saved("csv").decode("utf-8-sig"))
    texts = [cell for row in content[1:] for cell in row]
    assert f"'{FORMULA}" in texts
    assert [cell for cell in texts if cell.startswith(("=", "+", "\t", "\r")) or (cell.startswith("@") and not cell[1:].isdecimal())] == []


def test_the_spreadsheet_has_texts_only_as_texts(saved, hits):
    with zipfile.ZipFile(io.BytesIO(saved("xlsx"))) as archive:
        assert archive.testzip() is None
        trees = {name: etree.fromstring(archive.read(name)) for name in archive.namelist()}
    sheet = trees["xl/sheet.xml"]
    assert sheet.findall(f".//{SHEET}f") == []
    rows = [["".join(cell.itertext()) for cell in row] for row in sheet.iter(f"{SHEET}row")]
    assert rows[0] == _cells(csv_file(hits).decode())[0]
    assert len(rows) == len(hits) + 1
    texts = {text for row in rows for text in row}
    assert FORMULA in texts
    assert "The pump, \nwith   a bell _x005F_x0041_ and 😀." in texts
    assert {cell.get("t") for cell in sheet.iter(f"{SHEET}c")} == {"inlineStr", "b", None}


def test_a_text_that_is_too_long_for_a_cell_is_cut(saved, hits):
    from dataclasses import replace

    long = [replace(hits[0], text="😀" * 20_000)]
    with zipfile.ZipFile(io.BytesIO(saved("xlsx", long))) as archive:
        sheet = etree.fromstring(archive.read("xl/sheet.xml"))
    text = next(text for text in sheet.itertext() if text.startswith("😀"))
    assert text.endswith("😀…")
    assert len(text.encode("utf-16-le")) // 2 <= 32_767


def test_json_has_the_hits(saved, hits):
    content = json.loads(saved("json"))
    names = {field.name for field in fields(Hit)} - {"highlights", "before", "after"}
    assert [{**row, "path": tuple(row["path"])} for row in content] == [
        {name: value for name, value in asdict(hit).items() if name in names} for hit in hits
    ]


def test_ris_is_that_of_the_command_line(saved, hits):
    # A mark of the order of bytes is white space for JavaScript only.
    assert saved("ris").decode() == ris_file(hits).decode().replace("\ufeff", "")


def test_the_spreadsheet_opens_in_another_program(saved, hits):
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(io.BytesIO(saved("xlsx"))).active
    assert sheet.max_row == len(hits) + 1
    assert [cell.value for cell in sheet[1]] == _cells(csv_file(hits).decode())[0]
