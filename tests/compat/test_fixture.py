"""An index that was written once and for all: every later version of the program reads it, or says that it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from perikope.fetch.filters import known_fields, mask, parse_filter
from perikope.index.check import check
from perikope.search.facade import Index
from tests.compat.make_fixture import FOLDER, first, fourth, second

SCORES = {
    "bm25": [
        ("pompe#@1", 2.508303), ("pompe#@2", 1.521334), ("pumps/kx.md#@2", 1.521334), ("pumps/kx.md#@3", 1.483915), ("often#@1", 0.521158),
        ("pumps/kx.md#intro", 0.392684),
    ],
    "psg_doc": [
        ("pompe#@1", 0.627633), ("pompe#@2", 0.597691), ("pumps/kx.md#@2", 0.271139), ("pumps/kx.md#@3", 0.271139),
        ("pumps/kx.md#intro", 0.253624), ("often#@1", 0.066199),
    ],
    "qsf_v_title": [
        ("pompe#@1", 1.0), ("pompe#@2", 0.773784), ("pumps/kx.md#@2", 0.737448), ("pumps/kx.md#@3", 0.730118),
        ("pumps/kx.md#intro", 0.616231), ("often#@1", 0.0),
    ],
}  # fmt: skip


@pytest.fixture
def index(tmp_path):
    return Index.open(shutil.copytree(FOLDER, tmp_path / "index"))


def test_it_is_whole(index):
    report = check(Path(index.folder))
    assert (report.problems, report.unknown_files) == ((), ())
    assert report.readable_documents == report.documents == 3


def test_its_statistics_are_those_of_its_documents(index):
    assert (len(index), index.passages, index.languages) == (3, 6, ["en", "fr"])
    statistics = index._snapshot.statistics(["en:pump", "en:rotor", "fr:rotor", "fr:pomp", "en:nobodi"])
    assert (statistics.documents, statistics.tokens, statistics.passages, statistics.passage_tokens) == (3, 325, 6, 317)
    assert statistics.document_frequency.tolist() == [3, 2, 1, 1, 0]
    assert statistics.collection_frequency.tolist() == [305, 3, 1, 2, 0]
    assert statistics.passage_frequency.tolist() == [5, 3, 1, 1, 0]
    assert statistics.passage_collection_frequency.tolist() == [304, 3, 1, 1, 0]
    assert [counts.tolist() for counts in index._snapshot.part_statistics(["en:pump"], "claims")] == [[1], [2]]


@pytest.mark.parametrize("model", SCORES)
def test_passages_have_the_scores_they_always_had(index, model):
    found = index.search("rotor of a pump", model=model, language="all").names()
    assert [name for name, _ in found] == [name for name, _ in SCORES[model]]
    assert [score for _, score in found] == pytest.approx([score for _, score in SCORES[model]], abs=1e-6)


def test_its_languages_are_counted(index):
    totals = index.snapshot.totals_by_language
    assert {code: tuple(counts) for code, counts in totals.items()} == {"en": (3, 320, 5, 314), "fr": (1, 5, 1, 3)}
    # Five French tokens prove nothing, so all languages are searched.
    assert [hit.language for hit in index.search("rotor of a pump", model="bm25")] == ["en", "en", "en", "fr", "en", "en"]
    assert [hit.language for hit in index.search("rotor of a pump", model="bm25", language="en")] == ["en"] * 5


def test_documents_come_back_as_they_were(index):
    for document in (first(), second(), fourth()):
        segment, local = index._snapshot.locate(index._snapshot.find_document(document.id))
        assert segment.text(local) == document.text
        assert segment.source(local) == (document.source, document.source_hash)
        assert segment.record(local).get("metadata", {}) == document.metadata
    hit = index.search("sealed rotor", model="bm25")[0]
    assert (hit.name, hit.path, hit.part) == ("pumps/kx.md#@3", ("KX-200 heat pump", "Claims"), "claims")


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("year=2013", ["pumps/kx.md"]), ("year<2013", ["often"]), ("ipc=F04D", ["often", "pumps/kx.md"]), ("ipc!=F04D", ["pompe"]),
        ("date<=2013", ["pumps/kx.md"]), ("by.name=A*", ["pumps/kx.md"]), ("open=true", ["pumps/kx.md"]), ("by.born=*", []),
        ("id=often|deleted", ["often"]), ("path=pumps/kx.md", ["pumps/kx.md"]), ("folder=pumps", ["pumps/kx.md"]),
    ],
)  # fmt: skip
def test_documents_are_found_by_their_metadata(index, filter, found):
    segments = index._snapshot.segments
    chosen = [segment.document_id(i) for segment in segments for i in np.flatnonzero(mask(segment, parse_filter(filter)) & segment.alive)]
    assert sorted(chosen) == found
    assert known_fields(index._snapshot) == ["by.name", "date", "folder", "ipc", "open", "path", "year"]


def test_it_can_be_changed(index):
    before = index.search("rotor of a pump", k=100).names()
    index.add([second()], replace=True)
    index.compact()
    assert len(index._snapshot.segments) == 1
    assert index.search("rotor of a pump", k=100).names() == before
    assert not check(Path(index.folder)).problems
