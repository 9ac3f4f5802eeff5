"""The file of a passage, with the line where the passage begins, and never a file outside the folder."""

from __future__ import annotations

import base64
import gzip
import json
import os
import zipfile

import pytest

from perikope import Index
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import NotFound, UsageError
from perikope.search import original_files
from perikope.search.original_files import original_lines
from tests.support.patents import families

MARKDOWN = "# Pumps\n\nA pump turns.\n\n## Care\n\nThe **rotor** of the [pump](https://example.org/a) turns.\n\nA pump turns.\n"
SECRET = "a secret of the machine"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    docs = folder / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "deep" / "pump.md").write_text(MARKDOWN, "utf-8")
    (docs / "notes.txt").write_bytes("Erste Zeile.\r\n\r\nDie Stra\u00dfe \U0001f600 zur Pumpe.\r\n".encode())
    (docs / "page.html").write_text("<html><body>\n<h1>Valve</h1>\n<p>The <b>valve</b>\n closes.</p></body></html>", "utf-8")
    lines = [json.dumps({"id": f"number {number}", "passages": [f"Line {number} of a file.", "Text."]}) for number in range(5)]
    (docs / "many.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    patent = families()[0].members[0]
    with zipfile.ZipFile(docs / "patents.zip", "w") as archive:
        archive.writestr("inside/patent.xml", patent.xml)
    (folder / "secret.txt").write_text(SECRET, "utf-8")
    build(str(folder / "index"), [str(docs)], BuildOptions())
    with Index.open(folder / "index") as index:
        index.add([{"id": "made", "passages": ["Not from a file."]}])
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return Index.open(folder / "index")


def _line(found):
    return found.text.split("\n")[found.line - found.first_line]


@pytest.mark.parametrize(
    ("passage", "line", "beginning"),
    [
        ("deep/pump.md#@1", 3, "A pump turns."), ("deep/pump.md#@2", 7, "The **rotor**"), ("deep/pump.md#@3", 9, "A pump turns."),
        ("notes.txt#@2", 3, "Die Stra\u00dfe"), ("page.html#@1", 3, "<p>The <b>valve</b>"), ("number%203#@1", 4, '{"id": "number 3"'),
    ],
)  # fmt: skip
def test_the_line_of_a_passage_is_found(index, folder, passage, line, beginning):
    found = original_lines(index, passage, folder / "docs")
    assert (found.line, found.first_line) == (line, 1)
    assert _line(found).startswith(beginning)
    assert not found.changed


def test_a_passage_in_an_archive_has_its_line(index, folder):
    hit = next(hit for hit in index.search("pump", k=50) if hit.source == "patents.zip/inside/patent.xml")
    found = original_lines(index, hit.name, folder / "docs")
    assert found.file == "patents.zip/inside/patent.xml"
    assert found.line > 0
    assert hit.text.split()[0] in _line(found) + found.text.split("\n")[found.line - found.first_line + 1]


def test_a_document_is_shown_without_a_passage(index, folder):
    assert original_lines(index, "deep/pump.md", folder / "docs").text == MARKDOWN


def test_a_long_file_is_shown_around_the_passage(index, folder, monkeypatch):
    monkeypatch.setattr(original_files, "SHOWN_LINES", 4)
    found = original_lines(index, "deep/pump.md#@2", folder / "docs")
    assert (found.line, found.first_line, found.lines) == (7, 6, 10)
    assert _line(found).startswith("The **rotor**")


def test_a_changed_file_is_said_to_be_changed(index, folder):
    path = folder / "docs" / "notes.txt"
    before = path.read_bytes()
    path.write_bytes(before + b"more")
    assert original_lines(index, "notes.txt#@2", folder / "docs").changed
    path.write_bytes(before)


def test_a_pdf_has_the_page_of_the_passage_and_its_bytes_on_request(tmp_path, monkeypatch):
    pytest.importorskip("pypdfium2")
    pytest.importorskip("reportlab")
    from tests.support.pdfs import Text, pdf

    data = pdf([[Text(72, 700, "The first page has a seal.")], [], [Text(72, 700, "The third page has a rotor.")]])
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.pdf").write_bytes(data)
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions(workers=1))
    index = Index.open(tmp_path / "index")
    hit = index.search("rotor")[0]
    found = original_lines(index, hit.name, tmp_path / "docs", pdf=True)
    assert (found.kind, found.page, found.line, found.text, found.changed) == ("pdf", 3, 0, "", False)
    assert base64.b64decode(found.data) == data
    assert original_lines(index, hit.name, tmp_path / "docs").data == "", "not asked for"
    assert original_lines(index, "a.pdf", tmp_path / "docs").page == 1, "of a document, the page of its first text"
    monkeypatch.setattr(original_files, "MOST_OF_PDF", len(data) - 1)
    with pytest.raises(UsageError, match=r"'a\.pdf' has 0 MB; at most"):
        original_lines(index, hit.name, tmp_path / "docs", pdf=True)


def test_a_file_with_zero_bytes_is_no_text(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("A pump.")
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions(workers=1))
    (tmp_path / "docs" / "a.txt").write_bytes(b"A pump.\0")
    found = original_lines(Index.open(tmp_path / "index"), "a.txt#@1", tmp_path / "docs", pdf=True)
    assert (found.kind, found.text, found.data, found.page, found.changed) == ("other", "", "", 0, True)


@pytest.mark.parametrize("name", ["made#@1", "made"])
def test_a_document_without_a_file_has_no_original(index, folder, name):
    with pytest.raises(NotFound, match="was not read from a file"):
        original_lines(index, name, folder / "docs")


def test_an_index_cannot_name_a_file_outside_the_folder(folder, tmp_path):
    """An index whose documents claim to come from other files: absolute paths, paths upwards, links."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "here.txt").write_text("A pump.", "utf-8")
    os.symlink(folder / "secret.txt", docs / "link.txt")
    for number, source in enumerate(("../secret.txt", str(folder / "secret.txt"), "link.txt", "here.txt/../../secret.txt", "nothing.txt")):
        made = tmp_path / f"{number}"
        with Index.create(made) as index:
            from dataclasses import replace

            from perikope import read

            [document] = read(docs / "here.txt")
            index.add([replace(document, source=source)])
        with pytest.raises(NotFound, match="is no longer in the folder"):
            original_lines(Index.open(made), f"{document.id}#@1", docs)
