import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from perikope.core import locks
from perikope.core.errors import MissingExtra, PerikopeError, UsageError
from perikope.evaluation.experiment import running
from perikope.evaluation.experiment.material import read_material
from perikope.evaluation.experiment.outcome import Outcome, slug
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.plan_parts import Given
from perikope.evaluation.experiment.running import run_experiment
from perikope.evaluation.experiment.state import State, locked
from perikope.evaluation.folds import fold_of_topic
from perikope.evaluation.io.judgements import read_judgements
from perikope.evaluation.io.runs import read_run
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import evaluate
from perikope.evaluation.pool import open_pool
from perikope.search.facade import Index
from tests.unit.evaluation.conftest import PLAN, lexical_protocols

SRC = Path(running.__file__).parents[3]


def content(folder):
    """All files but the index, whose segments have names by chance."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] != "index"
    }


def run(plan_file, name, **options):
    folder = plan_file.parent / name
    done = run_experiment(load_plan(str(plan_file)), folder, **{"workers": 1, **options})
    return folder, done


def test_the_same_file_gives_the_same_bytes_by_any_number_of_processes(plan_file):
    first, done = run(plan_file, "first")
    second, _ = run(plan_file, "second")
    third, _ = run(plan_file, "third", workers=2)
    assert content(first) == content(second) == content(third)
    assert {path.split("/")[0] for path in content(first)} >= {".work", "experiment.json", "runs", "values"}
    assert Outcome.load(first) == done.outcome
    assert [sweep.label for sweep in done.outcome.sweeps] == ["4 documents fetched", "100 documents fetched"]


def test_values_are_those_of_the_runs_that_were_written(plan_file):
    folder, done = run(plan_file, "out")
    judgements = read_judgements(plan_file.parent / "qrels.txt")
    for sweep, documents in zip(done.outcome.sweeps, (4, 100), strict=True):
        for system in sweep.systems:
            found = read_run(folder / "runs" / f"{documents}-{slug(system.name)}.run.gz")
            evaluation = evaluate(done.outcome.measures, judgements, found)
            for measure in done.outcome.measures:
                assert system.values[measure] == pytest.approx(evaluation.per_query[measure], abs=1e-12)
                assert system.mean(measure) == pytest.approx(evaluation.mean[measure])
            assert all(len(results) <= 50 for results in found.values())
            assert len(system.curve) == 101
            assert sorted(system.curve, reverse=True) == list(system.curve)


def test_a_fold_is_ranked_by_what_the_others_chose(plan_file):
    folder, done = run(plan_file, "out")
    topics = read_topics(plan_file.parent / "topics.tsv")
    judged = read_judgements(plan_file.parent / "qrels.txt")
    fold = fold_of_topic([topic.qid for topic in topics if topic.qid in judged], 3, 1)
    system = next(system for system in done.outcome.sweeps[1].systems if system.name == "section")
    ranked = read_run(folder / "runs" / "100-section.run.gz")
    index = Index.open(folder / "index")
    assert len(system.tuned.settings) == 6
    for topic in topics:
        chosen = system.tuned.folds[fold[topic.qid]].chosen
        model = f"qsf_section(alpha={chosen['alpha']},beta={chosen['beta']})"
        assert list(ranked[topic.qid]) == [name for name, _ in index.search(topic.query, model=model, documents=100, k=50).names()]
    for number, own in enumerate(system.tuned.folds):
        mean = [system.values["nDCG@10"][qid] for qid in fold if fold[qid] == number]
        assert own.score == pytest.approx(sum(mean) / len(mean))


class Stopped(Exception):
    """An interruption."""


def stop_at(stage, number):
    """An `on_progress` that raises once so much of a stage is done."""

    def on_progress(at, done, total):
        if stage in at and done == number:
            raise Stopped

    return on_progress


@pytest.mark.parametrize(("stage", "number"), [("4 documents fetched: training", 1), ("4 documents fetched: ranking", 1), ("100 d", 1)])
def test_what_was_done_is_kept_and_the_end_is_the_same(plan_file, stage, number):
    whole, _ = run(plan_file, "whole")
    with pytest.raises(Stopped):
        run(plan_file, "part", on_progress=stop_at(stage, number))
    pieces = {}
    part, done = run(plan_file, "part", on_progress=lambda at, done, total: pieces.setdefault(at, total))
    assert content(part) == content(whole)
    # Training topics are five tasks, reported ones two; one was done. Only learning from all topics reads all again.
    if "training" in stage:
        assert pieces["4 documents fetched: training"] == 5
    elif "ranking" in stage:
        assert pieces["4 documents fetched: training"] == 0
        assert pieces["4 documents fetched: ranking"] == 1
    else:
        assert done.resumed == 4
    again, done = run(plan_file, "part")
    assert done.resumed == 8
    assert content(again) == content(whole)


def test_tuning_that_was_interrupted_goes_on_where_it_was(plan_file):
    # Fewer topics than are ranked at a time.
    lines = (plan_file.parent / "topics.tsv").read_text().splitlines(keepends=True)
    (plan_file.parent / "topics.tsv").write_text("".join(lines[:18]))
    plan_file.write_text(PLAN[: PLAN.index('[[systems]]\nname = "learned"')])
    whole, _ = run(plan_file, "whole")
    with pytest.raises(Stopped):
        run(plan_file, "part", on_progress=stop_at("4 documents fetched: training", 3))
    assert len(list((plan_file.parent / "part" / ".work").glob("*/scores-*.npy"))) == 3
    pieces = {}
    part, _ = run(plan_file, "part", on_progress=lambda at, done, total: pieces.setdefault(at, total))
    assert pieces["4 documents fetched: training"] == 1
    assert content(part) == content(whole)


def test_scores_of_other_topics_are_not_taken_for_these(tmp_path):
    state = State(tmp_path, "key")
    state.write_scores(range(5, 10), np.ones((5, 2)))
    assert state.read_scores(range(5, 10), 2) is not None
    assert state.read_scores(range(5), 2) is None
    assert state.read_scores(range(5, 9), 2) is None
    assert state.read_scores(range(5, 10), 3) is None


def test_only_what_is_new_is_run(plan_file):
    run(plan_file, "out")
    plan_file.write_text(PLAN + '\n[[systems]]\nname = "lm"\nmodel = "lm"\n')
    folder, done = run(plan_file, "out")
    assert done.resumed == 8
    assert [system.name for system in done.outcome.sweeps[0].systems][-1] == "lm"
    # Other settings of one system: itself, and what is put together of it.
    plan_file.write_text(PLAN.replace("alpha=[0.2,0.6,0.9]", "alpha=[0.2,0.6]"))
    folder, done = run(plan_file, "out")
    assert done.resumed == 4
    assert not list(folder.glob("runs/*-lm.run.gz"))
    other, _ = run(plan_file, "other")
    assert content(folder) == content(other)


@pytest.mark.parametrize("change", ["documents", "topics", "judgements", "run", "fresh"])
def test_what_depends_on_something_else_is_run_again(plan_file, change):
    folder, _ = run(plan_file, "out")
    files = plan_file.parent
    if change == "documents":
        lines = (files / "documents.jsonl").read_text().splitlines()
        (files / "documents.jsonl").write_text("\n".join(lines[:-1]))
    elif change == "topics":
        (files / "topics.tsv").write_text((files / "topics.tsv").read_text().replace("pump", "coil"))
    elif change == "judgements":
        (files / "qrels.txt").write_text((files / "qrels.txt").read_text().replace(" 2\n", " 1\n"))
    elif change == "run":
        for path in folder.glob("runs/*-bm25.run.gz"):
            path.write_bytes(path.read_bytes()[:-1])
    _, done = run(plan_file, "out", fresh=change == "fresh")
    assert done.resumed == (6 if change == "run" else 0)
    other, _ = run(plan_file, "other")
    assert content(folder) == content(other)


PROGRAM = """
import sys
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.running import run_experiment
from pathlib import Path

if __name__ == "__main__":
    run_experiment(load_plan(sys.argv[1]), Path(sys.argv[2]), workers=int(sys.argv[3]))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_experiment_goes_on(plan_file, workers):
    whole, _ = run(plan_file, "whole")
    program = plan_file.parent / "program.py"
    program.write_text(PROGRAM)
    folder = plan_file.parent / "killed"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    for seen in ("*/scores-*.npy", "*/figures-0.json", "*/done.json"):
        process = subprocess.Popen([sys.executable, str(program), str(plan_file), str(folder), str(workers)], env=environment)
        while process.poll() is None and not list((folder / ".work").glob(seen)):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    again, done = run(plan_file, "killed")
    found = content(again)
    assert {name: data for name, data in found.items() if ".part" not in name} == content(whole)
    assert done.resumed > 0


def test_own_training_topics_choose_for_all(plan_file):
    files = plan_file.parent
    lines = (files / "topics.tsv").read_text().splitlines(keepends=True)
    (files / "train.tsv").write_text("".join(lines[:15]))
    (files / "test.tsv").write_text("".join(lines[15:]))
    text = PLAN.replace("folds = 3", 'topics = "train.tsv"\njudgements = "qrels.txt"\nsample = 10\nmeasure = "RR"')
    plan_file.write_text(text.replace('file = "topics.tsv"', 'file = "test.tsv"'))
    _, done = run(plan_file, "out")
    system = next(system for system in done.outcome.sweeps[0].systems if system.name == "section")
    assert set(system.values["nDCG@10"]) == {f"q{number}" for number in range(15, 25)}
    assert (system.tuned.topics, system.tuned.folds, system.tuned.measure) == (10, (), "RR")
    assert f"alpha={system.tuned.chosen['alpha']}" in system.settings
    assert done.outcome.facts["training"].startswith("10 topics of their own")


def test_other_runs_tags_priors_and_recipes_take_part(plan_file):
    files = plan_file.parent
    folder, _ = run(plan_file, "out")
    (files / "other.run.gz").write_bytes((folder / "runs" / "100-bm25.run.gz").read_bytes())
    extra = """
[[systems]]
name = "other"
run = "other.run.gz"

[[systems]]
name = "tags"
model = "prox_h(k=20)"
learn = "tags"
min_occurrences = 1

[[systems]]
name = "prior"
model = "position_prior(base=qsf_v)"
learn = "prior"

[[systems]]
name = "carmel"
recipe = "carmel2013"

[[systems]]
name = "trees"
model = "learned"
learn = "fusion"
method = "lambdamart"

[[systems]]
name = "drawn"
model = "plm(sigma,lam)"
tune = true
search = "random"
trials = 5

[[systems]]
name = "expanded"
model = "pl2(c=[0.5,5.0])"
tune = true
options = { browse_expand = "bo1(documents=2,terms=3)", expand = "rm3" }
"""
    plan_file.write_text(PLAN + extra)
    first, done = run(plan_file, "all")
    second, _ = run(plan_file, "again", workers=2)
    assert content(first) == content(second)
    systems = {system.name: system for system in done.outcome.sweeps[1].systems}
    for measure, values in systems["bm25"].values.items():
        assert systems["other"].values[measure] == pytest.approx(values)
    assert "weights of " in systems["tags"].notes[0]
    assert systems["prior"].settings.count("weights=[") == 1
    assert "plm(" in systems["carmel"].settings
    assert len(systems["drawn"].tuned.settings) == 5
    assert not (first / "runs" / "100-other.run.gz").exists()
    index, topic = Index.open(first / "index"), read_topics(files / "topics.tsv")[0]
    chosen = systems["expanded"].tuned.folds[fold_of_topic(list(systems["bm25"].values["nDCG@10"]), 3, 1)[topic.qid]].chosen
    searched = index.search(
        topic.query, model=f"pl2(c={chosen['c']})", documents=100, k=50, browse_expand="bo1(documents=2,terms=3)", expand="rm3"
    )
    assert list(read_run(first / "runs" / "100-expanded.run.gz")[topic.qid]) == [name for name, _ in searched.names()]


def test_characters_are_measured_too(plan_file):
    files = plan_file.parent
    spans = [line.split() for line in (files / "qrels.txt").read_text().splitlines()]
    (files / "spans.tsv").write_text("".join(f"{qid}\t{name}\t0\t4\n" for qid, _, name, grade in spans if int(grade)))
    text = PLAN.replace('"MAP(D)"]', '"MAiP", "MAgP(t2i=300)"]').replace(
        'judgements = "qrels.txt"', 'judgements = "qrels.txt"\nspans = "spans.tsv"'
    )
    plan_file.write_text(text.replace("folds = 3", 'folds = 3\nmeasure = "MAiP"'))
    folder, done = run(plan_file, "out")
    from perikope.evaluation.measures.files import JudgementFile

    judgements = JudgementFile(str(files / "spans.tsv"), "auto", str(folder / "index"))
    for system in done.outcome.sweeps[1].systems:
        found = judgements.run(str(folder / "runs" / f"100-{slug(system.name)}.run.gz"))
        evaluation = judgements.evaluate(["MAiP", "MAgP(t2i=300)"], found)
        for measure, mean in evaluation.mean.items():
            assert mean > 0
            assert sum(system.values[measure].values()) / 25 == pytest.approx(sum(evaluation.per_query[measure].values()) / 25)


def test_topics_that_are_no_queries_count_nothing_and_are_named(plan_file):
    files = plan_file.parent
    (files / "topics.tsv").write_text((files / "topics.tsv").read_text() + "q90\tthe of\nq91\tpump\n")
    (files / "qrels.txt").write_text((files / "qrels.txt").read_text() + "q90 0 d1#s0p0 1\n")
    _, done = run(plan_file, "out")
    assert any(problem.startswith("topic q90") for problem in done.problems)
    assert "topic q91: nobody judged it" in done.problems
    assert done.outcome.sweeps[0].systems[0].values["nDCG@10"]["q90"] == 0.0
    assert "q91" not in done.outcome.sweeps[0].systems[0].values["nDCG@10"]


def test_a_folder_with_other_things_is_left_alone(plan_file):
    folder = plan_file.parent / "out"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds other files, such as thesis\.txt"):
        run(plan_file, "out")


def test_a_file_is_no_folder(plan_file):
    (plan_file.parent / "out").write_text("mine")
    with pytest.raises(UsageError, match=r"out is a file, but results need a folder; name another one \(--out\)"):
        run(plan_file, "out")
    with pytest.raises(UsageError, match=r"cannot make the folder .*out/below \(--out\): Not a directory"):
        run(plan_file, "out/below")
    assert (plan_file.parent / "out").read_text() == "mine"


def never(stage, done, total):
    raise AssertionError(f"{stage} was begun")


OTHER = '\n[[systems]]\nname = "other"\nrun = "other.run"\n'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((PLAN, PLAN + OTHER), r"experiment\.toml: \[system other\] run is wrong: .*other\.run:2: expected 6 columns"),
        (("folds = 3", "folds = 99"), r"experiment\.toml: \[training\] folds must be from 2 to 25, the number of topics, not 99$"),
        (
            ("folds = 3", 'folds = 25\nfolds_by = "documents"'),
            r"experiment\.toml: \[training\] folds must be from 2 to \d+, not 25, .*\(folds_by topics\)$",
        ),
        (("folds = 3", "folds = 3\nsample = 1"), r"experiment\.toml: \[training\] leaves a fold no topic to tune on"),
        (
            ('judgements = "qrels.txt"', 'judgements = "empty.txt"'),
            r"experiment\.toml: \[topics\] judgements is wrong: .*empty\.txt: is empty: there is no judgement in it",
        ),
        (
            ('judgements = "qrels.txt"', 'judgements = "qrels.txt"\nspans = "other.run"'),
            r"experiment\.toml: \[topics\] spans is wrong: .*other\.run:1: expected",
        ),
        (('file = "topics.tsv"', 'file = "none.tsv"'), r"experiment\.toml: \[topics\] file is wrong: .*none\.tsv: "),
        (('judgements = "qrels.txt"', 'judgements = "none.txt"'), r"experiment\.toml: \[topics\] judgements is wrong: .*none\.txt: "),
        (
            ('judgements = "qrels.txt"', 'judgements = "qrels.txt"\nspans = "none.tsv"'),
            r"experiment\.toml: \[topics\] spans is wrong: .*none\.tsv: ",
        ),
        (
            ('judgements = "qrels.txt"', 'judgements = "strange.txt"'),
            r"experiment\.toml: \[topics\] judgements is wrong: .*strange\.txt judges no topic of .*topics\.tsv",
        ),
        (
            ('file = "topics.tsv"', 'file = "empty.txt"'),
            r"experiment\.toml: \[topics\] file is wrong: .*empty\.txt has no topics; name another file$",
        ),
        (
            ("folds = 3", 'ids = ["z*"]'),
            r"experiment\.toml: \[training\] ids \(z\*\) matches no topic: the first has the id q0; correct ids",
        ),
        (("folds = 3", 'ids = ["q*"]'), r"experiment\.toml: \[training\] ids \(q\*\) matches all 25 topics: none is left to report"),
        (("folds = 3", "ids = []"), r"experiment\.toml: \[training\] ids is empty; name ids of training topics, or remove the key"),
        (
            ("folds = 3", 'topics = "none.tsv"\njudgements = "qrels.txt"'),
            r"experiment\.toml: \[training\] topics is wrong: .*none\.tsv: ",
        ),
        (
            ('documents = ["documents.jsonl"]', 'documents = ["documents.jsonl", "none.jsonl"]'),
            r"experiment\.toml: \[collection\] documents is wrong: there is no file or folder .*none\.jsonl to index",
        ),
        (
            ('documents = ["documents.jsonl"]', 'index = "none"'),
            r"experiment\.toml: \[collection\] index is wrong: .*none",
        ),
        (
            ('file = "topics.tsv"', 'file = "marked.tsv"'),
            r"experiment\.toml: \[topics\] file is wrong: .*correct it, or name the form \(form in \[topics\]\)$",
        ),
        (
            ("folds = 3", 'topics = "topics.tsv"\njudgements = "qrels.txt"'),
            r"experiment\.toml: \[training\] topics is wrong: all topics to train on are reported too \(25\)",
        ),
        (
            ("folds = 3", 'topics = "more.tsv"\njudgements = "more.txt"'),
            r"experiment\.toml: \[training\] topics is wrong: all topics that are reported are trained on \(25\)",
        ),
    ],
)
def test_mistakes_in_what_the_plan_names_are_found_before_anything_runs(plan_file, change, said):
    (plan_file.parent / "empty.txt").write_text("\n")
    (plan_file.parent / "other.run").write_text("q1 Q0 d1#s0p0 1 2.5 them\nq1 Q0 d1#s0p1 2\n")
    (plan_file.parent / "strange.txt").write_text("z1 0 d1#s0p0 1\n")
    topics, qrels = (plan_file.parent / "topics.tsv").read_text(), (plan_file.parent / "qrels.txt").read_text()
    (plan_file.parent / "marked.tsv").write_text("<1>\tpump\n" + topics)
    (plan_file.parent / "more.tsv").write_text(topics + "z1\tpump\n")
    (plan_file.parent / "more.txt").write_text(qrels.replace(" 0\n", " 1\n") + "z1 0 d1#s0p0 1\n")
    plan_file.write_text(PLAN.replace(*change))
    with pytest.raises(PerikopeError, match=said):
        run(plan_file, "out", on_progress=never)
    assert not (plan_file.parent / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("documents.jsonl", "nothing.xyz"), r"documents is wrong: .*nothing\.xyz.* name it with format in \[collection\]"),
        (('.jsonl"]', '.jsonl"]\nlanguages = ["xx"]'), r"documents is wrong: .*no document has text in xx; .*languages in \[collection\]$"),
        (('name = "bm25"', 'name = "bm25"\noptions = { part = "nowhere" }'), "nowhere"),
    ],
)
def test_an_early_error_leaves_no_folder_without_finished_work(plan_file, change, said):
    (plan_file.parent / "nothing.xyz").write_text("")
    plan_file.write_text(PLAN.replace(*change))
    with pytest.raises(PerikopeError, match=said):
        run(plan_file, "out")
    # An index that was built is kept, because the next run can use it.
    assert (plan_file.parent / "out").exists() == ("nowhere" in said)


def test_a_protocol_says_that_it_cannot_tell_training_topics(plan_file):
    given = Given(**{name: str(plan_file.parent / file) for name, file in (("topics", "topics.tsv"), ("judgements", "qrels.txt"))})
    given = replace(given, documents=(str(plan_file.parent / "documents.jsonl"),))
    plan = load_plan("albarede2021", given)
    *_, note = read_material(plan, plan.sets[0]).notes
    assert note.endswith("(tPSG-*) are not told from the others, because the pattern matches no topic: 5 folds take their place")


def test_mistakes_of_the_command_line_are_named_by_its_options(plan_file):
    for option in ("index", "topics", "judgements"):
        plan = load_plan(str(plan_file), Given(**{option: "none"}))
        with pytest.raises(UsageError, match=f"^--{option} is wrong: "):
            run_experiment(plan, plan_file.parent / "out", on_progress=never)
    assert not (plan_file.parent / "out").exists()


def test_another_experiment_does_not_take_the_place_of_this_one(plan_file):
    folder, _ = run(plan_file, "out")
    before = content(folder)
    plan_file.write_text(PLAN.replace("A small experiment", "Another"))
    refusal = (
        r"out holds the experiment 'A small experiment', not 'Another': name another folder \(--out\), or replace the results \(--fresh\)$"
    )
    with pytest.raises(UsageError, match=refusal):
        run(plan_file, "out", on_progress=never)
    assert content(folder) == before
    # Also where what is kept for going on was deleted.
    shutil.rmtree(folder / ".work")
    with pytest.raises(UsageError, match=refusal):
        run(plan_file, "out", on_progress=never)
    # An interruption of the one that replaces it is no reason to refuse that one.
    with pytest.raises(Stopped):
        run(plan_file, "out", fresh=True, on_progress=stop_at("4 documents fetched: training", 1))
    _, done = run(plan_file, "out")
    assert done.outcome.title == "Another"
    plan_file.write_text(PLAN)
    with pytest.raises(UsageError, match="holds the experiment 'Another', not 'A small experiment'"):
        run(plan_file, "out", on_progress=never)


def test_an_experiment_that_was_only_begun_is_not_replaced_either(plan_file):
    with pytest.raises(Stopped):
        run(plan_file, "out", on_progress=stop_at("4 documents fetched: training", 1))
    plan_file.write_text(PLAN.replace("A small experiment", "Another"))
    with pytest.raises(UsageError, match="holds the experiment 'A small experiment'"):
        run(plan_file, "out", on_progress=never)


def test_fewer_results_than_a_measure_needs_are_named(plan_file):
    text = PLAN.replace('"nDCG@10", "MAP(D)"', '"nDCG@10", "P@20", "PRES@100", "iP[0.01]"')
    plan_file.write_text(text.replace("k = 50", "k = 10"))
    said = "{} needs at least {} results per topic, but k = 10: its figures are wrong; give a larger k, or leave k out"
    folder, done = run(plan_file, "out")
    assert done.notes == (said.format("P@20", 20), said.format("PRES@100", 100))
    assert "P@20 needs at least 20 results" in (folder / "report.md").read_text()
    plan_file.write_text(text.replace("k = 50", ""))
    assert run(plan_file, "all")[1].notes == ()


def test_topics_that_are_trained_on_and_reported_are_counted(plan_file):
    files = plan_file.parent
    lines = (files / "topics.tsv").read_text().splitlines(keepends=True)
    # The same id with another text is another topic.
    (files / "train.tsv").write_text("".join([*lines[:15], "q20\tanother text\n"]))
    (files / "test.tsv").write_text("".join(lines[11:]))
    (files / "qrels.txt").write_text((files / "qrels.txt").read_text().replace(" 0\n", " 1\n"))
    text = PLAN.replace("folds = 3", 'topics = "train.tsv"\njudgements = "qrels.txt"').replace('file = "topics.tsv"', 'file = "test.tsv"')
    plan_file.write_text(text)
    folder, done = run(plan_file, "out")
    assert done.notes == ("4 of 16 topics to train on are among the 14 reported: figures are too good",)
    assert done.outcome.facts["training"].startswith("16 topics, 4 of them among those reported, fingerprint ")
    assert "4 of 16 topics to train on are among the 14 reported" in (folder / "report.md").read_text()
    # Nothing is trained: nothing can be too good.
    plan_file.write_text(text[: text.index('[[systems]]\nname = "section"')])
    assert run(plan_file, "out")[1].notes == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("z1 Q0 d1#s0p0 1 2.5 them\n", "has none of the topics that are reported: it counts 0 everywhere"),
        ("q1 Q0 d1 1 2.5 them\n", "names documents, the judgements passages: only measures of documents, such as PRES, can compare them"),
        ("q1 Q0 d1#s0p0 1 2.5 them\n", ""),
    ],
)
def test_a_run_that_nothing_can_be_found_in_is_told(plan_file, line, said):
    (plan_file.parent / "other.run").write_text(line)
    plan_file.write_text(PLAN[: PLAN.index('[[systems]]\nname = "section"')] + OTHER)
    folder, done = run(plan_file, "out")
    assert done.notes == ((f"[system other] other.run {said}",) if said else ())
    assert done.problems == ()
    assert said in done.outcome.facts.get("notes", "")
    assert said[:30] in (folder / "report.md").read_text()


@pytest.mark.parametrize(("topic", "is_told"), [("", True), ("q90\tpump OR rotor\n", False), ("q90\tpump NEAR/3 rotor\n", False)])
def test_boolean_systems_without_boolean_topics_are_told(plan_file, topic, is_told):
    files = plan_file.parent
    (files / "topics.tsv").write_text((files / "topics.tsv").read_text() + topic)
    (files / "qrels.txt").write_text((files / "qrels.txt").read_text() + "q90 0 d1#s0p0 1\n")
    system = '\n[[systems]]\nname = "by hand"\nmodel = "prox"\noptions = { syntax = "boolean" }\n'
    plan_file.write_text(PLAN[: PLAN.index('[[systems]]\nname = "section"')] + system)
    said = "no topic is written as a Boolean query: words are joined by AND, as syntax = \"automatic\" does, in 'by hand'"
    assert run(plan_file, "out")[1].notes == ((said,) if is_told else ())


def test_the_packages_that_figures_come_from_are_facts(plan_file):
    facts = run(plan_file, "out")[1].outcome.facts
    assert facts["scipy"] == version("scipy")
    assert "lightgbm" not in facts
    plan_file.write_text(PLAN.replace("[sweep]", '[comparison]\ntest = "randomisation"\n[sweep]'))
    assert "scipy" not in run(plan_file, "out")[1].outcome.facts


def test_a_run_that_names_what_the_index_does_not_have_is_found_before_topics_are_looked_into(plan_file):
    (plan_file.parent / "other.run").write_text("q1 Q0 d99#p1 1 2.5 them\n")
    plan_file.write_text(PLAN.replace('"MAP(D)"]', '"MAiP"]') + OTHER)
    stages = []
    with pytest.raises(PerikopeError, match=r"\[system other\] run is wrong: the index has no document 'd99'"):
        run(plan_file, "out", on_progress=lambda at, done, total: stages.append(at))
    assert set(stages) == {"index"}


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("model = 'prox_h(weights=\"none such\")'", "unknown table of tags 'none such'"),
        ('model = "bm25"\noptions = { part = "none such" }', "unknown part 'none such'"),
        ('model = \'position_prior(base=prox_h(weights="none such"))\'\ntune = ["base.k"]', "unknown table of tags 'none such'"),
    ],
)
def test_what_the_index_does_not_have_is_found_before_the_first_system_is_tuned(plan_file, last, said):
    plan_file.write_text(f'{PLAN}\n[[systems]]\nname = "last"\n{last}\n')
    stages = []
    with pytest.raises(PerikopeError, match=rf"experiment\.toml: \[system last\] {said}"):
        run(plan_file, "out", on_progress=lambda at, done, total: stages.append(at))
    assert set(stages) == {"index"}


def test_values_that_do_not_go_together_are_no_mistake(plan_file):
    neighbours = 'model = "psg_neighbor(left=[0.75,0.25],right=[0.5,0.25])"\ntune = true'
    plan_file.write_text(f'{PLAN}\n[[systems]]\nname = "last"\n{neighbours}\n')
    _, done = run(plan_file, "out")
    assert len(done.outcome.sweeps[0].systems[-1].tuned.settings) == 3


@pytest.mark.parametrize(
    ("package", "text"), [("scipy", PLAN), ("lightgbm", PLAN.replace('learn = "fusion"', 'learn = "fusion"\nmethod = "lambdamart"'))]
)
def test_what_is_not_installed_is_found_before_anything_runs(plan_file, monkeypatch, package, text):
    monkeypatch.setitem(sys.modules, package, None)
    plan_file.write_text(text)
    with pytest.raises(MissingExtra, match=f"this needs {package}"):
        run(plan_file, "out", on_progress=never)


def test_a_sample_of_more_topics_than_there_are_is_told(plan_file):
    plan_file.write_text(
        PLAN.replace('file = "topics.tsv"', 'file = "topics.tsv"\nsample = 300').replace("folds = 3", "folds = 3\nsample = 26")
    )
    folder, done = run(plan_file, "out")
    assert done.notes == tuple(
        f"[{table}] sample = {sample} asks for more topics than the 25 there are: all of them are taken"
        for table, sample in (("topics", 300), ("training", 26))
    )
    assert done.problems == ()
    assert "asks for more topics than the 25 there are" in (folder / "report.md").read_text()


def test_two_experiments_do_not_write_to_one_folder(plan_file):
    folder, _ = run(plan_file, "out")
    before = content(folder)
    with locked(folder), pytest.raises(UsageError, match=r"another experiment is writing to .*out: wait until it is done"):
        run(plan_file, "out", fresh=True)
    assert content(folder) == before
    assert run(plan_file, "out", fresh=True)[1].resumed == 0


def test_the_workers_of_an_experiment_do_not_keep_its_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_unlock", lambda descriptor: None)  # as the end of a process, which only closes its files
    with ExitStack() as held:
        held.enter_context(locked(tmp_path))
        with open_pool(_doing, None, 2) as pool:
            assert len(list(pool.results([1, 2]))) == 2
            held.close()  # as the end of the first process does, while its workers are there
            # A worker gives it up when it begins, which one of them may not have done yet.
            for _ in range(1000):
                with suppress(UsageError), locked(tmp_path):
                    break
                time.sleep(0.01)
            else:
                pytest.fail("a worker keeps the lock")


def _doing(setup):
    return abs


@pytest.mark.parametrize("name", lexical_protocols())
def test_the_protocols_run_on_a_small_collection(files, name):
    given = Given(documents=(str(files / "documents.jsonl"),), topics=str(files / "topics.tsv"), judgements=str(files / "qrels.txt"))
    plan = load_plan(name, given)
    done = run_experiment(plan, files / "out", workers=1)
    assert [system.name for system in done.outcome.sweeps[0].systems] == [system.name for system in plan.systems]
    assert json.loads((files / "out" / "experiment.json").read_text())["title"] == plan.title
    means = [system.mean(plan.measures[0]) for system in done.outcome.sweeps[-1].systems]
    assert max(means) > 0


def test_several_collections_are_as_good_as_one_experiment_each(plan_file):
    single, done = run(plan_file, "single")
    systems = PLAN[PLAN.index("[training]") :]
    head = 'title = "Two"\nmeasures = ["nDCG@10", "MAP(D)"]\nk = 50\nreport_on = ["one/all", "two/all"]\n'
    topics = 'topics.all = { file = "topics.tsv", judgements = "qrels.txt" }\n'
    named = "".join(f'[collections.{name}]\ndocuments = ["documents.jsonl"]\n{topics}\n' for name in ("one", "two"))
    other = '\n[[systems]]\nname = "other"\nruns = { "two/all" = "other.run.gz" }\n'
    (plan_file.parent / "other.run.gz").write_bytes((single / "runs" / "100-bm25.run.gz").read_bytes())
    plan_file.write_text(head + named + systems + other)
    folder, both = run(plan_file, "both")
    labels = [f"{name}/all, {documents} documents fetched" for name in ("one", "two") for documents in (4, 100)]
    assert [sweep.label for sweep in both.outcome.sweeps] == labels
    for sweep, reference in zip(both.outcome.sweeps, done.outcome.sweeps * 2, strict=True):
        assert sweep.systems[:4] == reference.systems
        assert [system.name for system in sweep.systems[4:]] == (["other"] if sweep.label.startswith("two") else [])
    assert (folder / "runs" / "two-all-100-fused.run.gz").read_bytes() == (single / "runs" / "100-fused.run.gz").read_bytes()
    assert both.outcome.facts["one/all"].startswith("index ")
    assert run(plan_file, "both")[1].resumed == 16
    assert Outcome.load(folder) == both.outcome


def test_systems_are_tuned_on_the_training_topics_of_the_same_collection(plan_file):
    lines = (plan_file.parent / "topics.tsv").read_text().splitlines(keepends=True)
    (plan_file.parent / "train.tsv").write_text("".join(lines[:10]))
    (plan_file.parent / "test.tsv").write_text("".join(lines[10:]))
    topics = "".join(f'topics.{name} = {{ file = "{name}.tsv", judgements = "qrels.txt" }}\n' for name in ("train", "test"))
    systems = PLAN[PLAN.index("[[systems]]") :]
    head = f'measures = ["AP"]\nreport_on = ["c/test"]\ntrain_on = ["c/train"]\n[collections.c]\ndocuments = ["documents.jsonl"]\n{topics}'
    plan_file.write_text(head + systems)
    _, done = run(plan_file, "out")
    assert done.outcome.sweeps[0].systems[1].tuned.topics == 10
    assert len(done.outcome.sweeps[0].systems[0].values["AP"]) == 15


def test_a_field_of_the_topics_scores_passages(plan_file):
    """Topics with a field `boolean` are scored by it, others by their query; both are fetched by their query."""
    files = plan_file.parent
    topics = [line.split("\t") for line in (files / "topics.tsv").read_text().splitlines()]
    records = [
        {"qid": qid, "query": text} | ({"boolean": "rotor AND seal"} if number % 2 else {}) for number, (qid, text) in enumerate(topics)
    ]
    (files / "topics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (files / "browse.jsonl").write_text(
        "".join(json.dumps({**record, "browse_query": record.get("boolean", "")}) + "\n" for record in records)
    )
    system = '\n[[systems]]\nname = "by hand"\nmodel = "prox"\noptions = {{ syntax = "boolean" }}\n{}'
    runs = []
    for name, key in (("topics.jsonl", 'browse_field = "boolean"\n'), ("browse.jsonl", "")):
        plan_file.write_text(PLAN.replace("topics.tsv", name) + system.format(key))
        folder, done = run(plan_file, f"results-{name}")
        runs.append(read_run(folder / "runs" / "100-by-hand.run.gz"))
        lacking = "13 of 25 topics have no field boolean (q0, q2, q4 and 10 more): their passages are scored by the query"
        assert (lacking in done.notes) == bool(key)
    assert runs[0] == runs[1]


def test_the_next_run_removes_what_a_killed_one_left_unfinished(plan_file):
    folder, _ = run(plan_file, "out")
    before = content(folder)
    for place in (folder, folder / "runs", next(path for path in (folder / ".work").iterdir() if path.is_dir())):
        (place / ".values.csv.0a1b2c3d.part").write_text("half")
    run(plan_file, "out")
    assert content(folder).keys() == before.keys()
    assert not list(folder.rglob("*.part"))
