"""What every model promises, run over the registry."""

import math
from dataclasses import fields

import numpy as np
import pytest

from perikope.browse.matches import join
from perikope.browse.models import MODELS, parse_model
from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.search import fetch
from perikope.query.terms import parse_query
from tests.support.collections import index_of, plain_document
from tests.support.models import READY

DOCUMENTS = [
    plain_document("d1", "Pumps", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor, rotor and magnet."),
    plain_document("d2", "Valves with magnets", "The valve opens.", "A magnet closes the valve when the pump stops."),
    plain_document("d3", "Rotors", "Nothing here."),
]


@pytest.fixture(scope="module")
def snapshot():
    return index_of(DOCUMENTS, [1])._snapshot


@pytest.fixture(scope="module")
def query(snapshot):
    return parse_query("magnet rotor of a pump rotor absent", snapshot.analyzer, ["en"])


@pytest.fixture(scope="module")
def matches(snapshot, query):
    return join(snapshot, query, fetch(snapshot, query, parse_fetch_model("bm25"), 10))


@pytest.fixture(params=READY)
def model(request):
    return parse_model(request.param)


@pytest.fixture(params=MODELS.names())
def any_model(request):
    return parse_model(request.param)


def test_scores_are_finite_and_one_a_passage(model, matches):
    values = model.score(matches).values
    assert values.shape == (matches.passages,)
    assert np.isfinite(values).all()


def test_scores_are_the_same_every_time(model, matches):
    assert (model.score(matches).values == model.score(matches).values).all()


def test_a_model_leaves_its_input_alone(model, matches):
    model.score(matches)
    for field in fields(matches):
        value = getattr(matches, field.name)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


def test_no_candidates_give_no_scores(model, snapshot, query):
    none = Candidates(np.zeros(0, np.int64), np.zeros(0))
    assert model.score(join(snapshot, query, none)).values.shape == (0,)


def test_the_order_of_candidates_does_not_matter(model, snapshot, query):
    found = fetch(snapshot, query, parse_fetch_model("bm25"), 10)
    backwards = Candidates(found.documents[::-1].copy(), found.scores[::-1].copy())
    assert (model.score(join(snapshot, query, backwards)).values == model.score(join(snapshot, query, found)).values).all()


def test_every_parent_of_an_explanation_follows_from_its_children(model, matches):
    score = model.score(matches)

    def check(node):
        assert math.isclose(node.recomputed(), node.value, rel_tol=1e-9, abs_tol=1e-12), node.label
        assert node.label
        for child in node.children:
            check(child)

    for passage in range(matches.passages):
        node = score.explain(passage)
        assert node.value == score.values[passage]
        check(node)


def test_its_name_parses_back(any_model):
    assert str(parse_model(str(any_model))) == str(any_model)


def test_a_model_that_needs_a_store_says_how_it_is_made(any_model, matches):
    if any_model.definition.needs_store:
        with pytest.raises(UsageError, match="make it with `perikope encode"):
            any_model.score(matches)
    elif any_model.definition.needs_folder:
        with pytest.raises(UsageError, match="needs the folder"):
            any_model.score(matches)
    else:
        assert any_model.definition.name in READY


def test_every_parameter_declares_its_range_and_a_grid_inside_it(model):
    definition = model.definition
    for parameter in (*definition.shape.values(), *definition.weights.values()):
        assert parameter.range is not None or parameter.choices or parameter.nested
        for value in parameter.grid_values():
            parameter.check(definition.name, value)


def test_its_documentation_has_a_sentence_and_a_formula(any_model):
    documentation = any_model.definition.combine.__doc__
    assert any_model.definition.summary.endswith((".", "context."))
    assert "`" in documentation
