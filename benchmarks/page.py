"""How fast the page is in a browser: python -m benchmarks page INDEX TOPICS.

INDEX is copied and served to headless Chromium on this machine. Times are from what a user does until the result is
painted, in milliseconds. The server, the browser and what else the machine does share its cores.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.page.chromium import ARGUMENTS, executable, missing

from benchmarks.common import Table, publish
from benchmarks.serving import server

if TYPE_CHECKING:
    from playwright.sync_api import Page

PASSAGES = 10_000
MANUAL = "manual.md"
SLIDER = "#parameter-titles"
MOVES = [round(0.05 + 0.9 * step / 19, 3) for step in range(20)]
WORDS = (
    "pump",
    "rotor",
    "magnet",
    "shaft",
    "seal",
    "water",
    "heater",
    "lime",
    "descaling",
    "valve",
    "pressure",
    "of",
    "the",
    "a",
    "in",
    "to",
)

PAINTED = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
QUERY = f"""async (query) => {{
  const app = document.querySelector("pk-app"), begun = performance.now();
  const shown = new Promise((done) => {{
    const look = () => app.search.answer && !app.search.isRunning && app.store.state.query === query
      && (app.search.removeEventListener("change", look), done());
    app.search.addEventListener("change", look);
  }});
  app.store.change({{ query }});
  await shown;
  {PAINTED}
  return performance.now() - begun;
}}"""
SLIDE = f"""async (value) => {{
  const {{ search }} = document.querySelector("pk-app"), slider = document.querySelector("{SLIDER}"), begun = performance.now();
  const shown = new Promise((done) => {{
    const look = () => !search.isRunning && (search.removeEventListener("change", look), done());
    search.addEventListener("change", look);
  }});
  slider.value = value;
  slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
  await shown;
  {PAINTED}
  return performance.now() - begun;
}}"""
OPEN = f"""async (passage) => {{
  const begun = performance.now();
  document.querySelector("pk-app").store.change({{ document: "{MANUAL}", passage }});
  while (!document.querySelector("pk-document-text .current")) await new Promise((done) => requestAnimationFrame(done));
  {PAINTED}
  return performance.now() - begun;
}}"""
WATCH = """() => {
  window.longest = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
TRANSFERRED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter(({ name }) => !name.includes("/indexes")).reduce((sum, { transferSize }) => sum + transferSize, 0)"""


def large_document(seed: int = 3) -> dict[str, Any]:
    """A document of many passages in 500 sections, as `Index.add` takes it."""
    chance = random.Random(seed)

    def passage() -> str:
        return " ".join(" ".join(chance.choices(WORDS, k=chance.randint(8, 18))) + "." for _ in range(chance.randint(2, 5)))

    sections = [
        {"title": f"Section {number}", "passages": [passage() for _ in range(PASSAGES // 500)]} for number in range(1, 501)
    ]  # fmt: skip
    return {"id": MANUAL, "title": "A large manual", "sections": sections}


def row(label: str, values: Sequence[float], aim: float) -> Sequence[str]:
    middle, high = np.percentile(values, (50, 95))
    return (
        label,
        str(len(values)),
        f"{middle:.0f}",
        f"{high:.0f}",
        f"{max(values):.0f}",
        f"{aim:.0f}",
        f"{np.mean(np.array(values) <= aim):.0%}",
    )


def measure(page: Page, address: str, queries: Sequence[str]) -> Table:
    table = Table("The page in a browser, milliseconds until painted", ("what", "times", "median", "95 %", "most", "aim", "within"))
    page.goto(f"{address}?index=bench&panel=models&q=first")
    page.wait_for_selector("pk-result")
    page.wait_for_selector(SLIDER)
    transferred = page.evaluate(TRANSFERRED)
    table.rows.append(row("a query until its first hits", [page.evaluate(QUERY, query) for query in queries], 300))
    table.rows.append(row("a move of a slider until the new ranking", [page.evaluate(SLIDE, str(value)) for value in MOVES], 100))
    page.evaluate(WATCH)
    page.click("#search-box")
    page.keyboard.press("Control+A")
    page.keyboard.type("randomized trial of pain treatment in children", delay=60)
    page.wait_for_timeout(500)
    longest = page.evaluate("window.longest")
    opened = []
    for number in range(10):
        page.goto(f"{address}?index=bench&q=descaling+valve+{WORDS[number]}")
        page.wait_for_selector("pk-result")
        page.wait_for_timeout(300)
        opened.append(page.evaluate(OPEN, f"@{1 + number * PASSAGES // 10}"))
    table.rows.append(row(f"a document of {PASSAGES:,} passages until the asked passage", opened, 1000))
    table.notes.append(f"transferred for the page with an open panel: {transferred / 1000:.0f} KB, compressed (aim: below 150)")
    table.notes.append(f"longest time without a frame while typing 47 characters, with a search after most: {longest:.0f} ms")
    return table


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks page", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("topics", type=Path)
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--markdown")
    options = parser.parse_args(arguments)
    if why := missing():
        raise SystemExit(why)
    from playwright.sync_api import sync_playwright

    from perikope.search.facade import Index

    lines = options.topics.read_text("utf-8").splitlines()
    queries = [line.split("\t")[1] for line in lines[: options.queries]]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        index = Path(shutil.copytree(options.index, Path(folder, "index")))
        with Index.open(index) as opened:
            opened.add(large_document())
        with server(index) as (port, _):
            browser = playwright.chromium.launch(executable_path=executable(), args=list(ARGUMENTS))
            try:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                publish([measure(page, f"http://127.0.0.1:{port}/", queries)], options.markdown)
            finally:
                browser.close()
