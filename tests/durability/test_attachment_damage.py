"""Damaged and forged files of a store of vectors or a learned table: the same answers, or a line that says what to do.

Damage is always found by checking, and by a search that reads what is damaged. Nothing raises another error.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perikope.cli.check_command import command
from perikope.core.array_files import StoredArray
from perikope.core.errors import InputError
from tests.durability import harms
from tests.durability.attachments import STORE, look, problems, unknown_files
from tests.durability.harms import MUTATIONS
from tests.durability.probe import Probe
from tests.durability.test_forged import FOREIGN, NESTED, VARIANTS

SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
THOROUGH = "PERIKOPE_SOAK" in os.environ
"""Whether every byte of headers, manifests and tables is flipped; otherwise these are some of each."""
IN_STORE = f"neural/{STORE}"
MANIFEST = f"{IN_STORE}/store.json"


def attached_files(folder: Path) -> list[str]:
    return [name for name in harms.content_of(folder) if name.startswith(("neural/", "tables/")) and not name.endswith("write.lock")]


def flips(folder: Path) -> list[dict[str, object]]:
    """One bit, or all of a byte, at chosen places of every file of store and table."""
    chance = random.Random(SEED)
    jobs = []
    for name in attached_files(folder):
        size = (folder / name).stat().st_size
        head = range(min(size, 128 if name.endswith(".npy") else size))
        rest = range(head.stop, size)
        places = list(head) if THOROUGH else chance.sample(head, min(len(head), 3 if name.endswith(".npy") else 60))
        places += chance.sample(rest, min(len(rest), 60 if THOROUGH else 3))
        jobs += [{"do": "flip", "file": name, "at": at, "mask": chance.choice([0xFF, 1 << chance.randrange(8)])} for at in sorted(places)]
    return jobs


def assert_found_or_harmless(probe: Probe, jobs: Iterable[dict[str, Any]], whole: str) -> int:
    """Assert that each harm is found by checking or changes nothing, and that a search is refused or right."""
    count = 0
    for job, outcome in probe.run(jobs):
        count += 1
        assert "raised" not in outcome, (SEED, job, outcome)
        assert outcome.get("check") or outcome.get("look") == whole, (SEED, job, outcome)
        assert outcome.get("look", whole) == whole, (SEED, job, outcome)
        for line in (outcome.get("look refused", ""), *outcome.get("check", ())):
            assert line.count("\n") <= 1, (SEED, job, outcome)
            assert len(line) < 600, (SEED, job, outcome)
    return count


def test_a_flipped_byte_is_found_or_harmless(attached, attached_probe):
    assert assert_found_or_harmless(attached_probe, flips(attached), look(attached)) > 200


def test_a_file_that_is_cut_short_or_missing_is_found(attached, attached_probe):
    jobs: list[dict[str, object]] = []
    for name in attached_files(attached):
        size = (attached / name).stat().st_size
        lengths = {0, 1, 9, 10, 64, 127, 128, size // 2, size - 1} if THOROUGH else {0, 64, size - 1}
        jobs += [{"do": "cut", "file": name, "length": length} for length in sorted(lengths) if length < size]
        jobs.append({"do": "lose", "file": name})
    jobs = [job for job in jobs if job != {"do": "lose", "file": MANIFEST}]  # then there is no store
    count = 0
    for job, outcome in attached_probe.run(jobs):
        count += 1
        assert "raised" not in outcome, (job, outcome)
        lost_table = job == {"do": "lose", "file": "tables/mine.json"}
        assert outcome["check"] or lost_table, (job, outcome)
        assert "look refused" in outcome or "lightgbm" in str(job["file"]), (job, outcome)
    assert count == len(jobs)


def test_exchanged_files_are_found(attached, attached_probe):
    arrays = [name for name in attached_files(attached) if name.endswith(".npy")]
    chance = random.Random(SEED)
    pairs = [pair for pair in itertools.combinations(arrays, 2) if (attached / pair[0]).read_bytes() != (attached / pair[1]).read_bytes()]
    jobs = [{"do": "swap", "file": one, "other": other} for one, other in chance.sample(pairs, min(len(pairs), 40))]
    assert assert_found_or_harmless(attached_probe, jobs, look(attached)) == len(jobs)


def assert_no_error_of_another_kind(probe: Probe, jobs: list[dict[str, Any]]) -> None:
    bad = [f"{job}: {outcome['raised']}" for job, outcome in probe.run({**job, "changing": True} for job in jobs) if "raised" in outcome]
    assert not bad, f"{len(bad)} of {len(jobs)} (seed {SEED})\n" + "\n".join(bad[:10])


def test_forged_arrays(attached, attached_probe):
    """Arrays with valid hashes and wrong content."""
    chance = random.Random(SEED)
    store = attached / IN_STORE
    names = [path.relative_to(store).as_posix() for path in sorted(store.rglob("*.npy"))]
    whole_numbers = [name for name in names if np.load(store / name).dtype.kind in "ui"]
    jobs = [
        {"do": "forge array", "store": IN_STORE, "file": file, "mutation": mutation, "seed": chance.randrange(1000)}
        for file, mutation in itertools.product(whole_numbers, MUTATIONS)
    ]
    chance.shuffle(jobs)
    assert_no_error_of_another_kind(attached_probe, jobs[: VARIANTS // 2])


def test_forged_manifests_and_tables(attached, attached_probe):
    content = json.loads((attached / MANIFEST).read_bytes())
    segment = next(iter(content["segments"]))
    paths: list[list[str | int]] = [[name] for name in content if name != "checksum"] + [["files", 0], ["segments", segment]]
    paths += [["segments", segment, name] for name in ("checksum", "rows")] + [["hashes", content["keys"]]]
    hostile = [*FOREIGN, "../x", "/etc/passwd", "batch-0123456789abcdef", "a/b", "..", "", "\0"]
    jobs: list[dict[str, Any]] = [
        {"do": "forge manifest", "file": MANIFEST, "keys": keys, "value": value} for keys, value in itertools.product(paths, hostile)
    ]
    table = [["perikope"], ["version"], ["kind"], ["values"], ["files"], ["values", "tags"], ["values", "queries"]]
    jobs += [
        {"do": "forge manifest", "file": "tables/mine.json", "keys": keys, "value": value}
        for keys, value in itertools.product(table, FOREIGN)
    ]
    random.Random(SEED).shuffle(jobs)
    assert_no_error_of_another_kind(attached_probe, jobs[:VARIANTS])


@pytest.mark.parametrize("file", [MANIFEST, "tables/mine.json"])
def test_garbage_is_refused(attached, attached_probe, file):
    garbage = ["", "{", "[]", "null", "0", '"text"', "{}", "\udcff\udcfe", NESTED, "9" * 10_000, "\0" * 700, '{"version": 1e999}']
    for job, outcome in attached_probe.run([{"do": "put", "file": file, "data": data} for data in garbage]):
        assert "raised" not in outcome, (job, outcome)
        assert outcome["check"], (job, outcome)
        assert "look refused" in outcome, (job, outcome)


HEADERS = [
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (999999999999999, 3), }",
    b"{'descr': '<i8', 'fortran_order': True, 'shape': (1, 3), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }",
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (1, 3), ",
    b"(" * 110,
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 3), }",
    b"'''",
    b"__import__('os')",
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_checked_before_anything_is_allocated(tmp_path, header):
    path = tmp_path / "array.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n" + bytes(24))
    for mapped in (False, True):
        with pytest.raises(ValueError, match=r"header|shape"):
            StoredArray(path, np.int64, (None, 3), mapped=mapped)


def test_leftovers_are_reported_and_are_no_damage(attached, tmp_path, capsys):
    folder = Path(shutil.copytree(attached, tmp_path / "index"))
    (folder / IN_STORE / ".encoder-0123456789abcdef.01234567.part").mkdir()
    (folder / IN_STORE / "batch-0123456789abcdef").mkdir()
    (folder / "neural" / "stopped" / "codebooks-0123456789abcdef").mkdir(parents=True)
    (folder / "tables" / ".mine.json.01234567.part").write_text("{")
    assert problems(folder) == []
    left = ["tables/.mine.json.01234567.part", f"{IN_STORE}/.encoder-0123456789abcdef.01234567.part"]
    left += [f"{IN_STORE}/batch-0123456789abcdef", "neural/stopped/codebooks-0123456789abcdef"]
    assert list(unknown_files(folder)) == left
    assert command.main([str(folder)], standalone_mode=False) == 0
    assert f"not part of the index: {', '.join(left)}\n" in capsys.readouterr().out


def test_check_needs_no_torch_and_names_what_is_damaged(attached, tmp_path, capsys, monkeypatch):
    for name in ("torch", "transformers", "safetensors"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    folder = Path(shutil.copytree(attached, tmp_path / "index"))
    for name in ("tables/mine.json", MANIFEST):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-20] + b"7" + data[-19:])
    assert command.main([str(folder)], standalone_mode=False) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [("mine.json" in line, STORE in line) for line in lines] == [(True, False), (False, True)]


def test_a_table_that_a_person_edits_says_what_to_do(attached, tmp_path):
    from perikope.index.saved_tables import read_table

    folder = Path(shutil.copytree(attached, tmp_path / "index"))
    path = folder / "tables" / "mine.json"
    content = json.loads(path.read_bytes())
    content["values"]["queries"] = 99
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="remove its key 'checksum'"):
        read_table("mine", folder=folder)
    del content["checksum"]
    path.write_text(json.dumps(content))
    assert read_table("mine", folder=folder).values["queries"] == 99
