"""Evaluation of a run: every measure for every judged query, and the means."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perikope.errors import UsageError
from perikope.measures.declaration import Measure, parse_measures


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a run: `per_query[measure][qid]` and `mean[measure]`, under the names that were asked for."""

    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    per_query: Mapping[str, Mapping[str, float]]
    mean: Mapping[str, float]


def evaluate(
    measures: str | Measure | Iterable[str | Measure],
    judgements: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    *,
    only_run_queries: bool = False,
) -> Evaluation:
    """Measure a run (score by name by query id) against judgements (grade by name by query id).

    Averages run over all judged queries: one that the run leaves out counts 0, unless `only_run_queries` is set; queries
    of the run that nobody judged are left out.

    >>> evaluate("MAP", {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 0.7}}).mean
    {'MAP': 0.5}
    >>> evaluate("MAP", {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 0.7}}, only_run_queries=True).mean
    {'MAP': 1.0}
    """
    wanted = {measure.asked or str(measure): measure for measure in parse_measures(measures)}
    queries = tuple(qid for qid in judgements if qid in run or not only_run_queries)
    if not queries:
        raise UsageError("there is no judged query in the run" if only_run_queries and judgements else "there is no judged query")
    ranked = {qid: ranked_names(run.get(qid, {})) for qid in queries}
    per_query = {name: {qid: measure(ranked[qid], judgements[qid]) for qid in queries} for name, measure in wanted.items()}
    mean = {name: math.fsum(values.values()) / len(queries) for name, values in per_query.items()}
    return Evaluation(tuple(wanted.values()), queries, per_query, mean)


def ranked_names(scores: Mapping[str, float]) -> list[str]:
    """The names of one query's results, best first: by falling score in float32, ties by falling name, as trec_eval does.

    >>> ranked_names({"a": 1.0, "b": 1.000000001, "c": 2.0})
    ['c', 'b', 'a']
    """
    if any(math.isnan(score) for score in scores.values()):
        raise UsageError("a score of the run is not a number")
    return [name for _, name in sorted(zip(array("f", scores.values()), scores, strict=True), reverse=True)]
