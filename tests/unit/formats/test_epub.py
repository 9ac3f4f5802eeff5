"""EPUB: the pages of the spine in order, with everything that HTML has, and nothing from outside the book."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import perikope as pk
from perikope.core.errors import UnreadableFile
from perikope.document.tree import Kind
from perikope.formats import FileLimits

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="in/b.opf"/></rootfiles></container>'
)
POLICY = Path("/usr/share/doc/debian-policy/policy.epub")


def package(names: list[str], extra: str = "") -> str:
    items = "".join(f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(names))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(names)))
    return (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The  book</dc:title>'
        f"<dc:creator>Ann Cook</dc:creator><dc:language>de-CH</dc:language></metadata><manifest>{items}{extra}</manifest>"
        f'<spine>{spine}<itemref idref="nav"/></spine></package>'
    )


def book(pages: dict[str, str], files: dict[str, str] | None = None, order: list[str] | None = None, extra: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("in/b.opf", package(order or list(pages), extra))
        for name, body in pages.items():
            archive.writestr(
                f"in/{name}", f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>{body}</html>'
            )
        for name, text in (files or {}).items():
            archive.writestr(name, text)
    return buffer.getvalue()


def read(tmp_path, data: bytes, **given):
    (tmp_path / "a.epub").write_bytes(data)
    [document] = pk.read(tmp_path / "a.epub", **given)
    return document


def test_definition_lists_and_the_order_of_the_spine(tmp_path):
    pages = {
        "b.xhtml": "<body><h1>Second</h1><dl><dt>term</dt><dd><p>its meaning</p><p>and more</p></dd></dl></body>",
        "a%20b.xhtml": '<body><h1>The book</h1><p>Preface, see <a href="b.xhtml#x">there</a>.</p><script src="x.js"/><p>Kept.</p></body>',
        "c.xhtml": '<body><h2 id="x">Inside the second</h2><p>Goes on.</p></body>',
    }
    data = book(pages, {"in/a b.xhtml": f"<html>{pages['a%20b.xhtml']}</html>"}, order=["a%20b.xhtml", "b.xhtml", "c.xhtml"])
    document = read(tmp_path, data)
    assert (document.title, document.language, document.metadata) == ("The book", "de", {"author": ["Ann Cook"]})
    texts = [document.text_of(span) for span in document.of_kind(Kind.PASSAGE)]
    assert texts == ["Preface, see there.", "Kept.", "term", "its meaning", "and more", "Goes on."]
    assert "    section h2 #x\n      title title 'Inside the second'\n      passage p 'Goes on.'" in document.outline()
    assert not document.cites


@pytest.mark.skipif(not POLICY.exists(), reason="needs the package debian-policy")
def test_a_real_book_keeps_its_definitions():
    [document] = pk.read(POLICY)
    assert "dl" in document.labels
    assert len(document.text.split()) > 60_000


def test_the_table_of_contents_is_left_out(tmp_path):
    nav = '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
    data = book({"a.xhtml": "<body><p>One.</p></body>"}, {"in/nav.xhtml": "<html><body><p>Contents</p></body></html>"}, extra=nav)
    assert read(tmp_path, data).text.split() == ["The", "book", "One."]


def test_missing_pages_are_named_and_the_others_read(tmp_path):
    (tmp_path / "a.epub").write_bytes(
        book({"a.xhtml": "<body><p>One.</p></body>"}, order=["a.xhtml", "../../../etc/passwd", "https://a.org/x"])
    )
    problems: list = []
    [document] = pk.read(tmp_path / "a.epub", on_problem=problems.append)
    assert "One." in document.text
    assert "lacks 2 of its pages" in problems[0].reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no zip", "not a zip"),
        (book({}), "without pages"),
        (book({"a.xhtml": "<body>" + "x" * (30 << 20) + "</body>"}), "200 times"),
        (book({"a.xhtml": "<body>" + "".join(f"<p>{n}</p>" for n in range(1_700_000)) + "</body>"}), "too much memory"),
        (book({"a.xhtml": "<body>" + "<div>" * 9000 + "x</body>"}), "nested too deeply"),
        (
            book({"a.xhtml": "<body>x</body>"}, {"META-INF/encryption.xml": '<e><CipherReference URI="in/a.xhtml"/></e>'}),
            "is encrypted",
        ),
    ],
    ids=["zip", "empty", "bomb", "memory", "deep", "encrypted"],
)
def test_bad_books_are_refused(tmp_path, data, reason):
    with pytest.raises(UnreadableFile, match=reason):
        read(tmp_path, data, limits=FileLimits(20.0, 160 << 20))


def test_entities_are_never_expanded(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of the machine")
    laughs = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    doctype = f'<!DOCTYPE html [<!ENTITY a0 "laugh">{laughs}<!ENTITY e SYSTEM "file://{secret}">]>'
    files = {
        "in/a.xhtml": f"<?xml version='1.0'?>{doctype}<html><body><p>Before &e; &a9; &auml; after.</p></body></html>",
        "in/b.opf": doctype + package(["a.xhtml"]).replace("Ann Cook", "Ann &e;"),
        "META-INF/container.xml": CONTAINER,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    document = read(tmp_path, buffer.getvalue())
    assert "ä after." in document.text
    assert "secret of" not in document.text + str(document.metadata)
    assert len(document.text) < 200
