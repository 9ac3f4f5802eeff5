"""How far passages and their context cover the terms of a query: the sums of the model `coverage`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel, step
from perikope.kernels.join import TermCounts

PASSAGE, TITLES, NEIGHBORS, DOCUMENT = range(4)
"""Rows of the result of `cover`."""


class CoveredTexts(NamedTuple):
    """The texts that may cover a term: passages, their neighbours, titles and documents."""

    first_passage: Integers
    """First passage of each document, and at the end the number of passages."""
    first_section: Integers
    """First section of each document, and at the end the number of sections."""
    section_of_passage: Integers
    parent_of_section: Integers
    """Parents come before their children; a root has -1."""
    in_passages: TermCounts
    in_titles: TermCounts
    """The units are the sections."""
    in_documents: TermCounts


class Covering(NamedTuple):
    """How much each text covers of a term, from 0 (nothing) to 1."""

    weight: Floats
    """Weight of each term in the score."""
    by_passage: Floats
    """One value per entry of `in_passages`."""
    by_document: Floats
    """One value per entry of `in_documents`."""
    by_title: Floats
    """One value per term: what a title that contains the term covers."""
    by_neighbors: float
    """What neighbours cover at most; n occurrences in the two neighbours cover n / (n + `saturation`) of it."""
    saturation: float


@kernel
def cover(texts: CoveredTexts, covering: Covering) -> Floats:
    """For each passage, the weight that it covers, and what titles, neighbours and document cover of the rest.

    Returns an array (4, passages). Let p, g, n and d be what the passage, its titles, its neighbours and its document
    cover of a term. The rows are the sums over all terms, times their weights, of
    `p`, `(1 - p) g`, `(1 - p)(1 - g) n` and `(1 - p)(1 - g)(1 - n) d`. Their sum is `1 - (1 - p)(1 - g)(1 - n)(1 - d)`.

    A passage in which no term occurs has the sums of its section, so each section is summed once. Every other passage
    adds the differences of the terms that occur in it or beside it. The time is proportional to the occurrences.
    """
    terms = covering.weight.size
    documents = texts.first_passage.size - 1
    most_sections = 1
    for document in range(documents):
        most_sections = max(most_sections, texts.first_section[document + 1] - texts.first_section[document])
    covered = np.zeros((4, texts.section_of_passage.size))
    by_document = np.zeros(terms)
    by_titles = np.zeros((most_sections + 1, terms))
    row_of_section = np.zeros(most_sections, np.int64)
    sums_of_row = np.zeros((most_sections + 1, 2))
    beside = np.zeros(terms, np.int64)
    for document in range(documents):
        first, end = texts.in_documents.first_entry[document], texts.in_documents.first_entry[document + 1]
        if first < end:
            for entry in range(first, end):
                by_document[texts.in_documents.term[entry]] = covering.by_document[entry]
            _sum_sections(texts, covering, document, by_document, by_titles, row_of_section, sums_of_row)
            first_section = texts.first_section[document]
            for passage in range(texts.first_passage[document], texts.first_passage[document + 1]):
                row = row_of_section[texts.section_of_passage[passage] - first_section]
                _count_beside(texts, covering, document, passage, beside)
                _sum_passage(texts, covering, document, passage, by_document, by_titles[row], sums_of_row[row], beside, covered)
            for entry in range(first, end):
                by_document[texts.in_documents.term[entry]] = 0.0
    return covered


@step
def _sum_sections(
    texts: CoveredTexts, covering: Covering, document: int, by_document: Floats, by_titles: Floats, row_of_section: Integers, sums: Floats
) -> None:
    """For each section of a document, find the row of what its titles cover; sum titles and document in each row.

    `by_titles` (rows, terms) has what the titles cover, and `sums` (rows, 2) the sums of a passage without terms. Row 0
    has no titles. Sections whose title contains no term share the row of the section above them.
    """
    first_section = texts.first_section[document]
    first, end = texts.in_documents.first_entry[document], texts.in_documents.first_entry[document + 1]
    rows = 0
    for section in range(first_section - 1, texts.first_section[document + 1]):
        above = 0
        if section >= first_section:
            if texts.parent_of_section[section] >= 0:
                above = row_of_section[texts.parent_of_section[section] - first_section]
            row_of_section[section - first_section] = above
            if texts.in_titles.first_entry[section] == texts.in_titles.first_entry[section + 1]:
                continue
            row_of_section[section - first_section] = rows
            for term in range(covering.weight.size):
                by_titles[rows, term] = by_titles[above, term]
            for entry in range(texts.in_titles.first_entry[section], texts.in_titles.first_entry[section + 1]):
                by_titles[rows, texts.in_titles.term[entry]] = covering.by_title[texts.in_titles.term[entry]]
        sums[rows, 0] = sums[rows, 1] = 0.0
        for entry in range(first, end):
            term = texts.in_documents.term[entry]
            sums[rows, 0] += covering.weight[term] * by_titles[rows, term]
            sums[rows, 1] += covering.weight[term] * (1 - by_titles[rows, term]) * by_document[term]
        rows += 1


@step
def _count_beside(texts: CoveredTexts, covering: Covering, document: int, passage: int, beside: Integers) -> None:
    """Add the frequencies of the terms in the two passages beside a passage to `beside`."""
    if covering.by_neighbors > 0:
        for other in (passage - 1, passage + 1):
            if texts.first_passage[document] <= other < texts.first_passage[document + 1]:
                for entry in range(texts.in_passages.first_entry[other], texts.in_passages.first_entry[other + 1]):
                    beside[texts.in_passages.term[entry]] += texts.in_passages.count[entry]


@step
def _sum_passage(
    texts: CoveredTexts,
    covering: Covering,
    document: int,
    passage: int,
    by_document: Floats,
    by_titles: Floats,
    sums: Floats,
    beside: Integers,
    covered: Floats,
) -> None:
    """Sum what is covered for a passage: the sums of its section, and the differences of terms in it or beside it.

    `by_titles` (terms,) and `sums` (2,) are those of the row of its section. Sets `beside` to 0.
    """
    of_passage, of_titles, of_neighbors, of_document = 0.0, sums[0], 0.0, sums[1]
    first, end = texts.first_passage[document], texts.first_passage[document + 1]
    # The passage itself comes first. It sets its terms in `beside` to 0, so only terms of the neighbours alone remain.
    for other in (passage, passage - 1, passage + 1):
        if other == passage or (covering.by_neighbors > 0 and first <= other < end):
            for entry in range(texts.in_passages.first_entry[other], texts.in_passages.first_entry[other + 1]):
                term = texts.in_passages.term[entry]
                if other == passage or beside[term] > 0:
                    own = covering.by_passage[entry] if other == passage else 0.0
                    near = covering.by_neighbors * beside[term] / (beside[term] + covering.saturation)
                    beside[term] = 0
                    weight, title = covering.weight[term], by_titles[term]
                    of_passage += weight * own
                    of_titles -= weight * title * own
                    of_neighbors += weight * (1 - own) * (1 - title) * near
                    of_document -= weight * (1 - title) * by_document[term] * (own + near - own * near)
    covered[PASSAGE, passage], covered[TITLES, passage] = of_passage, of_titles
    covered[NEIGHBORS, passage], covered[DOCUMENT, passage] = of_neighbors, of_document
