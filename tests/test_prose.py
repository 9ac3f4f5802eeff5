"""The Markdown pages keep to the rules of prose that a program can check: lengths of lines and pages, and links."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = frozenset({"conditionalqa.md", "evidence-inference.md", "neural.md", "obliqa.md", "zero-shot.md"})
"""Reports of experiments in docs/results, with lines as long as a program writes them."""
LINKING = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
PAGES = [page for page in LINKING if page.parent.name != "results" or page.name not in GENERATED]
LONGEST_LINE = 120
LONGEST_README = 150


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """The number and text of every line outside fenced code blocks and tables."""
    in_code = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("|"):
            yield number, line


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = [line.lstrip("#").strip().lower() for _, line in prose_lines(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def test_lines_of_code_and_tables_are_not_prose():
    page = "one\n```sh\ncode\n```\n| table |\n  two\n"
    assert list(prose_lines(page)) == [(1, "one"), (6, "  two"), (7, "")]


def test_headings_have_the_anchors_that_github_gives_them():
    assert anchors("# How wide is the `context`?\n\n## The folders, in order\n") == {"how-wide-is-the-context", "the-folders-in-order"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_prose_are_short(page: Path):
    lines = prose_lines(page.read_text("utf-8"))
    assert [f"{page.name}:{number}: {len(line)} characters" for number, line in lines if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if ":" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    assert broken == []


def test_the_glossary_names_things_that_are_declared_where_it_says():
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    glossary = page.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    declared = [
        (name, path)
        for names, path in re.findall(r"\| ((?:`[\w.]+`,? )+)in \[[^]]+\]\(([^)]+)\) \|", glossary)
        for name in re.findall(r"[\w.]+", names)
    ]
    assert len(declared) > 20
    missing = [f"{name} in {path}" for name, path in declared if name.rpartition(".")[2] not in source_of(ROOT / path)]
    assert missing == []


def source_of(path: Path) -> str:
    return (path / "__init__.py" if path.is_dir() else path).read_text("utf-8")


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= LONGEST_README
