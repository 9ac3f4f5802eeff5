"""Do self-made topics order systems as human judgements do? Prints Kendall's τ for each kind of topic.

    python -m benchmarks selfmade INDEX TOPICS QRELS [--count N] [--most N] [--save FILE.json]

For each system, the mean of nDCG@10 over the human topics and over the self-made topics of each kind.
τ compares the order of the systems by a kind with their order by the human topics, for all pairs of systems, and for
clear pairs: those whose difference on the human topics is above two standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np

from perikope.browse.models import parse_model
from perikope.evaluation.adapting.adapt import KINDS
from perikope.evaluation.depth import Depth
from perikope.evaluation.figures import quick
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.selfmade.topics import NAMED, make_topics
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions

SYSTEMS = (
    "bm25(b=0.25)", "bm25(b=0.5)", "bm25(b=0.75)", "bm25(b=1)", "lm", "psg", "psg_doc", "psg_neighbor", "qsf_v", "qsf_v_title",
    "qsf_section", "qsf_section_propagate", "pl2", "coverage", "coverage(titles=0)",
    "coverage(titles=0,document=0,neighbors=0)", "coverage(titles=0.5,document=0.4)", "coverage(titles=0.5)", "coverage(titles=0.75)",
    "coverage(neighbors=0)", "coverage(neighbors=0.2)", "coverage(document=0)", "coverage(document=0.4)", "coverage(b=0.25)",
    "coverage(b=0.75)", "coverage(k1=0.6)", "coverage(k1=2)",
)  # fmt: skip
DEPTH = Depth(10)


def judged_topics(snapshot: Snapshot, topics: str, qrels: str, most: int, seed: int) -> tuple[list[Topic], Mapping[str, Mapping[str, int]]]:
    """At most `most` topics with judgements, drawn at random, and all judgements by topic id."""
    judgements = fit_judgements(qrels, snapshot).names
    judged = [topic for topic in read_topics(topics) if judgements.get(topic.qid)]
    return Random(seed).sample(judged, min(most, len(judged))), judgements


def values_of_systems(looking: Looking, topics: Sequence[Topic], systems: Sequence[str] = SYSTEMS) -> dict[str, list[float]]:
    """The value of nDCG@10 of each system for each topic."""
    measure, models = parse_measure("nDCG@10"), {name: parse_model(name) for name in systems}
    values: dict[str, list[float]] = {name: [] for name in systems}
    for topic in topics:
        asked = looking.prepare(topic, SearchOptions.of({}))
        if asked.problem:
            continue
        view = looking.view(asked)
        by_ranks = quick(measure, view.judged)
        assert by_ranks is not None
        for name, model in models.items():
            score = model.combine(model.signals(view.matches))
            values[name].append(by_ranks(view.judged_ranks(score, DEPTH, model)))
    return values


def kendall(human: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]], errors: float = 0.0) -> float:
    """Kendall's τ of the order of systems by their means on human topics and on other topics.

    Only pairs of systems count whose mean difference on the human topics is above `errors` standard errors.
    """
    signs = []
    for one, two in combinations(human, 2):
        difference = np.subtract(human[one], human[two])
        error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
        if abs(difference.mean()) > errors * error:
            signs.append(_sign(float(difference.mean())) * _sign(float(np.mean(other[one]) - np.mean(other[two]))))
    return sum(signs) / max(len(signs), 1)


def _sign(difference: float) -> int:
    return (difference > 1e-9) - (difference < -1e-9)


def _split_half(human: Mapping[str, Sequence[float]], times: int = 20) -> float:
    """The mean τ between two random halves of the human topics: more agreement cannot be expected."""
    chance, values = np.random.default_rng(1), {name: np.array(column) for name, column in human.items()}
    halves = []
    for _ in range(times):
        order = chance.permutation(next(iter(values.values())).size)
        first, second = np.array_split(order, 2)
        halves.append(kendall({n: v[first] for n, v in values.items()}, {n: v[second] for n, v in values.items()}))
    return sum(halves) / times


def _mixed(columns: Mapping[str, Mapping[str, Sequence[float]]], kinds: Sequence[str]) -> dict[str, list[float]]:
    return {name: [value for kind in kinds for value in columns[kind][name]] for name in SYSTEMS}


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index"), parser.add_argument("topics"), parser.add_argument("qrels")
    parser.add_argument("--count", type=int, default=50, help="self-made topics of each kind")
    parser.add_argument("--most", type=int, default=300, help="human topics, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", default="", help="write all values to this JSON file")
    given = parser.parse_args(options)
    snapshot = Snapshot.open(Path(given.index))
    human, judgements = judged_topics(snapshot, given.topics, given.qrels, given.most, given.seed)
    began = time.perf_counter()
    columns = {"human": values_of_systems(Looking(snapshot, judgements), human)}
    made = make_topics(snapshot, count=given.count, seed=given.seed)
    looking = Looking(snapshot, made.judgements, masks=made.masks)
    for kind in made.kinds:
        columns[kind] = values_of_systems(looking, made.of_kind(kind))
    named = [f"{kind}{NAMED}" for kind in KINDS if f"{kind}{NAMED}" in columns]
    columns["the mixture of `perikope adapt`"] = _mixed(columns, named)
    print(f"| system | {' | '.join(columns)} |")
    for name in SYSTEMS:
        print(f"| {name} | {' | '.join(f'{np.mean(values[name]):.3f}' for values in columns.values())} |")
    human_values = columns.pop("human")
    print(f"τ of two halves of the human topics: {_split_half(human_values):.2f}")
    for kind, values in columns.items():
        pair = f"{kendall(human_values, values):6.2f} {kendall(human_values, values, 2.0):6.2f}"
        print(f"τ, and τ of clear pairs: {pair}  {kind} ({len(values[SYSTEMS[0]])} topics)")
    print(f"{time.perf_counter() - began:.0f} s")
    if given.save:
        Path(given.save).write_text(json.dumps(columns))


if __name__ == "__main__":
    main()
