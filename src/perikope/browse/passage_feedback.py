"""Expand the query that scores passages with terms of the best passages.

The passages of the candidate documents serve as a small collection. Each passage is treated as a document of that
collection, and all statistics are computed over these passages. Gobeill and Ruch 2012 do this with the expansion model
Bo1.
"""

from __future__ import annotations

import numpy as np

from perikope.browse.languages import rows_by_language
from perikope.browse.matches import Matches, join
from perikope.browse.ranking import Ranking
from perikope.core.arrays import Integers
from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.fetch.expansion import Expander, Feedback, terms_to_add
from perikope.index.layout import STOP
from perikope.index.reader import Snapshot
from perikope.query.terms import Query


def expand_from_passages(snapshot: Snapshot, matches: Matches, best: Ranking, expander: Expander) -> Query:
    """The query of the matches, expanded with terms of the passages that `best` ranks first.

    `expander.depth` is the number of these passages. The query is returned unchanged if it has no terms or if `best` is
    empty.
    """
    if matches.units != "passages":
        raise UsageError("browse_expand takes terms from passages; remove it if elements or documents are ranked")
    query = matches.query
    return expander(query, _feedback(snapshot, matches, best, expander.depth)) if len(best) and query.terms else query


def _feedback(snapshot: Snapshot, matches: Matches, best: Ranking, depth: int) -> Feedback:
    rows = best.rows[:depth]
    order = np.argsort(rows)
    documents, first, end = (column[rows[order]] for column in (
        matches.number_of_document[matches.document_of_passage], matches.first_token_of_passage, matches.end_token_of_passage
    ))  # fmt: skip
    answers = [counts for _, some in snapshot.ask_about(_terms_of, documents, beside=(first, end)) for counts in some]
    counts = [answers[at] for at in np.argsort(order).tolist()]
    terms = terms_to_add(matches.query, counts)
    candidates = Candidates(matches.number_of_document, matches.score_of_document)
    inside = join(snapshot, Query("", terms, (1.0,) * len(terms)), candidates).in_passages
    return Feedback(
        terms,
        np.array([[frequency.get(term, 0) for term in terms] for frequency in counts], np.float64).reshape(len(counts), len(terms)),
        matches.length_of_passage[rows].astype(np.float64),
        best.scores[:depth],
        np.bincount(inside.term, inside.count, minlength=len(terms)).astype(np.float64),
        rows_by_language(matches, terms)[0] if matches.query.languages else matches.passages,
    )


def _terms_of(snapshot: Snapshot, documents: Integers, first: Integers, end: Integers) -> list[dict[str, int]]:
    """The frequency of each term in each range of tokens of a document, by the term's text, without stop words."""
    found = []
    for document, *inside in zip(documents.tolist(), first.tolist(), end.tolist(), strict=True):
        segment, local = snapshot.locate(document)
        numbers, frequency = np.unique(segment.tokens(local)[slice(*inside)], return_counts=True)
        found.append({segment.terms.text(int(n)): int(f) for n, f in zip(numbers, frequency, strict=True) if n != STOP})
    return found
