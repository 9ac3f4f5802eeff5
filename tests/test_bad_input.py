"""What no model may do with a query, a parameter or an index that it cannot use, run over the registry."""

import pytest

from perikope.browse.models import MODELS, parse_model
from perikope.core.errors import UsageError
from perikope.search.facade import Index
from tests.support.collections import index_of, plain_document, structured_document
from tests.support.models import READY


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of([structured_document(), plain_document("d2", "Valves", "The valve opens.")], [1])


PARAMETERS = [
    (name, parameter)
    for name in MODELS.names()
    for parameter in (*MODELS[name].shape.values(), *MODELS[name].weights.values())
    if parameter.range is not None and parameter.item is None
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=[f"{name}-{parameter.name}" for name, parameter in PARAMETERS])
def test_a_parameter_out_of_its_range_names_the_range(name, parameter):
    low, high = parameter.range.low, parameter.range.high
    outside = [value for value in (None if low is None else low - 1, None if high is None else high + 1) if value is not None]
    outside += [low] if parameter.range.low_open else []
    assert outside
    for value in outside:
        with pytest.raises(UsageError) as found:
            parse_model(f"{name}({parameter.name}={parameter.type(value)!r})")
        assert str(found.value).startswith(f"{name}: {parameter.name}=")
        assert f"is out of range; it must be {parameter.describe_range()}" in str(found.value)
        for end in (low, high):
            assert end is None or f"{end:g}" in parameter.describe_range()


CHOICES = [
    (name, parameter)
    for name in MODELS.names()
    for parameter in (*MODELS[name].shape.values(), *MODELS[name].weights.values())
    if parameter.choices and not isinstance(parameter.choices[0], bool)
]


@pytest.mark.parametrize(("name", "parameter"), CHOICES, ids=[f"{name}-{parameter.name}" for name, parameter in CHOICES])
def test_a_choice_that_is_none_names_those_there_are(name, parameter):
    with pytest.raises(UsageError) as found:
        parse_model(f"{name}({parameter.name}=sideways)")
    assert all(str(choice) in str(found.value) for choice in parameter.choices)


@pytest.mark.parametrize("name", MODELS.names())
def test_a_parameter_that_is_none_names_those_there_are(name):
    with pytest.raises(UsageError, match=f"unknown parameter of {name} 'sideways'"):
        parse_model(f"{name}(sideways=1)")


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize(
    ("query", "syntax"), [("zeppelin airship", "words"), ("zeppelin AND NOT pump", "boolean"), ("zepp* OR airship", "boolean")]
)
def test_words_that_do_not_occur_find_nothing(index, name, query, syntax):
    results = index.search(query, model=name, syntax=syntax)
    assert len(results) == 0
    assert results.names() == []
    assert list(results) == []
    assert len(index.search(query, model=name, syntax=syntax, documents="all")) == 0


@pytest.mark.parametrize("name", READY)
def test_a_word_that_does_not_occur_does_no_harm(index, name):
    # Proximity needs all words: without one of them, no passage matches.
    needs_all = parse_model(name).unmatched == "score 0"
    assert (len(index.search("zeppelin rotor", model=name)) > 0) is not needs_all
    assert len(index.search("zeppelin rotor", model=name, keep_unmatched=True)) > 0


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("(pump AND rotor", "at '(pump AND ro"),
        ("pump AND rotor)", "at ')' (character 15)"),
        ("pump AND ()", "at ')' (character 11)"),
        ('pump OR "rotor', "(character 9)"),
        ("pump AND", "at the end"),
        ("pump NEAR/0 rotor", "(character 6)"),
    ],
)
def test_a_boolean_query_that_cannot_be_read_points_at_the_place(index, name, query, place):
    with pytest.raises(UsageError) as found:
        index.search(query, model=name, syntax="boolean")
    assert place in str(found.value)


@pytest.mark.parametrize(("query", "syntax"), [("", "words"), (" \t", "boolean"), ("", "automatic"), ("?!", "words")])
def test_an_empty_query_asks_for_a_word(index, query, syntax):
    with pytest.raises(UsageError, match="the query is empty; give at least one word"):
        index.search(query, syntax=syntax)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"elements": ["chapter"]}, "'chapter'"),
        ({"tag": "chapter"}, "'chapter'"),
        ({"part": "claims"}, "'claims'"),
        ({"model": "prox_h(weights=chapters)"}, "unknown table of tags 'chapters'"),
        ({"model": "prox(logical=chapters)"}, "unknown table of tags 'chapters'"),
        ({"model": "position_prior(weights=chapters)"}, "unknown table of prior 'chapters'"),
        ({"model": "learned(name=chapters)"}, "unknown table of fusion 'chapters'"),
    ],
)
def test_what_the_index_does_not_have_is_named(index, options, complaint):
    with pytest.raises(UsageError) as found:
        index.search("rotor", **options)
    assert complaint in str(found.value)


NEEDS_PASSAGES = {
    "learned", "psg_neighbor", "qsf_section", "qsf_section_propagate", "qsf_passage_propagate",
}  # fmt: skip


@pytest.mark.parametrize("name", READY)
def test_a_model_that_cannot_score_elements_says_so(index, name):
    inner = {one.definition.name for one in parse_model(name).inner}
    if not ({name} | inner) & NEEDS_PASSAGES:
        assert len(index.search("rotor", model=name, elements=True)) > 0
        return
    with pytest.raises(UsageError, match="ranks passages only, not elements"):
        index.search("rotor", model=name, elements=True)
