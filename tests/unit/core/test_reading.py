"""Files that are read as a whole are regular files within a limit; nothing of others is read."""

import os
import tracemalloc
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UnreadableFile
from perikope.core.reading import check_readable, read_limited, read_limited_text, read_saved


def test_a_file_at_the_limit_is_read_and_one_above_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_limited(path, 100) == b"x" * 100
    with pytest.raises(UnreadableFile, match="file: is too large for a recipe: the limit is 99 bytes"):
        read_limited(path, 99, "a recipe")


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    tracemalloc.start()
    try:
        assert len(read_limited(path, 1 << 28)) == 100
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    size = os.fstat

    def grown(descriptor: int) -> os.stat_result:
        found = size(descriptor)
        path.write_bytes(b"x" * 50)
        return found

    monkeypatch.setattr(os, "fstat", grown)
    assert read_limited(path, 50) == b"x" * 50
    path.write_bytes(b"x" * 10)
    with pytest.raises(UnreadableFile, match="the limit is 49 bytes"):
        read_limited(path, 49)


def test_nothing_of_a_file_that_is_too_large_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnreadableFile, match="the limit is 1 GB"):
        read_limited(path, 1 << 30)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = {"pipe": tmp_path / "pipe", "device": Path("/dev/zero")}[kind]
    for read in (lambda: read_limited(path, 10), lambda: read_limited_text(path, 10, "a recipe"), lambda: read_saved(path)):
        with pytest.raises(UnreadableFile, match="is not a regular file"):
            read()


def test_text_has_its_line_in_errors(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\ntwo \xff")
    with pytest.raises(InputError, match="a:2: is not UTF-8 text"):
        read_limited_text(tmp_path / "a", 100, "a recipe")
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone")
    assert read_limited_text(tmp_path / "a", 100, "a recipe") == "one"


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "folder\0/\udfff"])
def test_a_name_that_no_file_can_have_is_that_of_a_missing_file(tmp_path, name):
    for read in (lambda path: check_readable(path, 10), lambda path: read_limited(path, 10)):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / name)
    with pytest.raises(InputError, match="cannot read the recipe: No such file"):
        read_limited_text(tmp_path / name, 10, "a recipe")
