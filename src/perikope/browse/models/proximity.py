"""Proximity models: text scores by the distances between the words of a Boolean query, and by the tags around them.

Each occurrence of a word has an *influence* on the tokens near it, which decreases with distance.

Source: Beigbeder, Géry and Largeron 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from perikope.browse.matches import Frequencies, Matches, Occurrences
from perikope.browse.models import Need, Signals, model, needs_titles
from perikope.browse.models._influence import LABEL, explain
from perikope.browse.satisfaction import BooleanEvaluator
from perikope.browse.signals import Column
from perikope.browse.tags import KIND, LARGEST, is_weight, tag_table
from perikope.core.arrays import Array, Floats, Integers, Mask, frozen
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
from perikope.query.boolean import And, Near, Not, Or, QueryTree, Same, Word, all_of, children_of, words_of

ALL = "all"
"""Value of the parameter `logical` that selects all logical elements."""
INLINE = "tags"
"""Name of the call in which users write weights of tags."""
_NEGLIGIBLE = 1e-12
"""Influence below this share of its height is set to 0, so that a Gaussian has a finite reach."""


def read_weights(value: object) -> str | Call:
    """Read the parameter `weights`: the name of a table, or weights written as `tags(b=1.4,title=1.5)`.

    Raises `UsageError` if the value is neither.
    """
    if isinstance(value, Call) and value.name == INLINE and value.arguments and not value.positional:
        wrong = [tag for tag, weight in value.arguments.items() if not is_weight(weight)]
        if wrong:
            raise UsageError(f"the weight of the tag {wrong[0]!r} must be a number from 0 to {LARGEST:g}")
        return value
    if isinstance(value, Call) and value.name == INLINE and not value.positional:
        raise UsageError("tags() contains no weights; write them as tags(b=1.4,title=1.5)")
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, str) and value:
        return value
    raise UsageError(f"weights must be the name of a table, or weights such as tags(b=1.4,title=1.5), not {_shown(value)}")


def read_logical(value: object) -> str | tuple[str, ...]:
    """Read the parameter `logical`: `all`, a list of tags, or a single name.

    A single name is the name of a table that lists logical tags, or a tag. Raises `UsageError` for any other value.
    """
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
    "Width k of the influence of an occurrence, in tokens; larger values reach farther.",
]
ShapeName = Annotated[
    Literal["triangle", "gauss", "cosine", "circle", "rectangle"],
    Grid(("triangle",)),
    "How the influence of an occurrence decreases with distance.",
]
Logical = Annotated[
    Any,
    Nested(read_logical, describes="all, a tag, a list of tags, or the name of a table"),
    Grid((ALL,)),
    "Elements that limit influence: an occurrence influences only tokens of the same element.",
]
Titles = Annotated[
    Literal[False, True], Grid((False,)), "Whether a word in a title has full influence on the whole element with that title."
]
Weights = Annotated[
    Any,
    Nested(read_weights, describes="the name of a table, or weights such as tags(b=1.4,title=1.5)"),
    Grid(("beigbeder2015",)),
    "Weights of tags; words inside a tag with a larger weight have more influence.",
]
Rarest = Annotated[
    int,
    Range(0, 1000),
    Grid((0,)),
    "Number of operands that an AND of the whole query keeps, those in the fewest documents; 0 keeps all, as in the paper.",
]
PUBLISHED = "beigbeder2015"
"""Name of the table with the published weights, which comes with the program."""


def proximity_signals(
    matches: Matches, *, k: Width = 200, shape: ShapeName = "triangle", logical: Logical = ALL, titles: Titles = False, rarest: Rarest = 0
) -> Signals:
    """The signal `influence`: the mean influence of the query on the tokens of each unit."""
    return {"influence": Influence(matches, Shape(shape, k, "none"), logical, titles, {}, rarest).column()}


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


@model(proximity_signals, zero_is_no_match=True, needs=_needs_elements)
def prox(signals: Signals) -> Column:
    """The mean influence of the Boolean query on the text, which is higher the nearer its words are to each other.

    The score of a unit of text is the mean of `p_q(x)` over its tokens x (Beigbeder, Géry and Largeron 2015, equations
    2 to 6). For a word t, `p_t(x)` is the maximum of `max(0, (k - |x - i|) / k)` over the occurrences i of t. AND takes
    the minimum of its operands at each token, OR takes the maximum, and NOT takes `max(0, 1 - p)`. Words without
    operators are joined by AND. A phrase, NEAR, ADJ or SAME is treated as one word, which occurs at all words of its
    matches; a match must lie inside one element.

    An occurrence influences only tokens with the same deepest logical element. `logical` selects these elements: `all`,
    or the elements with certain tags. With `titles`, a word in a title has its full influence on the whole element with
    that title.

    A long query in natural language matches nearly nowhere, because AND needs all its words close together. With
    `rarest`, an AND of the whole query keeps only this number of its operands: those that occur in the fewest
    documents. Operands that occur nowhere are left out, and operands with NOT stay.

    `shape` selects how influence decreases with y = distance ÷ k. `triangle` is `max(0, 1 - y)`, as in the paper, and
    `gauss` is `exp(-y² / 2)`. For y up to 1, `cosine` is `(1 + cos πy) / 2`, `circle` is `√(1 - y²)` and `rectangle` is
    1; beyond, these three are 0.
    """
    return signals["influence"]


def _weighed(weighs: Literal["height", "both"]) -> Callable[..., Signals]:
    """The signals function of a model whose tag weights multiply the height of influence, or its height and width."""

    def signals(
        matches: Matches,
        *,
        k: Width = 200,
        weights: Weights = PUBLISHED,
        shape: ShapeName = "triangle",
        logical: Logical = ALL,
        titles: Titles = False,
        rarest: Rarest = 0,
    ) -> Signals:
        """The signal `influence`: the mean influence of the query on the tokens of each unit, with weights of tags."""
        return {"influence": Influence(matches, Shape(shape, k, weighs), logical, titles, _weights(matches, weights), rarest).column()}

    return signals


@model(_weighed("height"), zero_is_no_match=True, needs=_needs_weighted_tags)
def prox_h(signals: Signals) -> Column:
    """As prox, but the weight of the tag around an occurrence multiplies its influence.

    `p_t(x)` is the maximum of `max(0, w (k - |x - i|) / k)` over the occurrences i of t, where w is the weight of the
    deepest weighted tag around i, or 1 if there is none (Beigbeder, Géry and Largeron 2015, equation 9).

    `weights` is the name of a table that `perikope learn tags` saved, or a list of weights such as
    `tags(b=1.4,title=1.5)`. The default `beigbeder2015` is a table with the published weights.
    """
    return signals["influence"]


@model(_weighed("both"), zero_is_no_match=True, needs=_needs_weighted_tags)
def prox_hw(signals: Signals) -> Column:
    """As prox_h, but the weight of a tag multiplies both the height and the width of influence.

    `p_t(x)` is the maximum of `max(0, (w k - |x - i|) / k)` over the occurrences i of t, with w as in prox_h
    (Beigbeder, Géry and Largeron 2015, equation 10).
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
        return (tags,)  # a tag; `perikope.browse.requirements` has checked that it occurs in the index


_SHAPES: Mapping[str, Callable[[Floats], Array]] = {
    "triangle": lambda x: np.maximum(0.0, 1.0 - x),
    "gauss": lambda x: np.exp(-x * x / 2),
    "cosine": lambda x: np.where(x < 1.0, (1.0 + np.cos(np.pi * np.minimum(x, 1.0))) / 2, 0.0),
    "circle": lambda x: np.sqrt(np.maximum(0.0, 1.0 - x * x)),
    "rectangle": lambda x: (x <= 1.0).astype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How influence decreases from its height with y = distance in tokens ÷ k.

    As a share of the height, `triangle` is max(0, 1 - y), as in the paper, and `gauss` is exp(-y² / 2). For y up to 1,
    `cosine` is (1 + cos πy) / 2, `circle` is √(1 - y²) and `rectangle` is 1; beyond, these three are 0 (de Kretser and
    Moffat 1999; Lv and Zhai 2009).
    """

    name: str
    """Name of the function."""
    k: int
    """Width of influence, in tokens."""
    weighs: Literal["none", "height", "both"]
    """What the weight of a tag multiplies: nothing, the height, or both the height and the width."""

    def height(self, weight: float) -> float:
        """The influence of an occurrence on its own token, if its tag has this weight."""
        return 1.0 if self.weighs == "none" else weight

    def curve(self, weight: float, distances: Integers) -> Floats:
        """The influence at each distance in tokens, as a share of the height, if the tag has this weight."""
        width = self.k * weight if self.weighs == "both" else self.k
        if width <= 0:
            return np.zeros(distances.size)
        with np.errstate(over="ignore"):  # distance ÷ a tiny width may overflow to infinity; influence is then 0
            values = np.asarray(_SHAPES[self.name](distances / width), np.float64)
        return np.where(values < _NEGLIGIBLE, 0.0, values)

    def table(self, weight: float, tokens: int) -> Floats:
        """The influence at distances 0, 1, 2, … below `tokens`, without the zeros at the end."""
        return np.trim_zeros(self.height(weight) * self.curve(weight, np.arange(tokens)), "b")


class Influence:
    """Computes the influence of a query on the tokens of the candidate documents.

    A *leaf* is a node of the query tree that has occurrences: a word, phrase, NEAR, ADJ or SAME. Arrays named
    `…_of_occurrence` have one value per occurrence of a query term.
    """

    def __init__(
        self, matches: Matches, shape: Shape, logical: object, titles: bool, weights: Mapping[str, float], rarest: int = 0
    ) -> None:
        self.matches = matches.with_negated()
        self.shape = shape
        self.tree = _with_rarest(self.matches, rarest) if rarest else matches.query.boolean
        self.structure = matches.structure()
        self.elements = self.structure.runs(self.structure.logical(_logical_tags(matches, logical)))
        self.leaves = list(dict.fromkeys(_leaves(self.tree)))
        self._weights, self._titles = weights, titles

    @cached_property
    def run_of_occurrence(self) -> Integers:
        """The index of the run of tokens (in `elements`) that contains each occurrence."""
        return self.elements.of(self.matches.position_of_occurrence, self.matches.first_occurrence_of_document)

    @cached_property
    def tag_of_occurrence(self) -> Integers:
        """The index of the deepest weighted tag around each occurrence, or -1 if there is none."""
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
        """The weight of each tag, and at the end 1, for occurrences without a weighted tag (index -1)."""
        return np.array([*(self._weights.get(tag, 1.0) for tag in self.structure.tags), 1.0])

    @cached_property
    def titled_of_occurrence(self) -> Integers:
        """The index of the span whose title contains each occurrence, or -1 if the occurrence is not in a title.

        All values are -1 unless the parameter `titles` is set.
        """
        if not self._titles:
            return np.full(self.matches.position_of_occurrence.size, -1, np.int64)
        span = self._spans_of_occurrences(self.structure.kind_of_span == int(Kind.TITLE))
        return np.where(span >= 0, self.structure.parent_of_span[span], -1)

    def _spans_of_occurrences(self, chosen: Mask) -> Integers:
        runs = self.structure.runs(chosen)
        return runs.spans_of(self.matches.position_of_occurrence, self.matches.first_occurrence_of_document)

    @cached_property
    def entries(self) -> list[Integers]:
        """For each leaf, the indexes of its occurrences, in ascending order."""
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
        """The mean influence of the query on the tokens of each unit (row of the matches)."""
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
    """The matches with logical elements in place of documents; and for each occurrence its index in the given matches.

    With these, a match of a phrase, NEAR or SAME lies inside one element, as influence does. The rows are always
    passages, even if elements or documents are ranked, because SAME refers to passages.
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
    inside = occurrences_of_ranges(*map(frozen, (position, first_occurrence, document, *ranges)))
    occurrences = Occurrences(term, position, first_occurrence, *inside)
    view = replace(
        matches,
        number_of_document=elements,
        occurrences=lambda: occurrences,
        document_of_passage=document,
        first_token_of_passage=ranges[0],
        end_token_of_passage=ranges[1],
        in_passages=Frequencies(*count_terms(term, *inside, len(matches.query.terms))),
    )
    return view, order


def _words_of_matches(evaluation: BooleanEvaluator, tree: QueryTree) -> Mask:
    """One flag per occurrence: whether it is a word of a match of `tree`, which is a phrase, NEAR, ADJ or SAME.

    For SAME, these are all its words in the passages in which SAME holds.
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


def _with_rarest(matches: Matches, rarest: int) -> QueryTree:
    """The query with only the `rarest` operands of its AND, those that occur in the fewest documents.

    Operands with NOT stay. Operands that occur in no document are left out, unless all do. The order of the operands
    does not change.
    """
    tree = matches.query.boolean
    if not isinstance(tree, And):
        return tree
    frequency = dict(zip(matches.query.terms, matches.statistics.document_frequency.tolist(), strict=True))
    wanted = [child for child in dict.fromkeys(tree.children) if not isinstance(child, Not)]
    known = {child: documents for child in wanted if (documents := _document_frequency(child, frequency))}
    if not known:
        return tree
    kept = {*sorted(known, key=lambda child: (known[child], wanted.index(child)))[:rarest]}
    return all_of(tuple(child for child in dict.fromkeys(tree.children) if isinstance(child, Not) or child in kept))


def _document_frequency(tree: QueryTree, frequency: Mapping[str, int]) -> int:
    """The largest number of documents that a tree without NOT can match, from the frequencies of its terms."""
    match tree:
        case Word(terms):
            return sum(frequency.get(term, 0) for term in terms)
        case Or(children):
            return sum(_document_frequency(child, frequency) for child in children)
    return min((_document_frequency(child, frequency) for child in children_of(tree) if not isinstance(child, Not)), default=0)


def _leaves(tree: QueryTree) -> Iterator[QueryTree]:
    """The nodes of a tree that have occurrences: words, phrases, NEAR, ADJ and SAME."""
    match tree:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Not(child):
            yield from _leaves(child)
        case _:
            yield tree


def _compile(tree: QueryTree, leaves: Sequence[QueryTree]) -> tuple[Integers, int]:
    """Compile a tree into a program for `mean_influence`.

    Returns the program, an array of (operation, argument) rows, and the number of levels that its stack needs.
    """
    number = {leaf: i for i, leaf in enumerate(leaves)}
    steps: list[tuple[int, int]] = []
    highest = 0

    def add(node: QueryTree, height: int) -> None:
        nonlocal highest
        highest = max(highest, height)
        match node:
            case And(children):
                # Negated operands come last, because they are evaluated only if the other operands have any influence.
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
