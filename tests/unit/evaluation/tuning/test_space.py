import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.models import MODELS
from perikope.build.indexing import build
from perikope.core.errors import UsageError
from perikope.evaluation.io.judgements import read_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.tuning.scores import choose, outcome_of
from perikope.evaluation.tuning.space import read_space
from perikope.evaluation.tuning.tuner import tune
from perikope.search.facade import Index
from perikope.search.options import SearchOptions
from perikope.search.recipe_files import recipe_text, save_recipe, toml_value
from perikope.search.recipes import load_recipe


@pytest.mark.parametrize(
    ("text", "wanted", "values"),
    [
        ("qsf_section(alpha,beta=0.2)", (), {"alpha": tuple(round(i / 10, 12) for i in range(11))}),
        ("qsf_section(alpha=[0.2,0.4])", (), {"alpha": (0.2, 0.4)}),
        ("qsf_section", ["mu"], {"mu": (500.0, 1000.0, 2000.0)}),
        ("qsf_section", {"beta": [0.5], "mu": True}, {"mu": (500.0, 1000.0, 2000.0), "beta": (0.5,)}),
        ("pl2", True, {"c": (0.5, 1.0, 2.0, 5.0, 10.0)}),
        ("qsf_v(alpha=0.3)", True, {"mu": (500.0, 1000.0, 2000.0)}),
        ("qsf_v(alpha=0.3,mu)", True, {"mu": (500.0, 1000.0, 2000.0)}),
        ("qsf_v(alpha=0.3)", ["alpha"], {"alpha": tuple(round(i / 10, 12) for i in range(11))}),
        ("rrf(models=[bm25(k1=0.9,b=0.4),pl2],k=60.0)", True, {"models.2.c": (0.5, 1.0, 2.0, 5.0, 10.0)}),
        ("position_prior(base=pl2(c=[1.0,2.0]))", (), {"base.c": (1.0, 2.0)}),
        ("position_prior", {"base.c": [3.0]}, {"base.c": (3.0,)}),
        ("rrf(models=[bm25,qsf_v(alpha=[0.1,0.3])],k=[1.0,9.0])", (), {"models.2.alpha": (0.1, 0.3), "k": (1.0, 9.0)}),
        ("fuse(models=[bm25,lm])", {"weights": [[0.1, 0.9], [0.5, 0.5]]}, {"weights": ((0.1, 0.9), (0.5, 0.5))}),
    ],
)
def test_what_is_tuned_is_said_in_the_model_or_beside_it(text, wanted, values):
    space = read_space(text, wanted)
    assert dict(space.values) == values
    assert len(space.settings) == math.prod(map(len, values.values())) == len(space.models)
    # Every model can be named, and its name has the values.
    assert len({str(model) for model in space.models}) == len(space.settings)


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("qsf_section(gamma)", (), "unknown parameter of qsf_section 'gamma'"),
        ("qsf_section", ["alhpa"], "did you mean 'alpha'"),
        ("qsf_section", {"alpha": []}, "give a list of values"),
        ("qsf_section", {"alpha": 0.5}, "give a list of values"),
        ("qsf_section(alpha=[2.0])", (), "out of range"),
        ("qsf_section(alpha=[0.2,7])", (), "qsf_section: alpha=7.0 is out of range"),
        ("qsf_section", {"alpha": [0.2, "much"]}, 'alpha must be a number, not "much"'),
        ("position_prior(base=pl2(c=[1.0,-1.0]))", (), r"position_prior: base\.c=-1\.0 is out of range"),
        ("plm(kernel=[gauss,square])", (), "unknown value of plm's kernel 'square'"),
        ("qsf_section(alpha=[])", (), r"qsf_section: alpha=\[\] has no value to try"),
        ("qsf_section(aggregate)", (), r"aggregate has no grid of several values.* aggregate=\[…\] \(\"average\" or \"maximum\"\)"),
        ("plm", ["points"], r"plm: points has no grid of several values; list values to try: points=\[…\] \(in \[1, 1000\]\)"),
        ("position_prior", ["base.mu"], "unknown parameter of position_prior 'base.mu'"),
        ("psg", True, "has no parameter with a grid"),
        ("pl2(c=1.0)", True, "pl2 has no parameter with a grid and without a value"),
        ("bm52", True, "did you mean 'bm25'"),
        ("qsf_section", {"alpha": [i / 1000 for i in range(1000)], "beta": [i / 1000 for i in range(1000)]}, "more than 100000"),
    ],
)
def test_mistakes_are_named(text, wanted, said):
    with pytest.raises(UsageError, match=said):
        read_space(text, wanted)


@pytest.mark.parametrize(("text", "said"), [("plm(points)", "points has no grid"), ("qsf_v(alpha=[0.5,9])", "alpha=9.0 is out of range")])
def test_what_is_drawn_from_is_checked_too(text, said):
    with pytest.raises(UsageError, match=said):
        read_space(text, search="random", trials=3)


def test_a_value_is_tried_once_however_it_is_written():
    assert read_space("qsf_v(alpha=[0.2,1,0.2,1.0])").settings == ((0.2,), (1,))
    assert read_space("plm(kernel=[gauss,'gauss',trapezoid])").settings == (("gauss",), ("trapezoid",))
    assert read_space("fuse(models=[bm25,lm])", {"weights": [[0.5, 0.5], [0.5, 0.5], [1, 0]]}).settings == (((0.5, 0.5),), ((1, 0),))


def test_every_model_with_a_grid_can_be_tuned():
    for name in MODELS.names():
        try:
            space = read_space(name, True)
        except UsageError as error:
            assert name in ("fuse", "learned") or "has no parameter with a grid" in str(error)  # noqa: PT017
            continue
        space.model(space.settings[-1])


def test_settings_of_one_shape_stand_together():
    space = read_space("qsf_section_propagate(sigma=[1.0,5.0],alpha=[0.1,0.2,0.3],mu=[10.0,20.0])")
    assert [len(group) for group in space.by_shape] == [3, 3, 3, 3]
    assert sorted(number for group in space.by_shape for number in group) == list(range(12))
    for group in space.by_shape:
        models = [space.models[number] for number in group]
        assert len({(model.parameters["sigma"], model.parameters["mu"]) for model in models}) == 1


def test_random_settings_are_drawn_by_the_seed_and_from_the_range():
    def drawn(seed):
        return read_space("plm(sigma,lam,points=[5,9])", search="random", trials=50, seed=seed)

    space = drawn(3)
    assert space.settings == drawn(3).settings != drawn(4).settings
    assert len(set(space.settings)) == 50
    sigmas, points, shares = zip(*space.settings, strict=True)
    assert all(500 <= sigma <= 1e7 for sigma in sigmas)
    assert sum(sigma < 1e5 for sigma in sigmas) > 15  # by their logarithm
    assert set(points) == {5, 9}
    assert all(0 <= share <= 1 for share in shares)
    assert len(set(shares)) > 40
    space.model(space.settings[0])


def test_random_search_ends_where_there_are_fewer_settings():
    assert len(read_space("rrf(k=[1.0,2.0])", search="random", trials=50).settings) == 2


@given(st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0]), min_size=6, max_size=6), min_size=1, max_size=5), st.data())
def test_folds_choose_without_their_own_topics(rows, data):
    scores = np.array(rows)
    space = read_space("qsf_v", {"alpha": [i / 10 for i in range(len(rows))]})
    qids = [f"q{i}" for i in range(6)]
    fold = {qid: i % 2 for i, qid in enumerate(data.draw(st.permutations(qids)))}
    tuned, chosen = outcome_of(space, scores, qids, parse_measure("AP"), fold)
    for number, setting in enumerate(chosen):
        taught = [i for i, qid in enumerate(qids) if fold[qid] != number]
        means = [round(math.fsum(row[i] for i in taught) / 3, 9) for row in rows]
        # The default of alpha is 0.8. So of equal means, that of the largest value here is nearest to it.
        assert setting == max(i for i, mean in enumerate(means) if mean == max(means))
        assert tuned.folds[number].chosen == {"alpha": setting / 10}
        assert tuned.folds[number].score == pytest.approx(np.mean([rows[setting][i] for i in range(6) if i not in taught]))
        assert tuned.folds[number].topics == 3
    assert tuned.scores == pytest.approx(scores.mean(axis=1))
    assert choose(scores, range(6), space.distances)[0] == space.settings.index((tuned.chosen["alpha"],))


def chosen_among(text, scores, **keywords):
    """The values that are chosen if each setting has one score for all topics."""
    space = read_space(text, **keywords)
    assert len(space.settings) == len(scores)
    tuned, _ = outcome_of(space, np.array([[score, score] for score in scores]), ["q1", "q2"], parse_measure("AP"), {})
    return tuned


def test_of_equal_settings_that_of_the_defaults_is_chosen():
    # The default of alpha is 0.8, and that of beta 0.1.
    assert chosen_among("qsf_v(alpha=[0.1,0.5,0.8,0.9])", [1, 1, 1, 1]).chosen == {"alpha": 0.8}
    assert chosen_among("qsf_v(alpha=[0.1,0.5,0.7,1.0])", [1, 1, 1, 1]).chosen == {"alpha": 0.7}
    assert chosen_among("qsf_v(alpha=[0.1,0.5,0.8,0.9])", [1, 1, 0.5, 0]).chosen == {"alpha": 0.5}
    assert chosen_among("qsf_v(alpha=[0.1,0.8])", [1 + 1e-12, 1]).chosen == {"alpha": 0.8}
    # The value in a recipe is the default of a tuned parameter.
    assert chosen_among("qsf_v(alpha=0.3)", [1] * 33, wanted=True, keep_given=False).chosen["alpha"] == 0.3
    # The default of a model inside another is the one that the other gives it.
    nested = chosen_among("position_prior(base=qsf_v(alpha=[0.2,0.6,0.9]))", [1, 1, 1])
    assert nested.chosen == {"base.alpha": 0.9}


def test_a_parameter_that_a_measure_does_not_depend_on_is_idle():
    # The settings are (mu, alpha) = (100, 0.2), (100, 0.8), (1000, 0.2), (1000, 0.8).
    text = "qsf_v(mu=[100,1000],alpha=[0.2,0.8])"
    assert read_space(text).settings[1] == (100, 0.8)
    assert chosen_among(text, [0.1, 0.1, 0.2, 0.2]).idle == ("alpha",)
    assert chosen_among(text, [0.1, 0.2, 0.1, 0.2]).idle == ("mu",)
    assert chosen_among(text, [0.1, 0.2, 0.2, 0.1]).idle == ()
    assert chosen_among(text, [0.1, 0.1, 0.1, 0.1]).idle == ("mu", "alpha")
    assert chosen_among("qsf_v(alpha=[0.2])", [0.1]).idle == ()
    # With alpha = 0 the passage has no weight, and the measure is worse.
    text = "qsf_v(alpha=[0.0,0.3,0.6,1.0])"
    assert chosen_among(text, [0.1, 0.2, 0.2, 0.2]).idle == ("alpha",)
    assert chosen_among(text, [0.3, 0.2, 0.2, 0.2]).idle == ()
    assert chosen_among(text, [0.2, 0.1, 0.2, 0.2]).idle == ()
    assert chosen_among(text, [0.1, 0.2, 0.2, 0.1]).idle == ()
    assert chosen_among("qsf_v(alpha=[0.0,0.3,0.6])", [0.1, 0.2, 0.2]).idle == ()
    text = "qsf_v(mu=[100,1000],alpha=[0.2,0.8])"
    assert "AP does not depend on alpha" in chosen_among(text, [0.1, 0.1, 0.2, 0.2]).idle_note
    assert chosen_among(text, [0.1, 0.2, 0.2, 0.1]).idle_note == ""


def test_the_measure_that_depends_on_more_parameters_is_taken(collection):
    index, topics, judgements = collection
    space = read_space("qsf_v(alpha)")

    def tuned(measures):
        return tune(index, topics, judgements, space, measures, SearchOptions(k=1000), folds=0, workers=1)[0]

    # All passages of a document have the same score of the document. So MAP(D) is flat, except at 0.
    assert tuned("MAP(D)").idle == ("alpha",)
    assert tuned("MAP(D)").chosen == {"alpha": 0.8}
    assert tuned("nDCG@10").idle == ()
    assert tuned(("MAP(D)", "nDCG@10")) == tuned("nDCG@10")
    assert tuned(("nDCG@10", "AP")).measure == "nDCG@10"


def test_a_fold_that_leaves_nothing_is_refused():
    space = read_space("qsf_v(alpha=[0.1])")
    with pytest.raises(UsageError, match="leaves no topic"):
        outcome_of(space, np.zeros((1, 2)), ["q1", "q2"], parse_measure("AP"), {"q1": 0, "q2": 0})


@pytest.fixture
def collection(files):
    build(str(files / "idx"), [str(files / "documents.jsonl")])
    return files / "idx", read_topics(files / "topics.tsv"), read_judgements(files / "qrels.txt")


@pytest.mark.parametrize(
    ("text", "measure", "options"),
    [
        ("qsf_section_propagate(sigma=[1.0,5.0],alpha=[0.3,0.7],beta=[0.1,0.9])", "MAP(D)", {}),
        ("bm25(k1=[0.6,2.0])", "nDCG@5", {"part": "description"}),
        ("pl2(c=[0.5,5.0])", "AP", {"browse_expand": "bo1(documents=2,terms=3)", "expand": "rm3"}),
        ("psg_doc(lam=[0.1,0.9])", "PREC(D)", {"group_by_document": "fetch"}),
        ("psg_neighbor(left=[0.25,0.75],right=[0.0,0.5],lam=[0.5])", "RR", {}),
    ],
)
def test_scores_of_settings_are_those_of_searches_one_by_one(collection, text, measure, options):
    index, topics, judgements = collection
    space, by_name = read_space(text), parse_measure(measure)
    tuned, problems = tune(
        index, topics, judgements, space, measure, SearchOptions.of({**options, "k": 30}), documents=(3,), folds=3, workers=1
    )
    assert not problems
    opened = Index.open(index)

    def mean(model):
        values = []
        for topic in topics:
            results = opened.search(topic.query, model=model, documents=3, k=30, **options)
            values.append(by_name([name for name, _ in results.names()], judgements[topic.qid]))
        return math.fsum(values) / len(values)

    for setting, score in zip(tuned.settings, tuned.scores, strict=True):
        assert score == pytest.approx(mean(space.model(setting)), abs=1e-12)
    # What a model refuses (left and right above 1) is not among the settings that were tried.
    assert len(tuned.settings) == len(space.settings) - ("psg_neighbor" in text)
    assert max(tuned.scores) == tuned.scores[tuned.settings.index(tuple(tuned.chosen.values()))]


def test_documents_are_a_parameter_like_others_and_processes_change_nothing(collection):
    index, topics, judgements = collection
    space = read_space("qsf_v(alpha=[0.2,0.8])")
    one, _ = tune(index, topics, judgements, space, "MAP(D)", SearchOptions(k=1000), documents=(1, 5), workers=1)
    assert one.parameters == ("documents", "alpha")
    assert one.settings == ((1, 0.2), (1, 0.8), (5, 0.2), (5, 0.8))
    alone, _ = tune(index, topics, judgements, space, "MAP(D)", SearchOptions(k=1000), documents=(5,), workers=1)
    assert one.scores[2:] == alone.scores
    assert tune(index, topics, judgements, space, "MAP(D)", SearchOptions(k=1000), documents=(1, 5), workers=2)[0] == one


def test_a_saved_setting_is_a_recipe_that_ranks_as_it_did(collection, tmp_path):
    index, topics, _ = collection
    model = read_space("qsf_section(alpha=[0.3])").models[0]
    options = {
        "fetch": "pl2(c=2)",
        "documents": 7,
        "filter": [],
        "fetch_parts": {"abstract": 2.0},
        "part": ("description",),
        "syntax": "words",
    }
    save_recipe(tmp_path / "mine.toml", recipe_text('a "title"', SearchOptions.of({**options, "model": model}), "tuned"))
    recipe = load_recipe(str(tmp_path / "mine.toml"))
    assert recipe.title == 'a "title"'
    assert recipe.options == {
        "fetch": "pl2(c=2)", "documents": 7, "fetch_parts": {"abstract": 2.0}, "part": ("description",),
        "model": str(model),
    }  # fmt: skip
    opened = Index.open(index)
    given = {name: value for name, value in options.items() if value}
    found = opened.search(topics[0].query, recipe=str(tmp_path / "mine.toml"))
    assert found.names() == opened.search(topics[0].query, model=model, **given).names()
    with pytest.raises(UsageError, match=r"ends in \.toml"):
        save_recipe(tmp_path / "mine.json", "")


@given(st.text())
def test_any_text_is_written_as_toml(text):
    import tomllib

    assert tomllib.loads(f"a = {toml_value(text)}")["a"] == text
