"""Tables in text files."""

from __future__ import annotations

import pytest

import perikope as pk


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "\ufeffsep=;"])
def test_a_line_that_states_the_delimiter_is_no_row(tmp_path, first):
    (tmp_path / "t.csv").write_text(f"{first}\r\nModel;Flow, m3/h\r\nKX-120;1,5\r\n", encoding="utf-8", newline="")
    [chunk] = pk.split(tmp_path / "t.csv")
    assert (chunk.path, chunk.text) == (("Model | Flow, m3/h",), "KX-120 | 1,5")
