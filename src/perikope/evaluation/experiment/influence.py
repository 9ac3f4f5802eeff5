"""Figures of the influence of a query on the tokens of a result.

Source: Beigbeder, Géry and Largeron 2015, Figures 6, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from perikope.browse.explanation import curves_of
from perikope.browse.models import parse_model
from perikope.browse.signals import Curve
from perikope.evaluation.experiment.extras import ExtraFigure, Series
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.batch import prepare_topic
from perikope.search.naming import names_of
from perikope.search.options import SearchOptions

MODELS = ("prox", "prox_h", "prox_hw")
"""The models whose systems have a figure of influence in reports."""


POINTS = 1000
"""Approximate number of tokens of a long document at which a figure has values, beside those where curves bend."""


def influence_figure(curves: Sequence[Curve], title: str, caption: str = "") -> ExtraFigure:
    """The figure with one line per curve over the tokens of a document, in which the result is shaded.

    The query, whose curve is the last one, is the first series. It has the colour of text and lies above the words.
    """
    tokens = _drawn_tokens(curves)
    series = tuple(Series(curve.label, tuple((token, curve.values[token]) for token in tokens)) for curve in (curves[-1], *curves[:-1]))
    first, end = curves[0].first_token, curves[0].end_token
    where = f"The result is shaded: {end - first:,} of the {len(curves[0].values):,} tokens of its document."
    return ExtraFigure(title, "token", "influence", series, f"{caption} {where}".strip(), with_zero=True, band=(first, max(first, end - 1)))


def _drawn_tokens(curves: Sequence[Curve]) -> list[int]:
    """The tokens at which curves are drawn: all, or those of a long document at regular steps and where a curve bends.

    A curve bends where it is at least a thousandth of its largest value away from a straight line between neighbours.
    """
    size = len(curves[0].values)
    drawn = np.zeros(size, np.bool_)
    drawn[:: max(1, size // POINTS)] = True
    drawn[-1:] = True
    for curve in curves:
        values = np.array(curve.values)
        drawn[1:-1] |= np.abs(np.diff(values, 2)) > 2e-3 * values.max(initial=0.0)
    tokens: list[int] = np.flatnonzero(drawn).tolist()
    return tokens


def example_of_influence(snapshot: Snapshot, model: str, asked: Iterable[tuple[Topic, SearchOptions]]) -> ExtraFigure | None:
    """The influence on the best result of the first topic that has a result which the query reaches.

    `asked` has topics with the search options of a system. None if the model has no curves, or no topic such a result.
    """
    parsed = parse_model(model)
    if parsed.definition.name not in MODELS:
        return None
    for topic, options in asked:
        prepared = prepare_topic(snapshot, topic, options)
        if prepared.problem:
            continue
        search = prepared.search
        matches = search.matches(search.candidates(prepared.prepared), parsed)
        ranked = search.rank(matches, parsed)
        if len(ranked.ranking) and ranked.ranking.scores[0] > 0:
            row = int(ranked.ranking.rows[0])
            [name] = names_of(snapshot, matches, ranked.ranking.rows[:1])
            caption = f"Topic {topic.qid}, its best result {name}: the query, and each word of it."
            return influence_figure(curves_of(ranked.score.explain(row)), "Influence on the tokens of a result", caption)
    return None
