"""The languages of the rows of matches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perikope.browse.matches import Matches
from perikope.core.arrays import Integers, Mask
from perikope.index.languages import languages_of_spans
from perikope.index.reader import Snapshot


def languages_of_rows(matches: Matches) -> Integers:
    """The language of each passage or element, as an index into `snapshot.languages`."""
    snapshot = matches.snapshot
    assert snapshot is not None, "only matches of an index have languages"

    def read() -> Integers:
        language = np.full(matches.passages, -1, np.int64)
        documents = matches.number_of_document[matches.document_of_passage]
        for rows, answer in snapshot.ask_about(_languages_of, documents, snapshot.languages, beside=(matches.span_of_passage,)):
            language[rows] = answer
        return language

    return matches.once("languages of rows", read)


def _languages_of(snapshot: Snapshot, documents: Integers, spans: Integers, codes: Sequence[str]) -> Integers:
    """The language of each span, as an index into `codes`; `documents` has the document of each."""
    language = np.full(documents.size, -1, np.int64)
    bounds = documents.searchsorted(snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        rows = slice(int(bounds[i]), int(bounds[i + 1]))
        local = documents[rows] - snapshot.first_document[i]
        in_segment = segment["document.first_span"][local].astype(np.int64) + spans[rows]
        language[rows] = languages_of_spans(segment, in_segment, codes)
    return language


def rows_by_language(matches: Matches, terms: Sequence[str]) -> tuple[Integers, Integers]:
    """The number of rows in the language of each term, and the number of their indexed tokens."""
    snapshot, language = matches.snapshot, languages_of_rows(matches)
    assert snapshot is not None
    known = language >= 0
    rows = np.bincount(language[known], minlength=len(snapshot.languages))
    tokens = np.bincount(language[known], matches.length_of_passage[known], minlength=rows.size).astype(np.int64)
    # A damaged index may have terms of a language that it does not list; no row is in it.
    number_of = {code: i for i, code in enumerate(snapshot.languages)}
    number = np.array([number_of.get(term.partition(":")[0], -1) for term in terms], np.int64)
    return np.where(number >= 0, rows[number], 0), np.where(number >= 0, tokens[number], 0)


def in_searched_languages(matches: Matches) -> Mask | None:
    """The mask of rows that are in a searched language or contain a query term; None if all languages are searched.

    A row in another language contains a query term if no text in the searched languages has that word.
    """
    snapshot, searched = matches.snapshot, matches.query.languages
    if snapshot is None or not searched or {*snapshot.totals_by_language} <= {*searched}:
        return None
    is_searched = np.array([*(code in searched for code in snapshot.languages), False])  # the last one is for -1
    mask: Mask = is_searched[languages_of_rows(matches)] | (np.diff(matches.in_passages.first_entry) > 0)
    return mask
