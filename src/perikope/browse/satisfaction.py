"""Find the passages that satisfy a Boolean query.

*Inside a passage*: a word holds if it occurs in the passage. A phrase or NEAR holds if a whole match lies in the
passage. AND, OR and NOT refer to the passage alone.

*Across passages*: the query must hold for the document, titles included. Phrases and NEAR may span passages. AND, OR
and NOT refer to the whole document. SAME must hold inside one passage. A passage of such a document then satisfies the
query if it contains a word of a match: a word that is not under NOT, a word of a phrase or NEAR that lies within a
match, or a whole match of SAME.

A match is a stretch of tokens. The stretch of a word is its token. The stretch of a phrase runs from its first to its
last word. A stretch of NEAR covers one stretch of each operand. These two must not overlap, and the second must begin
at most `distance` tokens after the end of the first. OR has the stretches of all operands. AND and SAME have the
stretches that contain one stretch of each operand; for SAME, they must lie inside one passage.

For each operator, only the shortest stretches are kept, which contain no other stretch of the same operator (Clarke,
Cormack and Burkowski 1995). Therefore, inside NEAR, `("heat pump" OR pump)` matches at the same tokens as `pump`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from perikope.browse.matches import Matches
from perikope.core.arrays import Integers, Mask
from perikope.core.errors import UsageError
from perikope.kernels.boolean import (
    Stretches,
    TermOccurrences,
    TokenRanges,
    both,
    covered,
    either,
    followed,
    held,
    holding,
    phrases,
    reach,
)
from perikope.query.boolean import And, Near, Not, Or, Phrase, QueryTree, Same, Word, words_of


def satisfied(matches: Matches, *, across: bool = False) -> Mask:
    """One flag per passage: whether it satisfies the query inside the passage or, with `across`, across passages.

    The module's docstring defines both. A query without operators holds if all its words occur.
    """
    evaluation = BooleanEvaluator(matches)
    tree = matches.query.boolean
    return evaluation.around(tree) if across else evaluation.inside(tree)


class BooleanEvaluator:
    """Evaluates query trees on the occurrences of `matches`, including the occurrences of negated terms."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches.with_negated()
        self._number = {term: number for number, term in enumerate(self.matches.query.terms)}

    def inside(self, tree: QueryTree) -> Mask:
        """One flag per passage: whether the tree holds inside the passage alone."""
        matches = self.matches
        match tree:
            case Word():
                frequencies = matches.in_passages
                return _any_in(self._counts([tree])[frequencies.term], frequencies.first_entry[:-1], frequencies.first_entry[1:])
            case Phrase() | Near():
                passages = TokenRanges(matches.document_of_passage, matches.first_token_of_passage, matches.end_token_of_passage)
                flags: Mask = held(self.stretches(tree), passages)
                return flags
            case And(children) | Same(children):
                return _all([self.inside(child) for child in children], matches.passages)
            case Or(children):
                return _any([self.inside(child) for child in children], matches.passages)
            case Not(child):
                return ~self.inside(child)

    def around(self, tree: QueryTree) -> Mask:
        """One flag per passage: whether the tree holds for its document, and the passage contains a word of a match."""
        documents, passages = self._around(tree, False)
        return documents[self.matches.document_of_passage] & passages

    def stretches(self, tree: QueryTree) -> Stretches:
        """The stretches of tokens at which the tree matches. Raises `UsageError` for NOT, which has no position."""
        matches = self.matches
        match tree:
            case Word():
                return self._single_tokens(self._counts([tree])[matches.term_of_occurrence])
            case Phrase(words):
                # Inside a phrase, a stop word (None) matches any token; at its ends it is ignored.
                offsets = np.array([i for i, word in enumerate(words) if word is not None], np.int64)
                counts = np.stack([self._counts([word]) for word in words if word is not None])
                matching: Stretches = phrases(self.occurrences(), offsets - offsets[0], counts)
                return matching
            case Near(left, right, distance, ordered):
                one, other = self.stretches(left), self.stretches(right)
                behind: Stretches = followed(one, other, distance)
                return behind if ordered else either(behind, followed(other, one, distance))
            case Or(children):
                return reduce(either, map(self.stretches, children))
            case And(children):
                return reduce(both, map(self.stretches, children))
            case Same(children):
                return self._inside_passages(self.stretches(And(children)))
            case Not():
                raise UsageError("NOT cannot stand inside NEAR or ADJ, because a missing word has no position; move NOT outside")

    def _around(self, tree: QueryTree, negated: bool) -> tuple[Mask, Mask]:
        """Evaluate a tree, or if `negated` its negation, across passages.

        Returns one flag per document: whether the tree holds; and one flag per passage: whether it contains a word of a
        match, if its document has one.
        """
        matches = self.matches
        match tree:
            case Not(child):
                return self._around(child, not negated)
            case And(children) | Or(children):
                flags = [self._around(child, negated) for child in children]
                combine = _all if isinstance(tree, And) ^ negated else _any
                # If an operand does not hold for a document, its words there belong to no match.
                parts = [passages & holds[matches.document_of_passage] for holds, passages in flags]
                return combine([holds for holds, _ in flags], matches.documents), _any(parts, matches.passages)
        documents, passages = self._leaf(tree)
        return (~documents, np.zeros(matches.passages, bool)) if negated else (documents, passages)

    def _leaf(self, tree: Word | Phrase | Near | Same) -> tuple[Mask, Mask]:
        matches = self.matches
        if isinstance(tree, Same):
            passages = self.inside(tree)
            documents = np.zeros(matches.documents, bool)
            documents[matches.document_of_passage[passages]] = True
            return documents, passages
        stretches = self.stretches(tree)
        documents = np.diff(stretches.first_of_document) > 0
        if isinstance(tree, Word):
            return documents, self.inside(tree)
        counts = self._counts([word for word, _ in words_of(tree)])
        marked = np.zeros(matches.term_of_occurrence.size, bool)
        for some in self.widest(tree) if isinstance(tree, Near) else [stretches]:
            marked |= covered(some, self.occurrences(), counts)
        return documents, _any_in(marked, matches.first_occurrence_of_passage, matches.end_occurrence_of_passage)

    def widest(self, tree: Near) -> list[Stretches]:
        """The longest stretches of NEAR: from each match of one operand to the farthest match of the other in reach.

        They cover the words of all pairs within the distance, whereas `stretches` covers only the nearest pairs.
        Returns one list per order of the operands. ADJ has only one order.
        """
        one, other = self.stretches(tree.left), self.stretches(tree.right)
        orders = [(one, other)] if tree.ordered else [(one, other), (other, one)]
        return [reach(before, behind, tree.distance) for before, behind in orders]

    def _inside_passages(self, stretches: Stretches) -> Stretches:
        matches = self.matches
        order = np.lexsort((matches.first_token_of_passage, matches.document_of_passage))
        columns = matches.document_of_passage, matches.first_token_of_passage, matches.end_token_of_passage
        kept = holding(stretches, TokenRanges(*(column[order] for column in columns)))
        before = np.concatenate([[0], np.cumsum(kept)])
        return Stretches(before[stretches.first_of_document], stretches.start[kept], stretches.end[kept])

    def _single_tokens(self, chosen: Mask) -> Stretches:
        """One stretch of one token per chosen occurrence; `chosen` has one flag per occurrence."""
        before = np.concatenate([[0], np.cumsum(chosen)])
        position = self.matches.position_of_occurrence[chosen].astype(np.int64)
        return Stretches(before[self.matches.first_occurrence_of_document], position, position)

    def occurrences(self) -> TermOccurrences:
        """The occurrences of the matches, in the form that kernels take."""
        matches = self.matches
        return TermOccurrences(matches.term_of_occurrence, matches.position_of_occurrence, matches.first_occurrence_of_document)

    def _counts(self, words: Sequence[Word]) -> Mask:
        """One flag per query term: whether one of the words has this term."""
        counts = np.zeros(len(self._number), bool)
        counts[[self._number[term] for word in words for term in word.terms if term in self._number]] = True
        return counts


def _any_in(flags: Mask, first: Integers, end: Integers) -> Mask:
    """One flag per range from `first` to `end` (exclusive): whether any of `flags` in this range is set."""
    before = np.concatenate([[0], np.cumsum(flags)])
    result: Mask = before[end] > before[first]
    return result


def _all(flags: Sequence[Mask], size: int) -> Mask:
    return reduce(np.logical_and, flags, np.ones(size, bool))


def _any(flags: Sequence[Mask], size: int) -> Mask:
    return reduce(np.logical_or, flags, np.zeros(size, bool))
