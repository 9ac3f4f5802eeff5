"""The original of a passage, opened at its line, or at its page of a PDF."""

from __future__ import annotations

import hashlib
import time
import zipfile
from collections.abc import Iterator

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.server.gate import Gate, Token, allowed_hosts
from tests.page.hostile import write_hostile
from tests.page.visiting import PATIENCE
from tests.server.support import LiveServer
from tests.support.pdfs import Text, pdf

OPEN = """async (passage) => {
  const [{ openOriginal }, { Api }, texts] = await Promise.all(["original", "api", "texts"].map((name) => import(`/page/${name}.js`)));
  await texts.loadLanguage();
  await openOriginal(new Api("files"), passage);
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that shows the files of an index: a long one, and hostile ones."""
    folder = tmp_path_factory.mktemp("files")
    write_hostile(folder / "index", folder / "docs")
    (folder / "docs" / "long.txt").write_text("\n\n".join(f"Paragraph {number} of the pump." for number in range(3000)), "utf-8")
    build(str(folder / "index"), [str(folder / "docs")], BuildOptions(sync=True))
    with LiveServer({"files": folder / "index"}, originals=str(folder / "docs")) as server:
        yield server


def test_the_file_is_opened_at_the_line(visit, files):
    page = visit(files).go()
    page.evaluate(OPEN, "long.txt#@2001")
    line = page.locator(".original-line.here")
    assert line.inner_text() == "Paragraph 2000 of the pump."
    assert line.get_attribute("value") == "4001"
    assert page.evaluate("(box => box.top > 0 && box.bottom < innerHeight)(document.querySelector('.here').getBoundingClientRect())")
    page.keyboard.press("Escape")
    page.locator("dialog.original").wait_for(state="detached")


@pytest.mark.parametrize("name", ["notes.md", "page.html", "pump%20<img%20src=x%20onerror=attacked()>.txt"])
def test_a_hostile_file_is_text_only(visit, files, axe, name):
    page = visit(files).go()
    page.evaluate(OPEN, name)
    assert "<script>window.attacked=1</script>" in page.locator(".original-lines").inner_text()
    assert page.evaluate("window.attacked") is None
    assert page.locator("dialog :is(img, script, style, iframe, form, svg)").count() == 0
    assert axe(page) == []  # not in the test above: checking thousands of lines takes half a minute
    assert page.evaluate("getComputedStyle(document.body).display") == "block"


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over PDFs of 20 pages, one in an archive and one that has changed, and a file that is no text."""
    pytest.importorskip("pypdfium2")
    folder = tmp_path_factory.mktemp("books")
    docs = folder / "docs"
    docs.mkdir()
    pages = [[Text(72, 700, f"Page {number} has {'a rotor' if number == 12 else 'a seal'}.")] for number in range(1, 21)]
    for name in ("pump <b>100%#.pdf", "changed.pdf"):
        (docs / name).write_bytes(pdf(pages))
    with zipfile.ZipFile(docs / "all.zip", "w") as archive:
        archive.writestr("inner.pdf", pdf([*pages[:3], [Text(72, 700, "An impeller.")]]))
    (docs / "notes.md").write_text("A gasket.\n")
    build(str(folder / "index"), [str(docs)], BuildOptions())
    (docs / "changed.pdf").write_bytes(pdf(pages, title="New"))
    (docs / "notes.md").write_bytes(b"A gasket.\0\n")
    with LiveServer({"books": folder / "index"}, originals=str(docs)) as server:
        yield server


NUMBERS = """() => {
  const bar = document.querySelector("pdf-viewer")?.shadowRoot?.querySelector("viewer-toolbar");
  return bar ? [bar.pageNo, bar.docLength] : [0, 0];
}"""


def opened(page, link):
    """The new window after a click on a link."""
    with page.context.expect_page() as opening:
        link.click()
    return opening.value


def shown_page(page, number):
    """The page that Chromium's viewer of PDFs shows, and the number of all. Waits until the page is `number`."""
    shown, end = [0, 0], time.monotonic() + PATIENCE / 1000
    while shown[0] != number and time.monotonic() < end:
        viewer = next((frame for frame in page.frames if frame.url.startswith("chrome-extension://")), None)
        shown = viewer.evaluate(NUMBERS) if viewer else shown
        page.wait_for_timeout(50)
    return shown


def test_a_hit_opens_the_pdf_at_its_page(visit, books, axe):
    page = visit(books).go(q="rotor", filter='id="pump <b>100%#.pdf"')
    hit = page.locator("pk-result").first
    hit.locator(".facts button").wait_for()
    assert hit.locator(".facts li").first.text_content() == "pump <b>100%#.pdf p. 12"
    hit.get_by_role("button", name="pump <b>100%#.pdf").click()
    dialog = page.locator("dialog.original")
    link = dialog.get_by_role("link", name="Open the PDF at page 12")
    link.wait_for()
    assert dialog.locator(".help").all_text_contents() == ["The passage begins on page 12."]
    assert axe(page) == []
    viewer = opened(page, link)
    assert viewer.evaluate("document.contentType") == "application/pdf"
    assert shown_page(viewer, 12) == [12, 20]
    assert viewer.evaluate("window.opener") is None


@pytest.mark.parametrize(("query", "at", "number"), [("impeller", "all.zip/inner.pdf", 4), ("rotor", "changed.pdf", 12)])
def test_pdfs_of_archives_and_changed_ones_are_opened(visit, books, query, at, number):
    page = visit(books).go(q=query, filter=f'id="{at}"')
    page.locator("pk-result .facts button").first.click()
    page.locator("a.original-pdf").wait_for()
    assert page.get_by_text("has changed since").count() == (at == "changed.pdf")
    assert shown_page(opened(page, page.locator("a.original-pdf")), number)[0] == number


def test_a_document_names_its_file_and_a_file_that_is_no_text_is_not_shown(visit, books):
    page = visit(books).go(q="gasket", document="notes.md")
    page.locator(".document-facts").get_by_role("button", name="Show the file").click()
    dialog = page.locator("dialog.original")
    assert "neither text nor a PDF" in dialog.inner_text()
    assert dialog.locator(".original-lines").count() == 0


def test_a_file_that_is_gone_is_named(visit, books):
    visiting = visit(books)
    visiting.allowed.append("404")
    page = visiting.go()
    page.evaluate(OPEN.replace('"files"', '"books"'), "missing.pdf")
    assert "missing.pdf" in page.locator("dialog.original [role=alert]").inner_text()


def test_with_a_token_too_the_pdf_is_opened(visit, tmp_path):
    """The viewer sends no token, so the page asks for the file, and no address has the token."""
    pytest.importorskip("pypdfium2")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.pdf").write_bytes(pdf([[Text(72, 700, "First.")], [Text(72, 700, "A rotor.")]]))
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions())
    token = Token("page", hashlib.sha256(b"open-sesame").digest(), {"read": frozenset(["a"]), "write": frozenset()})
    gate = Gate(allowed_hosts("127.0.0.1", (), is_socket=False), tokens=(token,), open_reading=False)
    with LiveServer({"a": tmp_path / "index"}, gate, originals=str(tmp_path / "docs")) as server:
        with server.client() as client:
            assert client.get("/indexes/a/original", params={"passage": "a.pdf", "pdf": True}).status_code == 401
        visiting = visit(server)
        visiting.page.add_init_script("sessionStorage.token = 'open-sesame'")
        page = visiting.go(q="rotor")
        page.locator("pk-result .facts button").first.click()
        assert "sesame" not in page.locator("a.original-pdf").get_attribute("href")
        assert shown_page(opened(page, page.locator("a.original-pdf")), 2) == [2, 2]
