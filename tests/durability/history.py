"""A reproducible history of commits: the content of an index after commit n follows from n alone.

Commit n adds and replaces some documents and deletes others. Each text names the commit that wrote it. Every commit
replaces the document `marker`, so that a reader knows which commit it sees and what else must be there.
"""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.search.facade import Index

MARKER = "marker"
IDS = [f"d{i}" for i in range(12)]
WORDS = ["pump", "rotor", "magnet", "seal", "shaft", "valve", "the", "of", "été"]
QUERY = "pump rotor magnet valve"
MODELS = ("bm25", "qsf_v_title")
TERMS = ["en:pump", "en:rotor", "fr:pump", "en:absent", "en:marker"]


_contents: list[dict[str, int]] = [{}]
"""The content after each commit, computed when it is needed."""


def content(commit: int) -> dict[str, int]:
    """The ids of documents after a commit, each with the commit that wrote it last."""
    while len(_contents) <= commit:
        written, deleted = changes(len(_contents))
        remaining = {id: writer for id, writer in _contents[-1].items() if id not in deleted}
        _contents.append(remaining | dict.fromkeys(written, len(_contents)))
    return _contents[commit]


def changes(commit: int) -> tuple[list[str], list[str]]:
    """The ids that a commit writes, and the ids that it deletes."""
    chance = random.Random(commit)
    before = sorted(set(content(commit - 1)) - {MARKER})
    written = [MARKER, *chance.sample(IDS, chance.choice([1, 2, 2, 3]))]
    deleted = [id for id in chance.sample(before, min(len(before), chance.choice([0, 0, 0, 1]))) if id not in written]
    return written, deleted


def compacts(commit: int) -> bool:
    """Whether all segments are merged after the commit."""
    return commit % 6 == 5


@lru_cache(maxsize=1 << 14)
def document(id: str, commit: int) -> Document:
    """A document as a commit writes it: two parts, two languages, nested sections."""
    chance = random.Random(f"{id} {commit}")

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    builder = TreeBuilder(id, title=f"{id} {words(2)}", metadata={"commit": commit})
    builder.passage(f"{id} written by commit c{commit} {words(4)}", id="first")
    with builder.span(Kind.SECTION, "sec", part="claims"):
        builder.title(words(2))
        builder.passage(words(6))
        with builder.span(Kind.SECTION, "sec", language="fr"):
            builder.passage(words(3))
    builder.source, builder.source_hash = f"{id}.txt", str(commit)
    return builder.build()


def documents(commit: int) -> list[Document]:
    """The documents that an index must hold after a commit."""
    return [document(id, writer) for id, writer in content(commit).items()]


def make_changes(index: Index, commit: int) -> None:
    """Make the changes of a commit without committing."""
    written, deleted = changes(commit)
    index.delete(deleted)
    index.add([document(id, commit) for id in written], replace=True)


def make_commit(index: Index, commit: int) -> None:
    """Make a commit, and the merge that follows some commits."""
    make_changes(index, commit)
    index.commit()
    if compacts(commit):
        index.compact()


def commit_of(index: Index) -> int:
    """The commit that the snapshot of an index is at."""
    number = index._snapshot.find_document(MARKER)
    if number < 0:
        return 0
    segment, local = index._snapshot.locate(number)
    return int(segment.record(local)["metadata"]["commit"])


def verify(index: Index) -> int:
    """Assert that a snapshot contains exactly what its commit wrote; returns the commit."""
    snapshot, commit = index._snapshot, commit_of(index)
    expected = content(commit)
    assert len(index) == len(expected)
    alive = sum(int(segment.alive.sum()) for segment in snapshot.segments)
    assert alive == len(expected)
    for id, writer in expected.items():
        number = snapshot.find_document(id)
        assert number >= 0, f"{id} is not there at commit {commit}"
        segment, local = snapshot.locate(number)
        assert segment.text(local) == document(id, writer).text
        assert segment.source(local) == (f"{id}.txt", str(writer))
    return commit


def answers(index: Index) -> list[object]:
    """Results and statistics of an index, to compare it with a rebuild."""
    values: list[object] = [len(index), index.passages]
    statistics = index._snapshot.statistics(TERMS)
    values += [str(getattr(statistics, name)) for name in type(statistics).__slots__]
    values += [[counts.tolist() for counts in index._snapshot.part_statistics(TERMS, part)] for part in ("", "claims")]
    for model in MODELS:
        results = index.search(QUERY, model=model, k=50)
        values += [results.names(), list(results[:2])]
    return values


class Rebuilds:
    """The answers of indexes that are built from the content of a commit; each is built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers: dict[int, list[object]] = {}

    def answers(self, commit: int) -> list[object]:
        if commit not in self._answers:
            index = Index.create(self._folder / f"rebuild-{commit}")
            index.add(documents(commit))
            index.commit()
            self._answers[commit] = answers(index)
        return self._answers[commit]
