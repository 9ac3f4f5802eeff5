"""What a score is made of: the values of an explanation, added up by the texts that they come from and by word.

The parts of a score add up to the score. Each operation of an explanation passes its value on to its children:

- A sum adds the parts of its children.
- A product belongs to the children whose origin or word is known, in equal shares. The others, such as idf, are
  weights.
- A minimum or maximum belongs to the child that decides it.
- `slope · x` multiplies the parts of x. `slope · x + b` and `exp(x)` have parts in the proportions of those of x, since
  no constant comes from a text. Summands of x in `exp(x)` without origin and word are factors, and so are weights.

Values whose origin is not known, such as the length of a passage in a learned score, are `other`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from perikope.browse.signals import Node, Operation

OTHER: Literal["other"] = "other"
PartOrigin = Literal["passage", "titles", "sections", "document", "neighbors", "references", "other"]
"""An origin, or `other`."""
_SHOWN_WORDS = 3
MOST_WORDS = 10
"""The largest number of words of a part that are listed."""


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What a score owes to one kind of text."""

    origin: PartOrigin
    """`passage`, `titles` above it, `sections` around it, its `document`, `neighbors`, `references` or `other`."""
    value: float
    """The part of the score; negative if it reduces the score."""
    words: dict[str, float]
    """The words of the query with the largest values in this part, as the query writes them, largest first."""


@dataclass(frozen=True, slots=True)
class ScoreReasons:
    """A score and the parts that add up to it."""

    score: float
    """The score."""
    parts: tuple[ScorePart, ...]
    """The parts that are not 0, largest first; negative ones by their size."""

    @property
    def shares(self) -> dict[str, float]:
        """The size of each part divided by the sum of all sizes, by origin."""
        total = math.fsum(abs(part.value) for part in self.parts)
        return {part.origin: abs(part.value) / total if total else 0.0 for part in self.parts}


def reasons_of(node: Node) -> ScoreReasons:
    """The parts of the score that an explanation explains."""
    by_origin: dict[PartOrigin, dict[str, float]] = {}
    for (origin, word), value in _parts(node).items():
        by_origin.setdefault(origin, {})[word] = value
    parts = [ScorePart(origin, math.fsum(words.values()), _largest(words)) for origin, words in by_origin.items()]
    return ScoreReasons(node.value, tuple(sorted(filter(_adds, parts), key=lambda part: (-abs(part.value), part.origin))))


def in_words(reasons: ScoreReasons) -> str:
    """The parts as one line, with the largest words of each; empty if the score is 0.

    >>> in_words(ScoreReasons(4.0, (ScorePart("titles", 3.0, {"rotor": 3.0}), ScorePart("other", 1.0, {}))))
    "from: titles 75 % ('rotor'), other 25 %"
    """
    listed = []
    for part in reasons.parts:
        words = ", ".join(map(repr, list(part.words)[:_SHOWN_WORDS]))
        share = f"{'-' if part.value < 0 else ''}{100 * reasons.shares[part.origin]:.0f} %"
        listed.append(f"{part.origin} {share}" + (f" ({words})" if words else ""))
    return f"from: {', '.join(listed)}" if listed else ""


def _adds(part: ScorePart) -> bool:
    return part.value != 0


def _largest(words: Mapping[str, float]) -> dict[str, float]:
    named = sorted(((word, value) for word, value in words.items() if word), key=lambda item: (-abs(item[1]), item[0]))
    return dict(named[:MOST_WORDS])


Parts = dict[tuple[PartOrigin, str], float]
"""Values by origin and word. They add up to the value of a node."""


def _parts(node: Node) -> Parts:
    """The parts of the value of a node."""
    parts = _OF_OPERATION[node.operation](node, [_parts(child) for child in node.children])
    if not (node.origins or node.word):
        return parts
    named: Parts = {}
    for (origin, word), value in parts.items():
        for part, share in node.origins or ((origin, 1.0),):
            key = part, node.word or word
            named[key] = named.get(key, 0.0) + share * value
    return named


def _of_fact(node: Node, children: list[Parts]) -> Parts:
    return {(OTHER, ""): node.value}


def _of_sum(node: Node, children: list[Parts]) -> Parts:
    added: Parts = {}
    for parts in children:
        for key, value in parts.items():
            added[key] = added.get(key, 0.0) + value
    return added or {(OTHER, ""): node.value}


def _of_product(node: Node, children: list[Parts]) -> Parts:
    known = [parts for parts in map(_known, children) if parts]
    return _of_sum(node, [_shared(node.value / len(known), parts) for parts in known])


def _of_extreme(node: Node, children: list[Parts]) -> Parts:
    return next((parts for child, parts in zip(node.children, children, strict=True) if child.value == node.value), _of_fact(node, []))


def _of_affine(node: Node, children: list[Parts]) -> Parts:
    if node.intercept:
        return _shared(node.value, children[0])
    return {key: node.slope * value for key, value in children[0].items()}


def _of_exp(node: Node, children: list[Parts]) -> Parts:
    return _shared(node.value, _known(children[0]) or children[0])


_OF_OPERATION: Mapping[Operation, Callable[[Node, list[Parts]], Parts]] = {
    "fact": _of_fact,
    "sum": _of_sum,
    "product": _of_product,
    "min": _of_extreme,
    "max": _of_extreme,
    "affine": _of_affine,
    "exp": _of_exp,
}


def _known(parts: Parts) -> Parts:
    """The parts that come from a known text or word."""
    return {key: value for key, value in parts.items() if key != (OTHER, "")}


def _shared(value: float, parts: Parts) -> Parts:
    """A value in the proportions of the sizes of parts; in equal shares if all of them are 0."""
    total = math.fsum(map(abs, parts.values()))
    return {key: value * (abs(part) / total if total else 1 / len(parts)) for key, part in parts.items()}
