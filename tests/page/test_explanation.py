"""The explanation of a score: the sentence, the parts, the drawing and the tree say the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from perikope.browse.models import MODELS
from perikope.browse.signals import Node
from tests.page.reading import REASONS, reader
from tests.page.visiting import SMALL
from tests.server.support import LiveServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATE = {"q": "magnetic coupling", "explain": "mc8-manual.md#@11"}

SHOWN = {origin: origin for origin in ("passage", "titles", "sections", "document", "references", "other")} | {"neighbors": "neighbours"}
"""The names of origins on the page."""
OPEN_ALL = """
for (let closed; (closed = document.querySelector(".tree details:not([open])"));) {
  closed.open = true;
  closed.dispatchEvent(new Event("toggle"));
}
"""


@pytest.fixture
def explain(visit, demo):
    """Opens an explanation with fixed reasons."""

    def opened(reasons=REASONS, **options):
        page = reader(visit(demo, **options), reasons).go(**STATE)
        page.wait_for_selector("pk-explanation .sentence")
        return page

    return opened


def test_the_sentence_comes_first(explain):
    page = explain()
    sentence = page.locator("pk-explanation .sentence")
    assert sentence.inner_text() == (
        "Mostly because magnetic and coupling stand in the titles above it, and also because magnetic stands in the passage itself."
        " The passages next to it lower the score."
    )
    assert sentence.locator("em").all_inner_texts() == ["magnetic", "coupling", "magnetic"]
    assert page.evaluate("document.querySelector('pk-explanation').firstElementChild.className") == "sentence"


def test_the_sentence_in_german(explain):
    page = explain(language="de")
    assert page.locator("pk-explanation .sentence").inner_text() == (
        "Vor allem, weil magnetic und coupling in den Überschriften darüber stehen, aber auch, weil magnetic in der Passage selbst steht."
        " Die benachbarten Passagen senken die Bewertung."
    )


@pytest.mark.parametrize(
    ("parts", "begins"),
    [
        ([], "No word of the query reaches this passage."),
        ([("passage", 9.5, {"a": 9.5}), ("titles", 0.5, {"b": 0.5})], "Almost only because a stands in the passage itself."),
        ([("document", 1.0, {})], "Almost only because of its document."),
        ([("passage", 1.0, {"a": 1.0}), ("titles", 0.9, {"b": 0.9}), ("sections", 0.8, {"a": 0.5, "c": 0.3})],
         "Partly because a stands in the passage itself, partly because b stands in the titles above it, "
         "partly because a and c stand in the sections around it."),
        ([("other", -1.0, {})], "Features that are no words lower the score."),
        ([("passage", 3.0, {"a": 2.0, "b": 0.9, "c": 0.1})], "Almost only because a and b stand in the passage itself."),
    ],
)  # fmt: skip
def test_sentences(explain, parts, begins):
    reasons = {
        "score": sum(value for _, value, _ in parts),
        "parts": [dict(zip(("origin", "value", "words"), part, strict=True)) for part in parts],
    }
    assert explain(reasons).locator("pk-explanation .sentence").inner_text() == begins


def test_the_parts_are_those_of_the_server(explain):
    page = explain()
    rows = [row.split() for row in page.locator("table.parts tbody tr").all_inner_texts()]
    assert [row[:3] for row in rows] == [["titles", "60%", "3"], ["passage", "30%", "1.5"], ["neighbours", "10%", "-0.5"]]


def test_the_drawing_shows_the_section_tree_and_a_band_per_origin(explain):
    page = explain()
    rows = page.locator("pk-flow .row .name").all_inner_texts()
    assert rows[0] == "MC-8 circulation pump: operating manual"
    assert rows.index("Magnetic coupling") < rows.index("What it does")
    assert page.locator("pk-flow .row-passage").inner_text().startswith("The outer ring of magnets")
    bands = page.locator("pk-flow .band")
    assert bands.locator("title").all_text_contents() == ["titles 60%", "passage 30%", "neighbours 10%"]
    widths = [float(bands.nth(number).locator("path[stroke-width]").get_attribute("stroke-width")) for number in range(3)]
    assert widths == pytest.approx([widths[0], widths[0] / 2, widths[0] / 6])


def test_the_tree_has_all_values_of_the_server_and_comes_with_the_reasons(visit, demo):
    opened = reader(visit(demo))
    requests: list[str] = []
    opened.page.on("request", lambda request: requests.append(request.url.split("?")[0].rsplit("/", 1)[-1]))
    page = opened.go(**STATE)
    page.wait_for_selector("pk-explanation .sentence")
    assert (requests.count("reasons"), requests.count("explain")) == (1, 0)
    explained = page.evaluate(
        "fetch('/indexes/demo/explain?query=magnetic+coupling&passage=mc8-manual.md%23%4011').then((answer) => answer.json())"
    )
    page.evaluate(OPEN_ALL)
    leaves = []

    def collect(node):
        if not node["children"]:
            leaves.append(node["label"])
        for child in node["children"]:
            collect(child)

    collect(explained)
    shown = page.locator(".tree li.leaf .label").all_inner_texts()
    assert sorted(shown) == sorted(leaves)
    # Sums of sums are left out, but not what they add.
    assert page.locator(".tree > li > details > ul > li").count() >= 3


def _node(answer: dict[str, Any]) -> Node:
    plain = {name: answer[name] for name in ("label", "value", "operation", "slope", "intercept", "word")}
    return Node(**plain, origins=tuple(answer["origins"].items()), children=tuple(map(_node, answer["children"])))


def _percent(page: Page, share: float) -> str:
    return page.evaluate("(share) => new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 0 }).format(share)", share)


def _explained(page: Page, server: LiveServer, model: str) -> Node:
    """The explanation of the passage. The first request for a model may time out, since kernels are compiled."""
    for _ in range(20):
        answer = page.request.get(
            f"{server.url}/indexes/demo/explain", params={"query": STATE["q"], "passage": STATE["explain"], "model": model}
        )
        if answer.ok:
            break
    return _node(answer.json())


def test_sentence_parts_and_bands_are_true_for_every_model(visit, demo):
    """They are compared with the tree of the explanation, which the server adds up in another operation."""
    reasons = pytest.importorskip("perikope.browse.reasons")
    page = reader(visit(demo)).go(**STATE)
    page.wait_for_selector("pk-explanation .sentence")
    several = 0
    for name, model in MODELS.items():
        if not model.is_ready:
            continue
        tree = _explained(page, demo, name)
        page.evaluate("(model) => document.querySelector('pk-app').store.change({ model })", name)
        page.wait_for_selector(f"pk-explanation[data-model='{name}'] .sentence")
        parts = reasons.reasons_of(tree).parts
        total = math.fsum(abs(part.value) for part in parts)
        shown = page.locator("table.parts tbody tr").evaluate_all(
            "rows => rows.map((row) => [row.dataset.origin, Number(row.querySelector('.gauge').style.getPropertyValue('--share'))])"
        )
        assert [origin for origin, _ in shown] == [part.origin for part in parts], name
        assert [share for _, share in shown] == pytest.approx([abs(part.value) / total for part in parts]), name
        bands = page.locator("pk-flow .band title").all_text_contents()
        assert bands == [
            f"{SHOWN[part.origin]} {_percent(page, abs(part.value) / total)}" for part in parts if abs(part.value) >= total / 200
        ], name
        raising = [part for part in parts if part.value > 0]
        named = page.locator("pk-explanation .sentence .origin").evaluate_all("all => all.map((one) => one.dataset.origin)")
        assert set(named) <= {part.origin for part in parts}, name
        if raising:
            assert named[0] == raising[0].origin, name
            # The words of the first clause are those of the largest part.
            first = page.locator("pk-explanation .sentence").evaluate(
                """one => {
                  const pieces = [...one.children];
                  return pieces.slice(0, pieces.findIndex((piece) => piece.matches(".origin"))).map((word) => word.innerText);
                }"""
            )
            assert set(first) <= set(raising[0].words), name
        several += len(parts) > 1
    assert several > 3


def test_an_explanation_opens_its_passage(explain):
    page = explain()
    page.locator("pk-explanation blockquote a").click()
    page.wait_for_selector("pk-document-text .current")
    assert "The outer ring of magnets" in page.locator("pk-document-text .current").inner_text()
    assert page.locator("pk-explanation").count() == 0 or not page.locator("pk-explanation").is_visible()
    page.go_back()
    page.wait_for_selector("pk-explanation .sentence")


def test_a_passage_of_a_document_is_explained_with_a_key(visit, demo):
    page = reader(visit(demo)).go(q="magnetic coupling", document="mc8-manual.md", passage="@11")
    page.wait_for_selector("pk-document-text .current")
    page.keyboard.press("e")
    page.wait_for_selector("pk-explanation .sentence")
    assert "explain=mc8-manual.md%23%4011" in page.url


def test_a_passage_that_cannot_be_explained(visit, demo):
    visited = reader(visit(demo))
    visited.allowed.append("40[04]")
    page = visited.go(q="magnetic", explain="mc8-manual.md#nothing")
    assert "nothing" in page.locator("pk-explanation [role=alert]").inner_text()


def test_a_small_screen(explain):
    page = explain(size=SMALL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("pk-flow .row-passage").is_visible()
