"""Fusion of models and learned combinations: accepted parameters, errors and explanations."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from perikope.browse.models import parse_model
from perikope.browse.models.combination import KIND, LinearCombination, RegressionTree, TreeCombination, combination_of
from perikope.browse.models.features import FEATURES, VERSION, features, normalized_features
from perikope.browse.models.shortlist import Shortlist
from perikope.core.errors import InputError, UsageError
from perikope.index.saved_tables import SavedTable, read_table, write_table
from tests.support.collections import index_of, plain_document


@pytest.fixture
def index():
    return index_of(
        [
            plain_document(
                "d2", "Pumps", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor and magnet."
            ),
            plain_document("d1", "Valves with magnets", "The valve opens.", "A magnet closes the valve when the pump stops."),
        ],
        [1],
    )


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("fuse(models=bm25)", "models must be a list such as"),
        ("fuse(models=[])", "models must be a list such as"),
        ("fuse(models=[bm25,5])", "each of models must be a name, not 5"),
        ("fuse(models=[bm25,bm52])", "unknown model 'bm52'; did you mean 'bm25'"),
        ("fuse(models=[bm25(k1=-1)])", "k1=-1.0 is out of range"),
        ('fuse(weights=["a"])', 'each of weights must be a number, not "a"'),
        ("fuse(weights=[true])", "each of weights must be a number, not true"),
        ("fuse(weights=[1e9])", "out of range"),
        ("fuse(weights=1)", "weights must be a list"),
        ("fuse(normalize=l2)", "unknown value of fuse's normalize"),
        ("rrf(k=-1)", "k=-1.0 is out of range"),
        ("learned(name=5)", "name must be the name of a table"),
        ("learned(name=nothing)", "unknown table of fusion 'nothing'; valid: even"),
        ("fuse(models=[bm25,psg],weights=[1,2,3])", "there are 2 models but 3 weights"),
        ("fuse(models=[bm25,psg],weights=[0,0])", "no model has a weight above 0"),
    ],
)
def test_a_mistake_is_explained(index, model, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search("magnet", model=model)


def test_models_in_a_list_may_be_words_texts_or_calls():
    model = parse_model('fuse(models=[bm25,"psg_doc(lam=0.5)",fuse(models=[lm])],weights=[1,0.5,2],normalize=sum)')
    assert [one.definition.name for one in model.inner] == ["bm25", "psg_doc", "fuse"]
    assert model.inner[1].parameters["lam"] == 0.5
    assert model.parameters["weights"] == (1.0, 0.5, 2.0)
    assert str(parse_model(str(model))) == str(model)


def test_only_models_without_context_leave_out_what_does_not_match(index):
    assert parse_model("fuse(models=[bm25,psg])").matching_only
    assert not parse_model("fuse(models=[bm25,qsf_v])").matching_only
    assert len(index.search("seal", model="rrf(models=[bm25,lm])")) == 1
    assert len(index.search("seal", model="rrf(models=[bm25,qsf_v])")) == 3
    # A fused score depends on the candidates, even if its models do not.
    assert not parse_model("rrf(models=[bm25,lm])").context_free


def test_one_model_as_it_is(index):
    alone = index.search("magnet pump", model="qsf_section").names()
    assert index.search("magnet pump", model="fuse(models=[qsf_section],weights=[1],normalize=none)").names() == alone


def test_the_rank_stands_in_the_label(index):
    results = index.search("magnet pump", model="rrf(models=[bm25,qsf_v],k=10)")
    for number in range(len(results)):
        node = results.explain(number)
        for child in node.children:
            match = re.match(r"1 ÷ \(10 \+ (\d+)\): rank \1 by (bm25|qsf_v)", child.label)
            assert match is None or child.value == pytest.approx(1 / (10 + int(match[1])))
            assert match is not None or (child.label == "not ranked by bm25" and child.value == 0)
    assert any(child.label == "not ranked by bm25" for number in range(len(results)) for child in results.explain(number).children)


def test_features_are_finite_and_stand_between_their_extremes(index):
    matches = index.search("magnet pump", model="bm25").matches
    for column in features(matches).values():
        assert np.isfinite(column.values).all()
    for name, column in normalized_features(matches, FEATURES, "minmax").items():
        assert column.values.min() >= -1e-12, name
        assert column.values.max() <= 1 + 1e-12, name
    for column in normalized_features(matches, FEATURES, "zscore").values():
        assert column.values.mean() == pytest.approx(0, abs=1e-9)
        assert column.values.std() == pytest.approx(1) or not column.values.any()
    with pytest.raises(UsageError, match="unknown feature 'bm52'; did you mean 'bm25'"):
        features(matches, ["bm52"])


def test_features_of_structure():
    index = index_of([plain_document("d1", "Pumps", "magnet", "a rotor of a pump", "pumps")], stopwords="none")
    values = {name: column.values.tolist() for name, column in features(index.search("pump rotor", model="bm25").matches).items()}
    assert values["matched"] == [0.0, 1.0, 0.5]
    assert values["titles"] == [0.5, 0.5, 0.5]
    # Lengths in tokens: title, then passages.
    assert values["position"] == [1.5 / 8, 4.5 / 8, 7.5 / 8]
    assert values["depth"] == [1.0, 1.0, 1.0]
    assert values["siblings"] == pytest.approx([np.log(4)] * 3)
    assert values["length"] == pytest.approx(np.log([2, 6, 2]))
    assert values["in_list"] == values["in_claims"] == [0.0, 0.0, 0.0]


def test_a_saved_combination_is_used_by_its_name(index):
    combination = LinearCombination(("bm25", "position"), "minmax", (2.0, -0.5), {"topics": 3})
    write_table(index.folder, "mine", KIND, combination.values())
    assert combination_of(read_table("mine", KIND, index.folder)) == combination
    results = index.search("magnet pump", model='learned(name="mine")')
    columns = normalized_features(results.matches, ["bm25", "position"])
    expected = 2 * columns["bm25"].values - 0.5 * columns["position"].values
    np.testing.assert_allclose(results.score.values, expected)
    assert {child.label.split(" · ")[0] for child in results.explain(0).children} == {"2", "-0.5"}


TREES = TreeCombination(
    ("bm25", "length"),
    "minmax",
    (RegressionTree((0, -1, 1, -1, -1), (0.5, 0.0, 0.25, 0.0, 0.0), (1, -1, 3, -1, -1), (2, -1, 4, -1, -1), (0.1, -0.5, 1.0, 0.75, 1.5)),),
)


def test_trees_add_up_along_their_paths(index):
    write_table(index.folder, "trees", KIND, TREES.values())
    assert combination_of(read_table("trees", KIND, index.folder)) == TREES
    results = index.search("magnet pump", model='learned(name="trees")')
    columns = normalized_features(results.matches, ["bm25", "length"])
    first, second = columns["bm25"].values, columns["length"].values
    expected = np.where(first <= 0.5, -0.5, np.where(second <= 0.25, 0.75, 1.5))
    np.testing.assert_allclose(results.score.values, expected)
    for number, row in enumerate(results.ranking.rows.tolist()):
        node = results.explain(number)
        assert [child.operation for child in node.children] == ["affine", "affine", "fact"]  # a feature decides, with slope 0
        assert f"is {first[row]:.3g}" in node.children[0].label
        assert node.recomputed() == pytest.approx(node.value)


UNUSED = {"linear": LinearCombination(("prox", "bm25"), "zscore", (0.0, 1.0)), "trees": replace(TREES, features=("bm25", "length", "prox"))}


@pytest.mark.parametrize("combination", UNUSED.values(), ids=UNUSED)
def test_features_that_cannot_change_a_score_are_not_computed(index, combination, monkeypatch):
    def refuse(sources):
        raise AssertionError("prox was computed")

    monkeypatch.setitem(FEATURES, "prox", replace(FEATURES["prox"], column=refuse))
    write_table(index.folder, "mine", KIND, combination.values())
    results = index.search("magnet pump", model='learned(name="mine")')
    assert "prox" not in results.signals()
    assert results.score.values.any()


def test_a_combination_without_any_effect_ranks_everything_alike(index):
    write_table(index.folder, "mine", KIND, LinearCombination(("bm25", "length"), "zscore", (0.0, 0.0)).values())
    assert not index.search("magnet pump", model='learned(name="mine")').score.values.any()


def test_a_table_is_checked_once_and_again_after_a_change(index):
    table = write_table(index.folder, "mine", KIND, TREES.values())
    first = read_table("mine", KIND, index.folder)
    assert read_table("mine", KIND, index.folder) is first
    assert combination_of(read_table("mine", KIND, index.folder)) is combination_of(first)
    table.write_text(table.read_text().replace("0.75", "0.25"))
    with pytest.raises(InputError, match="is damaged"):
        index.search("magnet pump", model='learned(name="mine")')
    write_table(index.folder, "mine", KIND, LinearCombination(("bm25",), "minmax", (1.0,)).values())
    assert combination_of(read_table("mine", KIND, index.folder)) != combination_of(first)


def test_a_shortlist_is_read_as_it_was_written(index):
    for combination in (LinearCombination(("bm25",), "zscore", (1.0,)), TREES):
        listed = replace(combination, shortlist=Shortlist(7, 300))
        write_table(index.folder, "mine", KIND, listed.values())
        assert combination_of(read_table("mine", KIND, index.folder)) == listed
    # Tables of earlier versions have none.
    assert "shortlist" not in TREES.values()["features"]


FEATURES_OF_BM25 = {"version": VERSION, "normalize": "minmax", "names": ["bm25"]}


def linear(**changed):
    return {"method": "linear", "features": FEATURES_OF_BM25, "weights": [1.0]} | changed


def tree(**changed):
    nodes = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "value": [0.0, 1.0, 2.0]}
    return linear(method="lambdamart", trees=[nodes | changed])


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({}, '"features" must be'),
        (linear(features={"version": VERSION + 1}), f"version {VERSION + 1} of the features"),
        (linear(features={"version": VERSION, "normalize": "l2", "names": ["bm25"]}), '"normalize" must be'),
        (linear(features={"version": VERSION, "normalize": "minmax", "names": []}), '"names" must be'),
        (linear(features={"version": VERSION, "normalize": "minmax", "names": ["bm25", "bm25"]}), '"names" must be'),
        (linear(features={"version": VERSION, "normalize": "minmax", "names": ["bm52"]}), "no feature 'bm52'"),
        (linear(features=FEATURES_OF_BM25 | {"shortlist": 5}), '"shortlist" must be an object'),
        (linear(features=FEATURES_OF_BM25 | {"shortlist": {"documents": 5}}), '"shortlist" must be an object'),
        (linear(features=FEATURES_OF_BM25 | {"shortlist": {"documents": 0, "passages": 5}}), 'the numbers of "shortlist"'),
        (linear(features=FEATURES_OF_BM25 | {"shortlist": {"documents": 5, "passages": 1.5}}), 'the numbers of "shortlist"'),
        (linear(features=FEATURES_OF_BM25 | {"shortlist": {"documents": True, "passages": 5}}), 'the numbers of "shortlist"'),
        (linear(weights=[1.0, 2.0]), '"weights" must be a list of 1'),
        (linear(weights=["1"]), '"weights" must be'),
        (linear(weights=[float("nan")]), '"weights" must be'),
        (linear(weights=[10**400]), '"weights" must be'),
        (linear(method="forest"), '"method" must be'),
        (linear(training=[]), '"training" must be'),
        (linear(method="lambdamart"), '"trees" must be'),
        (linear(method="lambdamart", trees=[5]), "tree 1 is not a valid tree"),
        (tree(left=[0, -1, -1]), "tree 1"),  # a node is its own child: the path would not end
        (tree(left=[3, -1, -1]), "tree 1"),
        (tree(right=[-1, -1, -1]), "tree 1"),
        (tree(left=[1.0, -1, -1]), "tree 1"),
        (tree(left=[-2, -1, -1]), "tree 1"),
        (tree(feature=[1, -1, -1]), "tree 1"),
        (tree(feature=[-1, -1, -1]), "tree 1"),
        (tree(threshold=[float("nan"), 0, 0]), "tree 1"),
        (tree(value=[0.0, 1.0]), "tree 1"),
        (tree(value=[]), "tree 1"),
        (tree(value=None), "tree 1"),
    ],
)
def test_what_does_not_fit_is_refused(values, complaint):
    with pytest.raises(InputError, match=re.escape(complaint)) as error:
        combination_of(SavedTable("mine", KIND, values))
    assert "'mine'" in str(error.value)
    assert "learn the table again" in str(error.value)


def test_a_good_tree_is_taken():
    assert combination_of(SavedTable("mine", KIND, tree())).trees[0].left == (1, -1, -1)


def test_elements_are_refused(index):
    with pytest.raises(UsageError, match="learned ranks passages only"):
        index.search("magnet", model="learned", elements=True)


def test_signals_are_ready_for_a_data_frame(index):
    results = index.search("magnet pump", model="fuse(models=[bm25,qsf_v],weights=[1,2])", k=3)
    columns = results.signals()
    assert list(columns) == ["document", "passage", "rank", "score", "1 bm25", "2 qsf_v"]
    assert {len(values) for values in columns.values()} == {3}
    assert [f"{d}#{p}" for d, p in zip(columns["document"], columns["passage"], strict=True)] == [name for name, _ in results.names()]
    np.testing.assert_allclose(columns["1 bm25"] + 2 * columns["2 qsf_v"], columns["score"])
    assert columns["rank"].tolist() == [1, 2, 3]


def test_names_and_rows_are_found_both_ways(index):
    results = index.search("magnet", model="qsf_v")
    everything = results.names_of(np.arange(results.matches.passages))
    assert sorted(everything) == ["d1#@1", "d1#@2", "d2#@1", "d2#@2", "d2#@3"]
    assert results.rows_of([*everything, "d2#absent", "d9#@1", "d2"]) == {name: row for row, name in enumerate(everything)}


def test_the_table_that_comes_with_the_program_is_readable():
    combination = combination_of(read_table("even", KIND))
    assert set(combination.weights) == {0.125}
    assert json.dumps(combination.values())


def test_models_that_are_fused_share_what_they_have_in_common(index):
    matches = index.search("magnet pump valve").matches
    shared = matches.shared()
    assert shared.shared() is shared
    for name in ("qsf_v_title", "qsf_section_propagate", "qsf_v_title(mu=500)", "qsf_v_title(content=bm25)"):
        assert parse_model(name).score(shared).values.tolist() == parse_model(name).score(matches).values.tolist()
    made = []
    assert [one.once("key", lambda: made.append(0) or len(made)) for one in (shared, shared, matches, matches)] == [1, 1, 2, 3]
    # A copy may have other columns, so it does not share results.
    assert [replace(shared).once("key", lambda: 7) for _ in range(2)] == [7, 7]
