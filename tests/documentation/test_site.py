"""What makes the site from the pages: its navigation, and the check that follows every link of the built site."""

from pathlib import Path

from tests.documentation.blocks import PAGES, ROOT
from tests.support.programs import program

INDEX = ROOT / "docs" / "index.md"


def test_the_navigation_is_the_links_that_begin_an_item_below_a_heading():
    text = "# Title\n\n- [No](no.md)\n\n## One\n\n- [A page](a.md): see [b](b.md)\n- [Away](https://x/y.md)\n\n## Empty\n\ntext\n"
    assert program("website/navigation.py").sections_of(text) == {"One": [("A page", "a")]}


def test_every_page_is_in_the_navigation_once():
    entries = [page for section in program("website/navigation.py").sections_of(INDEX.read_text("utf-8")).values() for _, page in section]
    listed = [(INDEX.parent / f"{page}.md").resolve() for page in entries]
    assert sorted(listed) == sorted(page.resolve() for page in PAGES if page != INDEX)


def test_the_check_of_a_site_finds_what_is_broken(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "index.html").write_text('<p id="there"><a href="../a.html#nowhere">x</a></p>', "utf-8")
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><img src="no.png"><a href="inner/#there">x</a>'
        '<a href="#here" id="here">x</a><a href="https://example.org/">x</a>',
        "utf-8",
    )
    findings = program("website/check_site.py").check(tmp_path)
    assert sorted(findings.problems) == [
        "a.html: loads https://cdn.example/x.js",
        "a.html: no file no.png",
        "inner/index.html: no anchor ../a.html#nowhere",
    ]
    assert (findings.pages, findings.links, findings.anchors) == (2, 4, 3)
    assert "https://example.org/" in findings.outside
