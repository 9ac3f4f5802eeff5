"""What does adapting change on human topics, which it never sees?

    python -m benchmarks adapting INDEX TOPICS QRELS [--seeds N] [--count N] [--most N] [--all-parameters]

For each seed: the weights that were chosen, whether they were adopted, nDCG@10 of the human topics with the general
and with the chosen weights, and the time that adapting took.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.selfmade import judged_topics, values_of_systems
from perikope.evaluation.adapting.adapt import PARAMETERS, adapt
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index"), parser.add_argument("topics"), parser.add_argument("qrels")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--count", type=int, default=100, help="self-made topics of each kind")
    parser.add_argument("--most", type=int, default=300, help="human topics, drawn at random")
    parser.add_argument("--all-parameters", action="store_true", help="fit k1 and b too")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(options)
    snapshot = Snapshot.open(Path(given.index))
    human, judgements = judged_topics(snapshot, given.topics, given.qrels, given.most, seed=1)
    parameters = ("k1", "b", *PARAMETERS) if given.all_parameters else PARAMETERS
    for seed in range(1, given.seeds + 1):
        began = time.perf_counter()
        found = adapt(Path(given.index), count=given.count, seed=seed, parameters=parameters, workers=given.workers)
        seconds = time.perf_counter() - began
        values = values_of_systems(Looking(snapshot, judgements), human, sorted({found.general, found.chosen}))
        general, chosen = float(np.mean(values[found.general])), float(np.mean(values[found.chosen]))
        self_made = f"self-made {found.before:.3f} -> {found.after:.3f} (p = {found.p:.3f})"
        verdict = "adopted" if found.is_adopted else "kept"
        print(f"seed {seed}: {verdict}  {found.chosen}  {self_made}  human {general:.4f} -> {chosen:.4f}  {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
