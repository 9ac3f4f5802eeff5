"""Every parameter of everything that users call by name is described in one sentence."""

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from perikope.browse.document_ranking import METHODS
from perikope.browse.models import MODELS
from perikope.core.parameters import Parameter, parameters_of
from perikope.evaluation.measures import MEASURES
from perikope.fetch.expansion import EXPANSIONS
from perikope.fetch.models import FETCH_MODELS

LONGEST = 120


def described() -> Iterator[tuple[str, Mapping[str, Parameter]]]:
    """The parameters of each member of each registry."""
    for name, model in MODELS.items():
        yield f"model {name}", {**model.shape, **model.weights}
    for name, fetch_model in FETCH_MODELS.items():
        yield f"fetch model {name}", fetch_model.parameters
    for name, expansion in EXPANSIONS.items():
        yield f"expansion {name}", parameters_of(expansion)
    for name, method in METHODS.items():
        yield f"document ranking {name}", parameters_of(method)
    for name, measure in MEASURES.items():
        yield f"measure {name}", measure.parameters


ALL = dict(described())


def test_every_registry_has_parameters() -> None:
    kinds = {owner.rpartition(" ")[0] for owner, parameters in ALL.items() if parameters}
    assert kinds == {"model", "fetch model", "expansion", "document ranking", "measure"}


@pytest.mark.parametrize("owner", [owner for owner, parameters in ALL.items() if parameters])
def test_every_parameter_has_one_sentence(owner: str) -> None:
    for name, parameter in ALL[owner].items():
        sentence = parameter.help
        assert sentence, f"{owner}: say in one sentence what {name} does, as a text in its Annotated[...]"
        assert sentence[0].isupper(), f"{owner}: the sentence of {name} begins with a capital letter"
        assert sentence.endswith("."), f"{owner}: the sentence of {name} ends with a full stop"
        assert ". " not in sentence, f"{owner}: {name} has more than one sentence"
        assert len(sentence) <= LONGEST, f"{owner}: the sentence of {name} has {len(sentence)} characters; {LONGEST} are the limit"
    sentences = [parameter.help for parameter in ALL[owner].values()]
    assert len(set(sentences)) == len(sentences), f"{owner}: two parameters have the same sentence"


def test_the_reference_page_is_up_to_date() -> None:
    path = Path(__file__).parents[2] / "scripts" / "make_models.py"
    specification = importlib.util.spec_from_file_location("make_models", path)
    assert specification is not None
    assert specification.loader is not None
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    assert program.PAGE.read_text("utf-8") == program.page(), "docs/parameters.md is out of date: run python scripts/make_models.py"
