import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perikope.api import Index
from perikope.errors import UsageError
from perikope.experiment import running
from perikope.experiment.outcome import Outcome, slug
from perikope.experiment.plan import Given, load_plan, protocol_names
from perikope.experiment.running import run_experiment
from perikope.io.judgements import read_judgements
from perikope.io.runs import read_run
from perikope.io.topics import read_topics
from perikope.learning.validation import fold_of_topic
from perikope.measures import evaluate
from tests.unit.experiment.conftest import PLAN

SRC = Path(running.__file__).parents[2]


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
    # Two pieces of topics; one of them was done. Only what is learned from all topics at once looks at both again.
    if "training" in stage:
        assert pieces["4 documents fetched: training"] == 2
    elif "ranking" in stage:
        assert pieces["4 documents fetched: training"] == 0
        assert pieces["4 documents fetched: ranking"] == 1
    else:
        assert done.resumed == 4
    again, done = run(plan_file, "part")
    assert done.resumed == 8
    assert content(again) == content(whole)


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
from perikope.experiment.plan import load_plan
from perikope.experiment.running import run_experiment
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
    for seen in ("*/scores-0.npy", "*/figures-0.json", "*/done.json"):
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
    from perikope.measures.files import JudgementFile

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


@pytest.mark.parametrize("name", protocol_names())
def test_the_protocols_run_on_a_small_collection(files, name):
    given = Given(documents=(str(files / "documents.jsonl"),), topics=str(files / "topics.tsv"), judgements=str(files / "qrels.txt"))
    plan = load_plan(name, given)
    done = run_experiment(plan, files / "out", workers=1)
    assert [system.name for system in done.outcome.sweeps[0].systems] == [system.name for system in plan.systems]
    assert json.loads((files / "out" / "experiment.json").read_text())["title"] == plan.title
    means = [system.mean(plan.measures[0]) for system in done.outcome.sweeps[-1].systems]
    assert max(means) > 0
