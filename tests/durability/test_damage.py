"""Accidental damage: `check` names the file and the column, reads are right or refused, and nothing crashes."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from perikope.core.errors import IndexFormatError
from perikope.index import manifest as manifests
from perikope.index.check import check
from perikope.index.commit import IndexWriter
from perikope.search.facade import Index
from perikope.text.analysis import ANALYSIS_VERSION
from tests.durability import harms
from tests.durability.harms import regions
from tests.durability.probe import look

SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
THOROUGH = "PERIKOPE_SOAK" in os.environ
"""Whether every byte that has a meaning is flipped, and four of every gap, whose bytes nothing reads. Otherwise
these are: all bytes of headers and tails, one of every column, one of every fourth gap, and some of the others."""

NEWER = "a newer version of perikope has written it; use that version, or restore a backup"
"""What to do about a file of a newer version."""


@pytest.fixture
def folder(tmp_path, small):
    return Path(shutil.copytree(small, tmp_path / "index"))


def segments(folder: Path) -> list[str]:
    return [entry["file"] for entry in manifests.load(folder).segments]


def tombstones(folder: Path) -> str:
    return str(manifests.load(folder).segments[0]["deleted"]["file"])


def chosen(region: str, positions: range, chance: random.Random) -> list[int]:
    """The positions of a region whose bytes are flipped, often at its borders, where damage may be missed."""
    if THOROUGH and "gap" in region:
        return sorted({positions[0], positions[-1], *chance.sample(positions, min(2, len(positions)))}) if positions else []
    if THOROUGH or region in ("header", "tail"):
        return list(positions)
    if region in ("footer", "manifest"):
        return sorted({positions[0], positions[-1], *chance.sample(positions, min(50, len(positions)))})
    if not positions or ("gap" in region and chance.random() < 0.75):
        return []
    return [chance.choice([positions[0], positions[-1], chance.choice(positions)])]


def flips(folder: Path) -> list[dict[str, object]]:
    """One bit, or all of a byte, in every region of every file."""
    chance = random.Random(SEED)
    jobs = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".columns":
            by_name = regions(path)
        else:
            by_name = {"manifest": range(path.stat().st_size)} if path.name == manifests.FILE else {}
        for region, positions in by_name.items():
            for at in chosen(region, positions, chance):
                mask = chance.choice([0xFF, 1 << chance.randrange(8)])
                jobs.append({"do": "flip", "file": path.name, "at": at, "mask": mask, "region": region})
    return jobs


def test_a_flipped_byte_is_found_or_harmless(small, probe):
    whole = look(small)
    jobs = flips(small)
    count = 0
    for job, outcome in probe.run(jobs):
        count += 1
        assert "raised" not in outcome, (SEED, job, outcome)
        region, file = job["region"], job["file"]
        if "gap" in region:
            assert outcome == {"check": [], "look": whole}, (SEED, job, outcome)
        elif region == "manifest":
            # White space may become other white space.
            assert "check refused" in outcome or outcome == {"check": [], "look": whole}, (SEED, job, outcome)
        else:
            assert len(outcome["check"]) == 1, (SEED, job, outcome)
            assert file in outcome["check"][0], (SEED, job, outcome)
            if region not in ("header", "footer", "tail"):
                assert repr(region) in outcome["check"][0], (SEED, job, outcome)
                # No answer is wrong: what is read is verified first.
                assert "look refused" in outcome or outcome["look"] == whole, (SEED, job, outcome)
            else:
                assert "look refused" in outcome, (SEED, job, outcome)
    assert count == len(jobs) > 400


def test_a_file_that_is_cut_short_is_named(small, probe):
    jobs = []
    for path in sorted(small.glob("*.columns")):
        ends = {edge for places in regions(path).values() for edge in (places.start, places.stop)}
        lengths = sorted({0, 1, 63, 64, 91, 92, path.stat().st_size - 1} | {length for length in ends if length < path.stat().st_size})
        jobs += [{"do": "cut", "file": path.name, "length": length} for length in lengths]
    for job, outcome in probe.run(jobs):
        assert "raised" not in outcome, (job, outcome)
        assert "is cut short" in outcome["look refused"], (job, outcome)
        assert [job["file"] in problem for problem in outcome["check"]] == [True], (job, outcome)


def test_a_manifest_that_is_cut_short_is_named(small, probe):
    size = (small / manifests.FILE).stat().st_size
    for job, outcome in probe.run([{"do": "cut", "file": manifests.FILE, "length": length} for length in range(size)]):
        assert "raised" not in outcome, (job, outcome)
        for step in ("check refused", "look refused"):
            assert "manifest.json is damaged" in outcome[step], (job, outcome)


def test_exchanged_files_are_named(folder):
    first, _, third = segments(folder)
    harms.swap(folder, first, third)
    report = check(folder)
    assert len(report.problems) == 2
    for problem, name in zip(report.problems, (first, third), strict=True):
        assert f"{name} is not the file that the manifest names" in problem
    assert (report.readable_documents, report.documents) == (2, 6)
    with pytest.raises(IndexFormatError, match="is not the file that the manifest names"):
        Index.open(folder)


def test_a_file_of_an_older_commit_under_a_new_name_is_named(folder):
    old = (folder / tombstones(folder)).read_bytes()
    index = Index.open(folder)
    index.delete(["a"])
    index.commit()
    (folder / tombstones(folder)).write_bytes(old)
    assert f"{tombstones(folder)} is not the file that the manifest names" in check(folder).problems[0]


@pytest.mark.parametrize("number", range(3))
def test_a_missing_segment_is_named_and_the_rest_counted(folder, number):
    name = segments(folder)[number]
    harms.lose(folder, name)
    report = check(folder)
    assert [f"{name} is missing" in problem for problem in report.problems] == [True]
    assert report.documents == 6
    assert report.readable_documents == 6 - [3, 2, 1][number]
    with pytest.raises(IndexFormatError, match="is missing"):
        Index.open(folder)


def test_missing_tombstones_are_named(folder):
    harms.lose(folder, tombstones(folder))
    assert "is missing" in check(folder).problems[0]
    with pytest.raises(IndexFormatError, match="is missing"):
        Index.open(folder)


@pytest.mark.parametrize(
    ("changed", "what", "advice"),
    [
        ("older", "has index format 2, this program reads 3", "build the index again"),
        ("newer", "has index format 5, this program reads 3", NEWER),
        ("newer text analysis", f"version {ANALYSIS_VERSION + 1} of the text analysis, this program has version", NEWER),
    ],
)
def test_an_index_of_another_version_is_refused(folder, changed, what, advice):
    """After a rollback, the index of a newer version must not be built again over."""
    if changed == "newer text analysis":
        harms.forge_manifest(folder, ["analysis", "version"], ANALYSIS_VERSION + 1)
    else:
        harms.forge_manifest(folder, ["format"], 2 if changed == "older" else max(manifests.FORMAT, manifests.FORMAT_OF_CLUSTER) + 1)
    message = f"{what}.*: {advice}"
    # The files of an index of another text analysis are sound.
    for use in (Index.open, IndexWriter, *([] if changed == "newer text analysis" else [check])):
        with pytest.raises(IndexFormatError, match=message):
            use(folder)


def test_a_segment_of_another_version_is_refused(folder):
    harms.flip(folder, segments(folder)[0], 8, 0x40)
    with pytest.raises(IndexFormatError, match=f"has format version 67, this program reads 3: {NEWER}"):
        Index.open(folder)


@pytest.mark.parametrize("data", ["", "{", "[]", "null", "0", '"text"', "{}", "\udcff\udcfe", "[" * 100_000, "9" * 10_000, "\0" * 700])
def test_garbage_is_no_manifest(folder, data):
    harms.put(folder, manifests.FILE, data)
    for use in (Index.open, check, IndexWriter):
        with pytest.raises(IndexFormatError):
            use(folder)


def test_a_merge_does_not_give_damage_a_right_checksum(folder):
    name = segments(folder)[1]
    at = regions(folder / name)["passage.length"][0]
    harms.flip(folder, name, at, 1)
    with IndexWriter(folder) as writer, pytest.raises(IndexFormatError, match=r"damaged in column 'passage.length'"):
        writer.compact()
    assert len(check(folder).problems) == 1


def test_a_damaged_segment_does_not_keep_others_from_being_added(folder, monkeypatch):
    """A commit merges small segments when there are many; where the merge fails, the commit is still made."""
    monkeypatch.setattr("perikope.index.commit.MAX_SEGMENTS", 2)
    name = segments(folder)[1]
    harms.flip(folder, name, regions(folder / name)["passage.length"][0], 1)
    index = Index.open(folder)
    index.delete(["a"])
    index.commit()
    assert len(Index.open(folder)) == len(index) == 5
    assert len(check(folder).problems) == 1
