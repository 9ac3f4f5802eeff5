"""A prior for passages by their position in the description of a patent (Gobeill and Ruch, CLEF-IP 2012)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Model, Need, Signals, model, parse_model
from perikope.browse.signals import Column, fact, product
from perikope.core.arrays import Floats, Integers
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, write
from perikope.core.parameters import Nested

TENTHS = 10
"""Number of equal parts into which a description is divided."""
DESCRIPTION = "description"
"""Name of the document part that is divided."""
UNIFORM = "uniform"
"""Value of the parameter `weights` that gives all passages weight 1."""
KIND = "prior"
"""Kind of the saved tables that hold priors. Their values are `{"weights": [ten numbers]}`."""
LARGEST = 1e9
"""Largest weight accepted from a table."""


def read_weights(value: object) -> str | tuple[float, ...]:
    """Read the parameter `weights`: `uniform`, the name of a table, or ten numbers. Raises `UsageError` otherwise."""
    if isinstance(value, Call) and not value.arguments and not value.positional:
        value = value.name
    if isinstance(value, str) and value:
        return value
    numbers = value if isinstance(value, tuple) else ()
    good = all(isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number <= LARGEST for number in numbers)
    if len(numbers) != TENTHS or not good:
        shown = str(value) if isinstance(value, Call) else write(value)
        allowed = f'"uniform", the name of a table, or a list of ten numbers from 0 to {LARGEST:g}'
        raise UsageError(f"position_prior: weights must be {allowed}, not {shown}")
    return tuple(float(number) for number in numbers)


def table_weights(values: Mapping[str, object]) -> tuple[float, ...]:
    """The ten weights among the values of a saved table. Raises `UsageError` unless there are ten numbers."""
    weights = values.get("weights")
    return tuple(map(float, read_weights(tuple(weights) if isinstance(weights, list) else ())))


Base = Annotated[Model, Nested(parse_model, describes="a model, by its name with its parameters")]
Weights = Annotated[tuple[float, ...], Nested(read_weights, describes="uniform, the name of a table, or a list of ten numbers")]


def prior_signals(
    matches: Matches,
    *,
    base: Annotated[Base, "Model whose scores are multiplied by the weights."] = "pl2(statistics=candidates)",  # type: ignore[assignment]
    weights: Annotated[
        Weights, "Weights of the ten tenths of a description: uniform, the name of a saved table, or ten numbers."
    ] = "uniform",  # type: ignore[assignment]
) -> Signals:
    """The signals `score`, the score of the base model, and `prior`, the weight of the position in the description."""
    chosen = read_weights(weights)
    if isinstance(chosen, str) and chosen != UNIFORM:
        chosen = table_weights(matches.table(chosen, KIND).values)
    tenth = tenth_of_passage(matches)
    table = np.ones(TENTHS) if isinstance(chosen, str) else np.array(chosen)
    weight = np.where(tenth >= 0, table[tenth], 1.0)
    if not isinstance(base, Model):
        raise UsageError(f"position_prior: base must be the name of a model, not {base!r}")
    return {"score": base.score(matches), "prior": fact("weight of its position in the description", weight)}


def _needs_descriptions(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    return () if read_weights(parameters["weights"]) == UNIFORM else (Need("part", (DESCRIPTION,)),)


@model(prior_signals, zero_is_no_match=True, needs=_needs_descriptions)
def position_prior(signals: Signals) -> Column:
    """The score of another model, multiplied by a weight for the tenth of the description that contains the passage.

    `score(p) · W(i)`, where i is the tenth of the description that contains the middle of p (Gobeill and Ruch 2012).
    The description is divided into tenths with equal numbers of tokens. Passages of other parts keep their score.
    `weights` is `uniform` (all weights are 1), a list of ten numbers (`weights=[1,1,…]`), or the name of a table that
    `perikope learn prior` saved in the index.
    """
    return product("score by its position in the description", signals["score"], signals["prior"])


def tenth_of_passage(matches: Matches) -> Integers:
    """The tenth of the description, from 0, that contains the middle of each passage; -1 for passages of other parts.

    Tenths have equal numbers of tokens. Only tokens in passages of the description are counted, not headings or other
    parts between these passages. If elements overlap, each token is counted once.
    """
    tenth = np.full(matches.passages, -1, np.int64)
    if DESCRIPTION not in matches.parts:
        return tenth
    inside = np.flatnonzero(matches.part_of_passage == matches.parts.index(DESCRIPTION))
    document, first, end = (
        column[inside] for column in (matches.document_of_passage, matches.first_token_of_passage, matches.end_token_of_passage)
    )
    # All documents are put on one axis, so that one pass finds the tokens of each range that no earlier range contains.
    apart = document.astype(np.int64) * (int(end.max(initial=0)) + 1)
    order = np.argsort(apart + first, kind="stable")
    inside, document, first, end = inside[order], document[order], (apart + first)[order], (apart + end)[order]
    reached = np.concatenate([[0], np.maximum.accumulate(end)])[:-1]
    added = np.maximum(end - np.maximum(first, reached), 0)
    of_document = np.bincount(document, added, minlength=matches.documents).astype(np.int64)
    before = np.cumsum(added) - added - np.maximum(reached - first, 0) - (np.cumsum(of_document) - of_document)[document]
    # Integer arithmetic: a middle on the border of two tenths is always in the second one.
    tokens = np.maximum(of_document[document], 1)
    tenth[inside] = np.minimum(TENTHS * (2 * before + end - first) // (2 * tokens), TENTHS - 1)
    return tenth


def learn_prior(relevant_tenths: Iterable[int], returned_tenths: Iterable[int]) -> tuple[float, ...]:
    """The weights of the ten tenths: `W(i) = P_qrel(i) / P_run(i)`, or 1 if no returned passage is in tenth i.

    P_qrel(i) and P_run(i) are the shares of relevant and of returned passages that are in tenth i. The arguments are
    the tenths (from 0) of the relevant and of the returned passages. Negative numbers, of passages outside
    descriptions, are ignored.

    >>> learn_prior([0, 9, 9, 9], [0, 0, 0, 9])[::9]
    (0.3333333333333333, 3.0)
    """
    relevant, returned = _shares(relevant_tenths), _shares(returned_tenths)
    weights = np.divide(relevant, returned, out=np.ones(TENTHS), where=returned > 0)
    return tuple(weights.tolist())


def _shares(tenths: Iterable[int]) -> Floats:
    numbers = np.array([tenth for tenth in tenths if tenth >= 0], np.int64)
    if numbers.size and int(numbers.max()) >= TENTHS:
        raise UsageError(f"the number of a tenth must be from 0 to {TENTHS - 1}, not {int(numbers.max())}")
    counts = np.bincount(numbers, minlength=TENTHS)
    shares: Floats = counts / max(counts.sum(), 1)
    return shares
