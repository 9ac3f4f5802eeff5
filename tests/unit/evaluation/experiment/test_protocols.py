"""The protocols of Albarede and others 2021 and of Carmel and others 2013, from the files of CLEF-IP and INEX.

The look-alike collections have the effects that the papers report. Each protocol must find them with its paper's test.
"""

import gzip
from dataclasses import replace

import pytest

from perikope.build.indexing import build
from perikope.core.errors import InputError, PerikopeError
from perikope.evaluation.experiment.material import read_material
from perikope.evaluation.experiment.plan import load_plan, parse_plan
from perikope.evaluation.experiment.plan_parts import Given
from perikope.evaluation.experiment.running import run_experiment
from perikope.evaluation.measures.significance import compare
from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.wikipedia import make_wikipedia
from tests.unit.evaluation.conftest import PLAN


class Found:
    """The systems of a finished experiment with one sweep, compared as its plan says."""

    def __init__(self, done):
        self.done = done
        self.systems = {system.name: system for system in done.outcome.sweeps[0].systems}

    def better(self, system, other, measure):
        """Whether a system is significantly better than another, by the test of the protocol."""
        settings = self.done.outcome.comparison
        values = {name: self.systems[name].values[measure] for name in (system, other)}
        means = [self.systems[name].mean(measure) for name in (system, other)]
        p = compare(values, test=settings.test, correction=settings.correction, alpha=settings.alpha).p
        return means[0] > means[1] and p[system, other] <= settings.alpha


def run(name, collection, folder, **given):
    files = Given(documents=(str(collection.documents),), topics=str(collection.topics), judgements=str(collection.judgements))
    plan = load_plan(name, Given(**{field: given.get(field, getattr(files, field)) for field in Given.__slots__}))
    return Found(run_experiment(plan, folder, workers=1))


@pytest.fixture(scope="module")
def patents(tmp_path_factory):
    """A collection whose training topics are in the file of all topics, with ids as CLEF-IP 2012 gives them."""
    made = make_patents(tmp_path_factory.mktemp("clef-ip"), topics=10, decoys=1)
    for reported, training in ((made.topics, made.training_topics), (made.judgements, made.training_judgements)):
        with reported.open("a", encoding="utf-8") as file:
            file.write("\n" + training.read_text(encoding="utf-8").replace("PSG-", "tPSG-"))
    return made


@pytest.fixture(scope="module")
def albarede(patents, tmp_path_factory):
    return run("albarede2021", patents, tmp_path_factory.mktemp("albarede"))


def test_albarede_takes_the_english_topics_and_trains_on_those_of_the_training_set(albarede):
    assert albarede.done.problems == ()
    (note,) = albarede.done.notes
    assert "8 of 20 topics are not in the language 'en' and left out: PSG-" in note
    tuned = albarede.systems["QSF_v"]
    assert tuned.tuned.topics == len(tuned.values["MAP(D)"]) == 6
    assert not any(qid.startswith("t") for qid in tuned.values["MAP(D)"])
    assert albarede.done.outcome.facts["training"].startswith("6 topics of their own")


@pytest.mark.parametrize("model", ["QSF_section", "QSF_sectionPropagateAVG", "QSF_passagePropagateAVG"])
def test_albarede_finds_that_sections_are_context(albarede, model):
    assert albarede.better(model, "QSF_v", "MAP(D)")


def test_albarede_tries_the_values_of_table_1(albarede):
    for name, settings in (("QSF_v", 11), ("QSF_section", 121), ("QSF_passagePropagateAVG", 484), ("QSF_sectionPropagateMAX", 484)):
        outcome = albarede.systems[name].tuned
        assert len(outcome.settings) == settings
        tried = {name: sorted(set(values)) for name, values in zip(outcome.parameters, zip(*outcome.settings, strict=True), strict=True)}
        assert tried["alpha"] == pytest.approx([number / 10 for number in range(11)])
        assert tried.get("beta", tried["alpha"]) == tried["alpha"]
        assert tried.get("sigma", [0.5, 1, 2, 5]) == [0.5, 1, 2, 5]
    assert "date_limit false" in albarede.systems["QSF_v"].settings
    assert "browse_from claims; browse_words 100" in albarede.systems["QSF_v"].settings
    assert "stemmer porter" in albarede.done.outcome.facts["analysis"]


def material_of(patents, training):
    head = f'measures = ["MAP(D)"]\n[collection]\ndocuments = ["{patents.documents}"]\n[topics]\nlanguage = "fr"\n'
    plan = parse_plan(
        f'{head}file = "{patents.topics}"\njudgements = "{patents.judgements}"\n[training]\nfolds = 3\n{training}\n'
        '[[systems]]\nname = "v"\nmodel = "qsf_v(alpha)"\ntune = true\n',
        "x.toml",
        patents.folder,
    )
    return read_material(plan, plan.sets[0])


def test_ids_divide_topics_if_some_but_not_all_have_them(patents):
    divided = material_of(patents, 'ids = ["tPSG-*"]')
    assert [topic.qid[0] for topic in divided.training_topics] == ["t"] * 2
    assert [topic.qid[0] for topic in divided.topics] == ["P"] * 2
    assert divided.fold == {}
    for ids in ('ids = ["none-*"]', 'ids = ["*"]'):
        with pytest.raises(InputError, match=r"ids .* matches (no topic|all 4 topics)"):
            material_of(patents, ids)
    material = material_of(patents, "")
    assert len(material.topics) == len(material.training_topics) == 4
    assert set(material.fold.values()) == {0, 1, 2}


@pytest.fixture(scope="module")
def carmel(tmp_path_factory):
    made = make_wikipedia(tmp_path_factory.mktemp("inex"), "positions", topics=8)
    years = {"training_topics": str(made.training_topics), "training_judgements": str(made.training_judgements)}
    return run("carmel2013", made, tmp_path_factory.mktemp("carmel"), **years)


def test_carmel_finds_that_positions_are_context(carmel):
    assert carmel.done.problems == ()
    assert carmel.better("psgDoc", "psg", "MAiP")
    assert carmel.better("PLM(G), σ 500", "psgDoc", "MAiP")
    assert carmel.better("PLM(Tra), σ 1e3", "psgDoc", "MAiP")


def test_carmel_has_the_printed_values_and_repeats_how_they_were_chosen(carmel):
    assert [name for name, system in carmel.systems.items() if system.tuned is None and "lam=0.9" not in system.settings] == ["psg"]
    tried = {name: len(system.tuned.settings) for name, system in carmel.systems.items() if system.tuned is not None}
    # Shares of the neighbours from 0, 0.25 … 1 that are at most 1 together: 15 pairs.
    assert tried == {
        "psgDoc, λ chosen": 11,
        "psgNeighbor, shares chosen": 15,
        "psgNeighbor, several neighbours": 45,
        "PLM(G), σ 2000, points chosen": 4,
    }


@pytest.mark.parametrize("in_index", [False, True])
def test_only_paragraphs_are_results_in_the_protocol_of_carmel(tmp_path, in_index):
    lists = "<list><entry>A rotor and a seal.</entry></list>"
    page = f"<article><header><title>Pumps</title><id>7</id></header><bdy><sec><st>Parts</st><p>A rotor.</p>{lists}</sec></bdy></article>"
    (tmp_path / "7.xml").write_text(page)
    (tmp_path / "topics.tsv").write_text("".join(f"{number}\trotor\n" for number in range(5)))
    (tmp_path / "qrels.txt").write_text("".join(f"{number} 0 7 1\n" for number in range(5)))
    given = Given(documents=(str(tmp_path / "7.xml"),), topics=str(tmp_path / "topics.tsv"), judgements=str(tmp_path / "qrels.txt"))
    if in_index:
        build(str(tmp_path / "idx"), given.documents)
        given = replace(given, documents=(), index=str(tmp_path / "idx"))
    done = run_experiment(load_plan("carmel2013", given), tmp_path / "out", workers=1)
    assert done.outcome.facts["passages"] == ("2" if in_index else "1")
    for run in (tmp_path / "out" / "runs").iterdir():
        assert len(gzip.decompress(run.read_bytes()).splitlines()) == 5


def test_a_collection_without_paragraphs_is_an_error_in_the_protocol_of_carmel(files):
    (files / "documents.jsonl").write_text((files / "documents.jsonl").read_text().replace('"tag": "p"', '"tag": "li"'))
    given = Given(documents=(str(files / "documents.jsonl"),), topics=str(files / "topics.tsv"), judgements=str(files / "qrels.txt"))
    with pytest.raises(PerikopeError, match=r"carmel2013\.toml: \[collection\] segment = 'tags:p' leaves no passage of the documents"):
        run_experiment(load_plan("carmel2013", given), files / "out", workers=1)
    build(str(files / "idx"), given.documents)
    with pytest.raises(PerikopeError, match=r"unknown tag of passages 'p'; .*li"):
        run_experiment(load_plan("carmel2013", replace(given, documents=(), index=str(files / "idx"))), files / "other", workers=1)


def test_a_language_must_be_a_code(tmp_path):
    with pytest.raises(PerikopeError, match=r"\[topics\] language is wrong: 'english' is not a language code"):
        parse_plan(PLAN.replace('file = "topics.tsv"', 'file = "topics.tsv"\nlanguage = "english"'), "x.toml", tmp_path)
