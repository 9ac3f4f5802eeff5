"""Several models as one: their scores added up, their ranks, or all signals as judgements say they count."""

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

Normalize = Annotated[Literal["minmax", "zscore", "sum", "none"], Grid(("minmax",))]
Models = Annotated[tuple[Model, ...], Nested(parse_model, each=True, describes="a list of models, each a name with its parameters")]
DEFAULT = ("bm25", "qsf_v_title", "qsf_section_propagate")
"""One that sees the passage alone, one with titles and document, one with the sections."""
EVEN = "even"
"""The combination that comes with the program: not learned, content scores of passage, titles, section and document alike."""

_NORMALIZE: Mapping[str, Callable[[Column], Column]] = {
    "minmax": min_max,
    "zscore": z_score,
    "sum": share_above_least,
    "none": lambda column: column,
}


def scores_of_models(
    matches: Matches,
    *,
    models: Models = DEFAULT,  # type: ignore[assignment]
    normalize: Normalize = "minmax",
) -> Signals:
    """The score of each model, normalised over the candidate passages; named by the model's place in the list and its name."""
    shared = matches.shared()
    return {
        f"{number} {one.definition.name}": _NORMALIZE[normalize](one.score(shared)).named(f"score by {one.definition.name}")
        for number, one in enumerate(models, 1)
    }


@model(scores_of_models)
def fuse(signals: Signals, *, weights: Annotated[tuple[float, ...] | None, Range(-1e6, 1e6), Grid((None,))] = None) -> Column:
    """The weighted sum of the scores of several models.

    `Σ_m w_m · norm(score_m(p))`, all weights the same where none are given. `normalize` is over the candidate passages: `minmax` is
    `(x - min) / (max - min)`, `sum` is `(x - min) / Σ (x - min)`, `zscore` is `(x - mean) / deviation`, and `none` takes scores as they are
    (Fox and Shaw 1994; Montague and Aslam 2001).
    """
    columns = list(signals.values())
    chosen = (1 / len(columns),) * len(columns) if weights is None else weights
    if len(chosen) != len(columns):
        raise UsageError(f"fuse: there are {len(columns)} models and {len(chosen)} weights; give one weight for each model")
    if not any(weight > 0 for weight in chosen):
        raise UsageError("fuse: no model has a weight above 0; give at least one")
    return sum_of("fused score", [weight * column for weight, column in zip(chosen, columns, strict=True)])


def reciprocal_ranks(
    matches: Matches,
    *,
    models: Models = DEFAULT,  # type: ignore[assignment]
    k: Annotated[float, Range(0, 1e6), Grid((10.0, 60.0, 100.0))] = 60.0,
) -> Signals:
    """What the rank of each passage in each model's ranking is worth."""
    shared = matches.shared()
    by_place = np.argsort(matches.place_of_document())
    # All passages in the order that decides between equal scores: by document id, then by position.
    first = matches.first_passage_of_document
    rows = ranges(first[:-1][by_place], first[1:][by_place])
    return {f"{number} {one.definition.name}": _reciprocal_rank(shared, one, k, rows) for number, one in enumerate(models, 1)}


@model(reciprocal_ranks)
def rrf(signals: Signals) -> Column:
    """Reciprocal rank fusion: the ranks of several models, without their scores.

    `Σ_m 1 / (k + rank_m(p))`, ranks from 1 over all candidate passages, equal scores in the order of the ranking (document id, then
    position). A model that sees no context ranks only passages with a query term; the others get nothing from it (Cormack, Clarke and
    Büttcher 2009).
    """
    return sum_of("fused reciprocal ranks", list(signals.values()))


def _reciprocal_rank(matches: Matches, one: Model, k: float, rows: Integers) -> Column:
    values, name = one.score(matches).values, one.definition.name
    if one.matching_only:
        rows = rows[np.diff(matches.in_passages.first_entry)[rows] > 0]
    order = rows[falling(values[rows])]
    worth = np.zeros(values.size)
    worth[order] = 1 / (k + np.arange(1, order.size + 1))

    def explain(row: int) -> Node:
        rank = int(np.argmax(order == row)) + 1 if worth[row] else 0
        if not rank:
            return Node(f"not ranked by {name}", 0.0)
        # The score only made the rank; it is shown for why, and counts 0 times. Computed again: ranks alone are kept.
        score = one.score(matches).explain(row)
        label = f"1 ÷ ({k:g} + {rank}): rank {rank} by {name}, whose score is"
        return Node(label, float(worth[row]), "affine", (score,), 0.0, float(worth[row]))

    return Column(f"reciprocal rank by {name}", worth, explain)


def read_name(value: object) -> str:
    """The name of a table."""
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, str) and value:
        return value
    raise UsageError(f'learned: name must be that of a table, such as learned(name="{EVEN}")')


def learned_signals(
    matches: Matches, *, name: Annotated[str, Nested(read_name, describes="the name of a table"), Grid((EVEN,))] = EVEN
) -> Signals:
    """What each feature adds to the score."""
    matches.require_passages("learned")
    combination = combination_of(matches.table(read_name(name), KIND))
    return combination.contributions(normalized_features(matches, combination.features, combination.normalize))


@model(learned_signals)
def learned(signals: Signals) -> Column:
    """All signals at once, as they were learned to count from judgements: no model has to be picked by hand.

    `Σ_f w_f · norm(f(p))` over the features f that `perikope learn features` lists, each normalised over the candidate passages; or the sum
    of what regression trees make of them. `name` is a table that `perikope learn fusion` has saved in the index (`perikope learn show`
    lists them); `even` comes with the program and is a mixture set by hand. Elements cannot be scored: features look at passages side by
    side.
    """
    return sum_of("learned score", list(signals.values()))
