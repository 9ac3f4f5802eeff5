"""Combinations of several models: sums of their scores, fused ranks, and learned combinations of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Model, Signals, model, parse_model
from perikope.browse.models.combination import KIND, combination_of
from perikope.browse.models.features import normalized_features
from perikope.browse.signals import Column, Node, min_max, share_above_least, sum_of, z_score
from perikope.core.arrays import Integers
from perikope.core.errors import UsageError
from perikope.core.grammar import Call
from perikope.core.parameters import Grid, Nested, Range
from perikope.index.layout import ranges
from perikope.kernels.order import falling

Normalize = Annotated[
    Literal["minmax", "zscore", "sum", "none"],
    Grid(("minmax",)),
    "How each model's scores are normalised over the candidate passages before they are added.",
]
Models = Annotated[tuple[Model, ...], Nested(parse_model, each=True, describes="a list of models, each a name with its parameters")]
DEFAULT = ("bm25", "qsf_v_title", "qsf_section_propagate")
"""A model of the passage alone, one with titles and document, and one with the sections."""
EVEN = "even"
"""Table that comes with the program: weights set by hand for passage, titles, section and document."""

_NORMALIZE: Mapping[str, Callable[[Column], Column]] = {
    "minmax": min_max,
    "zscore": z_score,
    "sum": share_above_least,
    "none": lambda column: column,
}


def scores_of_models(
    matches: Matches,
    *,
    models: Annotated[Models, "Models whose scores are added."] = DEFAULT,  # type: ignore[assignment]
    normalize: Normalize = "minmax",
) -> Signals:
    """The normalised score of each model, under the model's number in the list and its name."""
    shared = matches.shared()
    return {
        f"{number} {inner.definition.name}": _NORMALIZE[normalize](inner.score(shared)).named(f"score by {inner.definition.name}")
        for number, inner in enumerate(models, 1)
    }


@model(scores_of_models)
def fuse(
    signals: Signals,
    *,
    weights: Annotated[
        tuple[float, ...] | None, Range(-1e6, 1e6), Grid((None,)), "One weight per model; none gives all models the same weight."
    ] = None,
) -> Column:
    """The weighted sum of the scores of several models.

    `Σ_m w_m · norm(score_m(p))`, with equal weights unless they are given. `normalize` applies to the candidate
    passages: `minmax` is `(x - min) / (max - min)`, `sum` is `(x - min) / Σ (x - min)`, `zscore` is
    `(x - mean) / deviation`, and `none` leaves scores unchanged (Fox and Shaw 1994; Montague and Aslam 2001).
    """
    columns = list(signals.values())
    weight_of_model = (1 / len(columns),) * len(columns) if weights is None else weights
    if len(weight_of_model) != len(columns):
        raise UsageError(f"fuse: there are {len(columns)} models and {len(weight_of_model)} weights; give one weight for each model")
    if not any(weight > 0 for weight in weight_of_model):
        raise UsageError("fuse: no model has a weight above 0; give at least one")
    return sum_of("fused score", [weight * column for weight, column in zip(weight_of_model, columns, strict=True)])


def reciprocal_ranks(
    matches: Matches,
    *,
    models: Annotated[Models, "Models whose rankings are fused."] = DEFAULT,  # type: ignore[assignment]
    k: Annotated[
        float, Range(0, 1e6), Grid((10.0, 60.0, 100.0)), "Constant added to each rank; larger values reduce the advantage of top ranks."
    ] = 60.0,
) -> Signals:
    """`1 / (k + rank)` of each passage in each model's ranking, under the model's number in the list and its name."""
    shared = matches.shared()
    by_id = np.argsort(matches.id_rank_of_document())
    # All passages in the order that decides between equal scores: by document id, then by position.
    first = matches.first_passage_of_document
    rows = ranges(first[:-1][by_id], first[1:][by_id])
    return {f"{number} {inner.definition.name}": _reciprocal_rank(shared, inner, k, rows) for number, inner in enumerate(models, 1)}


@model(reciprocal_ranks)
def rrf(signals: Signals) -> Column:
    """Reciprocal rank fusion of several models, which uses their ranks and not their scores.

    `Σ_m 1 / (k + rank_m(p))`, with ranks from 1 over all candidate passages, and equal scores ordered by document id,
    then by position. A model that sees no context ranks only passages with a query term; other passages get 0 from it
    (Cormack, Clarke and Büttcher 2009).
    """
    return sum_of("fused reciprocal ranks", list(signals.values()))


def _reciprocal_rank(matches: Matches, inner: Model, k: float, rows: Integers) -> Column:
    values, name = inner.score(matches).values, inner.definition.name
    if inner.matching_only:
        rows = rows[np.diff(matches.in_passages.first_entry)[rows] > 0]
    order = rows[falling(values[rows])]
    reciprocal = np.zeros(values.size)
    reciprocal[order] = 1 / (k + np.arange(1, order.size + 1))

    def explain(row: int) -> Node:
        rank = int(np.argmax(order == row)) + 1 if reciprocal[row] else 0
        if not rank:
            return Node(f"not ranked by {name}", 0.0)
        # The score decides only the rank, so its slope is 0. It is computed again: only ranks are kept.
        score = inner.score(matches).explain(row)
        label = f"1 ÷ ({k:g} + {rank}): rank {rank} by {name}, whose score is"
        return Node(label, float(reciprocal[row]), "affine", (score,), 0.0, float(reciprocal[row]))

    return Column(f"reciprocal rank by {name}", reciprocal, explain)


def read_name(value: object) -> str:
    """The name of a table, from a word or a text."""
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, str) and value:
        return value
    raise UsageError(f'learned: name must be the name of a table, such as learned(name="{EVEN}")')


def learned_signals(
    matches: Matches,
    *,
    name: Annotated[
        str,
        Nested(read_name, describes="the name of a table"),
        Grid((EVEN,)),
        "Table that `perikope learn fusion` saved in the index, or even, which comes with the program.",
    ] = EVEN,
) -> Signals:
    """The contribution of each feature to the score."""
    matches.require_passages("learned")
    combination = combination_of(matches.table(read_name(name), KIND))
    return combination.contributions(normalized_features(matches, combination.features, combination.normalize))


@model(learned_signals)
def learned(signals: Signals) -> Column:
    """A combination of all features, learned from judgements, so that no model has to be chosen by hand.

    `Σ_f w_f · norm(f(p))` over the features f that `perikope learn features` lists, each normalised over the candidate
    passages; or the sum of regression trees over these features. `name` is a table that `perikope learn fusion` saved
    in the index (`perikope learn show` lists them); `even` comes with the program and has weights set by hand. The
    model ranks passages, not elements, because features compare neighbouring passages.
    """
    return sum_of("learned score", list(signals.values()))
