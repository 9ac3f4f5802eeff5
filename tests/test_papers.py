"""docs/papers.md: every row says where a part of a paper is, and the files, models and protocols it names exist."""

import re
from pathlib import Path

import pytest

from perikope.browse.models import MODELS
from perikope.evaluation.experiment.plan import protocol_names

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
PAPERS = PAGE.split("\n## ")[2:]


def rows(text):
    """The rows of tables, without headings of groups."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| what the paper", "| **"))]
    return [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines]


def test_every_paper_has_a_section_and_a_protocol():
    named = [re.search(r"`perikope experiment (\w+)`", paper)[1] for paper in PAPERS]
    assert sorted(named) == protocol_names()


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.splitlines()[0])
def test_every_row_says_where_something_is_or_why_it_differs(paper):
    found = rows(paper)
    assert len(found) > 35
    for row in found:
        assert len(row) == 2, row
        assert len(row[1]) > 3, row
        text = row[1].replace("a missing neighbour", "")
        assert not re.search(r"\b(todo|to do|missing|not yet|not implemented)\b", text, re.IGNORECASE), row


def test_files_exist():
    names = set(re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|toml|md))`", PAGE))
    assert len(names) > 40
    assert [name for name in sorted(names) if not (ROOT / name).exists() and not (ROOT / "src" / "perikope" / name).exists()] == []


def test_models_exist():
    known = dict(MODELS.items())
    named = set(re.findall(r"`((?:qsf|psg|plm|prox|position_|first_)_?\w*)(?:\([^`]*\))?`", PAGE))
    assert len(named) > 8
    assert [name for name in sorted(named) if name not in known] == []
