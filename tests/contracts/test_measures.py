"""What every measure promises, run over the registry."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.evaluation.measures import MEASURES, Definition, Measure, evaluate, parse_measure
from tests.support import measuring

REACHES_ONE = {"AP", "APD", "PRES", "RR", "nDCG", "docAP", "docRR", "docRecall"}


def spellings(definition: Definition) -> list[str]:
    """The measure with and without a cutoff and with a second value for every parameter, where it takes them."""
    ends = [] if definition.needs_cutoff else [""]
    if definition.takes_cutoff:
        ends += ["@0", "@0.1", "@1"] if definition.cutoff_is_recall else ["@1", "@3", "@50"]
    middles = ["", *(f"({name}=2)" for name in definition.parameters)]
    return [definition.name + middle + end for middle in middles for end in ends]


ALL = [parse_measure(spelling) for _, definition in MEASURES.items() for spelling in spellings(definition)]
every_measure = pytest.mark.parametrize("measure", ALL, ids=str)
few = settings(max_examples=30)


def test_the_registry_holds_the_measures_of_the_papers_and_of_trec_eval() -> None:
    names = {"AP", "APD", "Judged", "P", "PD", "PRES", "RR", "Recall", "Success", "nDCG", "iP", "AiP", "gP", "gR", "AgP"}
    names |= {"docAP", "docRR", "docRecall"}
    assert names <= set(MEASURES.names())


def test_every_spelling_means_one_measure() -> None:
    names = [name for _, definition in MEASURES.items() for name in (definition.name, *definition.aliases)]
    assert len(names) == len(set(names))


def test_every_alias_is_another_spelling_of_its_measure() -> None:
    for name, definition in MEASURES.items():
        end = definition.example.removeprefix(name)
        for alias in definition.aliases:
            assert parse_measure(alias + end) == parse_measure(name + end)


def test_every_measure_says_what_it_is() -> None:
    for name, definition in MEASURES.items():
        assert definition.function.__doc__, name
        assert ">>>" in definition.function.__doc__, name


@every_measure
def test_its_name_parses_to_itself(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure
    assert str(parse_measure(str(measure))) == str(measure)


def forms_of_parameters() -> list[tuple[str, str]]:
    """Every parameter of every measure, in every spelling of the measure: the notation, and the parameter's name."""
    forms = []
    for name, definition in MEASURES.items():
        end = definition.example.removeprefix(name)
        brackets = f"[{end[1:]}]" if end else ""
        for spelling in (name, *definition.aliases):
            # `MAP(D)` with a parameter is written `MAP(D,rel=2)`.
            start = f"{spelling[:-1]}," if spelling.endswith(")") else f"{spelling}("
            forms += [(f"{start}{parameter}=2){cutoff}", parameter) for parameter in definition.parameters for cutoff in {end, brackets}]
        forms += [(f"{short}(2){end}", parameter) for short, parameter in definition.short.items()]
    return sorted(forms)


@pytest.mark.parametrize(("notation", "parameter"), forms_of_parameters())
def test_no_parameter_is_dropped(notation: str, parameter: str) -> None:
    measure = parse_measure(notation)
    received: dict[str, Any] = {}

    def function(ranked: Any, judged: Any, *cutoff: Any, **arguments: Any) -> float:
        received.update(arguments, cutoff=cutoff)
        return 0.0

    replace(measure, definition=replace(measure.definition, function=function))([], {})
    assert received[parameter] == 2
    assert received["cutoff"] == ((measure.cutoff,) if measure.definition.takes_cutoff else ())
    assert f"{parameter}=2" in str(measure)


@pytest.mark.parametrize("definition", [definition for _, definition in MEASURES.items()], ids=lambda definition: definition.name)
def test_a_parameter_that_it_does_not_have_is_refused(definition: Definition) -> None:
    end = definition.example.removeprefix(definition.name)
    with pytest.raises(UsageError, match="unknown parameter"):
        parse_measure(f"{definition.name}(no_such=2){end}")
    with pytest.raises(UsageError, match=r"parameters of .* are given as name=value"):
        parse_measure(f"{definition.name}(2){end}")


def test_measures_with_a_cutoff_of_documents_say_so() -> None:
    """If the first passages are of one document, only measures that rank documents see the second document."""
    for name, definition in MEASURES.items():
        if definition.level == "names" and definition.takes_cutoff:
            passages = [*(f"A#{number}" for number in range(5)), "B#1"]
            cutoff = parse_measure(f"{name}@2")
            sees_second = cutoff(passages, {"B#1": 1}) > 0
            assert sees_second == definition.ranks_documents, name


@every_measure
@few
@given(data=st.data())
def test_it_is_between_0_and_1_and_always_the_same(measure: Measure, data: st.DataObject) -> None:
    ranked, judged = drawn(data, measure)
    before = copy.deepcopy((ranked, judged))
    value = measure(ranked, judged)
    assert isinstance(value, float)
    assert 0 <= value <= 1
    assert measure(ranked, judged) == value
    assert (ranked, judged) == before


def drawn(data: st.DataObject, measure: Measure) -> tuple[Any, Any]:
    ranked, judged = measuring.INPUTS[measure.level]
    return data.draw(ranked), data.draw(judged)


@every_measure
@few
@given(data=st.data())
def test_it_is_0_for_an_empty_list(measure: Measure, data: st.DataObject) -> None:
    _, judged = drawn(data, measure)
    assert measure([], judged) == 0
    assert evaluate(measure, {"q": judged}, {}).mean == {measure.asked: 0}


@every_measure
@few
@given(data=st.data())
def test_it_does_not_depend_on_the_order_of_judgements(measure: Measure, data: st.DataObject) -> None:
    ranked, judged = drawn(data, measure)
    reordered = dict(reversed(judged.items()))
    assert measure(ranked, reordered) == pytest.approx(measure(ranked, judged), abs=1e-12)


@every_measure
def test_it_can_be_sent_to_another_process(measure: Measure) -> None:
    assert str(pickle.loads(pickle.dumps(measure))) == str(measure)


def has_room(measure: Measure) -> bool:
    """Measures of recall can only reach 1 when everything relevant fits above the cutoff."""
    return measure.definition.name in {"RR", "docRR", "nDCG"} or measure.cutoff is None or measure.cutoff >= len(measuring.NAMES)


@pytest.mark.parametrize("measure", [m for m in ALL if m.definition.name in REACHES_ONE and has_room(m)], ids=str)
@few
@given(judged=measuring.judged)
def test_the_best_order_gives_1(measure: Measure, judged: dict[str, int]) -> None:
    with_relevant = {**judged, "A#1": 3}
    best = sorted(with_relevant, key=with_relevant.__getitem__, reverse=True)
    assert measure(best, with_relevant) == pytest.approx(1, abs=1e-12)
