"""Boolean queries on the command line."""

import json

import pytest

from perikope import cli
from tests.support.collections import index_of, plain_document


@pytest.fixture(scope="module")
def index():
    return index_of(
        [plain_document("d1", "Pumps", "The heat pump has a steel shaft.", "A valve."), plain_document("d2", "", "A pump, a valve.")]
    )


def names(capsys, index, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main(["search", str(index.folder), *arguments, "--json"])
    captured = capsys.readouterr()
    assert done.value.code == 0, captured.err
    return sorted(f"{hit['document']}#{hit['passage']}" for hit in map(json.loads, captured.out.splitlines()))


def test_search(capsys, index):
    assert names(capsys, index, "heat NEAR/5 shaft OR (pump SAME valve)", "--syntax", "boolean", "--must-match") == ["d1#@1", "d2#@1"]
    assert names(capsys, index, "steel valve", "--syntax", "boolean", "--must-match") == []
    assert names(capsys, index, "steel valve", "--syntax", "boolean", "--across") == ["d1#@1", "d1#@2"]
    assert names(capsys, index, "+pump -steel", "--syntax", "automatic", "--must-match") == ["d2#@1"]
    assert names(capsys, index, "pump valve", "--must-match") == ["d2#@1"]


def test_a_mistake_is_one_line_that_points_at_it(capsys, index):
    with pytest.raises(SystemExit) as done:
        cli.main(["search", str(index.folder), "pump AND (valve", "--syntax", "boolean"])
    captured = capsys.readouterr()
    assert (done.value.code, captured.out, captured.err.count("\n")) == (2, "", 1)
    assert "the parenthesis is not closed at '(valve' (character 10)" in captured.err
