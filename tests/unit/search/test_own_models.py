"""Models that a user defines, as in a cell of a notebook."""

import subprocess
import sys

import pytest

import perikope as pk
from perikope.browse.models import MODELS
from perikope.core.errors import UsageError
from tests.support.collections import index_of, plain_document

CELL = """
def only_document(matches):
    return {"document": pk_signals(matches)["document"]}

@model(only_document)
def mine(signals, *, factor: float = FACTOR):
    return factor * signals["document"]
"""


@pytest.fixture
def index():
    return index_of([plain_document("d1", "Pumps", "A rotor.", "A seal."), plain_document("d2", "", "A rotor and a rotor.")])


@pytest.fixture
def run_cell():
    """Runs the cell with a factor, and forgets its model after the test."""

    def run(factor: float):
        names = {"__name__": "__main__", "model": pk.model, "pk_signals": MODELS["qsf_v"].signals, "FACTOR": factor}
        exec(CELL, names)
        return names["mine"]

    yield run
    MODELS._things.pop("mine", None)
    MODELS.version += 1


def test_a_cell_that_runs_again_replaces_its_model(index, run_cell):
    run_cell(2.0)
    first = index.search("rotor", model="mine")
    run_cell(4.0)
    assert index.search("rotor", model="mine").ranking.scores == pytest.approx(2 * first.ranking.scores)
    assert index.search("rotor", model="mine(factor=2)").names() == first.names()


def test_a_registered_function_is_a_model(index, run_cell):
    mine = run_cell(2.0)
    assert index.search("rotor", model=mine).names() == index.search("rotor", model="mine").names()
    again = run_cell(3.0)
    assert index.search("rotor", model=again).names() == index.search("rotor", model="mine(factor=3)").names()
    with pytest.raises(UsageError, match="the function mine is not a registered model"):
        index.search("rotor", model=mine)


def test_a_function_that_is_no_model_is_refused_with_the_way_to_do_it(index):
    def scored(matches):
        return matches.lengths

    expected = r"the function scored is not a registered model; decorate it with @perikope\.model\(signals\)"
    with pytest.raises(UsageError, match=expected):
        index.search("rotor", model=scored)
    with pytest.raises(UsageError, match="the function <lambda> is not a registered model"):
        index.explain("rotor", "d1#@1", model=lambda matches: 1.0)
    with pytest.raises(UsageError, match=r"^model must be"):
        index.search("rotor", model=7)


def test_packaged_models_are_protected(index):
    with pytest.raises(UsageError, match=r"there is already a model 'bm25', registered by perikope\.browse\.models"):

        @pk.model(MODELS["bm25"].signals)
        def bm25(signals):
            return signals["passage"]

    with pytest.raises(UsageError, match="the parameter alpha of untyped has no type"):

        @pk.model(MODELS["bm25"].signals)
        def untyped(signals, *, alpha=0.5):
            return signals["passage"]


def test_packaged_models_are_protected_before_they_are_loaded():
    script = (
        "import perikope as pk\n"
        "def bm25(signals): return 1\n"
        "try: pk.model(lambda matches: {})(bm25)\n"
        "except pk.PerikopeError as error: print(error)\n"
        "from perikope.browse.models import parse_model\n"
        "print(parse_model('bm25').definition.combine.__module__)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[0].startswith("there is already a model 'bm25', registered by perikope.browse.models")
    assert told.splitlines()[1].startswith("perikope.browse.models")
