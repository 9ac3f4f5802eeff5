"""A run by bm25s, end to end in a process of its own: the peer of `perikope run` in `python -m benchmarks runs`.

python benchmarks/bm25s_run.py index DOCUMENTS FOLDER         one unit per passage, with its name
python benchmarks/bm25s_run.py run FOLDER TOPICS RUN K THREADS

Imports nothing of perikope. Stop words and stemmer are those of bm25s for English. The backend is numpy, which is the
faster one here: with numba, every process compiles for about 7 seconds.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bm25s
import Stemmer


def passages(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The id and the text of each passage, in reading order."""
    for passage in node.get("passages", ()):
        yield ("", passage) if isinstance(passage, str) else (passage.get("id", ""), passage.get("text", ""))
    for section in node.get("sections", ()):
        yield from passages(section)


def index(documents: str, folder: str) -> None:
    names, texts = [], []
    with gzip.open(documents, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            for number, (id, text) in enumerate(passages(document), 1):
                names.append(f"{document['id']}#{id or f'@{number}'}")
                texts.append(text)
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    searcher = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numpy")
    searcher.index(tokens, show_progress=False)
    searcher.save(folder)
    Path(folder, "names.json").write_text(json.dumps(names), encoding="utf-8")


def run(folder: str, topics: str, out: str, k: int, threads: int) -> None:
    searcher = bm25s.BM25.load(folder, backend="numpy", show_progress=False)
    names = json.loads(Path(folder, "names.json").read_text(encoding="utf-8"))
    with open(topics, encoding="utf-8") as lines:
        asked = [line.rstrip("\n").split("\t")[:2] for line in lines]
    tokens = bm25s.tokenize([text for _, text in asked], stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    found, scores = searcher.retrieve(tokens, k=k, show_progress=False, n_threads=threads)
    with open(out, "w", encoding="utf-8") as file:
        for (qid, _), rows, values in zip(asked, found.tolist(), scores.tolist(), strict=True):
            for rank, (row, value) in enumerate(zip(rows, values, strict=True), 1):
                file.write(f"{qid} Q0 {names[row]} {rank} {value:.9g} bm25s\n")


if __name__ == "__main__":
    if sys.argv[1] == "index":
        index(*sys.argv[2:4])
    else:
        run(*sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]))
