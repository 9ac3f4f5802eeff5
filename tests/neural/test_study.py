"""A study of tiny systems: every kind of system there is, from a file to values."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.cli import train_command
from perikope.core.errors import InputError, UsageError
from perikope.neural.collection import Collection
from perikope.neural.hgat import OWN_FORM
from perikope.neural.preparing import prepare
from perikope.neural.report import Ran, extra_tables, gather, write_study_report
from perikope.neural.study import (
    COLLECTIONS,
    Study,
    StudySystem,
    Workplace,
    folds_of,
    fused_rankings,
    known_values,
    load_study,
    run_jobs,
    value_file,
)
from perikope.neural.triples import Topics
from tests.neural.support import write_study


@pytest.fixture
def file(tmp_path):
    return write_study(tmp_path)


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


def test_only_what_is_fetched_is_found(file, tmp_path):
    file.write_text("documents = 1\n" + file.read_text())
    folder = tmp_path / "out"
    prepare(file, folder)
    place = Workplace.open(folder)
    inside = place.fetched["pumps/asked"]
    collection, topics = place.set_of("pumps/asked")
    for row, query in zip(inside, topics.queries, strict=True):
        names = {collection.texts.names[passage].split("#")[0] for passage in np.flatnonzero(row)}
        assert len(names) == 1
        assert names <= set(query.split())
    assert run_jobs(folder, device="cpu", on_job=lambda line: None) == []


def test_the_report_has_tables_over_seeds(file, tmp_path):
    folder = tmp_path / "out"
    prepare(file, folder)
    place = Workplace.open(folder)
    run_jobs(folder, device="cpu", on_job=lambda line: None)
    outcome, missing = write_study_report(place, folder)
    assert missing == []
    assert [system.name for system in outcome.sweeps[0].systems][:2] == ["other", "words"]
    text = (folder / "report.md").read_text()
    assert "## Over seeds: pumps/asked" in text
    assert "plain (2)" in text
    assert "±" in text
    assert "## λ and α" in text
    assert "| context, layer 2 |" in text
    html = (folder / "report.html").read_text()
    assert html.count('class="boxes"') == 2
    assert "Importance of relations" in (folder / "report.tex").read_text()
    # The mean over seeds by topic, and over topics by seed, come to the same.
    ran, _ = gather(place)
    plain = next(one for one in ran if one.name == "plain")
    over_seeds = plain.over_seeds("pumps/asked", "nDCG@10")
    by_topic = plain.by_topic("pumps/asked", ["nDCG@10"])["nDCG@10"]
    assert np.mean([*over_seeds.values()]) == pytest.approx(np.mean([*by_topic.values()]))


def test_values_of_other_settings_are_not_taken(file, tmp_path):
    folder = tmp_path / "out"
    study = prepare(file, folder)
    run_jobs(folder, device="cpu", on_job=lambda line: None)
    known = study.system("context")
    assert known_values(folder, study, known, 1) is not None
    file.write_text(file.read_text().replace("epochs = 1", "epochs = 2"))
    changed = prepare(file, folder)
    assert known_values(folder, changed, changed.system("context"), 1) is None
    # Elsewhere, values that were kept beside the file are.
    (tmp_path / "kept" / "values").mkdir(parents=True)
    for path in (folder / "values").iterdir():
        (tmp_path / "kept" / "values" / path.name).write_bytes(path.read_bytes())
    file.write_text('values = "kept"\n' + file.read_text().replace("epochs = 2", "epochs = 1"))
    again = prepare(file, tmp_path / "elsewhere")
    assert run_jobs(tmp_path / "elsewhere", device="cpu", on_job=lambda line: pytest.fail(line)) == []
    assert again.jobs()


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


def test_topics_that_share_a_document_are_in_one_fold():
    documents = ["a", "a", "b", "c", "c", "c", "d", "e"]
    names = tuple(f"q{number}" for number in range(8))
    judged = tuple({f"{document}#p{number}": 1} for number, document in enumerate(documents))
    topics = Topics(names, names, (np.zeros(0, np.int64),) * 8, judged, (frozenset(),) * 8)
    folds = folds_of(topics, 3, 1)
    assert folds[0] == folds[1]
    assert len(set(folds[3:6].tolist())) == 1
    assert sorted(np.bincount(folds).tolist()) == [2, 3, 3]
    assert np.bincount(folds_of(topics, 9, 1)).size == 5


def test_systems_with_few_seeds_are_compared_over_topics():
    """Three seeds against three cannot come to p = 0.05 by ranks; 3 against 10 can."""
    study = Study("t", ("AP",), ("c/t",), ())
    good = {f"q{number}": 0.8 + number / 100 for number in range(10)}
    poor = {qid: value - 0.3 + (int(qid[1:]) % 3) / 100 for qid, value in good.items()}

    def ran(name, values, seeds, **options):
        return Ran(name, StudySystem(name, **options), {seed: {"c/t": {"AP": values}} for seed in range(1, 1 + seeds)})

    (apart, _) = extra_tables(study, [ran("good", good, 3, table="Apart"), ran("poor", poor, 3, table="Apart"), ran("main", good, 1)])
    assert "paired t-test over topics" in apart.how
    assert [row[1] for row in apart.rows] == ["good (3)", "poor (3)"]
    assert [row[2][0].beats for row in apart.rows] == ["b", ""]
    tables = extra_tables(study, [ran("main", poor, 10, also_in=("Apart",)), ran("good", good, 3, table="Apart")])
    assert [table.title for table in tables] == ["Over seeds: c/t", "Apart: c/t"]
    assert "Mann–Whitney" in tables[1].how
    assert [row[2][0].beats for row in tables[1].rows] == ["", "a"]


def test_a_study_names_what_it_does_not_know():
    with pytest.raises(InputError, match="colour"):
        Study.parse({"title": "t", "measures": ["AP"], "report_on": [], "systems": [], "colour": 1}, "file")


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"colour": 1}, "system 'one': unknown setting 'colour'"),
        ({"seed": 2}, "system 'one': .*did you mean .seeds"),
        ({"training": {"epochs": 0}}, "system 'one': epochs must be at least 1"),
        ({"variant": "NOPE"}, "system 'one': unknown variant 'NOPE'"),
        ({"variant": "BASE", "context": {"heads": 7}}, "system 'one': .*heads that divide"),
        ({"of": ["two", "three"]}, "system 'one': unknown system 'two'"),
        ({"also_in": ["Apart"]}, "system 'one': unknown table 'Apart'"),
        ({}, "system 'one': there are no topics to train on"),
        ({"seeds": "two"}, "system 'one': seeds must be a whole number, not 'two'"),
        ({"seeds": 0}, "system 'one': there must be at least one seed"),
        ({"table": 3}, "system 'one': table must be a text"),
        ({"also_in": "Apart"}, "system 'one': also_in must be a list of texts"),
        ({"untrained_shares": [1.3]}, "system 'one': untrained_shares must be between 0 and 1"),
        ({"training": {"epoch": 1}}, "system 'one': unknown setting 'epoch'; did you mean .epochs"),
        ({"training": {"batch": "4"}}, "system 'one': batch must be a whole number"),
        ({"variant": "BASE", "context": {"layer": 1}}, "system 'one': unknown setting of the attention 'layer'"),
        ({"model": "bm52"}, "system 'one': unknown model 'bm52'"),
    ],
)
def test_what_is_wrong_with_a_system_is_told_with_its_name(system, message):
    with pytest.raises(InputError, match=message):
        Study.parse({"title": "t", "measures": ["AP"], "report_on": [], "systems": [{"name": "one", **system}]}, "file")


def test_several_processes_come_to_the_same(file, tmp_path):
    study = prepare(file, tmp_path / "one")
    run_jobs(tmp_path / "one", device="cpu", on_job=lambda line: None)
    prepare(file, tmp_path / "two")
    assert run_jobs(tmp_path / "two", device="cpu", workers=2, encoder=str(tmp_path / "encoder"), on_job=lambda line: None) == []
    for system, seed in study.jobs():
        one, two = (json.loads(value_file(tmp_path / name, system, seed).read_text())["values"] for name in ("one", "two"))
        assert one == two


@pytest.mark.parametrize(
    ("given", "message"), [({"training": {"epoch": 1}}, "unknown setting 'epoch'"), ({"context": {"layer": 1}}, "'layer'")]
)
def test_what_is_wrong_with_all_systems_is_not_blamed_on_one(given, message):
    with pytest.raises(InputError, match=message) as told:
        Study.parse({"title": "t", "measures": ["AP"], "report_on": [], "systems": [{"name": "one", "model": "bm25"}], **given}, "file")
    assert "system 'one'" not in str(told.value)


def test_attention_is_of_our_own_form_where_a_study_does_not_say():
    study = Study("t", ("AP",), (), (), context={"layers": 1})
    assert study.context_of(StudySystem("one", variant="BASE")) == {"layers": 1, "dropout": 0.1, "residual": True}
    options = {option.name: option.default for option in train_command.command.params}
    assert {name: options[name] for name in OWN_FORM} == OWN_FORM


def test_a_folder_belongs_to_the_study_of_its_title(file, tmp_path):
    prepare(file, tmp_path / "out")
    file.write_text(file.read_text().replace('title = "tiny"', 'title = "other"'))
    with pytest.raises(UsageError, match="holds another study, 'tiny'"):
        prepare(file, tmp_path / "out")


def test_files_are_looked_for_before_anything_is_read(file, tmp_path):
    (tmp_path / "qrels.txt").rename(tmp_path / "elsewhere.txt")
    with pytest.raises(InputError, match=r"qrels\.txt: is not there, and tiny\.toml names it"):
        prepare(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()
