"""Baselines that rank by fetch score and position, without scoring passages.

Beigbeder et al. 2015, section 5.4, compare their models with these baselines.
"""

from __future__ import annotations

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model
from perikope.browse.models.content import fetch_score
from perikope.browse.signals import Column, fact, product
from perikope.core.arrays import Integers, Mask
from perikope.document.tree import Kind


def first_section_signals(matches: Matches) -> Signals:
    """The signals `document`, the fetch score, and `chosen`, a bonus for passages in the document's first section.

    If elements are ranked, only the element that is this section has a score other than 0.
    """
    label = "in the first section"
    if matches.units == "elements":
        return _element_signals(matches, _first_element(matches, np.ones(matches.passages, bool)), label)
    matches.require_passages("first_section")
    top = _top_section(matches.parent_of_section)
    return _signals(matches, top, _first_of_document(matches, _with_passages(matches, top)), label)


@model(first_section_signals)
def first_section(signals: Signals) -> Column:
    """The first section of each document, documents by fetch score, passages in reading order.

    The score of a passage is `doc(d) + 1 + max doc - min doc` if it is in the first section directly below the document
    d, or if d has no sections. The score of any other passage is `doc(d)`, so these follow after all passages of first
    sections. doc is the fetch score. Passages of a document with equal scores stay in reading order.

    With `--elements`, the result is the first section as one element, with the score
    `doc(d) + 1 + max doc - 2 min doc`. All other elements score 0, so `--no-overlap` leaves them out. A document
    without sections is the result itself.
    """
    return signals["chosen"] + signals["document"]


def first_matching_section_signals(matches: Matches) -> Signals:
    """The signals `document`, the fetch score, and `chosen`, a bonus for the first section with a query term.

    All passages in this section of a document have the bonus. If elements are ranked, only the element that is this
    section has a score other than 0.
    """
    label = "in the first section with a query term"
    if matches.units == "elements":
        first, first_matching = (
            _first_element(matches, eligible)
            for eligible in (np.ones(matches.passages, bool), np.diff(matches.in_passages.first_entry) > 0)
        )
        return _element_signals(matches, np.where(first_matching >= 0, first_matching, first), label)
    matches.require_passages("first_matching_section")
    top = _top_section(matches.parent_of_section)
    with_passages = _with_passages(matches, top)
    matching = np.zeros(top.size, bool)
    matching[top[np.diff(matches.in_titles.first_entry) > 0]] = True
    matching[top[matches.section_of_passage[np.diff(matches.in_passages.first_entry) > 0]]] = True
    first, first_matching = _first_of_document(matches, with_passages), _first_of_document(matches, with_passages & matching)
    return _signals(matches, top, np.where(first_matching >= 0, first_matching, first), label)


@model(first_matching_section_signals)
def first_matching_section(signals: Signals) -> Column:
    """The first section of each document with a query term, documents by fetch score, passages in reading order.

    The score of a passage is `doc(d) + 1 + max doc - min doc` if it is in the chosen section of its document d, and
    `doc(d)` otherwise; doc is the fetch score. The chosen section is the first section directly below the document that
    has a query term in its text or titles. If there is none, it is the first section. If the document has no sections,
    all its passages are chosen.

    With `--elements`, the result is the chosen section as one element, scored as in first_section.
    """
    return signals["chosen"] + signals["document"]


def _first_element(matches: Matches, eligible: Mask) -> Integers:
    """The row of each document's first eligible section directly below the document, or -1 if there is none.

    `eligible` has one flag per row. If a document has no sections at all, this is the row of the document itself.
    """
    structure = matches.structure()
    span = structure.first_span_of_document[matches.document_of_passage] + matches.span_of_passage
    is_section, parent = structure.kind_of_span == int(Kind.SECTION), structure.parent_of_span
    above = parent.copy()
    while (climbs := (above >= 0) & ~is_section[above]).any():
        above[climbs] = parent[above[climbs]]
    is_top = is_section & (above >= 0) & (parent[above] < 0)
    top_rows = np.flatnonzero(is_top[span])
    first = np.full(matches.documents, -1, np.int64)
    whole = np.flatnonzero((matches.span_of_passage == 0) & ~np.isin(matches.document_of_passage, matches.document_of_passage[top_rows]))
    first[matches.document_of_passage[whole]] = whole
    chosen = top_rows[eligible[top_rows]][::-1]
    first[matches.document_of_passage[chosen]] = chosen  # backwards, so that the first section is written last
    return first


def _element_signals(matches: Matches, row_of_document: Integers, label: str) -> Signals:
    inside = np.zeros(matches.passages)
    inside[row_of_document[row_of_document >= 0]] = 1.0
    scores = matches.score_of_document
    least, most = (float(scores.min()), float(scores.max())) if scores.size else (0.0, 0.0)
    chosen = fact(label, inside).of("sections")
    above_least = fetch_score(matches).affine("fetch score above the least", 1.0, -least).at(matches.document_of_passage)
    return {
        "chosen": (1.0 + most - least) * chosen,
        "document": product("fetch score, only of the chosen section", above_least, chosen),
    }


def _top_section(parent: Integers) -> Integers:
    """For each section, the index of the section directly below the document that contains it.

    A section directly below the document, and the document, have their own index.
    """
    top = np.arange(parent.size)
    while True:
        above = parent[top]
        nested = (above >= 0) & (parent[above] >= 0)
        if not nested.any():
            return top
        top = np.where(nested, above, top)


def _with_passages(matches: Matches, top: Integers) -> Mask:
    """One flag per section: whether it is directly below the document and contains passages."""
    has_passages = np.zeros(top.size, bool)
    has_passages[top[matches.section_of_passage]] = True
    return has_passages & (matches.parent_of_section >= 0)


def _first_of_document(matches: Matches, eligible: Mask) -> Integers:
    """The index of the first eligible section of each document, or -1; `eligible` has one flag per section."""
    first = np.full(matches.documents, -1, np.int64)
    sections = np.flatnonzero(eligible)[::-1]
    first[matches.document_of_section[sections]] = sections  # backwards, so that the first section is written last
    return first


def _signals(matches: Matches, top: Integers, section_of_document: Integers, label: str) -> Signals:
    chosen = section_of_document[matches.document_of_passage]
    inside = (chosen < 0) | (top[matches.section_of_passage] == chosen)
    scores = matches.score_of_document
    apart = 1.0 + (float(scores.max() - scores.min()) if scores.size else 0.0)
    return {
        "chosen": apart * fact(label, inside.astype(np.float64)).of("sections"),
        "document": fetch_score(matches).at(matches.document_of_passage),
    }
