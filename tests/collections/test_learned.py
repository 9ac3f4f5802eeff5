"""On real topics, a combination that scores a shortlist ranks as well as one that scores all candidates."""

from dataclasses import replace

import numpy as np
import pytest

from perikope.browse.models.combination import CombinationScorer
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
KEPT = 0.99
"""Smallest share of the ten best passages of all candidates that must be on the shortlist."""


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
        for part, step in (("train", 64), ("validation", 8))
    ]


def learned_with(shortlist, training, monkeypatch):
    for module in (examples, validation):
        monkeypatch.setattr(module, "SHORTLIST", shortlist)
    return Learner().fit(list(training.groups(Sampling())), "zscore")[0]


def kept(shortlist, combination, topics):
    """The share of the ten best passages of a combination that scores everything, that a shortlist keeps."""
    shares = []
    for topic in topics.topics:
        matches = topics.look_into(topic)[1]
        best = np.argsort(-CombinationScorer(matches).score(combination).values, kind="stable")[:10]
        shares.append(np.isin(best, shortlist.of(matches).rows).mean())
    return np.mean(shares)


def test_a_shortlist_loses_nothing(sources, monkeypatch):
    training, held_out = sources
    learned = {name: learned_with(shortlist, training, monkeypatch) for name, shortlist in (("all", EVERYTHING), ("shortlist", SHORTLIST))}
    figures = evaluate_combinations(held_out, lambda topic: learned, {}, [parse_measure("nDCG@10")])
    mean = {name: np.mean(list(of_measures["nDCG@10"].values())) for name, of_measures in figures.items()}
    assert mean["shortlist"] > mean["all"] - LOSS, mean
    # Each of these topics has its answers in one document, so nDCG alone would not notice a list that is too short.
    few = replace(held_out, topics=held_out.topics[::2])
    assert kept(SHORTLIST, learned["all"], few) > KEPT > kept(Shortlist(documents=1, passages=1), learned["all"], few)
    matches = held_out.look_into(held_out.topics[0])[1]
    assert SHORTLIST.of(matches).matches.passages < 0.2 * matches.passages
