"""Find the words by which the texts of a document refer to other texts of it, so that a reader can follow them.

An index knows that a passage refers to an element, but not by which words. The words are a mention, such as `claim 3`
or `FIG. 2`, or a link of the source file. The links of a passage and its references are paired in order if they are as
many; otherwise a link belongs to the target that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from perikope.document.tree import Document, Kind
from perikope.patents.mentions import mention_places, named_first

_CITED = re.compile(r"(?P<what>claim) (?P<claim>[0-9]+)|\[(?P<paragraph>[0-9]+)\]")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ReferencePlace(NamedTuple):
    """Words of a text that refer to a span. Start and end are both the end of the text if the words are not known."""

    start: int
    end: int
    target: int


def reference_places(document: Document) -> Mapping[int, list[ReferencePlace]]:
    """The places of all references of a document, in reading order, by the span of the text that refers."""
    span_of_id = {id: span for span, id in document.span_ids.items()}
    targets_of_span: dict[int, dict[int, None]] = {}
    for span, id in document.references:
        if id in span_of_id and document.spans.kind[span] != Kind.SECTION:
            targets_of_span.setdefault(span, {})[span_of_id[id]] = None
    things = _Things(document)
    found: dict[int, list[ReferencePlace]] = {}
    for span, targets in targets_of_span.items():
        for text, place in _places(document, span, list(targets), things):
            found.setdefault(text, []).append(place)
    return {text: sorted(places) for text, places in found.items()}


def descendants(document: Document, span: int) -> Iterator[int]:
    """The spans inside a span, in reading order."""
    parent = document.spans.parent
    inside = span + 1
    while inside < len(parent) and parent[inside] >= span:
        yield inside
        inside += 1


def _places(document: Document, span: int, targets: Sequence[int], things: _Things) -> Iterator[tuple[int, ReferencePlace]]:
    """Yield the places at which a span refers to targets, each with the text that has the words."""
    kind = document.spans.kind
    texts = [text for text in (span, *descendants(document, span)) if kind[text] in (Kind.PASSAGE, Kind.TITLE)] or [span]
    links = [(text, *mark) for text in texts for mark in _links(document, text)]
    target_of_thing = {thing: target for target in reversed(targets) for thing in things.of(target)}
    located: set[int] = set()
    for text in texts:
        for start, end, what, numbers in mention_places(document.text_of(text), things.claim(text)):
            mentioned = [target for number in numbers if (target := _target(target_of_thing, what, number)) is not None]
            if mentioned:
                located.update(mentioned)
                links = [link for link in links if link[0] != text or link[2] <= start or end <= link[1]]
                yield text, ReferencePlace(start, end, mentioned[0])
    rest = [target for target in targets if target not in located]
    paired = dict(zip(rest, links, strict=True)) if len(rest) == len(links) else _paired_by_name(document, rest, links)
    for target in rest:
        text, start, end = paired.get(target, (texts[0], len(document.text_of(texts[0])), len(document.text_of(texts[0]))))
        yield text, ReferencePlace(start, end, target)


def _target(target_of_thing: Mapping[tuple[str, str], int], what: str, number: str) -> int | None:
    """The target that is meant by a number. Figure 3B may be described with figure 3, and figure 3 with figure 3A."""
    others = (number.rstrip(_LETTERS), f"{number}A") if what == "figure" else ()
    return next((target_of_thing[what, which] for which in (number, *others) if (what, which) in target_of_thing), None)


def _links(document: Document, text: int) -> Iterator[tuple[int, int]]:
    """The links of the source file in a text, as start and end in it."""
    spans, first = document.spans, document.spans.start[text]
    for mark in descendants(document, text):
        if spans.kind[mark] == Kind.MARK and document.labels[spans.tag[mark]] == "link":
            yield spans.start[mark] - first, spans.end[mark] - first


def _paired_by_name(document: Document, targets: Sequence[int], links: Sequence[tuple[int, int, int]]) -> dict[int, tuple[int, int, int]]:
    """For each target that the words of a link name, the first such link."""
    paired: dict[int, tuple[int, int, int]] = {}
    words = [_plain(document.text_of(text)[start:end]) for text, start, end in links]
    for target in targets:
        titles = [document.text_of(span) for span in descendants(document, target) if document.spans.kind[span] == Kind.TITLE][:1]
        names = {_plain(name) for name in (document.span_ids.get(target, ""), document.citations.get(target, ""), *titles)} - {""}
        if (match := next((link for link, word in zip(links, words, strict=True) if word in names), None)) is not None:
            paired[target] = match
    return paired


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


class _Things:
    """What people call the spans of a document: `claim 3`, `[0042]`, `FIG. 2`."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._of_span: dict[int, set[tuple[str, str]]] = {}

    def of(self, span: int) -> set[tuple[str, str]]:
        """The things that a span is or describes, such as ("claim", "3")."""
        if span not in self._of_span:
            cited = _CITED.fullmatch(self._document.citations.get(span, ""))
            own = {("claim", cited["claim"]) if cited["what"] else ("paragraph", cited["paragraph"])} if cited else set()
            self._of_span[span] = own | set(named_first(self._document.text_of(span)))
        return self._of_span[span]

    def claim(self, span: int) -> int:
        """The number of a claim; 0 if the span is none."""
        cited = _CITED.fullmatch(self._document.citations.get(span, ""))
        return int(cited["claim"]) if cited and cited["what"] else 0
