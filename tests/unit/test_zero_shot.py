"""The tables of `python -m benchmarks zero_shot`: means, ratios, marks, and settings chosen without a collection."""

import numpy as np
import pytest

import perikope as pk

pytest.importorskip("scipy")

from benchmarks.zero_shot import SYSTEMS, Judged, left_out, main, marks, measure_judged, summary, table

from perikope.index.reader import Snapshot
from tests.support.collections import plain_document

LOW, HIGH = [0.1, 0.2, 0.3, 0.2, 0.1, 0.2], [0.5, 0.7, 0.7, 0.6, 0.6, 0.7]


def row(lines, name):
    (found,) = [line.strip("| ").split(" | ") for line in lines if line.startswith(f"| {name} |")]
    return found


def test_marks_say_which_reference_differs_and_how():
    values = {"bm25": LOW, "qsf_v_title": HIGH, "coverage": HIGH, "lm": LOW}
    assert marks(values, list(values)) == {"bm25": "q-", "qsf_v_title": "b+", "coverage": "b+", "lm": "q-"}


def test_marks_are_corrected_for_the_number_of_systems():
    values = {"bm25": [0.1, 0.2, 0.3, 0.4], "qsf_v_title": [0.2, 0.35, 0.35, 0.5]}
    assert marks(values, list(values))["qsf_v_title"] == "b+"
    more = {f"coverage(b=0.{i})": [0.1, 0.3, 0.2, 0.4] for i in range(1, 9)}
    assert marks({**values, **more}, [*values, *more])["qsf_v_title"] == ""


def test_a_table_has_means_and_ratios_of_systems_that_all_collections_have():
    one = {"bm25": [0.2, 0.2], "qsf_v_title": [0.4, 0.4], "coverage": [0.5, 0.5], "hybrid": [0.6, 0.6]}
    two = {"bm25": [0.4, 0.4], "qsf_v_title": [0.2, 0.2], "coverage": [0.4, 0.4]}
    lines = table({"one": one, "two": two})
    assert row(lines, "system") == ["system", "one, 2 topics", "two, 2 topics", "mean", "÷ qsf_v_title", "÷ bm25"]
    assert [cell.split()[0] for cell in row(lines, "`coverage`")] == ["`coverage`", "0.500", "**0.400**", "0.450", "1.50", "1.50"]
    assert row(lines, "`hybrid`")[2:] == ["–"] * 4


def test_a_reference_that_finds_nothing_gives_no_ratio():
    values = {"bm25": [0.0, 0.0], "qsf_v_title": [0.2, 0.2], "coverage": [0.4, 0.4]}
    assert row(table({"one": values}), "`coverage`")[2:] == ["0.400", "2.00", "–"]
    assert row(left_out({"one": values, "two": values}, ["coverage"]), "÷ bm25")[2] == "–"


def test_the_summary_is_the_mean_over_collections():
    columns = {"one": {key: [0.2, 0.4] for key in SYSTEMS}, "two": {key: [0.1, 0.1] for key in SYSTEMS}}
    assert row(summary({"heading": columns}), "`coverage`") == ["`coverage`", "**0.200**"]


def test_a_setting_is_chosen_without_the_collection_that_it_is_tested_on():
    references = {"bm25": [0.4, 0.4], "qsf_v_title": [0.5, 0.5], "coverage": [0.5, 0.5]}
    good_on_one = {"coverage(b=0.25)": [0.9, 0.9], "coverage(b=0.75)": [0.2, 0.2]}
    good_on_two = {"coverage(b=0.25)": [0.1, 0.1], "coverage(b=0.75)": [0.8, 0.8]}
    lines = left_out({"one": references | good_on_one, "two": references | good_on_two}, list(good_on_one))
    assert row(lines, "one")[1] == "`coverage(b=0.75)`"
    assert row(lines, "one")[2].split()[0] == "0.200"
    assert row(lines, "one")[4] == "0.200 – 0.900"
    assert row(lines, "two")[1:3] == ["`coverage(b=0.25)`", "0.100 q- b-"]
    assert row(lines, "mean")[2] == "0.150"
    assert row(lines, "÷ qsf_v_title")[2] == "0.30"


def test_an_index_with_vectors_is_measured_with_hybrid(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from perikope.neural.models import add_vectors

    index = pk.Index.create(tmp_path / "idx")
    index.add([plain_document(f"d{i}", f"Pump {i}", *["valve"] * i, "rotor") for i in range(1, 4)])
    index.commit()
    add_vectors(index, "dense", lambda texts: np.array([[len(text)] for text in texts]), lambda query: np.ones(1), 1)
    monkeypatch.setattr(Snapshot, "open", lambda path: index.snapshot)
    (tmp_path / "topics.tsv").write_text("1\trotor\n")
    (tmp_path / "qrels.txt").write_text("1 0 d3#@4 1\n")
    collection = Judged("idx", tmp_path / "idx", str(tmp_path / "topics.tsv"), str(tmp_path / "qrels.txt"))
    values = measure_judged(collection, ["coverage(b=0.25)"], most=5, seed=1)
    assert [*values] == [*SYSTEMS, "hybrid(store=dense)", "coverage(b=0.25)"]
    assert {len(column) for column in values.values()} == {1}


def test_the_program_measures_judged_and_self_made_topics(tmp_path, capsys):
    texts = ["The {0} housing surrounds curved steel blades. Its {0} outlet leads hot liquid slowly away.", "Bolts hold the {0} cover."]
    for name in ("one", "two"):
        index = pk.Index.create(tmp_path / name)
        index.add([plain_document(f"d{i}", f"Pump model{i}", *(text.format(f"part{i}") for text in texts)) for i in range(12)])
        index.commit()
    (tmp_path / "topics.tsv").write_text("1\tmodel1 outlet\n2\tmodel2 cover\n")
    (tmp_path / "qrels.txt").write_text("1 0 d1#@1 1\n2 0 d2#@2 1\n")
    judged = [
        ("--judged", name, str(tmp_path / name), str(tmp_path / "topics.tsv"), str(tmp_path / "qrels.txt")) for name in ("one", "two")
    ]
    main([*judged[0], *judged[1], "--unjudged", "three", str(tmp_path / "one"), "--count", "11", "--settings", "3"])
    printed = capsys.readouterr().out.splitlines()
    heads = [line for line in printed if line.startswith("| system | one")]
    assert heads[0] == "| system | one, 2 topics | two, 2 topics | mean | ÷ qsf_v_title | ÷ bm25 |"
    assert "| system | one, 11 topics | two, 11 topics | three, 11 topics | mean | ÷ qsf_v_title | ÷ bm25 |" in heads
    assert "## One collection left out" in printed
    main([*judged[0], "--count", "9", "--settings", "0"])
    assert "Self-made" not in capsys.readouterr().out, "too few topics of each kind"
    assert sum(line.startswith("| `coverage` |") for line in printed) == len(heads) + 1, "in every table, and in the summary"
