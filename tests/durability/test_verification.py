"""A search verifies what it reads: with any byte of any column changed, its answers are right or refused.

The index has columns of many blocks, so that a search reads some blocks and not others.
"""

from __future__ import annotations

import os
import random
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perikope.browse.explanation import render
from perikope.core.errors import IndexFormatError
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.index import manifest as manifests
from perikope.index.blocks import CHECKSUMS, SIZE, BlockHasher
from perikope.index.check import check
from perikope.index.columns import ColumnFile
from perikope.search.facade import Index
from tests.durability import harms
from tests.durability.test_damage import regions

SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
FLIPS = 12 if "PERIKOPE_SOAK" in os.environ else 3
"""The number of changed bytes per column."""
DOCUMENTS = 700


def _document(number: int, chance: random.Random) -> Document:
    metadata = {"year": 1990 + number % 30, "ipc": [f"G06F {number % 40}/30"], "by": {"name": f"Author {number % 100}"}}
    builder = TreeBuilder(f"document-{number:05}", title=f"Pumps of kind w{number % 50}", metadata=metadata)
    for part in ("abstract", "claims"):
        with builder.span(Kind.SECTION, "sec", part=part, id=f"s{part}"):
            builder.title(f"A valve w{number % 70}")
            for passage in range(3):
                words = " ".join(f"w{int(chance.paretovariate(0.4)) % 9000}" for _ in range(30))
                builder.passage(f"{words} pump " + "rotor " * (300 if number == 7 else passage), id=f"p{number}-{part}-{passage}")
    with builder.span(Kind.SECTION, "sec", language="fr"):
        builder.passage(f"la pompe w{number}")
    builder.source, builder.source_hash = f"folder-{number % 9}/{number}.md", f"{number:064}"
    return builder.build()


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    chance = random.Random(SEED)
    index = Index.create(tmp_path_factory.mktemp("verification") / "index")
    index.add([_document(number, chance) for number in range(DOCUMENTS)])
    index.commit()
    index.close()
    return index.folder


@pytest.fixture
def folder(large, tmp_path) -> Path:
    return Path(shutil.copytree(large, tmp_path / "index"))


def _file(folder: Path) -> Path:
    (entry,) = manifests.load(folder).segments
    return folder / entry["file"]


def _search(query: str, **options: object) -> Callable[[Index], object]:
    def ask(index: Index) -> object:
        results = index.search(query, k=5, documents=20, **options)
        return [results.names(), [hit.to_dict() for hit in results], [render(results.explain(rank)) for rank in range(len(results))[:1]]]

    return ask


ASKED: dict[str, Callable[[Index], object]] = {
    "words": _search("w7 w11 pump"),
    "rare words": _search("w4711 w77 absent"),
    "frequent": _search("rotor", fetch="bm25(k1=2)"),
    "parts": _search("w5 rotor", fetch_parts={"claims": 2.0, "abstract": 1.0}),
    "part and tag": _search("w5", part="claims", tag="p"),
    "elements": _search("w9 valve", elements=True),
    "filters": _search("w3", filter=["year>=2000", "ipc=G06F*", "by.name!=Author 7", "folder=folder-1"]),
    "proximity": _search("w3 pump", model="prox"),
    "language": _search("pompe w12", language="fr"),
    "near words": lambda index: list(index.search("pumpp", fuzzy=1, k=3).names()),
    "prefix": _search("w471*", syntax="boolean"),
    "get": lambda index: [repr(index.get(f"document-{number:05}")) for number in (0, 333, 699)],
    "known": lambda index: ["document-00042" in index, "document-1" in index, index.count("year=2001"), index.count("id=document-0000*")],
    "place": lambda index: index.place("document-00350", "p350-claims-1"),
    "info": lambda index: [index.info().tags, index.info().languages, [repr(field) for field in index.info().fields]],
}


def _answers(folder: Path, asked: list[str]) -> dict[str, object]:
    """The answer to each question, or the name of the error that refuses it."""
    answers: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in asked:
            try:
                # Every question has an index of its own, so that none profits from what another has verified.
                answers[name] = ASKED[name](Index.open(folder))
            except IndexFormatError as error:
                answers[name] = error
    return answers


@pytest.fixture(scope="module")
def right(large) -> dict[str, object]:
    answers = _answers(large, list(ASKED))
    assert not [answer for answer in answers.values() if isinstance(answer, IndexFormatError) or not answer]
    return answers


def _columns(folder: Path) -> list[str]:
    return [*ColumnFile(_file(folder)), CHECKSUMS]


def _flips(folder: Path, chance: random.Random) -> Iterator[tuple[str, int]]:
    for name, places in regions(_file(folder)).items():
        if name in _columns(folder) and places:
            yield from ((name, at) for at in {places[0], places[-1], *(chance.choice(places) for _ in range(FLIPS - 2))})


def test_no_changed_byte_changes_an_answer(folder, right):
    chance = random.Random(SEED)
    refused: dict[str, set[str]] = {}
    for column, at in _flips(folder, chance):
        mask = chance.choice([0xFF, 1 << chance.randrange(8)])
        asked = list(ASKED) if FLIPS > 3 else chance.sample(list(ASKED), 4)
        harms.flip(folder, _file(folder).name, at, mask)
        for name, answer in _answers(folder, asked).items():
            if isinstance(answer, IndexFormatError):
                assert "restore" in str(answer), (SEED, column, at, name)
                refused.setdefault(column, set()).add(name)
            else:
                assert answer == right[name], (SEED, column, at, mask, name)
        harms.flip(folder, _file(folder).name, at, mask)
    assert CHECKSUMS not in refused  # a damaged checksum of a block refuses nothing, since the column has one of its own
    assert len(refused) > 30, refused.keys()


def test_an_error_names_the_file_and_the_column(folder):
    at = regions(_file(folder))["span.start"]
    for place in at[:: SIZE // 2]:
        harms.flip(folder, _file(folder).name, place, 0xFF)
    with pytest.raises(IndexFormatError, match=r"segment-\S+\.columns is damaged in column 'span.start': restore it from a copy"):
        Index.open(folder).search("pump w1")[0]


def test_opening_verifies_no_block(large):
    """So it takes no longer for a segment with more documents and terms, and no damage elsewhere refuses it."""
    verification = Index.open(large).snapshot.segments[0].columns.verification
    assert verification.state.size > 300
    assert not verification.state.any()
    assert not verification.sound_columns


def test_a_search_reads_few_blocks(large):
    index = Index.open(large)
    state = index.snapshot.segments[0].columns.verification.state
    opened = int((state > 0).sum())
    list(index.search("w4711", k=1, documents=1))
    assert opened < int((state > 0).sum()) < state.size / 2


def test_many_threads_verify_the_same_blocks(large, right):
    index = Index.open(large)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: ASKED["words"](index), range(32)):
            assert answer == right["words"]


def test_an_index_without_block_checksums_is_read(folder, right):
    """Earlier programs wrote none. Columns that are read as a whole are verified by their own checksums."""
    harms.forget_blocks(folder, _file(folder).name)
    assert CHECKSUMS not in _file(folder).read_bytes().decode("latin-1")
    assert _answers(folder, list(ASKED)) == right
    harms.flip(folder, _file(folder).name, regions(_file(folder))["document.length"][0], 1)
    with pytest.raises(IndexFormatError, match=r"is damaged in column 'document\.length'"):
        Index.open(folder).search("pump")


RELIED_ON = [
    "terms.ends", "term_of_name", "term.first_window", "window.first_posting", "window.first_part", "ids.ends", "document_ids.ends",
    "sources.ends", "source_hashes.ends", "facet_fields.ends", "facet_values.ends", "facet.first_value", "facet.first_document",
    "document.first_code", "document.first_span", "document.first_section", "document.first_passage", "document.first_id",
    "document.tokens", "document.length", "document.source", "document_hash", "document_of_hash",
    "text.ends", "text.blocks.ends", "text.block_first", "records.ends", "records.blocks.ends", "records.block_first",
]  # fmt: skip
"""The columns that say where other data is. They are verified in every index."""


def test_an_index_without_block_checksums_never_relies_on_damage(folder, right):
    harms.forget_blocks(folder, _file(folder).name)
    chance = random.Random(SEED)
    refused: set[str] = set()
    for column in RELIED_ON:
        for at in chance.choices(regions(_file(folder))[column], k=FLIPS):
            mask = chance.choice([0xFF, 1 << chance.randrange(8)])
            harms.flip(folder, _file(folder).name, at, mask)
            for name, answer in _answers(folder, chance.sample(list(ASKED), 5)).items():
                if isinstance(answer, IndexFormatError):
                    refused.add(column)
                else:
                    assert answer == right[name], (SEED, column, at, mask, name)
            harms.flip(folder, _file(folder).name, at, mask)
    assert len(refused) > 20, refused


def test_check_finds_values_that_lead_astray(large, tmp_path):
    """Right checksums, impossible values. Opening does not look at them, and a search only at those that it uses."""
    file = _file(large).name
    for column in RELIED_ON:
        if column != "document_hash":  # any hash is possible
            folder = Path(shutil.copytree(large, tmp_path / column))
            harms.forge_columns(folder, file, {column: "one the largest"}, SEED)
            (problem,) = check(folder).problems
            assert file in problem, (SEED, column)
            shutil.rmtree(folder)


def test_check_finds_a_damaged_checksum_of_a_block(folder):
    harms.flip(folder, _file(folder).name, regions(_file(folder))[CHECKSUMS][0], 1)
    assert [repr(CHECKSUMS) in problem for problem in check(folder).problems] == [True]


@pytest.mark.parametrize("sizes", [[], [1], [SIZE], [SIZE - 1, 2], [3, SIZE * 2, SIZE - 3], [100] * 100])
def test_checksums_do_not_depend_on_how_a_file_is_written(sizes):
    data = random.Random(SEED).randbytes(sum(sizes))
    hasher, at = BlockHasher(), 0
    for size in sizes:
        hasher.add(data[at : at + size])
        at += size
    assert hasher.finish().tolist() == [zlib.crc32(data[first : first + SIZE]) for first in range(0, len(data), SIZE)]
