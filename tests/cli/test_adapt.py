"""`perikope adapt` and `perikope topics`: what they print and save."""

import json
import re

import pytest

from perikope import cli
from perikope.search.own_default import own_default
from tests.support.collections import index_of
from tests.support.planted import misleading_documents, named_documents


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return done.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def misleading():
    return index_of(misleading_documents()).snapshot.folder


def test_a_dry_run_saves_nothing(misleading, capsys):
    code, out, _ = run(capsys, "adapt", misleading, "--dry-run", "--workers", 1)
    assert code == 0
    assert re.search(r"the gain on held-back topics is significant \(p = 0\.0..\); nothing was saved \(--dry-run\)", out)
    assert own_default(misleading) is None


def test_an_adopted_model_is_saved_and_removed_again(misleading, capsys):
    code, out, _ = run(capsys, "adapt", misleading, "--workers", 1)
    assert code == 0
    assert "saved as the default of the index" in out
    assert own_default(misleading).model in out
    assert run(capsys, "adapt", misleading, "--remove")[:2] == (0, "removed the index's own default\n")
    assert own_default(misleading) is None
    assert run(capsys, "adapt", misleading, "--remove")[:2] == (0, "the index has no default of its own; nothing was removed\n")


def test_the_general_weights_are_kept_and_said_so(capsys):
    code, out, _ = run(capsys, "adapt", index_of(named_documents()).snapshot.folder, "--workers", 1)
    assert code == 0
    assert "the general weights are kept: " in out


def test_the_outcome_as_json(misleading, capsys):
    code, out, _ = run(capsys, "adapt", misleading, "--dry-run", "--json", "--workers", 1)
    found = json.loads(out)
    assert code == 0
    assert found["adopted"] is True
    assert found["model"] == found["chosen"]
    assert found["after"] > found["before"]


def test_mistakes_are_one_clear_line(misleading, tmp_path, capsys):
    code, _, err = run(capsys, "adapt", misleading, "--remove", "--dry-run")
    assert code == 2
    assert "exclude each other" in err
    code, _, err = run(capsys, "adapt", tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1
    code, _, err = run(capsys, "topics", misleading, "--out", tmp_path, "--kinds", "sentense")
    assert code == 2
    assert "sentense" in err


def test_topics_are_written(misleading, tmp_path, capsys):
    code, out, _ = run(capsys, "topics", misleading, "--out", tmp_path / "made", "--count", 5, "--kinds", "sentence, keywords")
    assert code == 0
    assert out.splitlines()[-1] == f"10 topics written to {tmp_path / 'made'}"
    assert len((tmp_path / "made" / "topics.tsv").read_text().splitlines()) == 10
    assert len((tmp_path / "made" / "qrels.txt").read_text().splitlines()) == 10
