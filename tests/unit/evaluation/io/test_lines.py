import gzip
import os
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.core.files import replacing
from perikope.evaluation.io import lines
from perikope.evaluation.io.lines import numbered_lines


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_are_numbered_and_blank_ones_left_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = "\ufeffein Käse\r\n \t\n\nzwei\u2028drei\nlast".encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert list(numbered_lines(path)) == [(1, "ein Käse"), (4, "zwei\u2028drei"), (5, "last")]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert list(numbered_lines(str(tmp_path / "empty"))) == []


def test_what_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes("gut\nKäse\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin:2: not UTF-8 text \(byte 2"):
        list(numbered_lines(path))


def test_a_missing_file_and_a_folder_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot read: No such file"):
        list(numbered_lines(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        list(numbered_lines(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"plain text", id="not an archive"),
        pytest.param(gzip.compress(b"abc\n" * 5000)[:-12], id="cut short"),
        pytest.param(gzip.compress(b"abc\n" * 5000)[:15] + b"\xff" * 40, id="overwritten"),
    ],
)
def test_a_damaged_archive_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"run\.gz: cannot read: "):
        list(numbered_lines(path))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 10)
    path = tmp_path / "long"
    path.write_text("short\n" + "x" * 11 + "\n")
    with pytest.raises(InputError, match="long:2: the line is longer than 10 bytes"):
        list(numbered_lines(path))


def test_a_file_is_replaced_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(f"half {1 / 0}")
    assert path.read_text() == "before"
    with replacing(path) as file:
        file.write("Käse\n")
    assert path.read_bytes() == "Käse\n".encode()
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as file:
        file.write("after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "after"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with replacing("/dev/null") as file:
        file.write("gone")
    assert Path("/dev/null").is_char_device()


def test_compressed_files_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with replacing(tmp_path / name) as file:
            file.write("text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*No such file"), replacing(tmp_path / "no" / "out"):
        pass
