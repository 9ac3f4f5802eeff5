"""A study of tiny systems: every kind of system there is, from a file to values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from perikope.errors import InputError
from perikope.io.runs import write_run
from perikope.neural.collection import Collection
from perikope.neural.preparing import prepare
from perikope.neural.study import (
    COLLECTIONS,
    Study,
    Workplace,
    fused_rankings,
    load_study,
    run_jobs,
    topic_folds,
    value_file,
)
from tests.neural.support import tiny_encoder

WORDS = {"pump": "the pump keeps water", "valve": "a valve opens", "rotor": "the rotor drives a magnet", "seal": "a seal stops fluid"}
FILE = """
kind = "neural"
title = "tiny"
measures = ["nDCG@10", "MAP(D)"]
report_on = ["pumps/asked"]
train_on = ["pumps/learned"]
encoder = "{encoder}"

[training]
epochs = 1
batch = 4
frozen_layers = 0
strategy = "same_doc+ranked"
negatives = 2

[context]
heads = 2
layers = 1
residual = true

[collections.pumps]
documents = ["documents.jsonl"]
topics.learned = {{ file = "topics.tsv", judgements = "qrels.txt", sample = 3 }}
topics.asked = {{ file = "topics.tsv", judgements = "qrels.txt" }}

[[systems]]
name = "other"
runs = {{ "pumps/asked" = "other.run" }}

[[systems]]
name = "untrained"
trained = false
dimension = 8

[[systems]]
name = "plain"
dimension = 8
seeds = 2
kept = 0.5
untrained_shares = [0.25]

[[systems]]
name = "context"
dimension = 8
variant = "NO_LB_NS"
context = {{ layers = 2, relations = ["order", "order_i", "structural", "opening"] }}

[[systems]]
name = "folds"
dimension = 8
folds = 2
variant = "BASE"
neighbours_learn = true
training = {{ strategy = "same_doc" }}

[[systems]]
name = "other + plain"
of = ["other", "plain"]

[[systems]]
name = "other + plain, mixed"
of = ["other", "plain, 0.25 untrained"]
"""


@pytest.fixture
def file(tmp_path):
    documents, topics, qrels, run = [], [], [], []
    for number, (word, text) in enumerate(WORDS.items()):
        passages = [{"id": f"p{i}", "text": f"{text} {extra}"} for i, extra in enumerate(["inside", "when cold", "when warm"])]
        documents.append({"id": word, "title": word, "passages": passages})
        topics.append(f"{number}\t{word} inside")
        qrels.append(f"{number} 0 {word}#p0 1")
        run.append((str(number), [(f"{word}#p1", 2.0), (f"{word}#p0", 1.0)]))
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(own) + "\n" for own in documents))
    (tmp_path / "topics.tsv").write_text("\n".join(topics) + "\n")
    (tmp_path / "qrels.txt").write_text("\n".join(qrels) + "\n")
    write_run(tmp_path / "other.run", run)
    tiny_encoder(dimension=0).save(tmp_path / "encoder")
    path = tmp_path / "tiny.toml"
    path.write_text(FILE.format(encoder=tmp_path / "encoder"))
    return path


def test_every_kind_of_system_gets_its_values(file, tmp_path):
    folder = tmp_path / "out"
    study = prepare(file, folder)
    said: list[str] = []
    assert run_jobs(folder, device="cpu", on_job=said.append) == []
    assert len(said) == 5
    place = Workplace.open(folder)
    values = {}
    for system, seed in study.jobs():
        content = json.loads(value_file(folder, system, seed).read_text())
        values |= {(name, seed): sets for name, sets in content["values"].items()}
    assert set(values) == {
        ("untrained", 1),
        *((name, seed) for name in ("plain", "plain, 0.25 untrained", "other + plain", "other + plain, mixed") for seed in (1, 2)),
        ("context", 1),
        ("folds", 1),
    }
    for sets in values.values():
        assert all(len(own) == len(place.set_of("pumps/asked")[1]) for own in sets["pumps/asked"].values())
    context = json.loads(value_file(folder, study.system("context"), 1).read_text())
    assert len(context["importance"]) == 2
    assert context["alpha"] is not None
    # Nothing is left to do; what is there is kept.
    assert run_jobs(folder, device="cpu", on_job=said.append) == []
    assert len(said) == 5


def test_a_job_is_the_same_again(file, tmp_path):
    found = []
    for name in ("one", "two"):
        study = prepare(file, tmp_path / name)
        run_jobs(tmp_path / name, device="cpu", on_job=lambda line: None)
        content = json.loads(value_file(tmp_path / name, study.system("context"), 1).read_text())
        found.append({key: value for key, value in content.items() if key != "seconds"})
    assert found[0] == found[1]


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
    ("old", "new", "said"),
    [
        ('variant = "BASE"', 'variant = "BASIC"', "BASIC"),
        ('measures = ["nDCG@10", "MAP(D)"]', 'measures = ["nonsense"]', "nonsense"),
        ('report_on = ["pumps/asked"]', 'report_on = ["pumps/none"]', "pumps/none"),
        ('of = ["other", "plain"]', 'of = ["other", "nothing"]', "nothing"),
        ('of = ["other", "plain"]', 'of = ["untrained", "plain"]', "fusion"),
        ("epochs = 1", "epochs = 0", "epochs"),
        ("seeds = 2", "sedes = 2", "sedes"),
        ('name = "folds"', 'name = "context"', "name"),
    ],
)
def test_a_mistake_in_the_file_is_found_before_anything_is_trained(file, old, new, said):
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError, match=said):
        load_study(file)


def test_the_other_system_alone_where_the_neural_one_has_no_share():
    names = ["a", "b", "c"]
    number = {name: place for place, name in enumerate(names)}
    scores = np.array([3.0, 2.0, 1.0], np.float32)
    # (1 - w) · run + w · scores; at a half: a 0 + 0.5, b 0 + 0.25, c 0.5 + 0
    found = fused_rankings(scores, {"c": 2.0, "b": 1.0}, names, number, (0.0, 0.5, 1.0))
    assert found[0][0] == "c"
    assert found[1] == ["a", "c", "b"]
    assert found[2] == ["a", "b", "c"]
    assert fused_rankings(scores, {}, names, number, (0.5,)) == [["a", "b", "c"]]


def test_topics_of_one_group_are_in_one_fold():
    groups = np.array([0, 0, 2, 3, 3, 3, 6, 7])
    folds = topic_folds(groups, 3, 1)
    assert all(len(set(folds[groups == group].tolist())) == 1 for group in groups)
    assert sorted(np.bincount(folds, minlength=3).tolist()) == [2, 3, 3]


def test_a_study_names_what_it_does_not_know():
    with pytest.raises(InputError, match="colour"):
        Study.parse({"title": "t", "measures": ["AP"], "report_on": [], "systems": [], "colour": 1}, "file")
