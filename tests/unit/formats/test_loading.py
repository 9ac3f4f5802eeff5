"""Which modules of formats are loaded: a suffix that names its format loads this format alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from perikope.core import registry
from perikope.formats import FORMATS, _format_of, format_named

PROGRAM = """
import sys
from perikope.formats import _format_of, format_named
found = _format_of({name!r}, "auto")
print(found, format_named(found).name if found else "", *(m for m in ("lxml", "perikope.formats.markdown") if m in sys.modules))
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "jsonl jsonl"),
        ("a.jsonl.gz", "jsonl jsonl"),
        ("a.ndjson", "jsonl jsonl lxml perikope.formats.markdown"),
        ("a.walks", " lxml perikope.formats.markdown"),
        ("a._source", " lxml perikope.formats.markdown"),
    ],
)
def test_a_suffix_that_names_its_format_loads_no_other(name: str, expected: str) -> None:
    shown = subprocess.run([sys.executable, "-c", PROGRAM.format(name=name)], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == expected.split()


def test_all_formats_are_found_as_before() -> None:
    for name, format in FORMATS.items():
        assert format_named(name) is format
        for suffix in format.suffixes:
            assert _format_of(f"a{suffix}", "auto") == name


def test_formats_of_other_packages_are_loaded_first(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh: registry.Registry[Any] = registry.Registry("format", "perikope.formats")
    monkeypatch.setattr(registry, "_entry_points", lambda group: ["one"])
    assert fresh.packaged("jsonl") is None
    monkeypatch.setattr(registry, "_entry_points", lambda group: [])
    assert fresh.packaged("no_such_module") is None
    assert fresh.packaged("..secrets") is None
