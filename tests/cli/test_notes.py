"""Notes name keywords in Python, and options on the command line."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from perikope.cli import perikope
from perikope.cli.output import as_command_line
from perikope.search.facade import Index


@pytest.fixture
def folder(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add([{"id": "d1", "passages": ["The rotor of a pump."]}, {"id": "d2", "language": "de", "passages": ["Der Rotor einer Pumpe."]}])
    index.commit()
    index.close()
    return tmp_path / "index"


@pytest.mark.parametrize(
    ("query", "keyword", "option"),
    [("pump AND rotor", "syntax='boolean'", "--syntax boolean"), ("the rotor of the", "language='all'", "--language all")],
)
def test_a_note_names_what_its_reader_can_write(folder, query, keyword, option):
    (note,) = [note for note in Index.open(folder).search(query).notes if keyword in note]
    assert not re.search(r"--[a-z]", note)
    shown = CliRunner().invoke(perikope, ["search", str(folder), query])
    assert [line for line in shown.stderr.splitlines() if option in line] == [f"perikope: note: {as_command_line(note)}"]


def test_values_are_quoted_for_a_shell():
    assert as_command_line("use filter='ipc=G06F 17' or filter='a!=b'") == "use --filter 'ipc=G06F 17' or --filter 'a!=b'"
    assert as_command_line("other='x' stays") == "other='x' stays"
