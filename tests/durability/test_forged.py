"""Files with right checksums and wrong content: refused or harmless, whatever they say; no kernel reads outside its arrays."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from perikope.index import manifest as manifests
from perikope.index.columns import ColumnFile
from tests.durability.harms import MUTATIONS
from tests.durability.probe import run, small_index

VARIANTS = int(os.environ.get("PERIKOPE_FORGERIES", "300"))
"""How many forged columns are tried; there are some 4,000."""
SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
HUGE = 10**30
NESTED = "[" * 100_000 + "]" * 100_000
FOREIGN = [None, -1, 0, 1, 1 << 40, 1 << 63, HUGE, 0.5, "text", [], [-1], [0, 0], [HUGE], ["", ""], [None], {"a": 1}, True]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged") / "index"
    small_index(folder)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.columns"))


def assert_harmless(folder, jobs):
    jobs = [{**job, "changing": True} for job in jobs]
    bad = [f"{job}: {found['raised']}" for job, found in run(folder, jobs) if "raised" in found]
    assert not bad, f"{len(bad)} of {len(jobs)} (seed {SEED})\n" + "\n".join(bad[:20])


def forged_columns(folder: Path) -> list[dict[str, object]]:
    """Every column of every file with every mutation, in random order."""
    chance = random.Random(SEED)
    jobs = [
        {"do": "forge column", "file": file, "column": column, "mutation": mutation, "seed": chance.randrange(1000)}
        for file in files(folder)
        for column, mutation in itertools.product(ColumnFile(folder / file), MUTATIONS)
    ]
    chance.shuffle(jobs)
    return jobs


def test_forged_columns(folder):
    assert_harmless(folder, forged_columns(folder)[:VARIANTS])


def test_forged_facts(folder):
    jobs = [
        {"do": "forge fact", "file": file, "fact": fact, "value": value}
        for file in (files(folder)[0], files(folder)[1])
        for fact in ColumnFile(folder / file).facts
        for value in FOREIGN
    ]
    assert_harmless(folder, jobs)


@pytest.mark.parametrize("store", ["text", "records"])
def test_forged_strings(folder, store):
    hostile = ["", "\udc80\udcff", "[]", "1", '{"metadata": 1}', '{"metadata": [1]}', '{"a":', NESTED, "NaN", "\0" * 1000, "pump " * 50_000]
    jobs = [{"do": "forge store", "file": files(folder)[1], "store": store, "data": data} for data in hostile]
    assert_harmless(folder, jobs)


def test_forged_footers(folder):
    place = '{"facts": {}, "columns": {PLACES, "terms.bytes": %s}}'
    footers = ["", "[]", "{}", "null", "1e999", NESTED, '{"facts": 1, "columns": 2}', '{"facts": {}, "columns": {}}', "\udcff"]
    footers += ['{"facts": {}, "columns": {PLACES}}', '{"facts": {"documents": 3}, "columns": {PLACES}}']
    footers += [
        place % f'{{"type": {kind}, "offset": {offset}, "length": {length}, "checksum": 0}}'
        for kind, offset, length in [
            ('"u1"', -64, 10), ('"u1"', 64.0, 10), ('"u1"', 64, "NaN"), ('"u1"', 64, -1), ('"u1"', 64, HUGE), ('"u8"', 1 << 62, 1 << 62),
            ('"u1"', '"64"', 10), ("[]", 64, 10), ("null", 64, 10), ('"O"', 64, 10), ('"u1"', "null", "null"), ('"u1"', 64, 1e300),
        ]
    ]  # fmt: skip
    footers += [place % "7", place % "{}"]
    assert_harmless(folder, [{"do": "forge footer", "file": file, "footer": footer} for file in files(folder)[:2] for footer in footers])


def test_forged_manifests(folder):
    places: list[list[str | int]] = [["analysis"], ["language"], ["segments"], ["generation"], ["segments", 0]]
    places += [["analysis", name] for name in ("version", "stemmer", "stopwords")]
    entry = manifests.load(folder).segments[0]
    places += [["segments", 0, name] for name in entry] + [["segments", 0, "deleted", name] for name in entry["deleted"]]
    assert_harmless(folder, [{"do": "forge manifest", "place": place, "value": value} for place in places for value in FOREIGN])


def test_a_manifest_names_only_files_of_its_folder(folder):
    names = ["../x", "/etc/passwd", "a/b", "..", ".", "", "\0", "manifest.json", "write.lock", "segment-1.columns/../../x"]
    jobs = [
        {"do": "forge manifest", "place": place, "value": name}
        for place in (["segments", 0, "file"], ["segments", 0, "deleted", "file"])
        for name in names
    ]
    for job, found in run(folder, jobs):
        assert "raised" not in found, (job, found)
        for step in ("check", "look"):
            assert "is damaged" in found[f"{step} refused"], (job, found)
