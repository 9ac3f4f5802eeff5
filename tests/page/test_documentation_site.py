"""The documentation site: built without a warning, every link with a target, nothing loaded from elsewhere."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.page.visiting import PATIENCE, SMALL, WIDE
from tests.support.programs import program

ROOT = Path(__file__).parents[2]
LOOKED_AT = ("README", "ARCHITECTURE", "docs/index", "docs/options", "docs/performance", "docs/results/conditionalqa")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--conf-dir", str(ROOT / "scripts" / "website")]
    command += ["--doctree-dir", str(folder / "state"), "--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    done = subprocess.run([*command, str(ROOT), str(folder / "site")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a plain server of files serves the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_every_link_of_the_site_has_a_target(site: Path):
    findings = program("website/check_site.py").check(site)
    assert findings.problems == []
    assert findings.anchors > 100


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "narrow"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_their_window_and_load_nothing_from_elsewhere(browser, address: str, size: tuple[int, int], theme: str):
    asked: list[str] = []
    errors: list[str] = []
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for name in LOOKED_AT:
        page.goto(f"{address}/{name}.html", timeout=PATIENCE)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        light = page.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").split(",")[0]
        assert (int(light) > 128) == (theme == "light"), name
    page.close()
    assert [one for one in asked if not one.startswith((address, "data:"))] == []
    assert errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_the_page_have_the_colours_of_the_site(browser, address: str, theme: str):
    page = browser.new_page(color_scheme=theme)
    page.goto(f"{address}/docs/index.html", timeout=PATIENCE)
    pictures = page.locator("article img")
    shown = [one.get_attribute("src") or "" for one in pictures.all() if one.is_visible()]
    assert [source.rpartition("-")[2] for source in shown] == [f"{theme}.png"]
    page.close()


def test_commands_wrap_and_drawings_keep_their_size_on_a_phone(browser, address: str):
    page = browser.new_page(viewport={"width": SMALL[0], "height": SMALL[1]})
    page.goto(f"{address}/docs/context.html", timeout=PATIENCE)
    assert page.evaluate("[...document.querySelectorAll('.highlight-sh pre')].every(one => one.scrollWidth <= one.clientWidth)")
    assert page.evaluate("[...document.querySelectorAll('.highlight-sh .option')].every(one => one.getClientRects().length === 1)")
    assert page.locator(".highlight-sh .option").count() > 5
    assert page.evaluate("[...document.querySelectorAll('article img')].every(one => one.clientWidth >= 600)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_the_site_is_searched_without_a_server(browser, address: str):
    page = browser.new_page()
    page.goto(f"{address}/search.html?q=synonyms", timeout=PATIENCE)
    page.locator("#search-results li a", has_text="Guide").first.wait_for(timeout=PATIENCE)
    page.close()
