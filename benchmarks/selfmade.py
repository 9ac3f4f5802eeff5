"""Do self-made topics order systems as human judgements do? Prints Kendall's τ for each kind of topic.

    python -m benchmarks.selfmade INDEX TOPICS QRELS [--count N] [--most N] [--save FILE.json]

For each system, the mean of nDCG@10 over the human topics and over the self-made topics of each kind.
τ (b) compares the order of the systems by a kind with their order by the human topics.
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

from perikope.browse.models import parse_model
from perikope.evaluation.depth import Depth
from perikope.evaluation.figures import quick
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.selfmade.topics import make_topics
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions

SYSTEMS = (
    "bm25(b=0.25)", "bm25(b=0.5)", "bm25(b=0.75)", "bm25(b=1)", "lm", "psg", "psg_doc", "psg_neighbor", "qsf_v", "qsf_v_title",
    "qsf_section", "qsf_section_propagate", "pl2", "coverage", "coverage(document=0)", "coverage(titles=0)",
    "coverage(titles=0,document=0,neighbors=0)", "coverage(neighbors=0.3)", "coverage(b=0.9)", "coverage(titles=0.5,document=0.4)",
)  # fmt: skip
DEPTH = Depth(10)


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


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's τ-b of two lists of values of the same systems."""
    signs = [(_sign(a - b), _sign(c - d)) for (a, c), (b, d) in combinations(zip(one, other, strict=True), 2)]
    pairs = math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    return sum(a * b for a, b in signs) / pairs if pairs else 0.0


def _sign(difference: float) -> int:
    return (difference > 1e-9) - (difference < -1e-9)


def _means(values: Mapping[str, Sequence[float]]) -> list[float]:
    return [sum(column) / max(len(column), 1) for column in values.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index"), parser.add_argument("topics"), parser.add_argument("qrels")
    parser.add_argument("--count", type=int, default=50, help="self-made topics of each kind")
    parser.add_argument("--most", type=int, default=300, help="human topics, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", default="", help="write all values to this JSON file")
    given = parser.parse_args()
    snapshot = Snapshot.open(Path(given.index))
    judgements = fit_judgements(given.qrels, snapshot).names
    human = [topic for topic in read_topics(given.topics) if judgements.get(topic.qid)]
    human = Random(given.seed).sample(human, min(given.most, len(human)))
    began = time.perf_counter()
    columns = {"human": values_of_systems(Looking(snapshot, judgements), human)}
    made = make_topics(snapshot, count=given.count, seed=given.seed)
    looking = Looking(snapshot, made.judgements, masks=made.masks)
    for kind in made.kinds:
        columns[kind] = values_of_systems(looking, made.of_kind(kind))
    means = {kind: _means(values) for kind, values in columns.items()}
    for name, row in zip(SYSTEMS, zip(*means.values(), strict=True), strict=True):
        print(f"{name:45s} " + " ".join(f"{value:.3f}" for value in row))
    for kind, values in columns.items():
        print(f"τ {kendall(means['human'], means[kind]):6.2f}  {kind} ({len(values[SYSTEMS[0]])} topics)")
    print(f"{time.perf_counter() - began:.0f} s")
    if given.save:
        Path(given.save).write_text(json.dumps(columns))


if __name__ == "__main__":
    main()
