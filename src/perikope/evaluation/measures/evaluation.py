"""Evaluates a run: computes measures for every judged query, and their means."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perikope.core.errors import UsageError
from perikope.evaluation.measures.declaration import Measure, parse_measures


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The values of measures for a run. Names of measures are those that the caller gave."""

    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    """The ids of the evaluated queries."""
    per_query: Mapping[str, Mapping[str, float]]
    """Values by name of the measure, then by query id."""
    mean: Mapping[str, float]
    """Means over the evaluated queries, by name of the measure."""

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.mean.items())
        count = len(self.queries)
        return f"Evaluation({means}; mean{'s' if len(self.mean) > 1 else ''} of {count} {'query' if count == 1 else 'queries'})"


def evaluate(
    measures: str | Measure | Iterable[str | Measure],
    judgements: Mapping[str, Mapping[str, Any]],
    run: Mapping[str, Mapping[str, float] | Sequence[Any]],
    *,
    only_run_queries: bool = False,
) -> Evaluation:
    """Evaluate a run (score by query id and name) against judgements (grade by query id and name).

    Means are over all judged queries. A query that the run lacks has an empty ranking or, with `only_run_queries`, is
    left out. Queries of the run without judgements are always left out.

    For measures of characters, `judgements` has relevant text by query id and document, and `run` a list of ranges by
    query id. `read_judgements` and `read_run` of `perikope.evaluation.io.inex` return these types.

    >>> evaluate("MAP P@1", {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 0.7}})
    Evaluation(MAP 0.5000, P@1 0.5000; means of 2 queries)
    >>> evaluate("MAP", {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 0.7}}, only_run_queries=True).mean
    {'MAP': 1.0}
    """
    wanted = {measure.asked or str(measure): measure for measure in parse_measures(measures)}
    queries = tuple(qid for qid in judgements if qid in run or not only_run_queries)
    if not queries:
        raise UsageError(
            "there is no judged query in the run; check that run and judgements have the same query ids"
            if only_run_queries and judgements
            else "there is no judged query; the judgements are empty"
        )
    _check_levels(wanted, judgements, run)
    ranked = {qid: _ranked(run.get(qid, ())) for qid in queries}
    per_query = {name: {qid: measure(ranked[qid], judgements[qid]) for qid in queries} for name, measure in wanted.items()}
    mean = {name: math.fsum(values.values()) / len(queries) for name, values in per_query.items()}
    return Evaluation(tuple(wanted.values()), queries, per_query, mean)


def merge(evaluations: Iterable[Evaluation], order: Iterable[str]) -> Evaluation:
    """Merge evaluations of the same run and queries by different measures.

    `order` has the names of all measures, in the order of the result.
    """
    parts = list(evaluations)
    by_name = {name: (measure, part) for part in parts for name, measure in zip(part.mean, part.measures, strict=True)}
    names = list(dict.fromkeys(order))
    return Evaluation(
        tuple(by_name[name][0] for name in names),
        parts[0].queries,
        {name: by_name[name][1].per_query[name] for name in names},
        {name: by_name[name][1].mean[name] for name in names},
    )


def _check_levels(wanted: Mapping[str, Measure], judgements: Mapping[str, Mapping[str, Any]], run: Mapping[str, Any]) -> None:
    """Raise an error if judgements or run do not have the types that the level of a measure requires."""
    of_text = any(hasattr(value, "ranges") for judged in judgements.values() for value in judged.values())
    of_grades = not of_text and any(judgements.values())
    lists = any(not isinstance(results, Mapping) for results in run.values())
    scores = any(isinstance(results, Mapping) for results in run.values())
    for name, measure in wanted.items():
        if measure.level == "names" and (of_text or lists):
            raise UsageError(f"{name} needs grades and scores by name, but was given {'judgements' if of_text else 'a run'} of characters")
        if measure.level != "names" and (of_grades or scores):
            raise UsageError(
                f"{name} counts characters: it needs relevant text by document and lists of ranges of text, as INEX files have them, "
                f"but was given {'grades' if of_grades else 'scores'} by name"
            )


def _ranked(results: Mapping[str, float] | Sequence[Any]) -> Sequence[Any]:
    return ranked_names(results) if isinstance(results, Mapping) else results


def ranked_names(scores: Mapping[str, float]) -> list[str]:
    """Sort the results of one query like trec_eval: by descending float32 score, then by descending name.

    >>> ranked_names({"a": 1.0, "b": 1.000000001, "c": 2.0})
    ['c', 'b', 'a']
    """
    if any(math.isnan(score) for score in scores.values()):
        raise UsageError("a score of the run is NaN; all scores must be numbers")
    return [name for _, name in sorted(zip(array("f", scores.values()), scores, strict=True), reverse=True)]
