"""An experiment with tiny rankers: every kind of system there is, from a file to values and a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.cli import train_command
from perikope.core.errors import InputError, UsageError
from perikope.evaluation.experiment.jobs import jobs_of, run_jobs
from perikope.evaluation.experiment.outcome import Outcome
from perikope.evaluation.experiment.plan import load_plan, plan_of
from perikope.evaluation.experiment.prepared import COLLECTIONS
from perikope.evaluation.experiment.rankers import gather
from perikope.evaluation.experiment.running import finish_experiment, prepare_experiment
from perikope.evaluation.experiment.state import FinishedJobs
from perikope.neural.collection import Collection
from perikope.neural.guard import Guard
from perikope.neural.hgat import OWN_FORM
from perikope.neural.ranker_job import run_job
from perikope.neural.ranker_settings import NeuralRanker, NeuralSettings
from perikope.neural.self_made import LEARNED
from perikope.neural.training import TrainableRanker
from perikope.neural.workplace import Workplace
from tests.neural.support import write_experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def file(tmp_path):
    return write_experiment(tmp_path)


def prepare(file, folder):
    return prepare_experiment(load_plan(str(file)), folder, workers=1)


def values_of(folder, plan):
    """The content of the file of each job, by system and seed."""
    finished = FinishedJobs(folder / "values")
    return {(job.system, job.seed): json.loads(finished.path(job).read_text()) for job in jobs_of(plan)}


def test_every_kind_of_system_gets_its_values(file, tmp_path):
    folder = tmp_path / "out"
    plan = prepare(file, folder).plan
    lines: list[str] = []
    assert run_jobs(folder, device="cpu", on_job=lines.append) == []
    assert len(lines) == 5
    topics = Workplace.open(folder).set_of("pumps/asked")[1]
    values = {}
    for (_, seed), content in values_of(folder, plan).items():
        values |= {(name, seed): sets for name, sets in content["values"].items()}
    assert set(values) == {
        ("untrained", 1),
        *((name, seed) for name in ("plain", "plain, 0.25 untrained", "other + plain", "other + plain, mixed") for seed in (1, 2)),
        ("context", 1),
        ("folds", 1),
    }
    for sets in values.values():
        assert all(len(by_topic) == len(topics) for by_topic in sets["pumps/asked"].values())
    context = values_of(folder, plan)["context", 1]
    assert len(context["importance"]) == 2
    assert context["alpha"] is not None
    # Nothing is left to do; finished jobs are kept.
    assert run_jobs(folder, device="cpu", on_job=lines.append) == []
    assert len(lines) == 5


def test_only_fetched_documents_have_results(file, tmp_path, monkeypatch):
    file.write_text("documents = 1\n" + file.read_text())
    folder = tmp_path / "out"
    prepare(file, folder)
    place = Workplace.open(folder)
    is_fetched = place.fetched["pumps/asked"]
    collection, topics = place.set_of("pumps/asked")
    for row, query in zip(is_fetched, topics.queries, strict=True):
        names = {collection.texts.names[passage].split("#")[0] for passage in np.flatnonzero(row)}
        assert len(names) == 1
        assert names <= set(query.split())
    # Passages of documents that no topic fetches are not even scored.
    is_fetched[:, 3:] = False
    scored: list[int] = []
    score_all = TrainableRanker.score_all

    def counted(ranker, queries, passages):
        scored.append(passages.size)
        return score_all(ranker, queries, passages)

    monkeypatch.setattr(TrainableRanker, "score_all", counted)
    run_job(place, place.plan.system("untrained"), 1, "cpu")
    assert scored == [3]
    assert run_jobs(folder, device="cpu") == []


def test_the_report_has_tables_over_seeds(file, tmp_path):
    folder = tmp_path / "out"
    prepared = prepare(file, folder)
    done = finish_experiment(folder, folder, device="cpu", workers=1)
    assert (done.failures, done.missing) == ((), ())
    assert [system.name for system in done.outcome.sweeps[0].systems][:2] == ["other", "words"]
    assert Outcome.load(folder) == done.outcome
    text = (folder / "report.md").read_text()
    assert "## Over seeds: pumps/asked" in text
    assert "plain (2)" in text
    assert "±" in text
    assert "## λ and α" in text
    assert "| context, layer 2 |" in text
    assert "| pumps | 4 documents, 12 passages; topics: learned 3, asked 4 |" in text
    html = (folder / "report.html").read_text()
    # The main measure by topic, and both measures over seeds.
    assert html.count('class="boxes"') == 3
    assert "Importance of relations" in (folder / "report.tex").read_text()
    # The mean over seeds by topic, and over topics by seed, come to the same.
    outcome, _, missing = gather(prepared, folder)
    assert missing == []
    plain = next(system for system in outcome.sweeps[0].systems if system.name == "plain")
    assert np.mean([*plain.mean_by_seed("nDCG@10").values()]) == pytest.approx(plain.mean("nDCG@10"))
    assert list(plain.repetitions) == [1, 2]


def test_systems_that_search_are_measured_as_in_any_experiment(file, tmp_path):
    """A model can be tuned on the topics that rankers are trained on."""
    text = file.read_text().replace('model = "bm25"', 'model = "bm25(b=[0.1,0.9])"\ntune = true')
    file.write_text(text.replace('topics.learned = { file = "topics.tsv"', 'topics.learned = { file = "learned.tsv"'))
    (tmp_path / "learned.tsv").write_text("".join(f"learned{line}\n" for line in (tmp_path / "topics.tsv").read_text().split("\n")[:-1]))
    judged = (tmp_path / "qrels.txt").read_text()
    (tmp_path / "qrels.txt").write_text(judged + "".join(f"learned{line}\n" for line in judged.split("\n")[:-1]))
    folder = tmp_path / "out"
    prepare(file, folder)
    run_jobs(folder, device="cpu")
    outcome = finish_experiment(folder, folder, device="cpu", workers=1).outcome
    words = next(system for system in outcome.sweeps[0].systems if system.name == "words")
    assert len(words.tuned.settings) == 2
    assert words.tuned.topics == 3
    assert len(words.curve) == 101
    assert words.repetitions == {}


def test_values_of_other_settings_are_not_used(file, tmp_path):
    folder = tmp_path / "out"
    plan = prepare(file, folder).plan
    run_jobs(folder, device="cpu")
    finished = FinishedJobs(folder / "values")
    assert all(finished.read(job) is not None for job in jobs_of(plan))
    file.write_text(file.read_text().replace("epochs = 1", "epochs = 2"))
    changed = prepare(file, folder).plan
    assert [job.system for job in jobs_of(changed) if finished.read(job) is None] == [job.system for job in jobs_of(changed)]
    # Elsewhere, values that were kept beside the file are used.
    (tmp_path / "kept" / "values").mkdir(parents=True)
    for path in (folder / "values").glob("*.json"):
        (tmp_path / "kept" / "values" / path.name).write_bytes(path.read_bytes())
    file.write_text('values = "kept"\n' + file.read_text().replace("epochs = 2", "epochs = 1"))
    prepare(file, tmp_path / "elsewhere")
    assert run_jobs(tmp_path / "elsewhere", device="cpu", on_job=lambda line: pytest.fail(line)) == []


def test_values_in_the_repository_are_usable():
    """Every file in `experiments/neural/values` has the fingerprint of a job of `experiments/neural.toml`."""
    jobs = jobs_of(load_plan(str(EXPERIMENTS / "neural.toml")))
    finished = FinishedJobs(EXPERIMENTS / "neural" / "values")
    assert {finished.path(job).name for job in jobs} == {path.name for path in finished.folder.iterdir()}
    assert [job.name for job in jobs if finished.read(job) is None] == []


def test_a_job_is_the_same_again(file, tmp_path):
    contents = []
    for name in ("one", "two"):
        plan = prepare(file, tmp_path / name).plan
        run_jobs(tmp_path / name, device="cpu")
        content = values_of(tmp_path / name, plan)["context", 1]
        contents.append({key: value for key, value in content.items() if key != "seconds"})
    assert contents[0] == contents[1]


def test_a_collection_is_read_back(file, tmp_path):
    prepare(file, tmp_path / "out")
    path = tmp_path / "out" / COLLECTIONS / "pumps"
    collection = Collection.load(path)
    collection.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert collection.graphs[0].edges["opening"].tolist() == [[1, 1], [2, 3]]
    (tmp_path / "again").write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="damaged"):
        Collection.load(tmp_path / "again")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('variant = "NO_LB_NS"', 'variant = "BASIC"', r"\[system context\] variant is wrong: .*BASIC"),
        ('measures = ["nDCG@10", "MAP(D)"]', 'measures = ["nonsense"]', "nonsense"),
        ('report_on = ["pumps/asked"]', 'report_on = ["pumps/none"]', "report_on is wrong: unknown set of topics 'pumps/none'"),
        ('report_on = ["pumps/asked"]', "", "report_on must name"),
        ('of = ["other", "plain"]', 'of = ["other", "nothing"]', r"\[system other \+ plain\] of is wrong: unknown system 'nothing'"),
        ('of = ["other", "plain"]', 'of = ["untrained", "plain"]', r"\[system other \+ plain\] of must name two systems"),
        ('of = ["other", "plain"]', 'of = ["other", "plain"]\nseeds = 2', "seeds does not apply to a fusion"),
        ("epochs = 1", "epochs = 0", r"\[training\] epochs must be a whole number of at least 1"),
        ("seeds = 2", "sedes = 2", "unknown key in .*'sedes'; did you mean 'seeds'"),
        ('name = "folds"', 'name = "context"', "name is used twice"),
        ('runs = { "pumps/asked"', 'runs = { "pumps/learned"', "unknown reported set of topics 'pumps/learned'"),
        ('kind = "neural"', 'kind = "neutral"', "kind is wrong: unknown kind of systems 'neutral'"),
    ],
)
def test_a_mistake_in_the_file_is_found_before_anything_is_trained(file, old, new, message):
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        load_plan(str(file))


def content(**keys):
    """The content of a file with one system."""
    collections = {"c": {"index": "idx", "topics": {"t": {"file": "t.tsv", "judgements": "q.txt"}}}}
    base = {"kind": "neural", "title": "t", "measures": ["AP"], "report_on": ["c/t"], "collections": collections}
    return {**base, **keys}


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"colour": 1}, r"unknown key in \[system one\] 'colour'"),
        ({"seed": 2}, r"\[system one\] 'seed'; did you mean 'seeds'"),
        ({"training": {"epochs": 0}}, r"\[system one.training\] epochs must be a whole number of at least 1"),
        ({"variant": "NOPE"}, r"\[system one\] variant is wrong: unknown variant 'NOPE'"),
        ({"variant": "BASE", "context": {"heads": 7}, "folds": 2}, r"\[system one\] variant is wrong: .*heads must divide"),
        ({"of": ["two", "three"]}, r"\[system one\] of is wrong: unknown system 'two'"),
        ({"also_in": ["Apart"], "folds": 2}, r"\[system one\] also_in is wrong: unknown table 'Apart'"),
        ({}, r"\[system one\] train_on is missing: name the sets of topics to train on, or set folds"),
        ({"train_on": ["c/none"]}, r"\[system one\] train_on is wrong: unknown set of topics 'c/none'"),
        ({"seeds": "two"}, r"\[system one\] seeds must be a whole number, not text"),
        ({"seeds": 0}, r"\[system one\] seeds must be a whole number of at least 1"),
        ({"folds": 1}, r"\[system one\] folds must be 0 for no folds, or at least 2"),
        ({"table": 3}, r"\[system one\] table must be text"),
        ({"untrained_shares": [1.3]}, r"\[system one\] untrained_shares number 1 must be"),
        ({"training": {"epoch": 1}}, r"unknown key in \[system one.training\] 'epoch'; did you mean 'epochs'"),
        ({"training": {"batch": "4"}}, r"\[system one.training\] batch must be a whole number"),
        ({"variant": "BASE", "context": {"layer": 1}}, r"unknown key in \[system one.context\] 'layer'"),
        ({"model": "bm52"}, r"\[system one\] model is wrong: unknown model 'bm52'"),
    ],
)
def test_an_error_in_a_system_names_the_system(system, message):
    with pytest.raises(InputError, match=message):
        plan_of(content(systems=[{"name": "one", **system}]), "file", Path())


@pytest.mark.parametrize(("given", "message"), [({"training": {"epoch": 1}}, "'epoch'"), ({"context": {"layer": 1}}, "'layer'")])
def test_an_error_in_all_systems_names_none_of_them(given, message):
    with pytest.raises(InputError, match=message) as error:
        plan_of(content(systems=[{"name": "one", "model": "bm25"}], **given), "file", Path())
    assert "system one" not in str(error.value)


def test_several_processes_come_to_the_same(file, tmp_path):
    plan = prepare(file, tmp_path / "one").plan
    run_jobs(tmp_path / "one", device="cpu")
    prepare(file, tmp_path / "two")
    assert run_jobs(tmp_path / "two", device="cpu", workers=2, encoder=str(tmp_path / "encoder")) == []
    one, two = (values_of(tmp_path / name, plan) for name in ("one", "two"))
    assert {key: content["values"] for key, content in one.items()} == {key: content["values"] for key, content in two.items()}


def test_attention_has_our_own_form_where_a_file_does_not_say():
    shared = NeuralSettings("encoder", context={"layers": 1})
    assert shared.context_of(NeuralRanker(variant="BASE")) == {"layers": 1, "dropout": 0.1, "residual": True}
    options = {option.name: option.default for option in train_command.command.params}
    assert {name: options[name] for name in OWN_FORM} == OWN_FORM


def test_a_folder_belongs_to_the_experiment_of_its_title(file, tmp_path):
    prepare(file, tmp_path / "out")
    file.write_text(file.read_text().replace('title = "tiny"', 'title = "other"'))
    with pytest.raises(UsageError, match="holds the experiment 'tiny', not 'other'"):
        prepare(file, tmp_path / "out")
    file.write_text(file.read_text().replace('title = "other"', 'title = "tiny"').replace("sample = 3", "sample = 2"))
    with pytest.raises(UsageError, match="was made with other collections"):
        prepare(file, tmp_path / "out")


def test_files_are_looked_for_before_anything_is_read(file, tmp_path):
    (tmp_path / "qrels.txt").rename(tmp_path / "elsewhere.txt")
    with pytest.raises(InputError, match=r"\[collections.pumps.topics.learned\] judgements is wrong: there is no file .*qrels\.txt"):
        prepare(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def without_sources(folder, prepared):
    """Move a prepared folder away, and remove its index and all files that the experiment names; returns the folder."""
    moved = folder / "moved" / "out"
    moved.parent.mkdir()
    prepared.rename(moved)
    for name in ("documents.jsonl", "topics.tsv", "qrels.txt", "other.run"):
        (folder / name).unlink()
    for path in sorted((moved / "indexes").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return moved


def test_a_prepared_folder_needs_neither_documents_nor_index(file, tmp_path):
    prepare(file, tmp_path / "out")
    moved = without_sources(tmp_path, tmp_path / "out")
    done = finish_experiment(moved, moved, device="cpu", workers=1)
    assert (done.failures, done.missing) == ((), ())


def test_a_prepared_folder_has_the_sentences_that_guard_a_training(file, tmp_path, monkeypatch):
    documents = [json.loads(line) for line in (tmp_path / "documents.jsonl").read_text().splitlines()]
    for document in documents:
        for passage in document["passages"]:
            passage["text"] += (
                f". When the {document['id']} stops, cold water closes a warm valve {passage['id']}. Heat keeps fluid in a seal."
            )
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    file.write_text(file.read_text().replace("[training]", "[training]\nguard = 1.0"))
    prepare(file, tmp_path / "out")
    moved = without_sources(tmp_path, tmp_path / "out")
    guards: list[list[str]] = []
    init = Guard.__init__

    def noted(guard, ranker, collections, settings):
        known = list(collections)
        guards.append([query for collection in known for query in collection.topics[LEARNED].queries])
        init(guard, ranker, known, settings)

    monkeypatch.setattr(Guard, "__init__", noted)
    place = Workplace.open(moved)
    run_job(place, place.plan.system("plain"), 1, "cpu")
    (queries,) = guards
    assert queries
    texts = [passage["text"] for document in documents for passage in document["passages"]]
    assert all(any(query in text for text in texts) for query in queries)
