"""Plain text: blank lines separate, nothing else is read into it."""

from __future__ import annotations

from pathlib import Path

from perikope.formats import read
from tests.support.trees import check_tree, passages, titles


def test_blank_lines_separate_passages(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n\nTITLE LIKE\n\n\n  one \n two\n \t \n\x0c\nthree")
    [document] = read(path)
    check_tree(document)
    assert passages(document) == ["TITLE LIKE", "  one\n two", "three"]
    assert titles(document) == []
