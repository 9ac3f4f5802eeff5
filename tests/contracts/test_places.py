"""The place of a span opens its file where the span stands, for every format of XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from perikope.document.tree import Document, Kind
from perikope.formats import documents, sources
from perikope.formats._xml import trees
from perikope.formats.xml import SUFFIXES, profiles
from tests.support.trees import GOLDEN

SOURCES = [source for source in sorted((GOLDEN / "sources").iterdir()) if source.name.endswith(SUFFIXES)]
LABEL = re.compile(r"[^\w\s]*(?:[0-9][\w.]*|\w)[^\w\s]*\s")
"""A number that stood before a passage and was written to the beginning of it."""


def originals(path: Path) -> Iterator[tuple[Document, etree._Element]]:
    """Each document of a file with the tree it was made of."""
    [source] = sources(path)
    yield from zip(documents(source), (tree.root for tree in trees(source)), strict=True)


def stretches(root: etree._Element) -> tuple[str, dict[etree._Element, tuple[int, int]]]:
    """All text, and from where to where of it each element goes: counted plainly, text node by text node."""
    pieces: list[str] = []
    ends: dict[etree._Element, tuple[int, int]] = {}
    at = 0

    def add(text: str | None) -> None:
        nonlocal at
        pieces.append(text or "")
        at += len(text or "")

    def walk(element: etree._Element) -> None:
        start = at
        add(element.text)
        for child in element:
            walk(child)
            add(child.tail)
        ends[element] = (start, at)

    walk(root)
    return "".join(pieces), ends


def without_space(text: str) -> str:
    return "".join(text.replace("|", "").split())


def without_links(document: Document, span: int) -> str:
    """The text of a passage without that of its links: a link without text in the file has the title of its target."""
    spans = document.spans
    pieces, at = [], spans.start[span]
    for mark in range(span + 1, len(spans)):
        if spans.parent[mark] == span and document.labels[spans.tag[mark]] == "link" and spans.start[mark] >= at:
            pieces.append(document.text[at : spans.start[mark]])
            at = spans.end[mark]
    return "".join([*pieces, document.text[at : spans.end[span]]])


def holds(original: str, text: str) -> bool:
    """Whether the original contains a text, apart from removed parts of it (skipped tags, lists, tables)."""
    label = LABEL.match(text)
    return _in_order(text, original) or (label is not None and _in_order(text[label.end() :], original))


def _in_order(text: str, original: str) -> bool:
    characters = iter(original)
    return all(character in characters for character in without_space(text))


def check_places(document: Document, root: etree._Element) -> int:
    """Assert that every place is right; how many passages stand in their place without a gap."""
    whole, ends = stretches(root)
    found = 0
    for span, place in document.places.items():
        elements = root.getroottree().xpath(place.path)
        assert isinstance(elements, list)
        assert len(elements) == 1, f"{place.path} is one element"
        first, last = ends[elements[0]]
        assert first <= place.start <= place.end <= last, f"{place} lies inside its element, {first} to {last}"
        if document.spans.kind[span] in (Kind.PASSAGE, Kind.TITLE):
            original, text = whole[place.start : place.end], document.text_of(span)
            # A name is put together of fields, in another order.
            is_field = document.labels[document.spans.part[span]] == "bibliography"
            is_there = all(word in original for word in re.findall(r"\w+", text)) if is_field else holds(original, text)
            is_there = is_there or holds(original, without_links(document, span))
            assert is_there, f"{place}: {text!r} is not in {original!r}"
            found += without_space(text) in without_space(original)
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_place_opens_its_file_at_the_span(source: Path) -> None:
    for document, root in originals(source):
        assert check_places(document, root)
        # Names in bibliographic data may have no place; what the general walk reads has one.
        passages = list(document.of_kind(Kind.PASSAGE))
        if profiles()[source.name.partition(".")[0]].walk == "general":
            assert document.places.keys() >= set(passages)
        assert sum(passage in document.places for passage in passages) > len(passages) / 2


def test_places_of_real_articles(shared_data: Path) -> None:
    folder = shared_data / "evidence-inference" / "nxml"
    if not folder.is_dir():
        pytest.skip(f"no articles at {folder}")
    paths = sorted(folder.glob("*.nxml"))
    assert len(paths) == 61
    passages = found = 0
    for path in paths:
        for document, root in originals(path):
            found += check_places(document, root)
            assert document.places.keys() >= set(document.of_kind(Kind.PASSAGE))
            passages += len(list(document.of_kind(Kind.PASSAGE)))
    assert found > 0.99 * passages


def test_what_is_not_there_is_not_held() -> None:
    assert holds("The  pump\nleaks.", "The pump leaks.")
    assert holds("<a> x The pump <list> leaks.", "The pump leaks.")
    assert holds("The pump leaks.", "[0001] The pump leaks.")
    assert not holds("The pump leaks.", "The lamp leaks.")
    assert not holds("The pump leaks.", "leaks The pump.")
