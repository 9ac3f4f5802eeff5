"""Files with valid checksums and wrong content are refused or harmless; no kernel reads outside its arrays."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from perikope.index import manifest as manifests
from perikope.index.columns import ColumnFile
from tests.durability.harms import MUTATIONS

VARIANTS = int(os.environ.get("PERIKOPE_FORGERIES", "100"))
"""Number of forged columns that are tried, of about 4,000."""
SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
HUGE = 10**30
NESTED = "[" * 100_000 + "]" * 100_000
FOREIGN = [None, -1, 0, 1, 1 << 40, 1 << 63, HUGE, 0.5, "text", [], [-1], [0, 0], [HUGE], ["", ""], [None], {"a": 1}, True]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.columns"))


def assert_harmless(probe, jobs):
    jobs = [{**job, "changing": True} for job in jobs]
    bad = [f"{job}: {outcome['raised']}" for job, outcome in probe.run(jobs) if "raised" in outcome]
    assert not bad, f"{len(bad)} of {len(jobs)} (seed {SEED})\n" + "\n".join(bad[:20])


def forged_columns(folder: Path) -> list[dict[str, object]]:
    """Every column of every file with every mutation, in random order."""
    chance = random.Random(SEED)
    jobs = [
        {"do": "forge columns", "file": file, "columns": {column: mutation}, "seed": chance.randrange(1000)}
        for file in files(folder)
        for column, mutation in itertools.product(ColumnFile(folder / file), MUTATIONS)
    ]
    chance.shuffle(jobs)
    return jobs


def test_forged_columns(small, probe):
    assert_harmless(probe, forged_columns(small)[:VARIANTS])


def test_several_forged_columns(small, probe):
    """Values that look valid one by one: types and lengths stay, so that more forgeries pass the checks on opening."""
    chance = random.Random(SEED)
    subtle = ["one more", "one less", "one zero", "some random", "shuffled", "all small"]
    jobs = []
    for _ in range(VARIANTS // 2):
        file = chance.choice(files(small))
        names = chance.sample(list(ColumnFile(small / file)), chance.randint(2, 4))
        columns = {name: chance.choice(subtle) for name in names}
        jobs.append({"do": "forge columns", "file": file, "columns": columns, "seed": chance.randrange(1000)})
    assert_harmless(probe, jobs)


def test_forged_facts(small, probe):
    jobs = [
        {"do": "forge fact", "file": file, "fact": fact, "value": value}
        for file in (files(small)[0], files(small)[1])
        for fact in ColumnFile(small / file).facts
        for value in FOREIGN
    ]
    assert_harmless(probe, jobs)


@pytest.mark.parametrize("store", ["text", "records"])
def test_forged_strings(small, probe, store):
    hostile = ["", "\udc80\udcff", "[]", "1", '{"metadata": 1}', '{"metadata": [1]}', '{"a":', NESTED, "NaN", "\0" * 1000, "pump " * 50_000]
    hostile += ['{"metadata": {"a": %s}}' % ("9" * 4000), '{"metadata": {"a": %s}}' % ("[" * 900 + "]" * 900)]
    jobs = [{"do": "forge store", "file": files(small)[1], "store": store, "data": data} for data in hostile]
    assert_harmless(probe, jobs)


def test_forged_footers(small, probe):
    footer_with = '{"facts": {}, "columns": {COLUMNS, "terms.bytes": %s}}'
    footers = ["", "[]", "{}", "null", "1e999", NESTED, '{"facts": 1, "columns": 2}', '{"facts": {}, "columns": {}}', "\udcff"]
    footers += ['{"facts": {}, "columns": {COLUMNS}}', '{"facts": {"documents": 3}, "columns": {COLUMNS}}']
    footers += [
        footer_with % f'{{"type": {kind}, "offset": {offset}, "length": {length}, "checksum": 0}}'
        for kind, offset, length in [
            ('"u1"', -64, 10), ('"u1"', 64.0, 10), ('"u1"', 64, "NaN"), ('"u1"', 64, -1), ('"u1"', 64, HUGE), ('"u8"', 1 << 62, 1 << 62),
            ('"u1"', '"64"', 10), ("[]", 64, 10), ("null", 64, 10), ('"O"', 64, 10), ('"u1"', "null", "null"), ('"u1"', 64, 1e300),
        ]
    ]  # fmt: skip
    footers += [footer_with % "7", footer_with % "{}"]
    assert_harmless(probe, [{"do": "forge footer", "file": file, "footer": footer} for file in files(small)[:2] for footer in footers])


def test_forged_manifests(small, probe):
    paths: list[list[str | int]] = [["analysis"], ["language"], ["segments"], ["generation"], ["segments", 0]]
    paths += [["analysis", name] for name in ("version", "stemmer", "stopwords")]
    entry = manifests.load(small).segments[0]
    paths += [["segments", 0, name] for name in entry] + [["segments", 0, "deleted", name] for name in entry["deleted"]]
    assert_harmless(probe, [{"do": "forge manifest", "keys": keys, "value": value} for keys in paths for value in FOREIGN])


def test_a_manifest_names_only_files_of_its_folder(small, probe):
    names = ["../x", "/etc/passwd", "a/b", "..", ".", "", "\0", "manifest.json", "write.lock", "segment-1.columns/../../x"]
    jobs = [
        {"do": "forge manifest", "keys": keys, "value": name}
        for keys in (["segments", 0, "file"], ["segments", 0, "deleted", "file"])
        for name in names
    ]
    for job, outcome in probe.run(jobs):
        assert "raised" not in outcome, (job, outcome)
        for step in ("check", "look"):
            assert "is damaged" in outcome[f"{step} refused"], (job, outcome)
