"""Self-made topics: queries with known answers, made from the documents of an index without human judgements.

One file per kind of topic. A kind is a function that drafts queries from one document; it is registered by name.
`topics` draws drafts from a sample of the documents and makes topics, judgements and masks of them.

A query is taken from the text of a document, so its own words would find it. They are masked (see `browse.masking`):
the query must find its answers by the other words of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from perikope.core.registry import Registry
from perikope.document.tree import Document, Kind
from perikope.text.analysis import Analyzer, language_code, words


@dataclass(frozen=True, slots=True)
class Draft:
    """A query that was taken from a document, and the passages that answer it."""

    query: str
    start: int
    """First character of the text that the query was taken from, counted in the document."""
    end: int
    """One more than the last character of this text."""
    answers: tuple[int, ...]
    """Span numbers of the passages that answer the query."""


@dataclass(frozen=True)
class TopicSource:
    """A document that queries are taken from, with its passages by section."""

    document: Document
    analyzer: Analyzer
    """The analyser of the index, which knows the stop words of each language."""

    @cached_property
    def passages(self) -> tuple[int, ...]:
        """Span numbers of the passages, in reading order."""
        return tuple(self.document.of_kind(Kind.PASSAGE))

    @cached_property
    def passages_of_section(self) -> dict[int, list[int]]:
        """The passages directly in each section, also those in its lists and tables, by span number of the section."""
        spans = self.document.spans
        inside: dict[int, list[int]] = {}
        for passage in self.passages:
            section = spans.parent[passage]
            while spans.kind[section] != Kind.SECTION:
                section = spans.parent[section]
            inside.setdefault(section, []).append(passage)
        return inside

    def passages_in(self, span: int) -> tuple[int, ...]:
        """The passages in a span at any depth; a passage contains itself."""
        spans = self.document.spans
        within = {span}
        for number in range(span + 1, len(spans)):  # parents come before children
            if spans.parent[number] in within:
                within.add(number)
        return tuple(number for number in sorted(within) if spans.kind[number] == Kind.PASSAGE)

    def content_words(self, text: str, span: int) -> list[str]:
        """The words of a text that are no stop words in the language of a span, in order, without repetition."""
        language = language_code(self.document.labels[self.document.spans.language[span]])
        distinct: dict[str, str] = {}
        for word in words(text):
            term = self.analyzer.term(word, language)
            if term is not None:
                distinct.setdefault(term, word)
        return list(distinct.values())


Drafting = Callable[[TopicSource, Random], Iterable[Draft]]
"""Drafts queries from one document, in random order. Only the first drafts are used, so later ones need no work."""

KINDS: Registry[Drafting] = Registry("topic_kind", "perikope.evaluation.selfmade")


def kind(draft: Drafting) -> Drafting:
    """Register a kind of topic under the name of the function that drafts it."""
    return KINDS.add(draft.__name__, draft)
