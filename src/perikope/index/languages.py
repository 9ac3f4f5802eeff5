"""Counts of a collection by language: how much of it is in each language.

A segment stores no such counts. They are summed from its dictionary, whose terms begin with their language
(`en:pump`), and from the languages of its spans.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.document.tree import Kind
from perikope.index.segments import Segment
from perikope.index.tombstones import Counts
from perikope.text.analysis import language_code


def counts_by_language(segment: Segment, _: str = "") -> dict[str, Counts]:
    """The counts of the text of a segment in each language, without deleted documents.

    A document is counted for every language in which it has text, and a passage for its own language. Tokens are
    counted without stop words.
    """
    held = sorted(set(segment.columns.facts["languages"]))
    documents, passages = _documents(segment, held), _passages(segment, held)
    tokens = [_tokens(segment, code) for code in held]
    return {code: Counts(documents[i], tokens[i][0], passages[i], tokens[i][1]) for i, code in enumerate(held)}


def languages_of_spans(segment: Segment, spans: Integers | slice, codes: Iterable[str]) -> Integers:
    """The language of each span, as an index into `codes`; -1 for a language that is not among them."""
    labels: Array = segment["span.language"][spans]
    if labels.size and int(labels.max()) >= len(segment.labels):
        raise segment.columns.damaged("has a damaged column (span.language)")
    number = {code: i for i, code in enumerate(codes)}
    # The labels of a segment are also tags and parts, which are not languages.
    used = np.flatnonzero(np.bincount(labels, minlength=1)) if labels.size else np.zeros(0, np.int64)
    of_label = np.full(len(segment.labels), -1, np.int64)
    for label in used.tolist():
        of_label[label] = number.get(language_code(segment.labels[label]), -1)
    languages: Integers = of_label[labels]
    return languages


def _documents(segment: Segment, codes: list[str]) -> list[int]:
    """The number of live documents with text in each language."""
    has_text = np.isin(segment["span.kind"], _TEXTS) & (segment["span.end_token"] > segment["span.first_token"])
    spans = np.flatnonzero(has_text)
    document = np.searchsorted(segment["document.first_span"], spans, "right") - 1
    language = languages_of_spans(segment, spans, codes)
    known = language >= 0
    held = np.zeros((segment.documents, len(codes)), bool)
    held[document[known], language[known]] = True
    return [int(count) for count in held[segment.alive].sum(axis=0)]


_TEXTS = (int(Kind.PASSAGE), int(Kind.TITLE), int(Kind.ELEMENT))
"""The kinds of spans that hold text themselves; a section holds other spans."""


def _passages(segment: Segment, codes: list[str]) -> list[int]:
    """The number of passages of live documents in each language."""
    first = segment["document.first_passage"].astype(np.int64)
    document = np.repeat(np.arange(segment.documents), np.diff(first))
    first_span = segment["document.first_span"].astype(np.int64)
    span = first_span[document] + segment["passage.span"].astype(np.int64)
    if np.any(span >= first_span[document + 1]):
        raise segment.columns.damaged("has a damaged column (passage.span)")
    language = languages_of_spans(segment, span[segment.alive[document]], codes)
    return [int(count) for count in np.bincount(language[language >= 0], minlength=len(codes))]


def _tokens(segment: Segment, code: str) -> tuple[int, int]:
    """The tokens of live documents in a language, and those of them inside passages."""
    terms = segment.terms_with_prefix(f"{code}:".encode()).astype(np.int64)
    counts = segment.term_counts(terms)
    return int(counts[1].sum()), int(counts[3].sum())
