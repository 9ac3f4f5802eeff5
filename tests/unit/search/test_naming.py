"""Names of many passages are the same as those of single passages."""

import numpy as np
import pytest

from perikope.core.name_lines import RankedNames
from perikope.document.tree import TreeBuilder
from perikope.search import naming
from perikope.search.facade import Index

IDS = ["p1", "", None, "a b", "50%", "#x", "été", "a\u2003b", "line\nbreak", "\x7f", "plain-2"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    index = Index.create(str(tmp_path_factory.mktemp("names") / "index"))
    for segment in range(3):
        for name in ("d1", "EP 1#2", "été", "d9"):
            builder = TreeBuilder(f"{segment}{name}")
            for number in range(12):
                id = IDS[(number + segment) % len(IDS)]
                builder.passage(f"magnetic pump {number}", **({} if id is None else {"id": id}))
            index.add(builder.build())
        index.commit()
    return index.search("magnetic pump", model="bm25", k=1000, keep_unmatched=True)


def test_many_names_are_those_of_single_passages(results):
    rows = results.ranking.rows[::-1].copy()
    assert rows.size == 3 * 4 * 12 > naming._FEW
    expected = [results.names_of(rows[i : i + 1])[0] for i in range(rows.size)]
    assert results.names_of(rows) == expected
    assert not any(character.isspace() for name in expected for character in name)


def test_ranked_names_are_names_with_scores(results):
    names = results.ranked_names()
    assert list(names) == results.names() == names[:] == list(RankedNames.of(results.names()))
    assert len(names) == len(results)
    assert names[3] == results.names()[3]


def test_plain_names_are_not_repaired(results, monkeypatch):
    rows = np.array([row for row, name in enumerate(results.names_of(np.arange(results.matches.passages))) if name.startswith("0d1#p")])
    monkeypatch.setattr(naming, "_FEW", 0)
    monkeypatch.setattr(naming, "_names_one_by_one", None)
    assert naming.names_of(results._snapshot, results.matches, rows) == ["0d1#p1", "0d1#plain-2", "0d1#p1"][: rows.size]
