"""Figures on real collections: a plain reference implementation's are the floor, ir_measures' are the judge."""

import ir_measures
import pytest

from perikope.api import Index
from perikope.batch import search_topics
from perikope.build import BuildOptions, build
from perikope.io.judgements import read_judgements
from perikope.io.topics import read_topics
from perikope.measures import evaluate

COLLECTIONS = {
    "conditionalqa": ("conditionalqa/documents.jsonl", "conditionalqa/topics.tsv", "conditionalqa/qrels.txt"),
    "evidence-inference": (
        "evidence-inference/documents.jsonl.gz",
        "evidence-inference/validation-topics.tsv",
        "evidence-inference/validation-qrels.txt",
    ),
}
REFERENCE = {  # nDCG@10 and MAP(D) of the reference implementation, with a margin for another stop list
    ("conditionalqa", "bm25"): (0.370, 0.424),
    ("conditionalqa", "qsf_v"): (0.382, 0.438),
    ("conditionalqa", "qsf_v_title"): (0.469, 0.481),
    ("evidence-inference", "bm25"): (0.348, 0.307),
    ("evidence-inference", "qsf_v"): (0.425, 0.369),
    ("evidence-inference", "qsf_v_title"): (0.480, 0.403),
}
MARGIN = 0.01


@pytest.fixture(scope="module")
def indexes(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("collections")
    for name, (documents, _, _) in COLLECTIONS.items():
        build(str(folder / name), [str(shared_data / documents)], BuildOptions(stemmer="porter"))
    return {name: Index.open(folder / name) for name in COLLECTIONS}


@pytest.mark.parametrize(("collection", "model"), REFERENCE)
def test_a_model_reaches_the_reference(indexes, shared_data, collection, model):
    _, topics, qrels = (shared_data / path for path in COLLECTIONS[collection])
    judgements = read_judgements(qrels)
    problems = []
    found = search_topics(indexes[collection], read_topics(topics), problems.append, model=model, k=1000)
    run = {qid: {name: -float(rank) for rank, (name, _) in enumerate(ranking)} for qid, ranking in found}
    assert problems == []
    mean = evaluate("nDCG@10 MAP(D) AP", judgements, run).mean
    expected = REFERENCE[collection, model]
    assert mean["nDCG@10"] > expected[0] - MARGIN
    assert mean["MAP(D)"] > expected[1] - MARGIN
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.AP], judgements, run)
    assert mean["nDCG@10"] == pytest.approx(theirs[ir_measures.nDCG @ 10], abs=1e-9)
    assert mean["AP"] == pytest.approx(theirs[ir_measures.AP], abs=1e-9)
