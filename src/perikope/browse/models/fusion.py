"""Models that combine others: weighted sums of scores, fused ranks, and learned combinations of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Model, Signals, model, parse_model
from perikope.browse.models.combination import KIND, LABEL, combination_of, contributions, listed_passages
from perikope.browse.models.shortlist import score_of
from perikope.browse.signals import Column, Node, min_max, share_above_least, sum_of, z_score
from perikope.core.arrays import Integers
from perikope.core.errors import UsageError
from perikope.core.grammar import Call
from perikope.core.parameters import Grid, Nested, Range
from perikope.index.ranges import ranges
from perikope.kernels.order import falling

Normalize = Annotated[
    Literal["minmax", "zscore", "sum", "none"],
    Grid(("minmax",)),
    "How each model's scores are normalised over the candidate passages before they are added.",
]
Models = Annotated[tuple[Model, ...], Nested(parse_model, each=True, describes="a list of models, each a name with its parameters")]
DEFAULT = ("bm25", "qsf_v_title", "qsf_section_propagate")
"""Default models: one of the passage alone, one with titles and document, and one that adds the sections."""
EVEN = "even"
"""Name of the table that comes with the program: weights set by hand for passage, titles, section and document."""

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
    """The normalised score of each model. Keys are the number of the model in the list and its name, as in `1 bm25`."""
    with matches.sharing() as shared:
        return {
            f"{number} {inner.definition.name}": _NORMALIZE[normalize](inner.score(shared)).named(f"score by {inner.definition.name}")
            for number, inner in enumerate(models, 1)
        }


@model(scores_of_models)
def fuse(
    signals: Signals,
    *,
    weights: Annotated[
        tuple[float, ...] | None,
        Range(-1e6, 1e6),
        Grid((None,)),
        "One weight per model; by default all models have the same weight.",
    ] = None,
) -> Column:
    """The weighted sum of the scores of several models.

    `Σ_m w_m · norm(score_m(p))` over the models m (Fox and Shaw 1994; Montague and Aslam 2001). The weights w_m are
    equal unless `weights` is given. `normalize` selects norm, which is computed over the candidate passages: `minmax`
    is `(x - min) / (max - min)`, `sum` is `(x - min) / Σ (x - min)`, `zscore` is `(x - mean) / standard deviation`, and
    `none` leaves scores unchanged.
    """
    columns = list(signals.values())
    weight_of_model = (1 / len(columns),) * len(columns) if weights is None else weights
    if len(weight_of_model) != len(columns):
        raise UsageError(f"fuse: there are {len(columns)} models but {len(weight_of_model)} weights; give one weight per model")
    if not any(weight > 0 for weight in weight_of_model):
        raise UsageError("fuse: no model has a weight above 0; give at least one model a positive weight")
    return sum_of("fused score", [weight * column for weight, column in zip(weight_of_model, columns, strict=True)])


def reciprocal_ranks(
    matches: Matches,
    *,
    models: Annotated[Models, "Models whose rankings are fused."] = DEFAULT,  # type: ignore[assignment]
    k: Annotated[
        float, Range(0, 1e6), Grid((10.0, 60.0, 100.0)), "Constant added to each rank; larger values reduce the advantage of top ranks."
    ] = 60.0,
) -> Signals:
    """For each model, the column of `1 / (k + rank)`, where rank is the rank of the passage by this model.

    Keys are the number of the model in the list and its name, as in `1 bm25`.
    """
    by_id = np.argsort(matches.id_rank_of_document())
    # All passages in the order that breaks ties between equal scores: by document id, then by position.
    first = matches.first_passage_of_document
    rows = ranges(first[:-1][by_id], first[1:][by_id])
    with matches.sharing() as shared:
        return {f"{number} {inner.definition.name}": _reciprocal_rank(shared, inner, k, rows) for number, inner in enumerate(models, 1)}


@model(reciprocal_ranks)
def rrf(signals: Signals) -> Column:
    """Reciprocal rank fusion of several models, which uses their ranks and not their scores.

    `Σ_m 1 / (k + rank_m(p))` over the models m (Cormack, Clarke and Büttcher 2009). Ranks start at 1 and are over all
    candidate passages. Equal scores are ordered by document id, then by position. A model without context, such as
    bm25, ranks only passages with a query term; the summand of this model is 0 for all other passages.
    """
    return sum_of("fused reciprocal ranks", list(signals.values()))


def _reciprocal_rank(matches: Matches, inner: Model, k: float, rows: Integers) -> Column:
    values, name = inner.score(matches).values, inner.definition.name
    if inner.matching_only:
        rows = rows[np.diff(matches.in_passages.first_entry)[rows] > 0]
    order = rows[falling(values[rows])]
    reciprocal = np.zeros(values.size)
    reciprocal[order] = 1 / (k + np.arange(1, order.size + 1))

    @cache
    def scored() -> Column:
        """The scores, computed again with the first explanation, because a search keeps only ranks."""
        return inner.score(matches)

    def explain(row: int) -> Node:
        rank = int(np.argmax(order == row)) + 1 if reciprocal[row] else 0
        if not rank:
            return Node(f"not ranked by {name}", 0.0)
        # The score matters only through the rank, so its slope is 0.
        score = scored().explain(row)
        label = f"1 ÷ ({k:g} + {rank}): rank {rank} by {name}, whose score is"
        return Node(label, float(reciprocal[row]), "affine", (score,), 0.0, float(reciprocal[row]))

    return Column(f"reciprocal rank by {name}", reciprocal, explain)


def read_name(value: object) -> str:
    """The name of a table, from a parsed word or from a text. Raises `UsageError` for any other value."""
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
        "Name of a table: one that `perikope learn fusion` saved in the index, or `even`, which comes with the program.",
    ] = EVEN,
) -> Signals:
    """The contribution of each feature of the table to the score, by feature."""
    matches.require_passages("learned")
    combination = combination_of(matches.table(read_name(name), KIND))
    return contributions(combination, listed_passages(combination, matches))


@model(learned_signals)
def learned(signals: Signals) -> Column:
    """A combination of features that was learned from judgements, so that no model has to be chosen by hand.

    The score is `Σ_f w_f · norm(f(p))` over features f, or a sum of regression trees over these features. `perikope
    learn features` lists the features. They are normalised over the passages on the shortlist: those of the best
    documents by coverage, at least 50 documents and 4,000 passages. The passages of all other candidates follow in the
    order of coverage. Tables of earlier versions and `even` have no shortlist: all candidates get all features.

    `name` is the name of a table that `perikope learn fusion` saved in the index; `perikope learn show` lists these
    tables. The table `even` comes with the program, and its weights are set by hand. The model ranks passages, not
    elements, because features compare neighbouring passages.
    """
    return score_of(signals, LABEL)
