"""The effects of the look-alike collections: the papers' tests find each one, and find nothing in the controls."""

import pytest

from perikope.evaluation.io.topics import read_topics
from tests.support.lookalikes import effects
from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.wikipedia import make_wikipedia


@pytest.fixture(scope="module", params=[False, True], ids=["effect", "control"])
def control(request):
    return request.param


@pytest.fixture(scope="module")
def patents(control, tmp_path_factory):
    made = make_patents(tmp_path_factory.mktemp("clef-ip"), effect="none" if control else "all")
    return effects.index_of(made.folder, tmp_path_factory.mktemp("indexes") / "patents"), made.folder


def test_relevance_follows_the_section_tree(patents, control):
    found = effects.section_figures(*patents)
    for context in ("qsf_section", "qsf_section_propagate", "qsf_passage_propagate"):
        assert found.finds(context, "qsf_v", "t") is not control, found.line(context, "qsf_v", "t")
        assert control or found.finds(context, "bm25", "t"), found.line(context, "bm25", "t")


def test_relevant_passages_stand_late(patents, control):
    found = effects.prior_figures(*patents)
    assert found.finds("with", "without", "t") is not control, found.line("with", "without", "t")


def test_more_than_ten_documents_share_a_code_with_a_topic(patents):
    index, folder = patents
    shared = {"fetch": "pl2(c=1)", "k": 1000}
    systems = {str(documents): {"model": "pl2(c=1,statistics=candidates)", "documents": documents} for documents in (10, 25)}
    found = effects.figures(index, read_topics(folder / "topics" / "topics.txt"), folder / "qrels.txt", "MRR", systems, **shared)
    assert found.mean("10") != found.mean("25")


def test_codes_and_parts_tell_documents_apart(patents, control):
    found = effects.document_figures(*patents)
    for system in ("codes", "parts"):
        assert found.finds(system, "text", "t") is not control, found.line(system, "text", "t")


def test_positions_tell_passages_apart(control, tmp_path):
    made = make_wikipedia(tmp_path / "inex", "positions", topics=10, control=control)
    found = effects.position_figures(effects.index_of(made.folder, tmp_path / "index"), made.folder, (500, 1000))
    for better, worse in (("psg_doc", "psg"), ("plm 500", "psg_doc"), ("plm 500", "psg_neighbor"), ("plm 1000", "psg_doc")):
        assert found.finds(better, worse, "t") is not control, found.line(better, worse, "t")


def test_tags_mark_relevant_words(control, tmp_path):
    made = make_wikipedia(tmp_path / "inex", "tags", control=control)
    index = effects.index_of(made.folder, tmp_path / "index", "none", "none")
    weights = effects.save_tags(index, made.training_judgements, "tags")
    assert {"b", "it", "link", "p", "sec"} <= set(weights)
    assert "u" not in weights
    assert (weights["b"] > 1.5 * weights["it"]) is not control
    found = effects.tag_figures(index, made.folder)
    for system in ("prox_h", "prox_hw"):
        assert found.finds(system, "prox", "wilcoxon") is not control, found.line(system, "prox", "wilcoxon")
