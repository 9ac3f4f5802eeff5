"""The example files of the package, and the demonstration that ranks their passages without and with context."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from perikope.browse.signals import Node
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import UsageError
from perikope.evaluation.io.judgements import Judgements, read_judgements
from perikope.evaluation.io.runs import write_run
from perikope.evaluation.io.topics import read_topics
from perikope.query.topic import Topic
from perikope.search.facade import Hit, Index
from perikope.search.options import LEXICAL

WITHOUT_CONTEXT = "bm25"
WITH_CONTEXT = LEXICAL
DEMONSTRATED = 3
"""The number of topics that the demonstration shows; the others are for measuring."""


@dataclass(frozen=True, slots=True)
class DemoComparison:
    """The rankings of one query without and with context."""

    query: str
    answer: str
    """The passage that answers the query, as `document#passage`."""
    without: list[Hit]
    """All hits of the model `WITHOUT_CONTEXT`, best first."""
    within: list[Hit]
    """All hits of the model `WITH_CONTEXT`, best first."""
    explanation: Node
    """How the model `WITH_CONTEXT` computes the score of the answer."""

    def place(self, hits: list[Hit]) -> int | None:
        """The rank of the answer among hits, from 1, or None if it is not among them."""
        return next((hit.rank for hit in hits if hit.name == self.answer), None)


@contextmanager
def example_files() -> Iterator[Path]:
    """Yield the folder with the example documents, topics and judgements."""
    with resources.as_file(resources.files("perikope").joinpath("data", "example")) as folder:
        yield folder


def write_example(folder: str | os.PathLike[str]) -> list[str]:
    """Copy the example files into a new folder. Returns the names of what the folder then contains."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already; give the name of a new folder")
    with example_files() as source:
        shutil.copytree(source, target, dirs_exist_ok=True)
    return sorted(path.name for path in target.iterdir())


def demonstrate() -> tuple[str, list[DemoComparison]]:
    """Index the sample documents in a temporary folder and compare the two models.

    Returns a phrase with the numbers of documents and passages, and one comparison per demonstrated topic.
    """
    with example_files() as corpus, TemporaryDirectory(prefix="perikope-demo-") as temporary:
        folder = str(Path(temporary, "index"))
        build(folder, [str(corpus / "docs")])
        index = Index.open(folder)
        judgements = read_judgements(corpus / "qrels.txt")
        facts = f"{len(index)} documents with {index.passages} passages"
        return facts, [_compare(index, topic, judgements) for topic in read_topics(corpus / "topics.tsv")[:DEMONSTRATED]]


def warm_up() -> None:
    """Compile every kernel by using it once: build an index of two segments, search, delete and merge."""
    from perikope.browse.models import MODELS
    from perikope.kernels.accumulate import best_of_segment, best_of_small_segment

    with example_files() as corpus, TemporaryDirectory(prefix="perikope-warmup-") as temporary:
        folder = str(Path(temporary, "index"))
        files = sorted(str(path) for path in (corpus / "docs").rglob("*.*"))
        many = Path(temporary, "many.jsonl")
        many.write_text("".join(f'{{"id": "{i}", "passages": {_MANY_PASSAGES}}}\n' for i in range(_MANY)))
        build(folder, files)
        build(folder, [str(many)], BuildOptions(append=True))
        index = Index.open(folder)
        for model in (name for name, definition in MODELS.items() if definition.is_ready):
            list(index.search("pump with a magnetic coupling", model=model))
        for signature in best_of_small_segment.signatures:
            best_of_segment.compile(signature)  # no segment is large enough to need it
        write_run(Path(temporary, "run"), [("1", index.search("pump", k=1000).ranked_names())])
        _use_rarely(index)
        best = index.search("pump")[0].document
        index.landscape("pump", best)
        index.delete([best])
        index.compact()


def _use_rarely(index: Index) -> None:
    """Use the kernels of queries that nothing matches, of elements and of other fetch models."""
    for query in ("meerkat", "b", "pump magnetc"):
        assert index.search(query).suggestions is not None
    list(index.search("pump", elements=True))
    list(index.search("pump", fetch="lm"))


_MANY = 100
_MANY_PASSAGES = json.dumps(["a magnetic pump"] * 50)
"""Equal documents with more passages than numpy is used for, so that the kernels for many passages and ties run."""


def _compare(index: Index, topic: Topic, judgements: Judgements) -> DemoComparison:
    answer = next(name for name, grade in judgements[topic.qid].items() if grade > 0)
    without = index.search(topic.query, model=WITHOUT_CONTEXT, k=index.passages)
    within = index.search(topic.query, model=WITH_CONTEXT, k=index.passages)
    explanation = index.explain(topic.query, answer, model=WITH_CONTEXT)
    return DemoComparison(topic.query, answer, list(without), list(within), explanation)
