"""Start-up and search beside a peer: `python -m benchmarks startup search`.

Uses the real collection in $PERIKOPE_SHARED_DATA or ../shared/data, or the demonstration's documents without it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bm25s

import perikope as pk
from benchmarks.common import folder_bytes, shared_data, timed
from perikope.build.indexing import build
from perikope.evaluation.demo import example_files
from perikope.evaluation.io.topics import read_topics
from perikope.text.analysis import words


def collection():
    data = shared_data() / "evidence-inference"
    if data.is_dir():
        return data / "documents.jsonl.gz", [topic.query for topic in read_topics(data / "validation-topics.tsv")]
    with example_files() as folder:
        return folder / "docs", [topic.query for topic in read_topics(folder / "topics.tsv")]


@contextmanager
def built(source: Path) -> Iterator[str]:
    """The folder of an index of the source, as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(2):  # the first compiles
            target = str(Path(folder, f"index{attempt}"))
            seconds, report = timed(lambda target=target: build(target, [str(source)]))
        size = folder_bytes(Path(target))
        print(f"{source}: {report.documents} documents, {report.passages} passages; built in {seconds:.1f} s, {size / 1e6:.1f} MB")
        yield target


def start_up(index: str) -> None:
    python = [sys.executable, "-c", "import perikope"]
    search = [sys.executable, "-m", "perikope", "search", index, "pump"]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PERIKOPE_CACHE": cache}
        first, _ = timed(lambda: subprocess.run(search, check=True, capture_output=True, env=environment))
        warm, _ = timed(lambda: subprocess.run(search, check=True, capture_output=True, env=environment), 3)
    imported, _ = timed(lambda: subprocess.run(python, check=True), 5)
    print(f"import perikope {imported:.3f} s · first search ever {first:.1f} s · search with a warm cache {warm:.2f} s")


def compare(index: pk.Index, source: Path, queries: list[str]) -> None:
    texts = [document.text_of(i) for document in pk.read(source) for i in document.of_kind(pk.Kind.PASSAGE)]
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index([words(text.lower()) for text in texts], show_progress=False)
    tokens = [words(query.lower()) for query in queries]
    print(f"\n{'milliseconds a query, one thread':<34}{'k=10':>8}{'k=1000':>8}")
    for model in ("bm25", "psg_doc", "qsf_v", "qsf_v_title"):
        row = [timed(lambda model=model, k=k: [index.search(query, model=model, k=k) for query in queries], 2)[0] for k in (10, 1000)]
        print(f"perikope {model:<25}" + "".join(f"{1000 * seconds / len(queries):8.2f}" for seconds in row))
    retrieve = lambda k: [peer.retrieve([query], k=min(k, len(texts)), show_progress=False) for query in tokens]  # noqa: E731
    row = [timed(lambda k=k: retrieve(k), 2)[0] for k in (10, 1000)]
    print(f"{'bm25s over all passages, no context':<34}" + "".join(f"{1000 * seconds / len(queries):8.2f}" for seconds in row))


def main(parts=("startup", "search")) -> None:
    source, queries = collection()
    with built(source) as target:
        if "startup" in parts:
            start_up(target)
        if "search" in parts:
            compare(pk.Index.open(target), source, queries)
