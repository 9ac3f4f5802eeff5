"""Old snapshots are freed at once, unchanged segments stay open, and a closed index holds nothing."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

from perikope.browse.models import MODELS
from perikope.core.errors import UsageError
from perikope.document.tree import TreeBuilder
from perikope.neural.models import add_vectors
from perikope.search.facade import Index

USES: dict[str, Callable[[Index], object]] = {
    **{f"model {name}": lambda index, name=name: _read(index, model=name) for name, model in MODELS.items() if model.is_ready},
    **{
        f"filter {text}": lambda index, text=text: _read(index, filter=text)
        for text in ("year>2003", "year!=2004", "ipc=G06F", "folder=*a*", "path=*1*", "id=d1*")
    },
    "elements": lambda index: _read(index, elements=True),
    "documents": lambda index: _read(index, documents="all"),
    "one per document": lambda index: _read(index, one_per="document"),
    "expansion": lambda index: (_read(index, expand="rm3"), _read(index, browse_expand="rm3")),
    "Boolean": lambda index: _read(index, "magnet NEAR/5 rotor NOT absent", syntax="boolean"),
    "misspelt": lambda index: _read(index, "magnt rotr"),
    "fuzzy": lambda index: _read(index, "magnt", fuzzy=1),
    "context": lambda index: index.search("magnet").context(),
    "many": lambda index: [list(results) for _, results in index.search_many(["magnet", "rotor"])],
    "one document": lambda index: (index.get("d3"), "d4" in index, list(index.documents("year>2001"))),
    "info": lambda index: index.info(),
    "an error": lambda index: _fail(index),
}


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    gc.enable()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index.create(tmp_path / "index")
    index.add([_document(number) for number in range(12)])
    index.commit()
    return index


def _document(number: int) -> object:
    builder = TreeBuilder(f"d{number}", title="Pumps", metadata={"year": 2000 + number, "ipc": ["G06F 17/30"]})
    builder.passage(f"A magnet drives rotor {number}.")
    builder.passage("Le rotor est petit.", language="fr")
    builder.source, builder.source_hash = f"a/{number}.md", "0123"
    return builder.build()


def _read(index: Index, query: str = "magnet rotor", **options: object) -> None:
    results = index.search(query, k=5, **options)
    for rank, hit in enumerate(results):
        hit.to_dict()
        results.explain(rank)


def _fail(index: Index) -> None:
    with pytest.raises(UsageError, match="unknown metadata field"):
        index.search("magnet", filter="yaer=2003")


def _mapped(folder: Path) -> int:
    with open("/proc/self/maps") as file:
        return sum(str(folder) in line for line in file)


@pytest.mark.parametrize("use", USES)
def test_a_snapshot_is_freed_when_a_later_one_is_shown(index, use):
    USES[use](index)  # compiles kernels: the compiler leaves cycles with frames, which refer to the snapshot
    reader = Index.open(index.folder)
    USES[use](reader)
    snapshot, segment = ref(reader.snapshot), ref(reader.snapshot.segments[0])
    index.add(_document(3), replace=True)
    index.commit()
    assert reader.refresh()
    assert snapshot() is None
    assert segment() is None


def test_unchanged_segments_stay_open_and_changed_ones_share_their_file(index):
    index.add(_document(20))
    index.commit()
    reader = Index.open(index.folder)
    first, second = reader.snapshot.segments
    index.add(_document(30))
    index.delete(["d20", "d3"])
    index.commit()
    assert reader.refresh()
    changed, third = reader.snapshot.segments
    assert third not in (first, second)
    assert changed.columns is first.columns
    assert (first.alive.sum(), changed.alive.sum()) == (12, 11)
    index.add(_document(31))
    index.commit()
    reader.refresh()
    assert reader.snapshot.segments[0] is changed
    assert "d3" not in reader
    assert "d3" not in [hit.document for hit in reader.search("magnet", k=50)]


def test_what_depends_on_deleted_documents_is_not_shared(index):
    reader = Index.open(index.folder)
    for use in USES.values():
        use(reader)
    before = {hit.document for hit in reader.search("magnet", filter="year>2003", k=50)}
    assert reader.info().fields[1].documents == 12
    index.delete(["d5"])
    index.commit()
    reader.refresh()
    assert {hit.document for hit in reader.search("magnet", filter="year>2003", k=50)} == before - {"d5"}
    assert reader.info().fields[1].documents == 11
    assert reader.info().to_dict() == Index.open(index.folder).info().to_dict()


def test_refresh_without_a_commit_keeps_the_snapshot(index):
    reader = Index.open(index.folder)
    shown = reader.snapshot
    assert not reader.refresh()
    assert reader.snapshot is shown


def test_refresh_shows_an_index_that_was_made_again(index, tmp_path):
    """It may have had as many commits as the old one."""
    reader = Index.open(index.folder)
    index.close()
    other = Index.create(tmp_path / "other")
    other.add(_document(99))
    other.commit()
    os.rename(index.folder, tmp_path / "old")
    os.rename(other.folder, index.folder)
    assert reader.refresh()
    assert "d99" in reader


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not list mappings")
def test_a_closed_index_holds_no_file_once_its_results_are_dropped(index):
    descriptors = len(os.listdir("/proc/self/fd"))
    reader = Index.open(index.folder)
    results = reader.search("magnet rotor")
    index.close()
    reader.close()
    assert _mapped(index.folder) > 0
    assert results[0].text == "A magnet drives rotor 0."
    del results
    assert _mapped(index.folder) == 0
    assert len(os.listdir("/proc/self/fd")) < descriptors


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not list mappings")
def test_a_closed_index_holds_no_store_of_vectors(index):
    add_vectors(index, "own", lambda texts: np.ones((len(texts), 4)), lambda query: np.ones(4), 4)
    assert len(index.search("magnet", model="vectors(store=own)")) > 0
    assert _mapped(index.folder / "neural") > 0
    index.add(_document(20))
    index.commit()
    assert len(index.snapshot.stores) == 1
    index.close()
    assert _mapped(index.folder) == 0


CLOSED: dict[str, Callable[[Index], object]] = {
    "add": lambda index: index.add(_document(1)),
    "delete": lambda index: index.delete(["d1"]),
    "commit": lambda index: index.commit(),
    "compact": lambda index: index.compact(),
    "refresh": lambda index: index.refresh(),
    "search": lambda index: index.search("magnet"),
    "get": lambda index: index.get("d1"),
    "documents": lambda index: index.documents(),
    "info": lambda index: index.info(),
    "count": lambda index: index.count("year>2003"),
    "length": lambda index: len(index),
    "in": lambda index: "d1" in index,
    "fingerprint": lambda index: index.fingerprint,
    "with": lambda index: index.__enter__(),
}


@pytest.mark.parametrize("use", CLOSED)
def test_a_closed_index_says_that_it_is_closed(index, use):
    index.close()
    with pytest.raises(UsageError, match="was closed; open it again"):
        CLOSED[use](index)


def test_closing_twice_or_inside_a_with_block_is_no_error(index):
    with index:
        index.close()
    index.close()
    index.rollback()
