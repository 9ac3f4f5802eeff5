"""Boolean queries: trees of words, phrases and operators over the terms of the index.

`str` writes a tree so that it parses back to the same tree.

A lexical model never sees the terms that stand only under NOT: `join` leaves them out of the `Matches`. What reads the
tree asks for `matches.with_negated()`, which has them too, and takes the tree from `matches.query.boolean`.
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
    """A word, given by its terms (`en:pump`): one per language, or all that a wildcard stands for.

    Any of the terms matches; without terms the word occurs nowhere.
    """

    terms: tuple[str, ...]
    written: str = field(default="", compare=False)
    """As written in the query; for a wildcard the part before the star, for exact terms the first term."""


@dataclass(frozen=True, slots=True)
class Phrase(_Node):
    """Words that follow one another; None is a stop word: any token at that position."""

    words: tuple[Word | None, ...]


@dataclass(frozen=True, slots=True)
class Near(_Node):
    """Two matches that do not overlap, the second within `distance` tokens of the end of the first (1: adjacent).

    If `ordered`, the left match comes first. A NOT has no position, so it cannot be a child.
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
    """The direct children of a tree."""
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
    """All words in order of appearance, each with whether it is under an odd number of NOTs."""
    if isinstance(tree, Word):
        yield tree, negated
    for child in children_of(tree):
        yield from words_of(child, negated ^ isinstance(tree, Not))


def all_of(trees: tuple[QueryTree, ...]) -> QueryTree:
    """The conjunction of trees; one tree is returned as it is."""
    return trees[0] if len(trees) == 1 else And(trees)


def _write(tree: QueryTree) -> str:
    match tree:
        case Word(terms):
            # Index terms as they are: a stemmed term would be stemmed again where it was read as a word.
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
