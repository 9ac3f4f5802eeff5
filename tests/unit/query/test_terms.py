"""What a query is to fetch, to models and to what reads its tree."""

import pytest

from perikope.core.errors import UsageError
from perikope.query.boolean import And, Not, Word
from perikope.query.terms import Query, parse_boolean, parse_query
from perikope.text.analysis import Analyzer


def parse(text, languages=("en",)):
    return parse_boolean(text, Analyzer(), languages, lambda prefix, most: (0, []))


def test_plain_words_have_no_tree_and_stand_for_all_of_them():
    query = parse_query("pumps and the pump of a station", Analyzer(), ["en", "fr"])
    assert query.tree is None
    assert query.boolean == And((Word(("en:pump", "fr:pump")), Word(("en:station", "fr:station"))))
    assert query.positive == query
    assert parse_query("pumps", Analyzer(), ["en"]).boolean == Word(("en:pump",))
    assert Query("", ("en:a", "en:b"), (1.0, 2.0)).boolean == And((Word(("en:a",)), Word(("en:b",))))


def test_terms_are_in_order_of_appearance_with_weight_1():
    query = parse('pump -valve "heat pump" NOT NOT seal', ["en", "fr"])
    assert query.terms == ("en:pump", "fr:pump", "en:valv", "fr:valv", "en:heat", "fr:heat", "en:seal", "fr:seal")
    assert set(query.weights) == {1.0}
    assert query.negated == {"en:valv", "fr:valv"}


def test_what_is_wanted_somewhere_is_not_negated():
    query = parse('pump -"pump station"')
    assert query.positive.terms == ("en:pump",)
    assert query.positive.tree == query.tree
    assert parse("pump NOT (valve NOT seal)").positive.terms == ("en:pump", "en:seal")


@pytest.mark.parametrize("text", ["-pump", "NOT (pump OR valve)", "NOT pump AND NOT valve"])
def test_a_query_must_say_what_to_look_for(text):
    with pytest.raises(UsageError, match="only words under NOT"):
        parse(text)


def test_an_expansion_adds_nothing_that_must_not_occur():
    query = parse("pump -valve")
    expansion = Query("", ("en:pump", "en:seal", "en:valv"), (0.5, 0.25, 0.25))
    found = query.expanded(expansion)
    assert found.tree == And((Word(("en:pump",)), Not(Word(("en:valv",)))))
    assert (found.positive.terms, found.positive.weights) == (("en:pump", "en:seal"), (0.5, 0.25))
    assert set(found.terms) == {"en:pump", "en:seal", "en:valv"}
    words = parse_query("pump", Analyzer(), ["en"])
    assert words.expanded(expansion).boolean == Word(("en:pump",))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('(rotor OR "magnet in pumps") AND pump* NOT valve', "rotor magnet pumps pump"),
        ("NOT (valve AND NOT seal) AND rotor", "seal rotor"),
        ("rotor NEAR/3 magnets", "rotor magnets"),
        ("{en:pump} rotor", "pump rotor"),
    ],
)
def test_a_boolean_query_in_words(text, plain):
    assert parse(text).plain_text == plain
    assert parse_query(text, Analyzer(), ["en"]).plain_text == text


def test_a_query_of_plain_words_is_bounded():
    text = " ".join(f"w{number}" for number in range(10_000))
    assert len(parse_query(text, Analyzer(), ["en"]).terms) == 10_000
    assert parse_query("pump " * 100_000, Analyzer(), ["en"]).weights == (100_000.0,)
    with pytest.raises(UsageError, match="the query has 10,001 distinct terms; shorten it to at most 10,000"):
        parse_query(f"{text} one", Analyzer(), ["en"])
    with pytest.raises(UsageError, match="the query has 10,000,001 characters; shorten it to at most 10,000,000"):
        parse_query("x" * 10_000_001, Analyzer(), ["en"])


def test_labels_of_many_terms_look_at_each_word_once(monkeypatch):
    query = parse_query(" ".join(f"w{number}" for number in range(2000)), Analyzer(), ["en"])
    visits = []
    real = Query.given_words
    monkeypatch.setattr(Query, "given_words", lambda self: (visits.append(word) or word for word in real(self)))
    assert query.labels(query.terms)[:2] == ["'w0'", "'w1'"]
    assert len(visits) == 2000
