"""Figures of the influence of a query on the tokens of a result.

Source: Beigbeder, Géry and Largeron 2015, Figures 6, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
"""The models whose explanations have curves of influence."""


def influence_figure(curves: Sequence[Curve], title: str, caption: str = "") -> ExtraFigure:
    """The figure with one line per curve: the influence of each word of the query, and of the query itself."""
    series = tuple(
        Series(curve.label, tuple((curve.first_token + number, value) for number, value in enumerate(curve.values))) for curve in curves
    )
    return ExtraFigure(title, "token", "influence", series, caption)


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
            caption = f"Topic {topic.qid}, its best result {name}: each word of the query, and the query."
            return influence_figure(curves_of(ranked.score.explain(row)), "Influence on the tokens of a result", caption)
    return None
