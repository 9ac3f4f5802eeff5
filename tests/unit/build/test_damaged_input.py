"""Documents of a packed file with a wrong checksum are not taken, and a sync keeps what it cannot read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from pathlib import Path

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError
from perikope.search.facade import Index

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
COUNT = 5


def _lines(word: str, count: int = COUNT) -> bytes:
    return b"".join(json.dumps({"id": f"d{i}", "passages": [f"{word} {i}"]}).encode() + b"\n" for i in range(count))


def _damaged(kind: str, data: bytes) -> bytes:
    """Packed data with a wrong checksum: all of it can still be unpacked."""
    packed = bytearray(PACK[kind](data))
    # In xz, the check of the block stands before the index, whose size is in the footer.
    size_of_index = (int.from_bytes(packed[-8:-4], "little") + 1) * 4
    packed[{"gz": -8, "bz2": -3, "xz": -12 - size_of_index - 1}[kind]] ^= 0x10
    return bytes(packed)


def _sync(folder: Path, files: Path):
    return build(str(folder), [str(files)], BuildOptions(sync=True))


def _texts(folder: Path) -> dict[str, str]:
    return {document.id: document.text for document in Index.open(folder).documents()}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "other.md").write_text("# Other\n\nThe rotor.\n")
    return files


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("workers", [1, 2])
def test_no_document_of_a_packed_file_with_a_wrong_checksum_is_taken(tmp_path, files, kind, workers):
    (files / f"a.jsonl.{kind}").write_bytes(_damaged(kind, _lines("pump")))
    report = build(str(tmp_path / "index"), [str(files)], BuildOptions(workers=workers))
    assert [Path(str(problem.path)).name for problem in report.skipped] == [f"a.jsonl.{kind}"]
    assert list(_texts(tmp_path / "index")) == ["other.md"]


def test_a_named_packed_file_with_a_wrong_checksum_is_refused(tmp_path, files):
    (files / "a.jsonl.gz").write_bytes(_damaged("gz", _lines("pump")))
    with pytest.raises(InputError, match=r"a\.jsonl\.gz: cannot be read \(CRC check failed"):
        build(str(tmp_path / "index"), [str(files / "a.jsonl.gz")])
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("harm", ["checksum", "cut"])
def test_a_sync_keeps_the_documents_of_a_packed_file_that_is_damaged(tmp_path, files, harm):
    path = files / "a.jsonl.gz"
    path.write_bytes(gzip.compress(_lines("pump")))
    _sync(tmp_path / "index", files)
    before = _texts(tmp_path / "index")
    path.write_bytes(_damaged("gz", _lines("valve")) if harm == "checksum" else gzip.compress(_lines("valve"))[:-12])
    for _ in range(3):
        report = _sync(tmp_path / "index", files)
        assert len(report.skipped) == 1
        assert (report.changed, report.removed) == (0, 0)
        assert _texts(tmp_path / "index") == before
    path.write_bytes(gzip.compress(_lines("valve", 4)))
    report = _sync(tmp_path / "index", files)
    assert (report.skipped, report.changed, report.removed) == ((), 4, 1)


def _tar(word: str, count: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(count):
            data = f"The {word} is number {number}.\n".encode()
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def test_later_syncs_keep_and_report_a_file_that_was_read_in_part(tmp_path, files):
    """The index knows the hash of such a file from the documents that were read. It is read again all the same."""
    path = files / "a.tar"
    path.write_bytes(_tar("pump", 4))
    _sync(tmp_path / "index", files)
    known = set(_texts(tmp_path / "index"))
    path.write_bytes(_tar("valve", 4)[: 2 * 1024 + 512 + 5])  # a member has a block of header and one of text
    for _ in range(3):
        report = _sync(tmp_path / "index", files)
        assert report.skipped[-1].path == str(path)
        assert report.removed == 0
        assert set(_texts(tmp_path / "index")) == known
    path.write_bytes(_tar("valve", 3))
    report = _sync(tmp_path / "index", files)
    assert (report.skipped, report.removed) == ((), 1)
    assert _sync(tmp_path / "index", files).changed == 0
