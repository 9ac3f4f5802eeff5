"""Pictures of the page over the documents of `perikope demo`, light and dark, for the documentation.

python -m tests.page.screenshots docs/images
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perikope import Index
from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.demo import write_example
from tests.page.chromium import ARGUMENTS, executable, missing
from tests.page.visiting import SMALL, WIDE, Visit, Visitor
from tests.server.support import LiveServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

QUERY = "how often should I descale the KX-200 heat pump"
THEMES = ("light", "dark")


def _results(visit: Visit, answer: str) -> None:
    visit.go(q=QUERY).locator(".result").first.wait_for()


def _document(visit: Visit, answer: str) -> None:
    document, _, passage = answer.rpartition("#")
    page = visit.go(q=QUERY, document=document, passage=passage)
    page.locator("pk-document").get_by_text("Every three months").first.wait_for()


def _explanation(visit: Visit, answer: str) -> None:
    visit.go(q=QUERY, explain=answer).locator("pk-explanation :is(p, h3)").first.wait_for()


def _comparison(visit: Visit, answer: str) -> None:
    visit.go(q=QUERY, model="bm25", compare="coverage").locator("pk-compare .compared, pk-compare li").first.wait_for()


def _work_list(visit: Visit, answer: str) -> None:
    page = visit.go(q=QUERY)
    page.locator(".result").nth(1).wait_for()
    for number, name in enumerate(("keep", "keep", "discard")):
        page.locator(f".result [data-command={name}]").nth(number).click()
    page.keyboard.press("w")
    page.get_by_placeholder("Note").last.fill("Answers the question.")
    page.locator(".toast").wait_for(state="hidden")


PICTURES: Mapping[str, Callable[[Visit, str], None]] = {
    "search": _results, "document": _document, "explanation": _explanation, "comparison": _comparison, "work-list": _work_list,
}  # fmt: skip
"""What each picture shows, by the name of its file."""


def take(folder: Path, sizes: Mapping[str, tuple[int, int]]) -> list[Path]:
    """Write all pictures: for each one a light and a dark file, and one per further size. Returns the files."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        here = Path(temporary)
        write_example(here / "example")
        build(str(here / "index"), [str(here / "example" / "docs")], BuildOptions())
        with Index.open(here / "index") as index:
            answer = next(iter(index.search(QUERY, k=1))).name
        browser = playwright.chromium.launch(executable_path=executable(), args=list(ARGUMENTS))
        visitor, written = Visitor(browser), []
        with LiveServer({"demo": here / "index"}) as server:
            for name, show in PICTURES.items():
                for suffix, size in sizes.items():
                    for theme in THEMES:
                        visit = visitor(server, size=size, theme=theme)
                        show(visit, answer)
                        written.append(_write(visit.page, folder / f"{name}{suffix}-{theme}.png"))
            visitor.close()
            visitor.check()
        browser.close()
    return written


def _write(page: Page, path: Path) -> Path:
    page.mouse.move(0, 0)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write pictures of the page.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="also at the width of a telephone")
    given = parser.parse_args()
    if reason := missing():
        sys.exit(reason)
    for file in take(given.folder, {"": (WIDE[0], 800), **({"-small": SMALL} if given.small else {})}):
        sys.stdout.write(f"{file} {file.stat().st_size:,} bytes\n")
