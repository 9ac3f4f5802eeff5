"""Proximity models: the words of a Boolean query score by their distance and by the tags that mark them.

Source: Beigbeder, Géry and Largeron 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from perikope.browse.matches import Frequencies, Matches
from perikope.browse.models import Need, Signals, model, needs_titles
from perikope.browse.models._influence import LABEL, explain
from perikope.browse.satisfaction import BooleanEvaluator
from perikope.browse.signals import Column
from perikope.browse.tags import KIND, LARGEST, is_weight, tag_table
from perikope.core.arrays import Array, Floats, Integers, Mask
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, write
from perikope.core.parameters import Grid, Nested, Range
from perikope.document.tree import Kind
from perikope.kernels.boolean import covered
from perikope.kernels.join import count_terms, occurrences_of_ranges
from perikope.kernels.proximity import (
    AND,
    AND_NOT,
    END_IF_EMPTY,
    LEAF,
    NOT,
    OR,
    OR_LEAF,
    ElementRuns,
    InfluenceSources,
    InfluenceTables,
    LeafEntries,
    TokenUnits,
    group_occurrences,
    mean_influence,
)
from perikope.query.boolean import And, Near, Not, Or, QueryTree, Same, Word, words_of

ALL = "all"
INLINE = "tags"
_NEGLIGIBLE = 1e-12
"""Influence below this share of its height counts as 0, so that a Gaussian ends."""


def read_weights(value: object) -> str | Call:
    """The name of a table, or weights written out as `tags(b=1.4,title=1.5)`; raises if the value is neither."""
    if isinstance(value, Call) and value.name == INLINE and value.arguments and not value.positional:
        wrong = [tag for tag, weight in value.arguments.items() if not is_weight(weight)]
        if wrong:
            raise UsageError(f"the weight of the tag {wrong[0]!r} must be a number from 0 to {LARGEST:g}")
        return value
    if isinstance(value, Call) and value.name == INLINE and not value.positional:
        raise UsageError("tags() has no weights; write tags and weights as tags(b=1.4,title=1.5)")
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, str) and value:
        return value
    raise UsageError(f"weights must be the name of a table, or weights such as tags(b=1.4,title=1.5), not {_shown(value)}")


def read_logical(value: object) -> str | tuple[str, ...]:
    """Logical elements as `all`, a list of tags, or one name: of a table that lists logical tags, or of a tag."""
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, tuple):
        tags = [tag.name if isinstance(tag, Call) and not tag.arguments and not tag.positional else tag for tag in value]
        if tags and all(isinstance(tag, str) for tag in tags):
            return tuple(str(tag) for tag in tags)
    elif isinstance(value, str) and value:
        return value
    raise UsageError(f'logical must be "all", a tag, a list of tags such as [sec,p], or the name of a table, not {_shown(value)}')


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Call) else write(value)


Width = Annotated[
    int,
    Range(1, 100_000),
    Grid((50, 100, 200, 400)),
    "Width k of an occurrence's influence, in tokens; larger values reach farther.",
]
ShapeName = Annotated[
    Literal["triangle", "gauss", "cosine", "circle", "rectangle"],
    Grid(("triangle",)),
    "How the influence of an occurrence falls with distance.",
]
Logical = Annotated[
    Any,
    Nested(read_logical, describes="all, a tag, a list of tags, or the name of a table"),
    Grid((ALL,)),
    "Elements that bound influence: an occurrence reaches only tokens of the same element.",
]
Titles = Annotated[
    Literal[False, True], Grid((False,)), "Whether a word in a title has full influence on the whole element with that title."
]
Weights = Annotated[
    Any,
    Nested(read_weights, describes="the name of a table, or weights such as tags(b=1.4,title=1.5)"),
    Grid(("beigbeder2015",)),
    "Weights of tags; words that a tag with a larger weight marks have more influence.",
]
PUBLISHED = "beigbeder2015"


def proximity_signals(
    matches: Matches, *, k: Width = 200, shape: ShapeName = "triangle", logical: Logical = ALL, titles: Titles = False
) -> Signals:
    """The mean influence of the query on the tokens of each unit."""
    return {"influence": Influence(matches, Shape(shape, k, "none"), logical, titles, {}).column()}


def _needs_elements(parameters: Mapping[str, object]) -> Iterator[Need]:
    logical = read_logical(parameters["logical"])
    if logical != ALL:
        yield Need("logical tags", table=logical) if isinstance(logical, str) else Need("logical tags", logical)
    if parameters["titles"]:
        yield from needs_titles(parameters)


def _needs_weighted_tags(parameters: Mapping[str, object]) -> Iterator[Need]:
    weights = read_weights(parameters["weights"])
    yield Need("weighted tags", table=weights) if isinstance(weights, str) else Need("weighted tags", tuple(weights.arguments))
    yield from _needs_elements(parameters)


@model(proximity_signals, needs=_needs_elements)
def prox(signals: Signals) -> Column:
    """The mean influence of the Boolean query on the text, which is higher the nearer its words are to each other.

    `Σ_x p_q(x) ÷ number of tokens x of the unit`, with
    `p_t(x) = max over occurrences i of t of max(0, (k - |x - i|) / k)` for a word, the minimum for AND, the maximum for
    OR and `max(0, 1 - p)` for NOT at each token. An occurrence reaches only tokens with the same deepest logical
    element; `logical` names the tags of these elements. A phrase, NEAR, ADJ or SAME counts as one word, which occurs at
    all words of its matches inside one element. Words without operators are joined by AND. `shape` says how influence
    falls with x = distance ÷ k: `triangle`, `max(0, 1 - x)`, as in the paper; `gauss`, `exp(-x² / 2)`; `cosine`,
    `(1 + cos πx) / 2` up to 1; `circle`, `√(1 - x²)` up to 1; or `rectangle`, 1 up to 1. With `titles`, a word in a
    title has its full influence on the whole element with that title (Beigbeder, Géry and Largeron 2015, equations 2 to
    6).
    """
    return signals["influence"]


def _weighed(weighs: Literal["height", "both"]) -> Callable[..., Signals]:
    """Make the signals of a model in which tag weights multiply the height of influence, or height and width."""

    def signals(
        matches: Matches,
        *,
        k: Width = 200,
        weights: Weights = PUBLISHED,
        shape: ShapeName = "triangle",
        logical: Logical = ALL,
        titles: Titles = False,
    ) -> Signals:
        """The mean influence of the query, with weights of tags."""
        return {"influence": Influence(matches, Shape(shape, k, weighs), logical, titles, _weights(matches, weights)).column()}

    return signals


@model(_weighed("height"), needs=_needs_weighted_tags)
def prox_h(signals: Signals) -> Column:
    """As prox, with influence that is multiplied by the weight of the tag that marks the occurrence.

    `p_t(x) = max over i of max(0, w (k - |x - i|) / k)`, with w the weight of the deepest weighted tag around i, or 1
    if there is none. `weights` is the name of a learned table (`perikope learn tags`), or weights such as
    `tags(b=1.4,title=1.5)`; `beigbeder2015` are the published ones (Beigbeder, Géry and Largeron 2015, equation 9).
    """
    return signals["influence"]


@model(_weighed("both"), needs=_needs_weighted_tags)
def prox_hw(signals: Signals) -> Column:
    """As prox_h, with tag weights that multiply both the height and the width of influence.

    `p_t(x) = max over i of max(0, (w k - |x - i|) / k)`, with w as in prox_h (Beigbeder, Géry and Largeron 2015,
    equation 10).
    """
    return signals["influence"]


def _weights(matches: Matches, weights: object) -> Mapping[str, float]:
    given = read_weights(weights)
    if isinstance(given, Call):
        return {tag: float(weight) for tag, weight in given.arguments.items() if is_weight(weight)}
    return tag_table(matches.table(given, KIND)).weights


def _logical_tags(matches: Matches, logical: object) -> tuple[str, ...] | None:
    tags = read_logical(logical)
    if tags == ALL:
        return None
    if not isinstance(tags, str):
        return tags
    try:
        return tag_table(matches.table(tags, KIND)).logical
    except UsageError:
        return (tags,)  # a tag; `perikope.browse.requirements` has checked that the index has it


_SHAPES: Mapping[str, Callable[[Floats], Array]] = {
    "triangle": lambda x: np.maximum(0.0, 1.0 - x),
    "gauss": lambda x: np.exp(-x * x / 2),
    "cosine": lambda x: np.where(x < 1.0, (1.0 + np.cos(np.pi * np.minimum(x, 1.0))) / 2, 0.0),
    "circle": lambda x: np.sqrt(np.maximum(0.0, 1.0 - x * x)),
    "rectangle": lambda x: (x <= 1.0).astype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How influence falls from 1 with x = d / k, where d is the distance in tokens.

    `triangle` max(0, 1 - x), as in the paper · `gauss` exp(-x² / 2) · `cosine` (1 + cos πx) / 2 up to 1 ·
    `circle` √(1 - x²) up to 1 · `rectangle` 1 up to 1 (de Kretser and Moffat 1999; Lv and Zhai 2009).
    """

    name: str
    k: int
    weighs: Literal["none", "height", "both"]
    """What the weight of a tag multiplies: nothing, the height, or the height and k."""

    def height(self, weight: float) -> float:
        """The influence at the occurrence itself."""
        return 1.0 if self.weighs == "none" else weight

    def curve(self, weight: float, distances: Integers) -> Floats:
        """Influence at each distance, as a share of the height."""
        width = self.k * weight if self.weighs == "both" else self.k
        if width <= 0:
            return np.zeros(distances.size)
        with np.errstate(over="ignore"):  # distance ÷ a tiny width may overflow to infinity, where influence is 0
            values = np.asarray(_SHAPES[self.name](distances / width), np.float64)
        return np.where(values < _NEGLIGIBLE, 0.0, values)

    def table(self, weight: float, tokens: int) -> Floats:
        """Influence at distances from 0 up to its reach, in documents of at most `tokens` tokens."""
        return np.trim_zeros(self.height(weight) * self.curve(weight, np.arange(tokens)), "b")


class Influence:
    """The influence of a query on the tokens of the candidate documents."""

    def __init__(self, matches: Matches, shape: Shape, logical: object, titles: bool, weights: Mapping[str, float]) -> None:
        self.matches = matches.with_negated()
        self.shape = shape
        self.tree = matches.query.boolean
        self.structure = matches.structure()
        self.elements = self.structure.runs(self.structure.logical(_logical_tags(matches, logical)))
        self.leaves = list(dict.fromkeys(_leaves(self.tree)))
        self._weights, self._titles = weights, titles

    @cached_property
    def run_of_occurrence(self) -> Integers:
        """The run of a logical element that contains each occurrence."""
        return self.elements.of(self.matches.position_of_occurrence, self.matches.first_occurrence_of_document)

    @cached_property
    def tag_of_occurrence(self) -> Integers:
        """The deepest weighted tag around each occurrence, or -1."""
        if not self._weights:
            return np.full(self.matches.position_of_occurrence.size, -1, np.int64)
        span = self._spans_of_occurrences(self.structure.tagged(self._weights))
        return np.where(span >= 0, self.structure.tag_of_span[span], -1)

    @cached_property
    def weight_of_occurrence(self) -> Floats:
        """The weight of the deepest weighted tag around each occurrence, or 1 if there is none."""
        weights: Floats = self._weight_of_tag[self.tag_of_occurrence]
        return weights

    @cached_property
    def _weight_of_tag(self) -> Floats:
        """The weight of each tag; the last value, 1, is for occurrences without a weighted tag (-1)."""
        return np.array([*(self._weights.get(tag, 1.0) for tag in self.structure.tags), 1.0])

    @cached_property
    def titled_of_occurrence(self) -> Integers:
        """The span whose title contains each occurrence, or -1; all are -1 unless `titles` is set."""
        if not self._titles:
            return np.full(self.matches.position_of_occurrence.size, -1, np.int64)
        span = self._spans_of_occurrences(self.structure.kind_of_span == int(Kind.TITLE))
        return np.where(span >= 0, self.structure.parent_of_span[span], -1)

    def _spans_of_occurrences(self, chosen: Mask) -> Integers:
        runs = self.structure.runs(chosen)
        return runs.spans_of(self.matches.position_of_occurrence, self.matches.first_occurrence_of_document)

    @cached_property
    def entries(self) -> list[Integers]:
        """The numbers of the occurrences of each leaf, in order."""
        matches = self.matches
        terms = {term: number for number, term in enumerate(matches.query.terms)}
        by_term = np.argsort(matches.term_of_occurrence.astype(np.int16), kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(matches.term_of_occurrence, minlength=len(terms)))])
        if any(not isinstance(leaf, Word) for leaf in self.leaves):
            view, original_number = _by_element(self)
            evaluation = BooleanEvaluator(view)

        def of(leaf: QueryTree) -> Integers:
            if isinstance(leaf, Word):
                numbers = sorted({terms[term] for term in leaf.terms if term in terms})
                occurrences = [by_term[first[number] : first[number + 1]] for number in numbers]
                return occurrences[0] if len(occurrences) == 1 else np.sort(np.concatenate([np.zeros(0, np.int64), *occurrences]))
            return np.sort(original_number[_words_of_matches(evaluation, leaf)])

        return [of(leaf) for leaf in self.leaves]

    def column(self) -> Column:
        """The mean influence over the tokens of each unit."""
        matches, structure, runs = self.matches, self.structure, self.elements
        weights, table_of_tag = np.unique(self._weight_of_tag, return_inverse=True)
        table = table_of_tag.astype(np.int64)[self.tag_of_occurrence]
        longest = int(structure.tokens_of_document.max(initial=0))
        tables = [self.shape.table(weight, longest) for weight in weights.tolist()]
        run, titled = self.run_of_occurrence, self.titled_of_occurrence
        group, groups = group_occurrences(runs.span[run], table, structure.spans)
        program, depth = _compile(self.tree, self.leaves)
        whole_first = np.where(titled >= 0, structure.first_token_of_span[titled], 0)
        whole_end = np.where(titled >= 0, structure.end_token_of_span[titled], 0)
        first_occurrence, position = matches.first_occurrence_of_document, matches.position_of_occurrence
        values: Floats = mean_influence(
            program, depth,
            LeafEntries(_offsets([entry.size for entry in self.entries]), _joined(self.entries, np.int64)),
            InfluenceSources(first_occurrence, position, run, table, group, groups, whole_first, whole_end),
            ElementRuns(runs.first_token, runs.end_token, *runs.linked(structure.spans)),
            InfluenceTables(_offsets([one.size for one in tables]), _joined(tables, np.float64)),
            TokenUnits(
                structure.tokens_of_document, matches.first_passage_of_document,
                matches.first_token_of_passage, matches.end_token_of_passage,
            ),
        )  # fmt: skip
        return Column(LABEL, values, lambda row: explain(self, row, float(values[row])))


def _by_element(influence: Influence) -> tuple[Matches, Integers]:
    """The matches with logical elements as documents, and for each occurrence its number in the original matches.

    A match of a phrase, NEAR or SAME lies inside one element, as influence does. The rows are passages whatever is
    ranked, because SAME refers to passages.
    """
    matches, structure, runs = influence.matches, influence.structure, influence.elements
    element = runs.span[influence.run_of_occurrence]
    order = np.argsort(element, kind="stable")
    elements, first = np.unique(element[order], return_index=True)
    first_occurrence = np.append(first, order.size)
    term, position = matches.term_of_occurrence[order], matches.position_of_occurrence[order]

    passages = np.flatnonzero((structure.kind_of_span == int(Kind.PASSAGE)) & (structure.end_token_of_span > structure.first_token_of_span))
    begin = structure.first_token_of_span[passages]
    holder = runs.spans_of(begin.astype(np.int32), np.searchsorted(passages, structure.first_span_of_document))
    known = np.isin(holder, elements)
    by_holder = np.argsort(holder[known], kind="stable")
    passages, holder = passages[known][by_holder], holder[known][by_holder]
    document = np.searchsorted(elements, holder)
    ranges = structure.first_token_of_span[passages], structure.end_token_of_span[passages]
    inside = occurrences_of_ranges(position, first_occurrence, document, *ranges)
    view = replace(
        matches,
        number_of_document=elements,
        term_of_occurrence=term,
        position_of_occurrence=position,
        first_occurrence_of_document=first_occurrence,
        document_of_passage=document,
        first_token_of_passage=ranges[0],
        end_token_of_passage=ranges[1],
        first_occurrence_of_passage=inside[0],
        end_occurrence_of_passage=inside[1],
        in_passages=Frequencies(*count_terms(term, *inside, len(matches.query.terms))),
    )
    return view, order


def _words_of_matches(evaluation: BooleanEvaluator, tree: QueryTree) -> Mask:
    """One flag per occurrence: whether it is a word of a match of a phrase, NEAR or SAME.

    For SAME, these are all its words in the passages in which it holds.
    """
    matches = evaluation.matches
    wanted = {term for word, negated in words_of(tree) if not negated for term in word.terms}
    counts = np.array([term in wanted for term in matches.query.terms], bool)
    marked = np.zeros(matches.term_of_occurrence.size, bool)
    if isinstance(tree, Same):
        rows = np.flatnonzero(evaluation.inside(tree))
        for first, end in zip(matches.first_occurrence_of_passage[rows], matches.end_occurrence_of_passage[rows], strict=True):
            marked[first:end] = True
        words: Mask = marked & counts[matches.term_of_occurrence]
        return words
    for stretches in evaluation.widest(tree) if isinstance(tree, Near) else [evaluation.stretches(tree)]:
        marked |= covered(stretches, evaluation.occurrences(), counts)
    return marked


def _leaves(tree: QueryTree) -> Iterator[QueryTree]:
    """The nodes of a tree that have occurrences: words, and phrases, NEAR, ADJ and SAME, which count as words."""
    match tree:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Not(child):
            yield from _leaves(child)
        case _:
            yield tree


def _compile(tree: QueryTree, leaves: Sequence[QueryTree]) -> tuple[Integers, int]:
    """The program that evaluates a tree, as (instruction, argument) rows, and the largest height of its stack."""
    number = {leaf: i for i, leaf in enumerate(leaves)}
    steps: list[tuple[int, int]] = []
    highest = 0

    def add(node: QueryTree, height: int) -> None:
        nonlocal highest
        highest = max(highest, height)
        match node:
            case And(children):
                # Negated operands come last: they are evaluated only if the others have any influence.
                wanted = [child for child in children if not isinstance(child, Not)]
                unwanted = [child for child in children if isinstance(child, Not)]
                ends = []
                for i, child in enumerate([*wanted, *unwanted]):
                    if i == 0:
                        add(child, height)
                    else:
                        add(child.child if isinstance(child, Not) else child, height + 1)
                        steps.append((AND_NOT if isinstance(child, Not) else AND, 0))
                    ends.append(len(steps))
                    steps.append((END_IF_EMPTY, 0))
                for end in ends:
                    steps[end] = END_IF_EMPTY, len(steps)
            case Or(children):
                for i, child in enumerate(children):
                    if i and child in number:
                        steps.append((OR_LEAF, number[child]))
                        continue
                    add(child, height + (i > 0))
                    if i:
                        steps.append((OR, 0))
            case Not(child):
                add(child, height)
                steps.append((NOT, 0))
            case _:
                steps.append((LEAF, number[node]))

    add(tree, 1)
    return np.array(steps, np.int64).reshape(len(steps), 2), highest


def _offsets(counts: list[int]) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _joined(arrays: list[Any], kind: type[Any]) -> Array:
    return np.concatenate([np.zeros(0, kind), *arrays])
