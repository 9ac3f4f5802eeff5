"""Explain the scores of the proximity models: which occurrence decides the influence on which tokens.

AND and OR select the influence of one of their operands, and NOT takes 1 minus the influence of its operand. Therefore
the influence of a query on a token is the influence of a single occurrence, or 1 minus it. This occurrence decides the
influence on the token. A *leaf* is a node of the query tree that has occurrences: a word, phrase, NEAR, ADJ or SAME.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from perikope.browse.signals import Curve, Node, Origins
from perikope.browse.structure import Runs
from perikope.core.arrays import Array, Floats, Integers
from perikope.query.boolean import And, Near, Not, Or, Phrase, QueryTree, Same, Word

if TYPE_CHECKING:
    from perikope.browse.models.proximity import Influence

LABEL = "mean influence of the query"
"""Label of the score in explanations."""
LISTED = 5
"""Number of parts that an explanation lists one by one. One more line stands for all others."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """The influence of a query tree on each token of a unit, and the occurrence that decides it.

    All arrays have one value per token. The influence is `slope · influence of the occurrence + offset`.
    """

    values: Floats
    """The influence on the token."""
    leaf: Integers
    """Index of the leaf that decides the influence; -1 if NOT made it 0."""
    occurrence: Integers
    """Index of the occurrence that decides the influence; -1 if none reaches the token, or if NOT made it 0."""
    slope: Integers
    """1, or -1 after NOT; 0 if there is no occurrence."""
    offset: Integers
    """0, or 1 after NOT."""

    def negated(self) -> _Decided:
        """The influence of NOT on each token: 1 minus this influence, and at least 0."""
        values = np.maximum(0.0, 1.0 - self.values)
        none = values <= 0.0
        return _Decided(
            values,
            np.where(none, -1, self.leaf),
            np.where(none, -1, self.occurrence),
            np.where(none, 0, -self.slope),
            np.where(none, 0, 1 - self.offset),
        )


class _Unit:
    """One unit (passage, element or document) and the influence of each leaf of the query on its tokens."""

    def __init__(self, influence: Influence, document: int, first: int, end: int) -> None:
        self.influence, self.document = influence, document
        self.first, self.end = first, end
        self.occurrences = influence.matches.first_occurrence_of_document[document : document + 2]
        self.owner = _owners(influence.elements, document, self.first, self.end)
        self.tokens = int(influence.structure.tokens_of_document[document])
        self.of_leaf = [self._decide(number) for number in range(len(influence.leaves))]

    def decided(self, tree: QueryTree) -> _Decided:
        """The influence of a tree on the tokens of the unit."""
        match tree:
            case Not(child):
                return self.decided(child).negated()
            case And(children) | Or(children):
                operands = [self.decided(child) for child in children]
                values = np.stack([operand.values for operand in operands])
                best = values.argmin(axis=0) if isinstance(tree, And) else values.argmax(axis=0)
                columns = (np.stack(column) for column in zip(*(_columns(operand) for operand in operands), strict=True))
                return _Decided(*(column[best, np.arange(best.size)] for column in columns))
            case _:
                return self.of_leaf[self.influence.leaves.index(tree)]

    def _decide(self, leaf: int) -> _Decided:
        """The influence of a leaf on the tokens of the unit."""
        influence, size = self.influence, self.end - self.first
        entries = influence.entries[leaf]
        values, occurrence = np.zeros(size), np.full(size, -1, np.int64)
        for entry in entries[slice(*np.searchsorted(entries, self.occurrences).tolist())].tolist():
            curve, low, high = self.curve(entry)
            better = curve > values[low:high]
            values[low:high][better] = curve[better]
            occurrence[low:high][better] = entry
        slope = (occurrence >= 0).astype(np.int64)
        return _Decided(values, np.full(size, leaf), occurrence, slope, np.zeros(size, np.int64))

    def curve(self, occurrence: int) -> tuple[Floats, int, int]:
        """The influence of an occurrence on a range of tokens of the unit, and the first and end token of this range.

        The tokens are counted from the start of the unit, and the end is exclusive. Other tokens are not influenced.
        """
        influence, shape = self.influence, self.influence.shape
        structure, position = influence.structure, int(influence.matches.position_of_occurrence[occurrence])
        weight, titled = float(influence.weight_of_occurrence[occurrence]), int(influence.titled_of_occurrence[occurrence])
        table = shape.table(weight, self.tokens)
        if titled >= 0:
            low, high = self._clipped(int(structure.first_token_of_span[titled]), int(structure.end_token_of_span[titled]))
            return np.full(high - low, table[0] if table.size else 0.0), low, high
        low, high = self._clipped(position - table.size + 1, position + table.size)
        same_element = self.owner[low:high] == influence.elements.span[influence.run_of_occurrence[occurrence]]
        return np.where(same_element, table[np.abs(np.arange(low, high) + self.first - position)], 0.0), low, high

    def _clipped(self, first: int, end: int) -> tuple[int, int]:
        low = min(max(first - self.first, 0), self.end - self.first)
        return low, max(low, min(end - self.first, self.end - self.first))


def _columns(decided: _Decided) -> tuple[Array, ...]:
    return decided.values, decided.leaf, decided.occurrence, decided.slope, decided.offset


def _owners(runs: Runs, document: int, first: int, end: int) -> Integers:
    """For each token of a document from `first` to `end` (exclusive), the span of the deepest element around it."""
    inside = slice(*runs.first_run_of_document[document : document + 2].tolist())
    begin, stop = np.clip(runs.first_token[inside], first, end), np.clip(runs.end_token[inside], first, end)
    owners: Integers = np.repeat(runs.span[inside], stop - begin)
    return owners


def explain(influence: Influence, row: int, value: float) -> Node:
    """The explanation of `value`, the mean influence of the query on one row of the matches."""
    matches = influence.matches
    first, end = int(matches.first_token_of_passage[row]), int(matches.end_token_of_passage[row])
    unit = _Unit(influence, int(matches.document_of_passage[row]), first, end)
    size = unit.end - unit.first
    decided = unit.decided(influence.tree)
    curves = partial(_curves, unit)
    if not size or not decided.values.any():
        return Node(f"{LABEL}: it reaches none of the {size} tokens", value, curves=curves)
    best = int(decided.values.argmax())
    highest = _at(unit, influence.tree, best)
    nodes = [Node(f"token {unit.first + best}, where it is highest", highest.value, "max", (highest,))]
    groups: dict[tuple[int, ...], list[int]] = {}
    keys = np.stack([decided.leaf, decided.occurrence, decided.slope, decided.offset], axis=1)
    for token in np.flatnonzero(decided.values).tolist():
        if token != best:
            groups.setdefault(tuple(keys[token].tolist()), []).append(token)
    sums = {key: math.fsum(decided.values[tokens]) for key, tokens in groups.items()}
    order = sorted(groups, key=lambda key: (-sums[key], groups[key][0]))
    nodes += [_group(unit, key, groups[key], sums[key]) for key in order[:LISTED]]
    others: dict[Origins, list[tuple[int, ...]]] = {}
    for key in order[LISTED:]:
        others.setdefault(_origins(unit, key[1]), []).append(key)
    for origins, same in others.items():
        more = f"{sum(len(groups[key]) for key in same)} more tokens together"
        nodes.append(Node(more, math.fsum(sums[key] for key in same), origins=origins))
    total = Node(f"influence added up over {size} tokens", math.fsum(node.value for node in nodes), "sum", tuple(nodes))
    return Node(LABEL, value, "affine", (total,), 1 / size, curves=curves)


def _curves(unit: _Unit) -> tuple[Curve, ...]:
    """The influence on the tokens of the document around a unit.

    There is one curve per leaf of the query, and one of the query itself if it is not a leaf.
    """
    influence = unit.influence
    document = _Unit(influence, unit.document, 0, unit.tokens)
    curves = [(_name(leaf), of_leaf.values) for leaf, of_leaf in zip(influence.leaves, document.of_leaf, strict=True)]
    if influence.tree not in influence.leaves:
        curves.append((_name(influence.tree), document.decided(influence.tree).values))
    return tuple(Curve(name, tuple(values.tolist()), unit.first, unit.end) for name, values in curves)


def _group(unit: _Unit, key: tuple[int, ...], tokens: list[int], value: float) -> Node:
    """The node for a group of tokens on which the same occurrence decides the influence; `value` is their sum.

    `key` has leaf, occurrence, slope and offset, as in `_Decided`. `tokens` are counted from the start of the unit.
    """
    leaf, occurrence, slope, offset = key
    first, last = unit.first + tokens[0], unit.first + tokens[-1]
    where = f"token {first}" if first == last else f"{len(tokens)} tokens from {first} to {last}"
    name = _name(unit.influence.leaves[leaf])
    if occurrence < 0:
        return Node(f"{where}, not reached by {name}" if leaf >= 0 else f"{where}, where NOT has its largest value", value)
    label = f"{where}, decided by {name} {_location(unit, occurrence)}"
    curve, low, _ = unit.curve(occurrence)
    given = math.fsum(curve[token - low] for token in tokens)
    if slope > 0:
        return _weighted(unit, label, occurrence, given)
    return Node(f"not: {label}", value, "affine", (_weighted(unit, label, occurrence, given),), -1.0, float(offset * len(tokens)))


def _weighted(unit: _Unit, label: str, occurrence: int, value: float) -> Node:
    """The node for a sum of influences of one occurrence.

    If a tag gives the occurrence a weight, the sum is explained as this weight times the sum of the influences by
    distance.
    """
    origins, word = _origins(unit, occurrence), _word(unit, occurrence)
    height = unit.influence.shape.height(float(unit.influence.weight_of_occurrence[occurrence]))
    if height == 1.0:
        return Node(label, value, origins=origins, word=word)
    tag = unit.influence.structure.tags[int(unit.influence.tag_of_occurrence[occurrence])]
    facts = Node(f"weight of <{tag}>", height), Node("by distance", value / height)
    return Node(label, value, "product", facts, origins=origins, word=word)


def _origins(unit: _Unit, occurrence: int) -> Origins:
    """Where an occurrence is; nothing if it is no occurrence (-1)."""
    if occurrence < 0:
        return ()
    if unit.influence.titled_of_occurrence[occurrence] >= 0:
        return (("titles", 1.0),)
    is_inside = unit.first <= unit.influence.matches.position_of_occurrence[occurrence] < unit.end
    return (("passage", 1.0),) if is_inside else (("neighbors", 1.0),)


def _word(unit: _Unit, occurrence: int) -> str:
    query = unit.influence.matches.query
    return query.written(query.terms[unit.influence.matches.term_of_occurrence[occurrence]])


def _at(unit: _Unit, tree: QueryTree, token: int) -> Node:
    """The explanation of the influence of a tree on one token, with one node per operator and leaf.

    `token` is counted from the start of the unit.
    """
    match tree:
        case Not(child):
            inner = _at(unit, child, token)
            complement = Node("1 minus it", 1.0 - inner.value, "affine", (inner,), -1.0, 1.0)
            return Node("NOT", max(0.0, complement.value), "max", (complement, Node("at least", 0.0)))
        case And(children) | Or(children):
            every = isinstance(tree, And)
            nodes = sorted((_at(unit, child, token) for child in children), key=lambda node: node.value if every else -node.value)
            if rest := nodes[LISTED:]:
                extreme = rest[0].value
                nodes = [*nodes[:LISTED], Node(f"{'the least' if every else 'the most'} of {len(rest)} others", extreme)]
            operation: Literal["min", "max"] = "min" if every else "max"
            return Node("AND" if every else "OR", nodes[0].value, operation, tuple(nodes))
    leaf = unit.of_leaf[unit.influence.leaves.index(tree)]
    occurrence = int(leaf.occurrence[token])
    if occurrence < 0:
        return Node(f"{_name(tree)} does not reach it", 0.0)
    return _weighted(unit, f"{_name(tree)} {_location(unit, occurrence, token)}", occurrence, float(leaf.values[token]))


def _location(unit: _Unit, occurrence: int, token: int | None = None) -> str:
    """A text that says where an occurrence is, such as `at 12 in <b>, 3 away`.

    It has the position of the occurrence; the tag that gives it a weight, if any; and whether it is in a title. With
    `token`, which is counted from the start of the unit, the distance to this token follows. It is left out if it
    is 0, and for an occurrence in a title, whose influence does not depend on the distance.
    """
    influence = unit.influence
    position = int(influence.matches.position_of_occurrence[occurrence])
    tag = int(influence.tag_of_occurrence[occurrence])
    inside = f" in <{influence.structure.tags[tag]}>" if tag >= 0 else ""
    title = ", in the title of the element" if influence.titled_of_occurrence[occurrence] >= 0 else ""
    away = abs(unit.first + token - position) if token is not None else 0
    return f"at {position}{inside}{title}" + (f", {away} away" if away and not title else "")


def _name(tree: QueryTree | None) -> str:
    match tree:
        case None:
            return "*"
        case Word(terms):
            names = list(dict.fromkeys(term.partition(":")[2] for term in terms))
            languages = list(dict.fromkeys(term.partition(":")[0] for term in terms))
            reasons = list(dict.fromkeys(reason for _, reason in tree.reasons))
            why = ([", ".join(languages)] if len(languages) > 1 else []) + reasons[:3]
            return repr("|".join(names[:3]) + "…" * (len(names) > 3)) + (f" ({'; '.join(why)}{' …' * (len(reasons) > 3)})" if why else "")
        case Phrase(words):
            return " ".join(_name(word) for word in words)
        case Near(left, right, distance, ordered):
            return f"({_name(left)} {'ADJ' if ordered else 'NEAR'}/{distance} {_name(right)})"
        case Not(child):
            return f"NOT {_name(child)}"
    operator = {And: " AND ", Or: " OR ", Same: " SAME "}[type(tree)]
    return f"({operator.join(_name(child) for child in tree.children)})"
