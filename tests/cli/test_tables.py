"""`perikope learn show` and `delete`: list, show and delete learned tables."""

import csv
import gzip
import json
import re

import numpy as np
import pytest

from perikope.browse.models.features import FEATURES
from perikope.evaluation.learning.export import write_examples
from perikope.evaluation.learning.saving import text_path
from perikope.index.saved_tables import read_table, table_names, write_table
from tests.cli.test_commands import fails, run
from tests.support.collections import index_of, structured_document
from tests.unit.evaluation.test_learning import synthetic

NAMES = list(FEATURES)
LINEAR = {"method": "linear", "features": {"version": 1, "normalize": "minmax", "names": NAMES[:3]}, "weights": [0.25, -2.0, 0.0]}
TREE = {"feature": [1, -1, 0, -1, -1], "threshold": [0.5] * 5, "left": [1, -1, 3, -1, -1], "right": [2, -1, 4, -1, -1], "value": [0.1] * 5}


@pytest.fixture
def folder():
    folder = index_of([structured_document()]).folder
    write_table(folder, "my-tags", "tags", {"queries": 7, "logical": ["sec"], "tags": {"sec": {"weight": 1.5, "coverage": 0.5}, "b": 2}})
    write_table(folder, "my-prior", "prior", {"weights": [0.5, *range(1, 10)], "relevant": [3] * 10, "returned": [4] * 10})
    write_table(folder, "mine", "fusion", {**LINEAR, "training": {"topics": 12, "index": "abc"}})
    write_table(folder, "trees", "fusion", {"method": "lambdamart", "features": LINEAR["features"], "trees": [TREE, TREE]})
    return folder


def shown(capsys, *arguments):
    code, out, err = run(capsys, "learn", *arguments)
    assert (code, err) == (0, "")
    return out


def test_tables_are_listed_with_their_kind_and_place(folder, capsys):
    rows = [line.split() for line in shown(capsys, "show", folder).splitlines()]
    assert ["mine", "fusion", "index"] in rows
    assert ["beigbeder2015", "tags", "program"] in rows
    assert [row[0] for row in rows] == table_names(folder=folder)
    records = [json.loads(line) for line in shown(capsys, "show", folder, "--json").splitlines()]
    assert {"name": "my-prior", "kind": "prior", "place": "index"} in records


def test_each_kind_is_shown(folder, capsys):
    tags = [line.split() for line in shown(capsys, "show", folder, "my-tags").splitlines()]
    assert tags[0] == ["tag", "weight", "coverage", "occurrences", "logical"]
    assert tags[1:] == [["sec", "1.50", "50.00%", "x"], ["b", "2.00"], ["learned", "from", "7", "topics"]]
    prior = [line.split() for line in shown(capsys, "show", folder, "my-prior").splitlines()]
    assert prior[1:3] == [["1", "3", "4", "0.50"], ["2", "3", "4", "1.00"]]
    linear = shown(capsys, "show", folder, "mine").splitlines()
    assert [line.split()[:2] for line in linear[1:4]] == [[NAMES[1], "-2.0000"], [NAMES[0], "0.2500"], [NAMES[2], "0.0000"]]
    assert FEATURES[NAMES[1]].meaning in linear[1]
    assert linear[4:] == ["learned from:", "  topics: 12", "  index: abc"]
    trees = shown(capsys, "show", folder, "trees").splitlines()
    assert trees[0].startswith("2 trees, 4 decisions")
    assert {line.split()[0] for line in trees[1:]} == {NAMES[0], NAMES[1]}
    assert json.loads(shown(capsys, "show", folder, "my-tags", "--json"))["values"]["tags"]["b"] == 2


def test_a_table_of_an_unknown_kind_is_shown_as_it_is(folder, capsys):
    write_table(folder, "other", "theirs", {"x": [1, 2]})
    assert shown(capsys, "show", folder, "other") == '{"x": [1, 2]}\n'


def test_a_table_is_deleted_with_what_belongs_to_it(folder, capsys):
    values = read_table("trees", folder=folder).values
    write_table(folder, "trees", "fusion", values, {"lightgbm.txt": "tree"})
    text = text_path(folder, "trees")
    assert text.read_text() == "tree"
    assert shown(capsys, "delete", folder, "trees") == "deleted trees\n"
    assert not text.exists()
    assert "trees" not in table_names(folder=folder)
    write_table(folder, "beigbeder2015", "tags", {"tags": {"b": 3}})
    shown(capsys, "delete", folder, "beigbeder2015")
    fails(capsys, "comes with the program", "learn", "delete", folder, "beigbeder2015")
    fails(capsys, "unknown table 'my-tag'; did you mean 'my-tags'? valid: mine, my-prior, my-tags", "learn", "delete", folder, "my-tag")
    fails(capsys, "unknown table '../tables/mine'", "learn", "delete", folder, "../tables/mine")
    fails(capsys, "unknown table 'my-tag'", "learn", "show", folder, "my-tag")
    fails(capsys, "is not an index", "learn", "show", folder.parent)


def test_damaged_tables_are_named(folder, capsys):
    listed = shown(capsys, "show", folder)
    for name in ("mine", "beigbeder2015"):  # the second has the name of a table of the program
        write_table(folder, name, "tags", {"tags": {"b": 3}})
        path = folder / "tables" / f"{name}.json"
        path.write_text(path.read_text().replace("3", "4"))
    code, out, err = run(capsys, "learn", "show", folder)
    assert code == 1
    names = [{line.split()[0] for line in lines.splitlines()} for lines in (listed, out)]
    assert names[0] - names[1] == {"mine", "beigbeder2015"}
    assert re.findall(r"damaged: \S+tables/(\S+)\.json: ", err) == ["beigbeder2015", "mine"]
    assert len(err.splitlines()) == 2


def test_the_features_are_listed(capsys):
    lines = shown(capsys, "features").splitlines()
    assert [line.split()[:2] for line in lines] == [[str(number), name] for number, name in enumerate(FEATURES, 1)]


@pytest.mark.parametrize("name", ["x.csv", "x.TSV", "x.csv.gz"])
def test_examples_as_a_data_frame_has_them(tmp_path, name):
    groups = synthetic(2, weights=np.zeros(len(FEATURES)), rows=3)
    assert write_examples(tmp_path / name, groups, ["0", "1"]) == 6
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if "TSV" in name else ","))
    assert list(rows[0]) == ["qid", "name", "grade", *FEATURES]
    assert [row["qid"] for row in rows] == list("000111")
    assert [float(row[NAMES[2]]) for row in rows[:3]] == groups[0].features[:, 2].tolist()
    assert sum(int(row["grade"]) for row in rows) == 2


def test_any_other_name_is_svmlight(tmp_path):
    assert write_examples(tmp_path / "x.csv.txt", [], []) == 0
    assert (tmp_path / "x.csv.txt").read_text().startswith("# features")
