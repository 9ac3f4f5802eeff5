"""Baselines that rank by fetch score and position, without scoring passages.

Beigbeder et al. 2015, section 5.4, compare their models with these baselines.
"""

from __future__ import annotations

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model
from perikope.browse.models.content import fetch_score
from perikope.browse.signals import Column, fact
from perikope.core.arrays import Integers, Mask


def first_section_signals(matches: Matches) -> Signals:
    """The signals `document`, the fetch score, and `chosen`, a bonus for passages in the document's first section."""
    matches.require_passages("first_section")
    top = _top_section(matches.parent_of_section)
    chosen = _first_of_document(matches, _with_passages(matches, top))
    return _signals(matches, top, chosen, "in the first section")


@model(first_section_signals)
def first_section(signals: Signals) -> Column:
    """The first section of each document, documents by fetch score, passages in reading order.

    The score of a passage is `doc(d) + 1 + max doc - min doc` if it is in the first section directly below the document
    d, or if d has no sections. The score of any other passage is `doc(d)`, so these follow after all passages of first
    sections. doc is the fetch score. Passages of a document with equal scores stay in reading order.
    """
    return signals["chosen"] + signals["document"]


def first_matching_section_signals(matches: Matches) -> Signals:
    """The signals `document`, the fetch score, and `chosen`, a bonus for the first section with a query term.

    All passages in this section of a document have the bonus.
    """
    matches.require_passages("first_matching_section")
    top = _top_section(matches.parent_of_section)
    with_passages = _with_passages(matches, top)
    matching = np.zeros(top.size, bool)
    matching[top[np.diff(matches.in_titles.first_entry) > 0]] = True
    matching[top[matches.section_of_passage[np.diff(matches.in_passages.first_entry) > 0]]] = True
    first, first_matching = _first_of_document(matches, with_passages), _first_of_document(matches, with_passages & matching)
    return _signals(matches, top, np.where(first_matching >= 0, first_matching, first), "in the first section with a query term")


@model(first_matching_section_signals)
def first_matching_section(signals: Signals) -> Column:
    """The first section of each document with a query term, documents by fetch score, passages in reading order.

    The score of a passage is `doc(d) + 1 + max doc - min doc` if it is in the chosen section of its document d, and
    `doc(d)` otherwise; doc is the fetch score. The chosen section is the first section directly below the document that
    has a query term in its text or titles. If there is none, it is the first section. If the document has no sections,
    all its passages are chosen.
    """
    return signals["chosen"] + signals["document"]


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
        "chosen": apart * fact(label, inside.astype(np.float64)),
        "document": fetch_score(matches).at(matches.document_of_passage),
    }
