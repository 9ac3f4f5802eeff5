"""The original of a passage, opened at its line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perikope.build.indexing import BuildOptions, build
from tests.page.hostile import write_hostile
from tests.server.support import LiveServer

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


def test_the_file_is_opened_at_the_line(visit, files, axe):
    page = visit(files).go()
    page.evaluate(OPEN, "long.txt#@2001")
    line = page.locator(".original-line.here")
    assert line.inner_text() == "Paragraph 2000 of the pump."
    assert line.get_attribute("value") == "4001"
    assert page.evaluate("(box => box.top > 0 && box.bottom < innerHeight)(document.querySelector('.here').getBoundingClientRect())")
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.locator("dialog.original").wait_for(state="detached")


@pytest.mark.parametrize("name", ["notes.md", "page.html", "pump%20<img%20src=x%20onerror=attacked()>.txt"])
def test_a_hostile_file_is_text_only(visit, files, name):
    page = visit(files).go()
    page.evaluate(OPEN, name)
    assert "<script>window.attacked=1</script>" in page.locator(".original-lines").inner_text()
    assert page.evaluate("window.attacked") is None
    assert page.locator("dialog :is(img, script, style, iframe, form, svg)").count() == 0
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
