"""Tuning and experiments through the command line."""

import json

import pytest

from perikope import cli
from perikope.evaluation.experiment.outcome import Outcome
from tests.unit.evaluation.conftest import PLAN, write_collection


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return done.value.code, captured.out, captured.err


@pytest.fixture
def files(tmp_path, capsys):
    write_collection(tmp_path)
    assert run(capsys, "index", tmp_path / "documents.jsonl", "--to", tmp_path / "idx")[0] == 0
    return tmp_path


def given(files):
    return files / "idx", files / "topics.tsv", files / "qrels.txt"


def test_the_best_setting_is_shown_and_saved_as_a_recipe(files, capsys):
    model = "qsf_section(alpha=[0.2,0.6,0.9],beta)"
    options = ("--model", model, "--measure", "MAP(D)", "--folds", 3, "--workers", 1, "--fetch", "pl2(c=2)")
    code, out, err = run(capsys, "tune", *given(files), *options, "--save", files / "mine.toml")
    assert (code, err) == (0, "")
    assert "best of 33 settings on 25 topics: qsf_section(" in out
    assert "on held-out topics (3 folds)" in out
    assert len([line for line in out.splitlines() if "alpha=" in line and "beta=" in line and "best" not in line]) == 10
    code, out, _ = run(capsys, "tune", *given(files), *options, "--json")
    record = json.loads(out)
    assert record["parameters"] == ["alpha", "beta"]
    assert len(record["settings"]) == len(record["scores"]) == 33
    assert record["chosen"] == dict(
        zip(record["parameters"], record["settings"][record["scores"].index(max(record["scores"]))], strict=True)
    )
    # The saved recipe ranks with the score that tuning reported.
    assert run(capsys, "run", files / "idx", files / "topics.tsv", "--recipe", files / "mine.toml", "--out", files / "mine.run")[0] == 0
    code, out, _ = run(capsys, "eval", files / "qrels.txt", files / "mine.run", "--measures", "MAP(D)", "--json")
    assert json.loads(out)["mean"]["MAP(D)"] == pytest.approx(max(record["scores"]))


def test_what_was_given_a_value_keeps_it_and_a_recipe_gives_none(files, capsys):
    options = ("--workers", 1, "--folds", 0, "--json")
    record = json.loads(run(capsys, "tune", *given(files), "--model", "qsf_v(alpha=0.3)", *options)[1])
    assert record["parameters"] == ["mu"]
    assert "alpha=0.3" in record["model"]
    (files / "own.toml").write_text('[search]\nmodel = "qsf_v(alpha=0.3,mu=1000)"\n')
    assert json.loads(run(capsys, "tune", *given(files), "--recipe", files / "own.toml", *options)[1])["parameters"] == ["mu", "alpha"]


def test_numbers_of_documents_are_tried_too(files, capsys):
    options = ("--model", "qsf_v(alpha)", "--search", "random", "--trials", 4, "--seed", 2, "--workers", 1, "--folds", 0)
    code, out, _ = run(capsys, "tune", *given(files), *options, "--sweep", "2,9", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["parameters"] == ["documents", "alpha"]
    assert len(record["settings"]) == 8
    assert record["folds"] == []
    out = run(capsys, "tune", *given(files), *options, "--sweep", "2,9")[1]
    best = next(line for line in out.splitlines() if line.startswith("best of 8 settings"))
    assert best.endswith(f") --documents {record['chosen']['documents']}")
    # A single number is not a parameter.
    assert "--documents" not in run(capsys, "tune", *given(files), *options, "--sweep", "9")[1]


def test_a_measure_that_does_not_move_is_told(files, capsys):
    options = ("--model", "qsf_v(alpha)", "--workers", 1, "--folds", 0)
    code, out, err = run(capsys, "tune", *given(files), *options, "--measure", "MAP(D)")
    assert code == 0
    assert "alpha=0.8)" in next(line for line in out.splitlines() if line.startswith("best of"))
    assert err.startswith("warning: MAP(D) does not depend on alpha; the value nearest to the default is taken (alpha=0.8)")
    assert err.endswith("try another --measure, such as nDCG@10\n")
    # Without a measure, one is taken that depends on alpha.
    code, out, err = run(capsys, "tune", *given(files), *options)
    assert (code, err) == (0, "note: nDCG@10 is maximised, because MAP(D) does not depend on all tuned parameters\n")
    assert out.splitlines()[-1].startswith("nDCG@10 ")


def test_the_surface_is_drawn(files, capsys):
    options = ("--model", "qsf_section(alpha=[0.2,0.6,0.9],beta=[0.1,0.5])", "--workers", 1, "--folds", 0)
    code, out, err = run(capsys, "tune", *given(files), *options, "--plot", files / "surface.svg")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"drawn in {files / 'surface.svg'}"
    drawn = (files / "surface.svg").read_bytes()
    assert drawn.count(b"M") > 6
    assert run(capsys, "tune", *given(files), *options, "--plot", files / "surface.svg", "--json")[0] == 0
    assert (files / "surface.svg").read_bytes() == drawn


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "qsf_section(gamma)"), "unknown parameter of qsf_section 'gamma'"),
        (("--model", "psg"), "psg has no parameter with a grid"),
        (("--measure", "nDGC@10"), "did you mean 'nDCG'"),
        (("--sweep", "1,x"), "--sweep must be a list of whole numbers"),
        (("--save", "mine.txt"), "ends in .toml"),
        (("--save", "there/is/none.toml"), "there is no folder there/is"),
        (("--plot", "surface.png"), "the file of a plot must have a name that ends in .svg, not 'surface.png'"),
        (("--plot", "surface.svg", "--model", "qsf_v(alpha=[0.5])"), "--plot needs at least two settings"),
        (("--model", "qsf_v(alpha=[])"), "has no value to try"),
        (("--model", "qsf_v(statistics)"), "statistics has no grid of several values"),
    ],
)
def test_mistakes_are_one_line(files, capsys, options, said):
    # The index does not exist: options are checked before it is opened.
    code, _, err = run(capsys, "tune", files / "none", *given(files)[1:], "--workers", 1, *options)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1


def test_judgements_without_any_are_named(files, capsys):
    (files / "qrels.txt").write_text("")
    code, _, err = run(capsys, "tune", *given(files), "--workers", 1)
    assert code == 2
    assert "qrels.txt: is empty: there is no judgement in it" in err


def test_topics_without_any_are_named(files, capsys):
    (files / "empty.tsv").write_text("")
    code, _, err = run(capsys, "tune", files / "idx", files / "empty.tsv", files / "qrels.txt", "--model", "bm25(k1,b)")
    assert code == 2
    assert err.endswith("empty.tsv has no topics; name another file\n")


def test_an_experiment_is_run_and_goes_on(files, capsys):
    (files / "small.toml").write_text(PLAN)
    code, out, err = run(capsys, "experiment", files / "small.toml", "--workers", 1)
    assert code == 0
    assert "4 documents fetched" in out
    assert "nDCG@10" in out
    assert "settings: " in err  # where the time went
    outcome = Outcome.load(files / "small")
    assert [system.name for system in outcome.sweeps[0].systems] == ["bm25", "section", "learned", "fused"]
    code, again, err = run(capsys, "experiment", files / "small.toml", "--workers", 1)
    assert "8 systems finished before" in err
    assert again.splitlines()[:-1] == out.splitlines()[:-1]
    assert "finished before" not in run(capsys, "experiment", files / "small.toml", "--workers", 1, "--fresh")[2]


def test_a_protocol_runs_on_what_is_given(files, capsys):
    index, topics, qrels = given(files)
    where = ("--index", index, "--topics", topics, "--judgements", qrels, "--workers", 1)
    code, out, _ = run(capsys, "experiment", "gobeill2012", *where, "--out", files / "out")
    assert code == 0
    assert "with the prior" in out
    assert "gobeill2012" in run(capsys, "experiment", "--list")[1].splitlines()


def test_a_wrong_file_is_named_with_its_key(files, capsys):
    (files / "small.toml").write_text(PLAN.replace('model = "bm25"', 'model = "bm52"'))
    code, _, err = run(capsys, "experiment", files / "small.toml")
    assert code == 2
    assert "small.toml: [system bm25] model is wrong: unknown model 'bm52'; did you mean 'bm25'?" in err
    assert "give the file of an experiment" in run(capsys, "experiment")[2]
    assert not (files / "small").exists()


def test_another_experiment_in_the_same_folder_is_refused_in_one_line(files, capsys):
    index, topics, qrels = given(files)
    where = ("--index", index, "--topics", topics, "--judgements", qrels, "--workers", 1, "--out", files / "out")
    (files / "small.toml").write_text(PLAN.replace('documents = ["documents.jsonl"]', 'index = "idx"').replace("[4, 100]", "[4]"))
    assert run(capsys, "experiment", files / "small.toml", "--workers", 1, "--out", files / "out")[0] == 0
    code, _, err = run(capsys, "experiment", "gobeill2012", *where)
    assert code == 2
    assert "'A small experiment'" in err
    assert "'Gobeill and Ruch 2012, Table 1'" in err
    assert "--fresh" in err
    assert len(err.splitlines()) == 1
    assert Outcome.load(files / "out").title == "A small experiment"


def test_eval_gives_the_figures_of_a_sample_over_the_queries_of_the_run(files, capsys):
    plan = PLAN.replace("[4, 100]", "[100]").replace('file = "topics.tsv"', 'file = "topics.tsv"\nsample = 9')
    (files / "small.toml").write_text(plan[: plan.index('[[systems]]\nname = "section"')])
    assert run(capsys, "experiment", files / "small.toml", "--workers", 1)[0] == 0
    system = Outcome.load(files / "small").sweeps[0].systems[0]
    measured = ("eval", files / "qrels.txt", files / "small" / "runs" / "100-bm25.run.gz", "--measures", "nDCG@10", "--json")
    record = json.loads(run(capsys, *measured, "--only-run-queries")[1])
    assert (record["queries"], record["mean"]["nDCG@10"]) == (9, pytest.approx(system.mean("nDCG@10")))
    assert json.loads(run(capsys, *measured)[1])["queries"] == 25


def test_a_note_is_printed_and_is_no_failure(files, capsys):
    plan = PLAN.replace("documents = [4, 100]", "documents = 4").replace('file = "topics.tsv"', 'file = "topics.tsv"\nsample = 26')
    (files / "small.toml").write_text(plan)
    code, _, err = run(capsys, "experiment", files / "small.toml", "--workers", 1)
    assert code == 0
    assert "  note: [topics] sample = 26 asks for more topics than the 25 there are" in err
