"""On real topics, a combination that scores a shortlist ranks as well as one that scores all candidates."""

import numpy as np
import pytest

from perikope.browse.models.shortlist import SHORTLIST, Shortlist
from perikope.build.indexing import build
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.learning import examples, validation
from perikope.evaluation.learning.examples import JudgedTopics, Sampling
from perikope.evaluation.learning.validation import Learner, evaluate_combinations
from perikope.evaluation.measures.declaration import parse_measure
from perikope.search.facade import Index
from perikope.search.options import SearchOptions

EVERYTHING = Shortlist(documents=10**9, passages=10**9)
LOSS = 0.02
"""Largest loss of nDCG@10 that the documentation allows."""


def judgements(path):
    judged = {}
    for line in path.read_text("utf-8").splitlines():
        qid, _, name, grade = line.split()
        judged.setdefault(qid, {})[name] = int(grade)
    return judged


@pytest.fixture(scope="module")
def sources(shared_data, tmp_path_factory):
    """Topics to learn from, and others to measure on."""
    data, folder = shared_data / "evidence-inference", tmp_path_factory.mktemp("learned") / "index"
    build(str(folder), [str(data / "documents.jsonl.gz")])
    snapshot = Index.open(folder).snapshot
    return [
        JudgedTopics(
            snapshot,
            tuple(read_topics(data / f"{part}-topics.tsv")[::step]),
            judgements(data / f"{part}-qrels.txt"),
            SearchOptions(model="coverage"),
            threads=1,
        )
        for part, step in (("train", 48), ("validation", 6))
    ]


def test_a_shortlist_loses_nothing(sources, monkeypatch):
    training, held_out = sources
    learned = {}
    for name, shortlist in (("all", EVERYTHING), ("shortlist", SHORTLIST)):
        for module in (examples, validation):
            monkeypatch.setattr(module, "SHORTLIST", shortlist)
        learned[name], _ = Learner().fit(list(training.groups(Sampling())), "zscore")
    figures = evaluate_combinations(held_out, lambda topic: learned, {}, [parse_measure("nDCG@10")])
    mean = {name: np.mean(list(of_measures["nDCG@10"].values())) for name, of_measures in figures.items()}
    assert mean["shortlist"] > mean["all"] - LOSS, mean
    # The shortlist is one: most candidates are not on it.
    matches = held_out.look_into(held_out.topics[0])[1]
    assert SHORTLIST.of(matches).matches.passages < 0.2 * matches.passages
