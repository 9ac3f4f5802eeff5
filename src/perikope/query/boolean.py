"""Boolean queries: trees of words, phrases and operators over the terms of the index.

`str` writes a tree so that it parses back to the same tree.

Terms that occur only under NOT have no effect on lexical models: `join` leaves them out of the `Matches`. Code that
evaluates the tree `matches.query.boolean` uses `matches.with_negated()`, which includes these terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field


class _Node:
    __slots__ = ()

    def __str__(self) -> str:
        return _write(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Word(_Node):
    """A word, given by its terms (`en:pump`): one per language, all terms of a wildcard, near terms or synonyms.

    The word matches if any of its terms matches. A word without terms never matches.
    """

    terms: tuple[str, ...]
    written: str = field(default="", compare=False)
    """The word as written in the query: a wildcard without its star, or the first of several terms in braces.

    Empty for a synonym that the query does not contain.
    """
    scored: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """The terms and groups that count in scores, with weights; empty if each of `terms` counts with weight 1."""
    reasons: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Terms that are not of the word as written, each with the reason why they stand for it."""


@dataclass(frozen=True, slots=True)
class Phrase(_Node):
    """Matches where the words occur at consecutive positions. None, for a stop word, matches any token."""

    words: tuple[Word | None, ...]


@dataclass(frozen=True, slots=True)
class Near(_Node):
    """Matches where both children match at most `distance` tokens apart, without overlap.

    A distance of 1 means that the matches are adjacent. If `ordered`, the match of `left` must come before the match of
    `right`. A child must not contain NOT, since NOT has no position.
    """

    left: QueryTree
    right: QueryTree
    distance: int
    ordered: bool


@dataclass(frozen=True, slots=True)
class Same(_Node):
    """Matches where all children match inside one passage, even if other operators look across passages."""

    children: tuple[QueryTree, ...]


@dataclass(frozen=True, slots=True)
class And(_Node):
    """Matches where all children match."""

    children: tuple[QueryTree, ...]


@dataclass(frozen=True, slots=True)
class Or(_Node):
    """Matches where at least one child matches."""

    children: tuple[QueryTree, ...]


@dataclass(frozen=True, slots=True)
class Not(_Node):
    """Matches where the child does not match."""

    child: QueryTree


QueryTree = Word | Phrase | Near | Same | And | Or | Not


def children_of(tree: QueryTree) -> tuple[QueryTree, ...]:
    """The direct children of a tree. The children of a phrase are its words, without stop words."""
    match tree:
        case Word():
            return ()
        case Phrase(words):
            return tuple(word for word in words if word is not None)
        case Near(left, right):
            return left, right
        case Not(child):
            return (child,)
    return tree.children


def words_of(tree: QueryTree, negated: bool = False) -> Iterator[tuple[Word, bool]]:
    """Yield all words in order of appearance, each with a flag: whether the word is under an odd number of NOTs."""
    if isinstance(tree, Word):
        yield tree, negated
    for child in children_of(tree):
        yield from words_of(child, negated ^ isinstance(tree, Not))


def all_of(trees: tuple[QueryTree, ...]) -> QueryTree:
    """The conjunction of trees. A single tree is returned unchanged."""
    return trees[0] if len(trees) == 1 else And(trees)


def _write(tree: QueryTree) -> str:
    match tree:
        case Word(terms):
            # Terms are written in braces, because the parser would stem a term again if it were written as a word.
            return "{" + "|".join(re.sub(r"([|}\\])", r"\\\1", term) for term in terms) + "}"
        case Phrase(words):
            return '"' + " ".join("*" if word is None else str(word) for word in words) + '"'
        case Near(left, right, distance, ordered):
            return f"{_operand(left)} {'ADJ' if ordered else 'NEAR'}/{distance} {_operand(right)}"
        case Not(child):
            return f"NOT {_operand(child)}"
        case And(children):
            return " AND ".join(map(_operand, children))
        case Or(children):
            return " OR ".join(map(_operand, children))
        case Same(children):
            return " SAME ".join(map(_operand, children))


def _operand(tree: QueryTree) -> str:
    return f"{tree}" if isinstance(tree, Word | Phrase | Not) else f"({tree})"
