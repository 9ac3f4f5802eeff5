"""Adapting changes the general parameters where the documents demand it, and keeps them otherwise."""

import numpy as np
import pytest

from perikope.browse.models import parse_model
from perikope.core.errors import UsageError
from perikope.document.tree import TreeBuilder
from perikope.evaluation.adapting.adapt import HeldBackTest, adapt, settle
from perikope.evaluation.adapting.coordinates import Tried, cautious_choice, search_coordinates
from perikope.evaluation.tuning.space import read_space
from perikope.search.own_default import own_default, save_own_default
from tests.support.collections import index_of
from tests.support.planted import misleading_documents, named_documents


def folder_of(documents):
    return index_of(documents).snapshot.folder


def weights(model):
    parsed = parse_model(model)
    return {name: value for name, value in parsed.parameters.items() if name in ("titles", "neighbors", "document")}


def test_a_document_that_misleads_does_not_count():
    found = adapt(folder_of(misleading_documents()), workers=1)
    assert found.is_adopted, found.reason
    assert weights(found.chosen)["document"] < 0.8
    assert found.after > found.before
    assert found.p <= 0.05


def test_the_general_weights_are_kept_where_they_are_right():
    found = adapt(folder_of(named_documents()), workers=1)
    assert not found.is_adopted
    assert found.model == found.general == str(parse_model("coverage"))


def test_a_document_that_identifies_its_passages_counts():
    found = adapt(folder_of(named_documents()), "coverage(document=0)", workers=1)
    assert found.is_adopted, found.reason
    assert weights(found.chosen)["document"] > 0


def test_the_same_seed_finds_the_same_and_the_facts_have_no_date():
    path = folder_of(misleading_documents())
    first, second = adapt(path, workers=1), adapt(path, workers=2)
    assert first == second
    assert set(first.facts()) == {"measure", "topics", "documents", "settings", "seed", "before", "after", "p"}


def test_settling_saves_an_adopted_model_and_removes_an_earlier_one_otherwise():
    folder = folder_of(misleading_documents())
    found = adapt(folder, workers=1)
    settle(folder, found)
    assert own_default(folder).model == found.chosen
    assert own_default(folder).facts["topics"] == found.kinds
    kept = folder_of(named_documents())
    save_own_default(kept, "coverage(b=0.25)", {})
    settle(kept, adapt(kept, workers=1))
    assert own_default(kept) is None


def test_too_few_documents_are_one_clear_error():
    builder = TreeBuilder("d1")
    builder.passage("The pump has a rotor and a shaft made of steel. The seal of the pump is made of rubber and graphite.")
    with pytest.raises(UsageError, match="at least 10 documents, and the index has 1"):
        adapt(folder_of([builder.build()]), workers=1)


@pytest.mark.parametrize(
    ("test", "is_general", "adopted", "reason"),
    [
        (HeldBackTest(0.4, 0.5, 0.01, {"heading": [0.1, 0.1]}), False, True, "is significant"),
        (HeldBackTest(0.4, 0.4, 1.0, {"heading": [0.0, 0.0]}), True, False, "no setting is clearly better"),
        (HeldBackTest(0.4, 0.5, 0.06, {"heading": [0.1, 0.1]}), False, False, "not significant"),
        (HeldBackTest(0.5, 0.4, 0.01, {"heading": [-0.1, -0.1]}), False, False, "do not gain"),
        (HeldBackTest(0.4, 0.5, 0.01, {"heading": [0.3, 0.3], "sentence": [-0.1, -0.11]}), False, False, "of the kind sentence lose"),
        (HeldBackTest(0.4, 0.5, 0.01, {"heading": [0.3, 0.3], "sentence": [-0.2, 0.19]}), False, True, "is significant"),
    ],
)
def test_a_setting_is_adopted_only_if_it_gains_and_no_kind_loses(test, is_general, adopted, reason):
    assert test.verdict(is_general)[0] is adopted
    assert reason in test.verdict(is_general)[1]


SPACE = read_space("coverage", ("titles", "neighbors", "document"))
GENERAL = (1.0, 0.1, 0.8)


def scoring(value):
    """Scores settings by a function, for 20 documents that differ a little."""
    noise = np.linspace(-0.01, 0.01, 20)
    return lambda space: np.array([value(*setting) + noise for setting in space.settings])


def test_the_search_finds_an_optimum_that_differs_in_two_parameters():
    tried = search_coordinates(SPACE, scoring(lambda titles, neighbors, document: -abs(titles - 0.5) - abs(document)))
    assert tried.space.settings[0] == GENERAL
    assert tried.space.settings[cautious_choice(tried)] == (0.5, 0.1, 0.0)


def test_the_search_stops_where_nothing_is_better():
    tried = search_coordinates(SPACE, scoring(lambda *setting: 0.0))
    assert len(tried.space.settings) == 7, "the general setting, and two other values of three parameters"
    assert tried.space.settings[cautious_choice(tried)] == GENERAL


def test_a_setting_within_one_standard_error_of_the_best_is_not_worth_a_change():
    scores = np.zeros((2, 16))
    scores[1] = np.where(np.arange(16) % 2, 0.11, -0.09)  # mean 0.01, standard error 0.026
    tried = Tried(read_space("coverage(document=[0.8,0.0])"), scores)
    assert cautious_choice(tried) == 0
    scores[1] = 0.01
    assert cautious_choice(Tried(tried.space, scores)) == 1
