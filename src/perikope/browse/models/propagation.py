"""Models that propagate relevance through the document's tree.

Source: Albarede et al., Passage retrieval in context, CORIA 2021.

The file has the models first, then the columns that they combine, then the explanations of these columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Need, Signals, model, needs_titles
from perikope.browse.models.content import Content, CountedOver, Mu, content_score
from perikope.browse.signals import Column, Node, min_max
from perikope.core.arrays import Array, Floats, Integers, frozen
from perikope.core.parameters import Grid, Range
from perikope.kernels.join import sum_ancestors
from perikope.kernels.propagation import (
    aggregate_children,
    from_ancestors,
    from_ancestors_by_factor,
    from_other_passages,
    from_other_sections,
    from_other_sections_by_factor,
    from_others_in_group,
)

Share = Annotated[float, Range(0, 1), Grid(step=0.1)]
Sigma = Annotated[
    float,
    Range(0, low_open=True),
    Grid((0.5, 1.0, 2.0, 5.0)),
    "Width σ of the weight function, in edges of the tree; with larger values, distant text has more weight.",
]
# Grids contain only the published choice; users who want another one name it.
Aggregate = Annotated[
    Literal["average", "maximum"],
    Grid(("average",)),
    "How the score of a section is computed from the passages and sections directly below it.",
]
AggregateByDistance = Annotated[
    Literal["average", "maximum", "weighted"],
    Grid(("average",)),
    "How scores weighted by distance are combined: average, maximum, or sum divided by the sum of weights.",
]
Weight = Annotated[
    Literal["gauss", "triangle", "exponential", "inverse", "step"],
    Grid(("gauss",)),
    "Function that weights a score by its distance in the tree.",
]
ShareOfPassage = Annotated[Share, "Weight α of the passage; its context has weight 1 - α."]

LISTED = 10
"""Number of contributions that an explanation lists one by one. One more line has the sum or maximum of the others."""


def _document(matches: Matches, content: Content, statistics: CountedOver, mu: float) -> Column:
    def score() -> Column:
        return min_max(content_score(matches, "document", content, statistics, mu=mu)).at(matches.document_of_passage)

    return matches.once(("document of passage", content, statistics, mu), score)


def _in_context(
    matches: Matches, passage: Column, content: Content, statistics: CountedOver, mu: float, context: Column | None = None
) -> Signals:
    """The signals `content`, `document` and, if `context` is given, `context`, each min-max normalised.

    They are the scores of each passage, of its document, and of its further context.
    """
    signals = {"content": min_max(passage), "document": _document(matches, content, statistics, mu)}
    return signals if context is None else {**signals, "context": min_max(context)}


def _mix(signals: Signals, alpha: float, beta: float) -> Column:
    context = (beta * signals["document"] + (1 - beta) * signals["context"]).named("context")
    return alpha * signals["content"] + (1 - alpha) * context


def passage_signals(matches: Matches, *, mu: Mu = 1000.0, content: Content = "lm", statistics: CountedOver = "documents") -> Signals:
    """The signals `content` and `document`, each min-max normalised.

    They are the similarity to the query of each passage and of its document.
    """
    return _in_context(matches, content_score(matches, "passage", content, statistics, mu=mu), content, statistics, mu)


@model(passage_signals)
def qsf_v(signals: Signals, *, alpha: Annotated[Share, "Weight α of the passage; its document has weight 1 - α."] = 0.8) -> Column:
    """The passage mixed with its document.

    `QSF_v = α · Sim°(q, g) + (1 - α) · Sim°(q, d)` for a query q and a passage g of a document d, where ° is min-max
    normalisation over the candidates and `Sim(q, x) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_x + μ)))` is the query
    likelihood (Albarede et al. 2021, equations 2 to 4).

    `content` selects this likelihood (`lm`), or `bm25` or `psg` as in the models of these names. `statistics` selects
    whether P(t|C), idf and the average length are computed over `documents` with their titles, or over `passages`.
    """
    return alpha * signals["content"] + (1 - alpha) * signals["document"]


def titled_signals(matches: Matches, *, mu: Mu = 1000.0, content: Content = "lm", statistics: CountedOver = "documents") -> Signals:
    """The signals `content` and `document`, each min-max normalised.

    They are the similarity to the query of each passage, with the titles of all sections above it, and of its document.
    """
    return _in_context(matches, content_score(matches, "passage with titles", content, statistics, mu=mu), content, statistics, mu)


@model(titled_signals, needs=needs_titles)
def qsf_v_title(signals: Signals, *, alpha: Annotated[Share, "Weight α of the passage; its document has weight 1 - α."] = 0.9) -> Column:
    """The passage, with the titles of the sections that contain it, mixed with its document.

    `QSF_v_title = α · Sim_title°(q, g) + (1 - α) · Sim°(q, d)`, with Sim and ° as in qsf_v. Sim_title is Sim of the
    passage with the titles appended to it (Albarede et al. 2021, equations 5 and 6). `content` and `statistics` are as
    in qsf_v.
    """
    return alpha * signals["content"] + (1 - alpha) * signals["document"]


def _needs_sections(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    return Need("titles"), Need("sections")


def section_signals(
    matches: Matches,
    *,
    mu: Mu = 1000.0,
    content: Content = "lm",
    statistics: CountedOver = "documents",
    aggregate: Aggregate = "average",
) -> Signals:
    """The signals `content`, `document` and `context`, each min-max normalised.

    They are the similarity to the query of each passage with its titles, of its document, and of the section that
    contains it.
    """
    matches.require_passages("qsf_section")
    passage = content_score(matches, "passage with titles", content, statistics, mu=mu)
    # Sections without direct passages are left out of the min-max normalisation. This changes nothing, because their
    # scores lie between those of their subsections.
    section = section_scores(matches, passage, aggregate).at(matches.section_of_passage)
    return _in_context(matches, passage, content, statistics, mu, section)


@model(section_signals, needs=_needs_sections)
def qsf_section(
    signals: Signals,
    *,
    alpha: ShareOfPassage = 0.6,
    beta: Annotated[Share, "Weight β of the document in the context; the section has weight 1 - β."] = 0.1,
) -> Column:
    """The passage, with its titles, mixed with its document and with the section that contains it.

    `QSF_section = α · Sim_title°(q, g) + (1 - α)(β · Sim°(q, d) + (1 - β) · Sim_sec°(q, s))`, where s is the section
    directly above g (Albarede et al. 2021, equations 7 and 8). `Sim_sec(q, s)` is the average, or with
    `aggregate=maximum` the maximum, of the scores directly below s: Sim_title of passages and Sim_sec of sections.
    Sections without passages are ignored. Sim_title and ° are as in qsf_v_title.

    `content` and `statistics` are as in qsf_v. The model ranks passages, not elements.
    """
    return _mix(signals, alpha, beta)


def section_propagate_signals(
    matches: Matches,
    *,
    mu: Mu = 1000.0,
    content: Content = "lm",
    statistics: CountedOver = "documents",
    aggregate: AggregateByDistance = "average",
    weight: Weight = "gauss",
    sigma: Sigma = 5.0,
) -> Signals:
    """The signals `content`, `document` and `context`, each min-max normalised.

    They are the similarity to the query of each passage with its titles, of its document, and of all sections above it,
    weighted by their distance from the passage.
    """
    matches.require_passages("qsf_section_propagate")
    passage = content_score(matches, "passage with titles", content, statistics, mu=mu)
    sections = section_scores(matches, passage, "maximum" if aggregate == "maximum" else "average")
    context = propagated_from_sections(matches, sections, Decay(weight, sigma), aggregate)
    return _in_context(matches, passage, content, statistics, mu, context)


@model(section_propagate_signals, needs=_needs_sections)
def qsf_section_propagate(
    signals: Signals,
    *,
    alpha: ShareOfPassage = 0.6,
    beta: Annotated[Share, "Weight β of the document in the context; the sections above have weight 1 - β."] = 0.3,
) -> Column:
    """The passage, with its titles, mixed with its document and with all sections above it, weighted by proximity.

    `QSF_sectionPropagate = α · Sim_title°(q, g) + (1 - α)(β · Sim°(q, d) + (1 - β) · propag°(q, g))` (Albarede et al.
    2021, equations 9, 10 and 13). `propag(q, g)` is the average (or maximum) over all sections s above g of
    `Sim_sec(q, s) · w(x)`, where x is the distance from g to s in edges of the tree. Sim_sec is as in qsf_section.

    `weight` selects w(x): `gauss` is `exp(-x² / 2σ²)`, as in the paper; `triangle` is `max(0, 1 - x / σ)`;
    `exponential` is `exp(-x / σ)`; `inverse` is `1 / (1 + x / σ)`; `step` is 1 up to σ and 0 beyond it.

    `aggregate` applies to propag and to Sim_sec. With `weighted`, propag is the sum divided by the sum of the weights
    instead of the number of sections, and Sim_sec is the average.

    `content` and `statistics` are as in qsf_v. The model ranks passages, not elements.
    """
    return _mix(signals, alpha, beta)


def passage_propagate_signals(
    matches: Matches,
    *,
    mu: Mu = 1000.0,
    content: Content = "lm",
    statistics: CountedOver = "documents",
    aggregate: AggregateByDistance = "average",
    weight: Weight = "gauss",
    sigma: Sigma = 5.0,
) -> Signals:
    """The signals `content`, `document` and `context`, each min-max normalised.

    They are the similarity to the query of each passage with its titles, of its document, and of the document's other
    passages, weighted by their distance from the passage.
    """
    matches.require_passages("qsf_passage_propagate")
    passage = content_score(matches, "passage with titles", content, statistics, mu=mu)
    context = propagated_from_passages(matches, passage, Decay(weight, sigma), aggregate)
    return _in_context(matches, passage, content, statistics, mu, context)


@model(passage_propagate_signals, needs=needs_titles)
def qsf_passage_propagate(
    signals: Signals,
    *,
    alpha: ShareOfPassage = 0.5,
    beta: Annotated[Share, "Weight β of the document in the context; the other passages have weight 1 - β."] = 0.2,
) -> Column:
    """The passage, with its titles, mixed with its document and the document's other passages, weighted by proximity.

    `QSF_passagePropagate = α · Sim_title°(q, g) + (1 - α)(β · Sim°(q, d) + (1 - β) · propag°(q, g))` (Albarede et al.
    2021, equations 11 to 13). `propag(q, g)` is the average (or maximum) of `Sim_title(q, g') · w(x)` over the other
    passages g' of the document, where x is the distance from g to g' in edges of the tree of sections and passages. If
    the document has no other passage, propag is 0.

    `weight` selects w(x): `gauss` is `exp(-x² / 2σ²)`, as in the paper; `triangle` is `max(0, 1 - x / σ)`;
    `exponential` is `exp(-x / σ)`; `inverse` is `1 / (1 + x / σ)`; `step` is 1 up to σ and 0 beyond it.

    With the aggregate `weighted`, propag is the sum divided by the sum of the weights instead of the number of
    passages. A passage then does not gain merely from having many passages nearby.

    `content` and `statistics` are as in qsf_v. The model ranks passages, not elements.
    """
    return _mix(signals, alpha, beta)


_FORMULAS: Mapping[str, Callable[[Floats], Array]] = {
    "gauss": lambda x: np.exp(-x * x / 2),
    "triangle": lambda x: np.maximum(0.0, 1.0 - x),
    "exponential": lambda x: np.exp(-x),
    "inverse": lambda x: 1.0 / (1.0 + x),
    "step": lambda x: x <= 1.0,
}
"""Functions that return the weight, given the distance divided by σ."""


@dataclass(frozen=True, slots=True)
class Decay:
    """A weight function of the distance d in edges of the tree.

    The weight is 1 at distance 0 and does not increase with distance. It decreases faster for a smaller σ. The
    functions are `gauss`, exp(-d² / 2σ²), as in the paper; `triangle`, max(0, 1 - d / σ); `exponential`, exp(-d / σ);
    `inverse`, 1 / (1 + d / σ); and `step`, 1 up to σ and 0 beyond it.
    """

    name: str
    """Name of the function."""
    sigma: float
    """Width σ, in edges."""

    def at(self, distance: Array) -> Floats:
        """The weight of each distance."""
        with np.errstate(over="ignore"):  # distance ÷ a tiny σ may overflow to infinity; the weight is then 0
            return _FORMULAS[self.name](np.asarray(distance, np.float64) / self.sigma).astype(np.float64)

    def table(self, first: int, last: int) -> Floats:
        """The weights of the distances from `first` to `last` (inclusive), without the zeros at the end."""
        return np.trim_zeros(self.at(np.arange(first, max(first, last) + 1)), "b")

    @property
    def factor(self) -> float | None:
        """The factor by which each further edge multiplies the weight, or None if there is no constant factor."""
        return math.exp(-1 / self.sigma) if self.name == "exponential" else None


def section_scores(matches: Matches, passage: Column, aggregate: Aggregate) -> Column:
    """For each section, the average or maximum score of the passages and sections directly below it.

    `passage` has the scores of the passages. Sections without passages score 0 and are ignored in the section above.
    """
    values, count = aggregate_children(passage.values, matches.section_of_passage, matches.parent_of_section, aggregate == "maximum")

    def explain(section: int) -> Node:
        outline = SectionOutline(matches, int(matches.document_of_section[section]))
        passages, below = outline.passages_in(section), outline.sections_in(section)
        below = below[count[below] > 0]
        parts = np.concatenate([passage.values[passages], values[below]])

        def part(i: int) -> Node:
            is_passage = i < passages.size
            name = outline.name_of_passage(int(passages[i])) if is_passage else outline.name_of_section(int(below[i - passages.size]))
            return Node(name, float(parts[i]))

        label = f"{outline.name_of_section(section)}, {aggregate} of what is directly below"
        return _aggregated(label, float(values[section]), parts, part, aggregate)

    return Column("score of the section", values, explain).of("sections")


def propagated_from_sections(matches: Matches, sections: Column, decay: Decay, aggregate: AggregateByDistance) -> Column:
    """For each passage, the average, weighted mean or maximum of the scores of all sections above it.

    Each score is first multiplied by the weight of its distance. The average divides the sum by the number of sections,
    the weighted mean by the sum of the weights.

    The time is proportional to sections × depth, where only depths with a weight above 0 count. For the exponential
    weight it is proportional to the number of sections.
    """
    parent, section_of_passage, maximum = matches.parent_of_section, matches.section_of_passage, aggregate == "maximum"
    depth = _depth(matches)
    if decay.factor is None:
        total = from_ancestors(sections.values, parent, decay.table(1, int(depth.max(initial=0))), maximum)
    else:
        total = decay.factor * from_ancestors_by_factor(sections.values, parent, decay.factor, maximum)
    if aggregate == "weighted":
        by_depth = np.cumsum(decay.at(np.arange(1, int(depth.max(initial=0)) + 1)))
        total = _divided(total, by_depth[depth - 1])
    elif aggregate == "average":
        total = total / depth
    values = total[section_of_passage]
    label = f"{_CALLED[aggregate]} of the sections above, by distance"

    def explain(row: int) -> Node:
        above = [int(section_of_passage[row])]
        while parent[above[-1]] >= 0:
            above.append(int(parent[above[-1]]))
        distance = np.arange(1, len(above) + 1)
        weight = decay.at(distance)
        parts = sections.values[above] * weight
        return _aggregated(
            label,
            float(values[row]),
            parts,
            lambda i: _weighted(f"at distance {distance[i]}", sections.explain(above[i]), weight[i], parts[i]),
            aggregate,
            weight,
        )

    return Column(label, values, explain).of("sections")


def propagated_from_passages(matches: Matches, passage: Column, decay: Decay, aggregate: AggregateByDistance) -> Column:
    """For each passage, the average, weighted mean or maximum of the scores of the document's other passages.

    Each score is first multiplied by the weight of its distance. The average divides the sum by the number of other
    passages, the weighted mean by the sum of the weights.

    The distance between two passages is the distance between their sections plus two edges. Therefore the passages of a
    section are first reduced to their sum or maximum, and only these values are propagated between sections.

    The time is proportional to passages + sections × depth, where only distances with a weight above 0 count (a
    Gaussian is 0 in float64 from 38.6 σ on). For the exponential weight it is proportional to passages + sections.
    """
    parent, section_of_passage, maximum = matches.parent_of_section, matches.section_of_passage, aggregate == "maximum"
    nearest = float(decay.at(np.array(2)))
    table = decay.table(2, 2 * int(_depth(matches).max(initial=0))) if decay.factor is None else np.zeros(0)
    others = (np.diff(matches.first_passage_of_document) - 1)[matches.document_of_section]

    def received(given: Floats) -> Floats:
        """For each passage, the average or maximum of the others' values, each times the weight of its distance."""
        of_section, siblings = from_others_in_group(given, section_of_passage, parent.size, maximum)
        if decay.factor is None:
            elsewhere = from_other_sections(of_section, parent, table, maximum)
        else:
            elsewhere = nearest * from_other_sections_by_factor(of_section, parent, decay.factor, maximum)
        result: Floats = from_other_passages(siblings, nearest, elsewhere, section_of_passage, others, maximum)
        return result

    values = received(passage.values)
    if aggregate == "weighted":
        values = _divided(values, received(np.ones(values.size)))  # both divide by the same number of passages, which cancels out
    label = f"{_CALLED[aggregate]} of the other passages, by distance"

    def explain(row: int) -> Node:
        outline = SectionOutline(matches, int(matches.document_of_passage[row]))
        rows = np.array([other for other in outline.passages if other != row], np.int64)
        distance = outline.distances(row)[rows - outline.passages.start]
        weight = decay.at(distance)
        parts = passage.values[rows] * weight

        def part(i: int) -> Node:
            label = f"{outline.name_of_passage(int(rows[i]))}, at distance {distance[i]}"
            return _weighted(label, Node(passage.label, float(passage.values[rows[i]])), weight[i], parts[i])

        return _aggregated(label, float(values[row]), parts, part, aggregate, weight)

    return Column(label, values, explain).of("neighbors")


_CALLED = {"average": "average", "maximum": "maximum", "weighted": "weighted mean"}


def _divided(total: Floats, weight: Floats) -> Floats:
    """Each sum divided by its sum of weights; 0 if the sum of weights is 0, because everything is too far away."""
    return np.divide(total, weight, out=np.zeros(total.size), where=weight > 0)


def _depth(matches: Matches) -> Integers:
    """The depth of each section: the number of sections that contain it, counting itself and the document."""
    depth: Integers = sum_ancestors(frozen(np.ones(matches.parent_of_section.size, np.int64)), matches.parent_of_section)
    return depth


def _weighted(label: str, node: Node, weight: float, value: float) -> Node:
    """An explanation node whose value is the value of `node` multiplied by the weight of its distance."""
    return Node(label, float(value), "product", (node, Node("weight of the distance", float(weight))))


def _aggregated(
    label: str, value: float, parts: Floats, part: Callable[[int], Node], aggregate: AggregateByDistance, weight: Floats | None = None
) -> Node:
    """The explanation of an average, weighted mean or maximum of `parts`.

    It lists the largest parts one by one, then the sum or maximum of the others. `part` returns the node of a part by
    its index. `weight` has the weight of each part, for the weighted mean.
    """
    order = np.argsort(-parts, kind="stable")
    nodes = [part(int(i)) for i in order[:LISTED]]
    rest = parts[order[LISTED:]]
    if not parts.size:
        return Node(f"{label}: there are none", value)
    if aggregate == "maximum":
        nodes += [Node(f"the largest of the other {rest.size}", float(rest.max()))] if rest.size else []
        return Node(label, value, "max", tuple(nodes))
    nodes += [Node(f"the other {rest.size} together", math.fsum(rest))] if rest.size else []
    total = Node(f"sum of {parts.size}", math.fsum(node.value for node in nodes), "sum", tuple(nodes))
    divisor = math.fsum(weight) if aggregate == "weighted" and weight is not None else float(parts.size)
    return Node(label, value, "affine", (total,), 1 / divisor if divisor else 0.0)


class SectionOutline:
    """The sections and passages of one document, with their labels in explanations.

    Arguments and results are indexes in the columns of `Matches`. Labels number passages in reading order, from 1.
    """

    def __init__(self, matches: Matches, document: int) -> None:
        self.passages = range(*matches.document_of_passage.searchsorted([document, document + 1]).tolist())
        self.sections = range(*matches.document_of_section.searchsorted([document, document + 1]).tolist())
        first = self.sections.start
        parent = matches.parent_of_section[first : self.sections.stop]
        self._parent = np.where(parent >= 0, parent - first, -1).tolist()
        self._section = matches.section_of_passage[self.passages.start : self.passages.stop] - first

    def passages_in(self, section: int) -> Integers:
        """The indexes of the passages directly below a section."""
        return np.flatnonzero(self._section == section - self.sections.start) + self.passages.start

    def sections_in(self, section: int) -> Integers:
        """The indexes of the sections directly below a section."""
        return np.flatnonzero(np.array(self._parent) == section - self.sections.start) + self.sections.start

    def name_of_passage(self, passage: int) -> str:
        """The label of a passage in explanations: `passage N`, where N is its number in the document."""
        return f"passage {passage - self.passages.start + 1}"

    def name_of_section(self, section: int) -> str:
        """The label of a section in explanations: `section of passage N to M`, or `the whole document`.

        N and M are the numbers of its first and last passage. ` to M` is left out if the section has only one passage.
        The section must contain a passage.
        """
        if section == self.sections.start:
            return "the whole document"
        inside = np.zeros(len(self.sections), bool)
        for i in range(section - self.sections.start, len(self.sections)):
            inside[i] = i == section - self.sections.start or (self._parent[i] >= 0 and inside[self._parent[i]])
        numbers = np.flatnonzero(inside[self._section]) + 1
        return f"section of passage {numbers[0]}" + (f" to {numbers[-1]}" if numbers.size > 1 else "")

    def distances(self, passage: int) -> Integers:
        """The number of edges between a passage and each passage of its document.

        The value for the passage itself has no meaning.
        """
        distance = np.full(len(self.sections), -1, np.int64)
        above, steps = int(self._section[passage - self.passages.start]), 0
        while above >= 0:
            distance[above] = steps
            above, steps = self._parent[above], steps + 1
        for section, parent in enumerate(self._parent):
            if distance[section] < 0:
                distance[section] = distance[parent] + 1
        return distance[self._section] + 2
