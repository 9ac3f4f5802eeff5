"""Learning recovers the weights that made the judgements, uses no held-out topic, and gives the same bytes again."""

import builtins
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from perikope.browse.models import parse_model
from perikope.browse.models.combination import KIND, TreeCombination, combination_of
from perikope.browse.models.features import FEATURES
from perikope.browse.signals import fact
from perikope.core.errors import MissingExtra, UsageError
from perikope.evaluation.folds import fold_of_documents, fold_of_topic
from perikope.evaluation.learning.examples import Group, JudgedTopics, Sampling, group_of, judged_topics
from perikope.evaluation.learning.export import write_svmlight
from perikope.evaluation.learning.lambdamart import fit_trees
from perikope.evaluation.learning.linear import fit_linear
from perikope.evaluation.learning.saving import save, text_path
from perikope.evaluation.learning.validation import HELD_OUT, Learner, _shared, learn, single_models
from perikope.evaluation.measures import parse_measures
from perikope.index.saved_tables import read_table
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions
from tests.support.collections import WORDS, index_of, plain_document

TRUE = np.array([2.0, -1.0, 0.0, 0.5])


def synthetic(topics, weights=TRUE, rows=50, seed=0, stands_for=None):
    """Topics whose one relevant passage was drawn with the probability that the weights give it."""
    generator = np.random.default_rng(seed)
    groups = []
    for number in range(topics):
        features = generator.normal(size=(rows, weights.size))
        share = np.exp(features @ weights)
        grades = np.zeros(rows, np.int64)
        grades[generator.choice(rows, p=share / share.sum())] = 1
        counts = np.ones(rows) if stands_for is None else stands_for
        groups.append(Group(str(number), tuple(f"d#{i}" for i in range(rows)), features, grades, counts))
    return groups


def plain_loss(groups, weights, l2, scale):
    total = 0.0
    for group in groups:
        scores = [float(row @ weights) for row in group.features]
        denominator = sum(count * np.exp(score) for count, score in zip(group.stands_for, scores, strict=True))
        total += sum(-g / group.grades.sum() * np.log(np.exp(s) / denominator) for g, s in zip(group.grades, scores, strict=True) if g)
    return total / len(groups) + l2 / 2 * float(((weights / scale) ** 2).sum())


def test_known_weights_are_recovered():
    found = np.array(fit_linear(synthetic(3000), l2=1e-6))
    np.testing.assert_allclose(found, TRUE, atol=0.1)


def test_no_step_makes_the_loss_smaller():
    counts = np.linspace(1, 20, 30)
    groups = synthetic(20, rows=30, stands_for=counts)
    groups[0] = replace(groups[0], grades=np.arange(30) % 3)
    found = np.array(fit_linear(groups, l2=0.1))
    values = np.concatenate([group.features for group in groups])
    weights = np.concatenate([group.stands_for for group in groups])
    means = np.concatenate([np.tile(group.stands_for @ group.features / counts.sum(), (30, 1)) for group in groups])
    scale = 1 / np.sqrt(weights @ (values - means) ** 2 / weights.sum())
    least = plain_loss(groups, found, 0.1, scale)
    for i in range(found.size):
        for step in (-1e-3, 1e-3):
            moved = found.copy()
            moved[i] += step
            assert plain_loss(groups, moved, 0.1, scale) > least


def test_drawn_passages_stand_for_those_that_were_not():
    """With the best by one feature and a tenth of the rest, the weights are nearly those of all passages."""
    groups = synthetic(1500, rows=400, seed=3)
    sampled = []
    for number, group in enumerate(groups):
        sure = (group.grades > 0) | (group.features[:, 0] > 1)
        drawn = ~sure & (np.random.default_rng(number).random(400) < 0.1)
        counts = np.where(drawn, (~sure).sum() / max(drawn.sum(), 1), 1.0)
        kept = sure | drawn
        sampled.append(Group(group.qid, (), group.features[kept], group.grades[kept], counts[kept]))
    whole = np.array(fit_linear(groups, l2=1e-4))
    np.testing.assert_allclose(fit_linear(sampled, l2=1e-4), whole, atol=0.1)
    alike = [replace(group, stands_for=np.ones(group.grades.size)) for group in sampled]
    assert np.abs(np.array(fit_linear(alike, l2=1e-4)) - whole).max() > 0.3


def test_a_feature_that_never_differs_weighs_nothing():
    groups = [replace(group, features=np.hstack([group.features, np.ones((50, 1))])) for group in synthetic(50)]
    assert fit_linear(groups)[-1] == 0.0


def test_topics_without_anything_relevant_say_nothing():
    groups = synthetic(30)
    silent = replace(groups[0], qid="silent", grades=np.zeros(50, np.int64))
    assert fit_linear([*groups, silent]) == fit_linear(groups)
    for fit in (fit_linear, lambda groups: fit_trees(groups, list("abcd"))):
        with pytest.raises(UsageError, match="no topic has a relevant passage"):
            fit([silent])
    with pytest.raises(UsageError, match="l2 must be above 0"):
        fit_linear(groups, l2=0.0)


def test_folds_are_even_and_depend_on_topics_and_seed_alone():
    qids = [f"q{i}" for i in range(23)]
    folds = fold_of_topic(qids, 5, seed=1)
    assert sorted(np.bincount(list(folds.values())).tolist()) == [4, 4, 5, 5, 5]
    assert fold_of_topic(qids[::-1], 5, seed=1) == folds
    assert fold_of_topic(qids, 5, seed=2) != folds
    with pytest.raises(UsageError, match="--folds must be from 2 to 23"):
        fold_of_topic(qids, 24, seed=1)


def test_topics_that_share_a_relevant_document_stay_together():
    judgements = {"a": {"d1#1": 1, "d2#1": 1}, "b": {"d2#5": 1}, "c": {"d3#1": 1, "d1#2": 0}, "d": {"d4": 1}, "e": {"d3#9": 2}, "f": {}}
    for seed in range(5):
        folds = fold_of_documents(list(judgements), judgements, 3, seed)
        assert folds["a"] == folds["b"] != folds["c"] == folds["e"]
        assert folds == fold_of_documents(list(judgements)[::-1], judgements, 3, seed)
        assert sorted(np.bincount(list(folds.values())).tolist()) == [2, 2, 2]
    assert _shared({"a": 0, "b": 1, "c": 1, "d": 0, "e": 1, "f": 2}, judgements) == 2
    with pytest.raises(UsageError, match=r"--folds must be from 2 to 4, not 5.*--folds-by topics"):
        fold_of_documents(list(judgements), judgements, 5, 1)


TOPICS = tuple(
    Topic(f"q{i}", f"{first} {second}") for i, (first, second) in enumerate(zip(WORDS[:5] * 4, ["seal", "valve"] * 10, strict=True))
)


@pytest.fixture(scope="module")
def index():
    """Thirty documents of words drawn by chance."""
    generator = np.random.default_rng(5)
    words = ["pump", "rotor", "magnet", "seal", "shaft", "valve", "heat", "water"]
    documents = [
        plain_document(f"d{i:02}", words[i % 8], *(" ".join(generator.choice(words, generator.integers(2, 9))) for _ in range(6)))
        for i in range(30)
    ]
    return index_of(documents, [10])


def judged_by(index, of_passage, topics=TOPICS):
    """Judgements: of each topic the three passages with the highest value of a function of results and row."""
    judgements = {}
    for topic in topics:
        results = index.search(topic.query, model="qsf_v")
        values = of_passage(topic, results)
        best = np.argsort(-values, kind="stable")[:3]
        judgements[topic.qid] = dict.fromkeys(results.names_of(best), 1)
    return judgements


@pytest.fixture(scope="module")
def source(index):
    """The relevant passages are those in which most of the query is matched, the shorter the better."""

    def value(topic, results):
        return parse_model("bm25").score(results.matches).values - 0.1 * results.matches.length_of_passage

    return JudgedTopics(index.snapshot, TOPICS, judged_by(index, value), SearchOptions(model="qsf_v"), threads=2)


MEASURES = parse_measures("nDCG@10 AP")


def test_what_is_learned_beats_what_it_was_learned_with(source):
    learned = learn(source, Learner(), MEASURES, folds=4, compare=["qsf_v", "lm"])
    assert learned.mean(HELD_OUT, "nDCG@10") > 0.9
    assert learned.mean(HELD_OUT, "nDCG@10") > learned.mean("qsf_v", "nDCG@10") + 0.05
    assert set(learned.figures) == {HELD_OUT, "qsf_v", "lm"}
    assert set(learned.figures["lm"]["AP"]) == {topic.qid for topic in TOPICS}


def test_shuffled_judgements_teach_nothing(index):
    """Judgements by chance: what is learned must do on held-out topics as chance does."""
    generator = np.random.default_rng(11)
    topics = tuple(Topic(f"r{i}", TOPICS[i % 20].query) for i in range(60))
    judgements = judged_by(index, lambda topic, results: generator.random(results.matches.passages), topics)
    chance = []
    for topic in topics:
        results = index.search(topic.query, model="qsf_v")
        names = results.names_of(generator.permutation(results.matches.passages))
        chance.append(MEASURES[0](names, judgements[topic.qid]))
    source = JudgedTopics(index.snapshot, topics, judgements, SearchOptions(model="qsf_v"), threads=1)
    for method in ("linear", "lambdamart"):
        if method == "lambdamart":
            pytest.importorskip("lightgbm")
        learned = learn(source, Learner(method), MEASURES, folds=5)  # type: ignore[arg-type]
        assert learned.mean(HELD_OUT, "nDCG@10") < np.mean(chance) + 3 * np.std(chance) / np.sqrt(len(chance))
    # On the topics it was learned from, the same judgements can be fitted: the test would see a leak.
    trees = learn(source, Learner("lambdamart"), MEASURES, folds=2).combination
    own = []
    for group in source.groups(Sampling()):
        columns = {name: fact(name, group.features[:, i].copy()) for i, name in enumerate(FEATURES)}
        scores = sum(column.values for column in trees.contributions(columns).values())
        own.append(MEASURES[0]([group.names[i] for i in np.argsort(-scores, kind="stable")], judgements[group.qid]))
    assert np.mean(own) > np.mean(chance) + 0.3


def test_a_topic_is_ranked_only_by_what_was_learned_without_it(source, monkeypatch):
    taught = []

    def fit(self, groups, normalize):
        taught.append({group.qid for group in groups})
        return real(self, groups, normalize)

    real = Learner.fit
    monkeypatch.setattr(Learner, "fit", fit)
    learn(source, Learner(seed=3), MEASURES, folds=4)
    fold = fold_of_topic([topic.qid for topic in TOPICS], 4, 3)
    everything = {topic.qid for topic in TOPICS}
    assert taught == [{qid for qid in everything if fold[qid] != number} for number in range(4)] + [everything]


@pytest.mark.parametrize("method", ["linear", "lambdamart"])
def test_the_same_seed_gives_the_same_bytes(source, tmp_path, method):
    if method == "lambdamart":
        pytest.importorskip("lightgbm")
    written = []
    for folder, threads in (("a", 1), ("b", 3)):
        own = replace(source, threads=threads)
        path = save(tmp_path / folder, "mine", learn(own, Learner(method), MEASURES, folds=3, compare=["bm25"]))
        written.append({file.name: file.read_bytes() for file in sorted(path.parent.iterdir())})
    assert written[0] == written[1]
    text = {text_path(tmp_path / "a", "mine").name} if method == "lambdamart" else set()
    assert set(written[0]) == {"mine.json", "write.lock", *text}


def test_the_table_says_where_it_comes_from(source, tmp_path):
    save(tmp_path, "mine", learn(source, Learner(), MEASURES, folds=3, compare=["qsf_v"]))
    combination = combination_of(read_table("mine", KIND, tmp_path))
    facts = combination.training
    assert combination.features == tuple(FEATURES)
    assert combination.normalize == "zscore"
    assert facts["topics"] == 20
    assert facts["measure"] == "nDCG@10"
    assert facts["figures"][HELD_OUT] > facts["figures"]["qsf_v"] > 0
    lines = "".join(f"{t.qid} {name} {grade}\n" for t in TOPICS for name, grade in sorted(source.judgements[t.qid].items()))
    assert facts["judgements_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    changed = replace(source, judgements={**source.judgements, "q0": {"d01#@1": 2}})
    assert changed.facts()["judgements_sha256"] != facts["judgements_sha256"]


def test_a_saved_combination_ranks_as_it_did_when_it_was_measured(source, index):
    pytest.importorskip("lightgbm")
    for method in ("linear", "lambdamart"):
        learned = learn(source, Learner(method), MEASURES, folds=2)
        save(index.folder, method, learned)
        group = next(iter(source.groups(Sampling(depth=1000))))
        results = index.search(TOPICS[0].query, model=f'learned(name="{method}")', k=1000)
        found = dict(results.names())
        columns = {name: fact(name, group.features[:, i].copy()) for i, name in enumerate(FEATURES)}
        contributions = learned.combination.contributions(columns).values()
        expected = dict(zip(group.names, sum(column.values for column in contributions).tolist(), strict=True))
        assert found == pytest.approx(expected)
    text = text_path(index.folder, "lambdamart")
    assert text.is_file()
    save(index.folder, "lambdamart", learn(source, Learner(), MEASURES, folds=2))
    assert text_path(index.folder, "lambdamart") is None
    assert not text.exists(), "the text of trees that are gone goes too"


def test_examples_are_the_judged_the_best_and_some_others(index):
    judged = {"d03#@2": 2, "d04#@1": -1, "d99#@1": 1}
    results = index.search("pump seal", model="qsf_v", k=10)
    sampling = Sampling(depth=10, others=7, seed=1)
    group = group_of("q", index.snapshot, results.matches, results.ranking, judged, sampling, "minmax")
    known = {name for name in judged if name in results.names_of(np.arange(results.matches.passages))}
    best = {name for name, _ in results.names()}
    assert known | best <= set(group.names)
    assert len(group.names) == len(known | best) + 7
    assert group.stands_for.sum() == pytest.approx(results.matches.passages)
    assert {name: int(grade) for name, grade in zip(group.names, group.grades, strict=True) if grade} == {"d03#@2": 2}
    assert group.features.shape == (len(group.names), len(FEATURES))
    with pytest.raises(UsageError, match="not both 0"):
        Sampling(0, 0)


def test_what_is_drawn_does_not_depend_on_how_the_index_came_to_be():
    documents = [plain_document(f"d{i}", "", "pump one", "a seal of a pump", "rotor", "heat") for i in range(6)]
    groups = []
    for index in (index_of(documents), index_of(documents[::-1], [2])):
        found = index.search("pump seal", model="qsf_v", k=3)
        groups.append(group_of("q", index.snapshot, found.matches, found.ranking, {"d1#@3": 1}, Sampling(3, 5, 1), "zscore"))
    assert groups[0].names == groups[1].names
    assert (groups[0].features == groups[1].features).all()


def test_topics_that_cannot_teach_are_reported(index):
    problems = []
    topics = [Topic("a", "pump"), Topic("b", "pump"), Topic("c", "the of")]
    kept = judged_topics(index.snapshot, topics, {"a": {"d1": 1}, "b": {"d1": 0}, "c": {"d1": 1}}, SearchOptions(), problems.append)
    assert [topic.qid for topic in kept] == ["a"]
    assert problems[0] == "topic b: nothing is judged relevant"
    assert problems[1].startswith("topic c: the query 'the of' contains only stop words")
    with pytest.raises(UsageError, match="no topic has a valid query and a relevant judgement"):
        judged_topics(index.snapshot, topics, {}, SearchOptions(), problems.append)


def test_trees_score_as_lightgbm_does():
    lightgbm = pytest.importorskip("lightgbm")
    groups = synthetic(60, rows=40, seed=2)
    trees, text = fit_trees(groups, ["a", "b", "c", "d"], trees=30, leaves=7)
    booster = lightgbm.Booster(model_str=text)
    features = np.concatenate([group.features for group in groups])
    columns = dict(zip(["bm25", "lm", "psg", "prox"], map(fact, "abcd", features.T.copy()), strict=True))
    contributions = TreeCombination(tuple(columns), "minmax", trees).contributions(columns)
    np.testing.assert_allclose(
        sum(column.values for column in contributions.values()), booster.predict(features, raw_score=True), rtol=1e-9, atol=1e-12
    )
    # The two features that matter are found.
    sizes = {name: np.abs(column.values).mean() for name, column in contributions.items()}
    assert sizes["bm25"] > sizes["lm"] > 3 * sizes["psg"]


def test_grades_that_lightgbm_cannot_take_are_refused():
    pytest.importorskip("lightgbm")
    groups = synthetic(5)
    with pytest.raises(UsageError, match="grades up to 30, not 31"):
        fit_trees([replace(groups[0], grades=groups[0].grades * 31)], list("abcd"))


def test_a_missing_library_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name == "lightgbm":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"needs lightgbm.*pip install '.*\[ltr\]'"):
        fit_trees(synthetic(3), list("abcd"))


def read_svmlight(path):
    lines = path.read_text("utf-8").splitlines()
    rows = []
    for line in (line for line in lines if not line.startswith("#")):
        values, _, comment = line.partition(" # ")
        grade, qid, *pairs = values.split()
        rows.append((int(grade), qid, {int(i): float(x) for i, x in (pair.split(":") for pair in pairs)}, comment))
    return [line for line in lines if line.startswith("#")], rows


def test_exported_examples_are_read_back(source, tmp_path):
    path = tmp_path / "examples.txt"
    groups = list(source.groups(Sampling(depth=5, others=3)))
    lines = write_svmlight(path, groups, [topic.qid for topic in TOPICS])
    header, rows = read_svmlight(path)
    assert lines == len(rows) == sum(len(group.names) for group in groups)
    assert [line.split()[2].rstrip(":") for line in header[1:]] == list(FEATURES)
    at = iter(rows)
    for number, group in enumerate(groups, 1):
        for name, features, grade in zip(group.names, group.features, group.grades, strict=True):
            found = next(at)
            assert found[:2] == (grade, f"qid:{number}")
            assert [found[2].get(i, 0.0) for i in range(1, len(FEATURES) + 1)] == features.tolist()
            assert found[3] == f"{name} {group.qid}"


def test_numbers_of_topics_stay(tmp_path):
    path = tmp_path / "examples.txt"
    group = Group("17", ("d#p",), np.zeros((1, len(FEATURES))), np.array([2]), np.ones(1))
    write_svmlight(path, [group], ["17"])
    assert read_svmlight(path)[1] == [(2, "qid:17", {}, "d#p")]


def test_single_models_are_those_that_stand_alone():
    names = single_models()
    assert {"bm25", "qsf_section", "prox"} <= set(names)
    assert not {"fuse", "rrf", "learned", "position_prior", "colbert", "hgat", "vectors"} & set(names)


def test_tables_are_plain_json(source, tmp_path):
    path = save(tmp_path, "mine", learn(source, Learner(), MEASURES, folds=2))
    values = json.loads(path.read_text("utf-8"))["values"]
    assert values["method"] == "linear"
    assert len(values["weights"]) == len(values["features"]["names"]) == len(FEATURES)
