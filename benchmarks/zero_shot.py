"""How good are models without training, on judged collections and with self-made topics? Prints Markdown tables.

    python -m benchmarks zero_shot --judged NAME INDEX TOPICS QRELS [--judged …] [--unjudged NAME INDEX …]
        [--most N] [--count N] [--settings N] [--seed N] [--save FILE.json]

- One table has the judged topics, with one column per collection. There is one such table per kind of self-made topic,
  and one with the means of all kinds. A collection with fewer than 10 topics of a kind is left out there.
- `mean` is the mean over collections. Both ratios divide it by that of a reference system.
- `q+` and `q-` mark values significantly above and below `qsf_v_title`, `b+` and `b-` those above and below `bm25`:
  paired t-test over topics, p ≤ 0.05, corrected after Holm for all pairs of systems of the column.
- Models with vectors are measured on judged topics, if the index has vectors. They know no masks, so their values on
  self-made topics would be too good.
- The last table leaves one judged collection out. Among settings that are drawn from those that tuning tries, it takes
  the one with the highest mean ratio to `qsf_v_title` on the other collections, and tests it on the one left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.selfmade import judged_topics, values_of_systems
from perikope.browse.models import parse_model
from perikope.evaluation.measures.significance import compare
from perikope.evaluation.selfmade.topics import make_topics
from perikope.evaluation.tuning.space import read_space
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.index.vector_stores import has_store
from perikope.search.best import HYBRIDS
from perikope.search.options import LEXICAL

SYSTEMS = (
    "bm25", "bm25(b=0.4)", "bm25(b=0.2)", "lm", "psg_doc", "qsf_v", "qsf_v_title", "qsf_section", "qsf_section_propagate", "fuse",
    "learned", LEXICAL,
)  # fmt: skip
REFERENCES = {"q": "qsf_v_title", "b": "bm25"}
"""The systems that others are compared with, by the letter that marks a significant difference."""
ALPHA = 0.05
LEAST_TOPICS = 10
"""A collection with fewer topics of a kind is left out of the table of this kind."""

Values = dict[str, list[float]]
"""The value of nDCG@10 of each topic, by system; topics have the same order in all systems."""
Columns = dict[str, Values]
"""Values by collection."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged collection."""

    name: str
    index: Path
    topics: str
    qrels: str


def measure_judged(collection: Judged, settings: Sequence[str], most: int, seed: int) -> Values:
    """The values of all systems and of the settings on judged topics."""
    snapshot = Snapshot.open(collection.index)
    topics, judgements = judged_topics(snapshot, collection.topics, collection.qrels, most, seed)
    offered = [model for store, model in HYBRIDS.items() if has_store(collection.index, store)]
    vectors = [model for model in offered if not parse_model(model).obstacle(snapshot)]
    return values_of_systems(Looking(snapshot, judgements), topics, tuple(dict.fromkeys([*SYSTEMS, *vectors, *settings])))


def measure_selfmade(index: Path, count: int, seed: int) -> dict[str, Values]:
    """The values of the systems without vectors on self-made topics, by kind."""
    snapshot = Snapshot.open(index)
    made = make_topics(snapshot, count=count, seed=seed)
    looking = Looking(snapshot, made.judgements, masks=made.masks)
    enough = [kind for kind, topics in made.kinds.items() if topics >= LEAST_TOPICS]
    return {kind: values_of_systems(looking, made.of_kind(kind), SYSTEMS) for kind in enough}


def means(columns: Columns, system: str) -> list[float]:
    """The mean value of a system in each collection that has it."""
    return [float(np.mean(values[system])) for values in columns.values() if system in values]


def marks(values: Values, systems: Sequence[str]) -> dict[str, str]:
    """The significant differences of each system from the references, as `q+ b-`."""
    known = [system for system in systems if system in values]
    found = compare({name: {str(i): value for i, value in enumerate(values[name])} for name in known}, alpha=ALPHA)
    marked = {}
    for name in known:
        clear = [(letter, other) for letter, other in REFERENCES.items() if name != other and found.p[name, other] <= ALPHA]
        marked[name] = " ".join(f"{letter}{'+' if other in found.beaten[name] else '-'}" for letter, other in clear)
    return marked


def table(columns: Columns) -> list[str]:
    """A Markdown table of systems and collections. A system that some collection lacks has no mean."""
    systems = list(dict.fromkeys(name for values in columns.values() for name in values))
    sizes = {name: len(next(iter(values.values()))) for name, values in columns.items()}
    heads = [f"{name}, {size} topics" for name, size in sizes.items()]
    ratios = [f"÷ {reference}" for reference in REFERENCES.values()]
    lines = [_row("system", *heads, "mean", *ratios), _row("---", *["---"] * len(heads), "---", *["---"] * len(ratios))]
    marked = {name: marks(values, systems) for name, values in columns.items()}
    best = {name: max(map(np.mean, values.values())) for name, values in columns.items()}
    mean_of = {system: float(np.mean(means(columns, system))) for system in systems}
    for system in systems:
        cells = []
        for name, values in columns.items():
            value = float(np.mean(values[system])) if system in values else None
            bold = value is not None and value >= best[name] - 1e-9
            cells.append("–" if value is None else " ".join(filter(None, [_figure(value, bold), marked[name][system]])))
        if len(means(columns, system)) < len(columns):
            lines.append(_row(f"`{system}`", *cells, "–", *["–"] * len(ratios)))
        else:
            divided = [_ratio(mean_of[system], mean_of[reference]) for reference in REFERENCES.values()]
            lines.append(_row(f"`{system}`", *cells, f"{mean_of[system]:.3f}", *divided))
    return lines


def summary(made: Mapping[str, Columns]) -> list[str]:
    """A Markdown table of systems and kinds of self-made topics: the mean over collections."""
    mean_of = {kind: {system: float(np.mean(means(columns, system))) for system in SYSTEMS} for kind, columns in made.items()}
    best = {kind: max(mean.values()) for kind, mean in mean_of.items()}
    rows = [[_figure(mean[system], mean[system] >= best[kind] - 1e-9) for kind, mean in mean_of.items()] for system in SYSTEMS]
    lines = [_row("system", *made), _row(*["---"] * (1 + len(made)))]
    return lines + [_row(f"`{system}`", *cells) for system, cells in zip(SYSTEMS, rows, strict=True)]


def left_out(columns: Columns, settings: Sequence[str]) -> list[str]:
    """A Markdown table of the settings that are chosen without each collection, and their values on it."""
    reference = REFERENCES["q"]
    lines = [
        _row("left out", "chosen on the others", "its value", LEXICAL, "all settings, from – to", *REFERENCES.values()),
        _row(*["---"] * 7),
    ]
    chosen: Columns = {}
    for name, values in columns.items():
        others = [other for key, other in columns.items() if key != name]
        setting = max(settings, key=lambda one: np.mean([np.mean(other[one]) / max(np.mean(other[reference]), 1e-9) for other in others]))
        chosen[name] = {**{system: values[system] for system in (*REFERENCES.values(), LEXICAL)}, setting: values[setting]}
        every = [float(np.mean(values[one])) for one in settings]
        mark = marks(chosen[name], list(chosen[name]))[setting]
        cells = [f"`{setting}`", f"{np.mean(values[setting]):.3f} {mark}".strip(), f"{np.mean(values[LEXICAL]):.3f}"]
        lines.append(
            _row(name, *cells, f"{min(every):.3f} – {max(every):.3f}", *(f"{np.mean(values[r]):.3f}" for r in REFERENCES.values()))
        )
    mean = float(np.mean([np.mean(list(values.values())[-1]) for values in chosen.values()]))
    references = [float(np.mean(means(columns, system))) for system in REFERENCES.values()]
    general = float(np.mean(means(columns, LEXICAL)))
    lines.append(_row("mean", "", f"{mean:.3f}", f"{general:.3f}", "", *(f"{value:.3f}" for value in references)))
    for name, value in zip(REFERENCES.values(), references, strict=True):
        lines.append(_row(f"÷ {name}", "", _ratio(mean, value), _ratio(general, value), "", "", ""))
    return lines


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _ratio(value: float, reference: float) -> str:
    return f"{value / reference:.2f}" if reference else "–"


def _figure(value: float, bold: bool) -> str:
    return f"**{value:.3f}**" if bold else f"{value:.3f}"


def report(judged: Columns, made: Mapping[str, Columns], settings: Sequence[str]) -> str:
    """All tables as Markdown."""
    without = {
        name: {system: v for system, v in values.items() if system not in set(settings) - {*SYSTEMS}} for name, values in judged.items()
    }
    lines = ["## Judged topics", "", *table(without), ""]
    if len(judged) > 1 and settings:
        lines += ["## One collection left out", "", *left_out(judged, settings), ""]
    if made:
        lines += ["## Self-made topics: mean over collections", "", *summary(made), ""]
    for kind, columns in made.items():
        lines += [f"## Self-made topics: {kind}", "", *table(columns), ""]
    return "\n".join(lines)


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judged", nargs=4, action="append", default=[], metavar=("NAME", "INDEX", "TOPICS", "QRELS"))
    parser.add_argument("--unjudged", nargs=2, action="append", default=[], metavar=("NAME", "INDEX"), help="for self-made topics only")
    parser.add_argument("--most", type=int, default=400, help="judged topics of each collection, drawn at random")
    parser.add_argument("--count", type=int, default=50, help="self-made topics of each kind and collection; 0 makes none")
    parser.add_argument("--settings", type=int, default=81, help="settings of the default model to choose from; 0 leaves out no collection")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", default="", help="write all values to this JSON file")
    given = parser.parse_args(options)
    if not given.judged and not given.unjudged:
        parser.error("name a collection with --judged or --unjudged")
    tried = sorted(model.short for model in read_space(LEXICAL, True).models)
    settings = sorted(Random(given.seed).sample(tried, min(given.settings, len(tried))))
    began = time.perf_counter()

    def note(done: str) -> None:
        print(f"{done}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    judged: Columns = {}
    made: dict[str, Columns] = {}
    for collection in (Judged(name, Path(index), topics, qrels) for name, index, topics, qrels in given.judged):
        judged[collection.name] = measure_judged(collection, settings, given.most, given.seed)
        note(f"{collection.name}, judged")
    for name, index in [*((name, index) for name, index, _, _ in given.judged), *given.unjudged] if given.count else []:
        for kind, values in measure_selfmade(Path(index), given.count, given.seed).items():
            made.setdefault(kind, {})[name] = values
        note(f"{name}, self-made")
    if given.save:
        Path(given.save).write_text(json.dumps({"judged": judged, "self-made": made, "settings": settings}))
    print(report(judged, dict(sorted(made.items())), settings))


if __name__ == "__main__":
    main()
