"""The protocol `albarede2023` on a collection in the file formats of CLEF-IP, with a tiny encoder."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope import cli
from perikope.evaluation.experiment.plan import load_plan, protocol_text
from perikope.evaluation.experiment.plan_parts import Given
from perikope.evaluation.experiment.running import prepare_experiment
from perikope.neural.workplace import Workplace, set_key
from perikope.query.topic import Topic
from perikope.search.batch import prepare_topic
from perikope.search.facade import Index
from perikope.search.options import SearchOptions
from perikope.search.recipes import load_recipe
from tests.neural.support import tiny_encoder
from tests.support.lookalikes.patents import make_patents

VARIANTS = ("BASE", "NO", "LB", "NS", "NO_LB", "LB_NS")


def run(*arguments) -> tuple[int, str]:
    """Run the command line; returns its exit code and what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    return done.value.code, printed.getvalue()


@pytest.fixture(scope="module")
def patents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patents")
    tiny_encoder(dimension=8).save(folder / "encoder")
    return make_patents(folder / "clef-ip", topics=2, relevant=1, decoys=1, background=0)


def small_copy(folder, seeds: int) -> str:
    """The path of a copy of the protocol with fewer seeds and epochs, and with fewer fetched documents."""
    text = protocol_text("albarede2023").replace("seeds = 10", f"seeds = {seeds}").replace("epochs = 3", "epochs = 1")
    path = folder / "small.toml"
    path.write_text(text.replace("documents = 1000", "documents = 3"))
    return str(path)


def options_of(patents) -> list[str]:
    """The options of the command line that name the files of the collection and the encoder."""
    named = {
        "documents": patents.documents, "topics": patents.topics, "judgements": patents.judgements,
        "training-topics": patents.training_topics, "training-judgements": patents.training_judgements,
        "encoder": patents.folder.parent / "encoder",
    }  # fmt: skip
    return [part for name, path in named.items() for part in (f"--{name}", str(path))]


@pytest.fixture(scope="module")
def prepared(patents, tmp_path_factory):
    """The prepared folder of a small copy of the protocol."""
    folder = tmp_path_factory.mktemp("prepared")
    code, output = run("experiment", small_copy(folder, 1), *options_of(patents), "--workers", 1, "--out", folder / "out", "--prepare")
    assert code == 0, output
    assert "13 jobs" in output
    return folder / "out"


def test_the_protocol_has_the_settings_of_the_paper():
    given = Given(index="i", topics="t", judgements="j", training_topics="t", training_judgements="j", encoder="colbert")
    plan = load_plan("albarede2023", given)
    assert plan.shared.encoder == "colbert"
    rankers = {system.name: system for system in plan.rankers}
    assert {system.seeds for system in rankers.values()} == {10}
    assert {name for name in rankers if name.startswith(("std", "late"))} == {
        *(f"std_{variant}" for variant in VARIANTS), "late_NO_NS", "late_NO_LB_NS",
    }  # fmt: skip
    assert all(system.ranker.neighbours_learn for system in rankers.values() if system.ranker.variant)
    assert [name for name, system in rankers.items() if system.ranker.is_late] == ["late_NO_NS", "late_NO_LB_NS"]
    assert (plan.comparison.test, plan.comparison.correction) == ("mannwhitney", "none")
    settings = plan.shared.training_of(rankers["std_BASE"].ranker)
    assert (settings.encoder_rate, settings.rate, settings.strategy, settings.negatives) == (3e-6, 1e-3, "mixed", 1)
    assert plan.shared.context_of(rankers["std_BASE"].ranker) == {
        "heads": 8, "layers": 3, "dropout": 0.7, "positions": 180, "residual": False,
    }  # fmt: skip
    # The baseline is the model that the recipe of the earlier paper has, whose σ is 5.
    assert plan.system("QSF_sectionPropagateAVG").model == load_recipe("albarede2021").models["QSF_sectionPropagateAVG"]


def test_the_encoder_reads_the_claims_and_other_models_their_words(prepared, patents):
    place = Workplace.open(prepared)
    collection, topics = place.set_of("collection/topics", place.plan.rankers[0].options)
    query = topics.queries[topics.qids.index("PSG-1")]
    assert query.startswith("A device with ")
    assert "The device of claim 1, with " in query
    index = Index.open(prepared / "index")
    patent = Topic("PSG-1", patent=str(patents.topics.parent / "tfiles" / "EP-1500000-A1.xml"), claims=("1", "2"))
    asked = prepare_topic(index.snapshot, patent, SearchOptions())
    assert asked.prepared.scoring.plain_text == query
    assert "with" not in asked.prepared.scoring.text.split()
    assert set(asked.prepared.scoring.text.split()) <= set(re.findall(r"\w+", query))
    assert collection.texts.names


def test_judgements_by_xpath_become_passages(prepared, patents):
    place = Workplace.open(prepared)
    collection, topics = place.set_of("collection/topics", place.plan.rankers[0].options)
    for qid, relevant in zip(topics.qids, topics.relevant, strict=True):
        documents = {document for document, _ in patents.relevant[qid]}
        assert relevant.size == len(patents.relevant[qid])
        assert len({collection.texts.names[number].partition("#")[0] for number in relevant.tolist()}) == len(documents)


def test_documents_are_fetched_by_the_options_of_search(prepared, patents):
    """Documents of the family and later ones may be results, as in the paper; all share a code with the topic."""
    place = Workplace.open(prepared)
    options = place.plan.rankers[0].options
    collection, topics = place.set_of("collection/topics", options)
    for row, codes in zip(place.fetched[set_key("collection/topics", options)], topics.codes, strict=True):
        found = {collection.texts.document_of_passage[passage] for passage in row.nonzero()[0].tolist()}
        assert 0 < len(found) <= 3
        assert all(collection.texts.shared[document] & codes for document in found)


def test_every_table_of_the_paper_is_in_the_report(prepared, patents, tmp_path):
    moved = tmp_path / "encoder"
    (patents.folder.parent / "encoder").rename(moved)
    try:
        code, output = run("experiment", prepared, "--encoder", moved, "--device", "cpu", "--workers", 1, "--out", tmp_path / "out")
    finally:
        moved.rename(patents.folder.parent / "encoder")
    assert code == 0, output
    report = (tmp_path / "out" / "report.md").read_text().replace("\\_", "_")
    tables = {part.splitlines()[0]: part for part in re.split(r"^## ", report, flags=re.M)[1:]}
    of_title = {title.split(":")[0]: part for title, part in tables.items()}
    for row in ("random", "same_doc", "relevant_docs", "shared_codes", "std_BASE"):
        assert f"| {row} (1) |" in of_title["Table 3"]
    for row in (*(f"std_{variant}" for variant in VARIANTS), "late_NO_NS", "late_NO_LB_NS"):
        assert f"| {row} (1) |" in of_title["Table 4"]
    for row in ("std_LB", "std_NO_LB", "std_LB_NS", "late_NO_NS", "late_NO_LB_NS"):
        assert f"| {row} |" in tables["λ and α"]
    assert re.search(r"\| late_NO_LB_NS \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \|", tables["λ and α"])
    for layer in (1, 2, 3):
        assert f"| std_BASE, layer {layer} |" in tables["Importance of relations"]
        assert f"| std_NO_LB, layer {layer} |" in tables["Importance of relations"]
    for row in ("BM25", "QSF_sectionPropagateAVG", "ColBERT", "std_NO_LB", "late_NO_NS", "late_NO_LB_NS"):
        assert f"| {row} |" in of_title["collection/topics"]


def test_an_encoder_is_for_neural_rankers_only(patents):
    code, output = run("experiment", "albarede2021", *options_of(patents))
    assert code == 2
    assert "--encoder applies to neural rankers only" in output


def test_the_file_of_a_protocol_is_printed():
    assert run("experiment", "albarede2023", "--show") == (0, protocol_text("albarede2023"))


def test_a_folder_is_prepared_as_in_python(prepared, patents, tmp_path):
    plan = load_plan(
        str(prepared.parent / "small.toml"),
        Given(
            documents=(str(patents.documents),), topics=str(patents.topics), judgements=str(patents.judgements),
            training_topics=str(patents.training_topics), training_judgements=str(patents.training_judgements), encoder="e",
        ),
    )  # fmt: skip
    prepare_experiment(plan, tmp_path / "out", workers=1)
    assert (tmp_path / "out" / "collections" / "collection").read_bytes() == (prepared / "collections" / "collection").read_bytes()
