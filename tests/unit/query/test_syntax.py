"""How Boolean queries are written, and what is said when one is wrong."""

import re

import pytest

from perikope.core.errors import UsageError
from perikope.query import syntax
from perikope.query.boolean import And, Near, Not, Or, Phrase, Same, Word, words_of
from perikope.query.syntax import automatic, parse_tree
from perikope.text.analysis import Analyzer, words

UNSTEMMED = Analyzer(stemmer="none", stopwords="none")
VOCABULARY = ["en:pump", "en:pumped", "en:pumpernickel", "en:state", "fr:pumpe"]


def expand(prefix, most):
    found = [term for term in VOCABULARY if term.startswith(prefix)]
    return len(found), found


def parse(text, analyzer=UNSTEMMED, languages=("en",)):
    return parse_tree(text, analyzer, languages, expand)


def word(*words):
    return Word(tuple(f"en:{w}" for w in words))


A, B, C, D = (word(name) for name in "abcd")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", A),
        ("A", A),
        ("a b", And((A, B))),
        ("a AND b c", And((A, B, C))),
        ("a OR b c", Or((A, And((B, C))))),
        ("a b OR c d", Or((And((A, B)), And((C, D))))),
        ("(a OR b) c", And((Or((A, B)), C))),
        ("(a b) c", And((And((A, B)), C))),
        ("((a))", A),
        ("NOT a b", And((Not(A), B))),
        ("a NOT b", And((A, Not(B)))),
        ("a AND NOT NOT b", And((A, Not(Not(B))))),
        ("NOT (a OR b)", Not(Or((A, B)))),
        ("+a -b", And((A, Not(B)))),
        ('a -"b c" +(d)', And((A, Not(Phrase((B, C))), D))),
        ('"a b"+c', And((Phrase((A, B)), C))),
        ("a OR -b", Or((A, Not(B)))),
        ('"a b c"', Phrase((A, B, C))),
        ("“a b”", Phrase((A, B))),
        ('"a"', A),
        ('"AND" a', And((word("and"), A))),
        ("and or not near", And((word("and"), word("or"), word("not"), word("near")))),
        ("a-b", Phrase((A, B))),
        ("a'b c", And((Phrase((A, B)), C))),
        ('"a * b"', Phrase((A, None, B))),
        ('"* a * * b *"', Phrase((A, None, None, B))),
        ("a NEAR/3 b", Near(A, B, 3, False)),
        ("a ADJ/1 b", Near(A, B, 1, True)),
        ("a NEAR/3 b ADJ/2 c", Near(Near(A, B, 3, False), C, 2, True)),
        ("a NEAR/3 b c", And((Near(A, B, 3, False), C))),
        ("a b NEAR/3 c", And((A, Near(B, C, 3, False)))),
        ("NOT a NEAR/3 b", Not(Near(A, B, 3, False))),
        ("(a OR b) NEAR/3 (c d)", Near(Or((A, B)), And((C, D)), 3, False)),
        ("a SAME b SAME c", Same((A, B, C))),
        ("a SAME b NEAR/2 c", Same((A, Near(B, C, 2, False)))),
        ("a b SAME c OR d", Or((And((A, Same((B, C)))), D))),
        ("pump*", word("pump", "pumped", "pumpernickel")),
        ("PUMPE*", word("pumped", "pumpernickel", "pumpe")),
        ('"a pump* b"', Phrase((A, word("pump", "pumped", "pumpernickel"), B))),
        ("pre-pump*", Phrase((word("pre"), word("pump", "pumped", "pumpernickel")))),
        ("zzz*", word("zzz")),
        ("{en:a|fr:b}", Word(("en:a", "fr:b"))),
        ("{a|b}", Word(("en:a", "en:b"))),
        ("{}", Word(())),
        (r"{en:a\|b\}\\ c}", Word(("en:a|b}\\ c",))),
        ('"{en:a} * {en:b|en:"}"', Phrase((A, None, Word(("en:b", 'en:"'))))),
        ("日本", Phrase((word("日"), word("本")))),
    ],
)
def test_trees(text, tree):
    assert parse(text) == tree
    assert parse(str(tree)) == tree


STOPPING = Analyzer()


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("the pumps", "{en:pump}"),
        ("the OR pumps", "{en:pump}"),
        ("pump NOT the", "{en:pump}"),
        ("(the of) SAME pump", "{en:pump}"),
        ('"state of the art"', '"{en:state} * * {en:art}"'),
        ('"the state"', "{en:state}"),
        ('"the of" pump', "{en:pump}"),
        ("state-of-the-art", '"{en:state} * * {en:art}"'),
    ],
)
def test_stop_words_keep_their_place_in_phrases_and_are_dropped_elsewhere(text, tree):
    assert str(parse(text, STOPPING)) == tree


def test_an_index_without_stop_words_knows_them_all():
    assert parse('"state of the art"') == Phrase((word("state"), word("of"), word("the"), word("art")))
    assert parse("the") == word("the")


def test_a_word_is_looked_for_in_every_language():
    assert parse("pumps", STOPPING, ["en", "fr"]) == Word(("en:pump", "fr:pump"))
    assert parse("pump*", STOPPING, ["en", "fr"]) == Word(("en:pump", "en:pumped", "en:pumpernickel", "fr:pumpe", "fr:pump"))
    # "pour" is a stop word in French alone, "the" one in the query's own language.
    assert parse("pour the", STOPPING, ["en", "fr"]) == Word(("en:pour",))


def test_a_wildcard_finds_at_least_the_word_itself():
    assert parse("pumps*", STOPPING) == word("pump")
    # Nothing but the stop word begins so: it occurs nowhere, and is not dropped.
    assert parse("the* pump", STOPPING) == And((Word(()), word("pump")))


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("(a b", "parenthesis is not closed", 1),
        ("a (b (c) d", "parenthesis is not closed", 3),
        ("a b)", "unmatched closing parenthesis", 4),
        ("()", "expected a word", 2),
        ("a ()", "expected a word", 4),
        ("AND", "expected a word", 1),
        ("a AND OR b", "expected a word", 7),
        ("OR a", "expected a word", 1),
        ("a NEAR/3 NEAR/3 b", "expected a word", 10),
        ("a - b", "expected a word", 3),
        ("a & b", "expected a word", 3),
        ('a "b c', "quotation mark is not closed", 3),
        ('a ""', "contains no word", 3),
        ('a "., "', "contains no word", 3),
        ("a NEAR b", "NEAR/5", 3),
        ("a ADJ b", "ADJ/5", 3),
        ("a NEAR/0 b", "NEAR/5", 3),
        ("a NEAR/x b", "NEAR/5", 3),
        ("a NEAR/99999999999999999999 b", "NEAR/5", 3),
        ("a NEAR/3 (NOT b)", "NOT cannot be inside NEAR", 11),
        ("(a -b) ADJ/3 c", "NOT cannot be inside ADJ", 2),
        ("p*mp", "end of a word", 2),
        ("*pump", "end of a word", 1),
        ("pump**", "end of a word", 6),
        ('"a b*c"', "end of a word", 5),
        ("a {en:b", "brace is not closed", 3),
        ("a {|}", "term is empty", 4),
        ("a } b", "unexpected character", 3),
    ],
)
def test_errors_say_where(text, message, place):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        parse(text)
    assert f"(character {place})" in str(caught.value)


@pytest.mark.parametrize("text", ["a OR", "NOT", "a NEAR/3", "a AND NOT", "("])
def test_what_is_missing_at_the_end(text):
    with pytest.raises(UsageError, match=r"expected a word.* at the end"):
        parse(text)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_query(text):
    with pytest.raises(UsageError, match="empty"):
        parse(text)
    with pytest.raises(UsageError, match="empty"):
        automatic(text)


def test_stop_words_have_no_place_for_near():
    with pytest.raises(UsageError, match=r"not a stop word.*character 13"):
        parse("pump NEAR/3 the", STOPPING)


def test_only_stop_words():
    with pytest.raises(UsageError, match="only stop words"):
        parse('the OR ("of the")', STOPPING)


def test_too_deep():
    most = syntax.MAX_DEPTH
    assert parse("(" * most + "a" + ")" * most) == A
    parse("NOT " * (most - 1) + "a")
    chain = " NEAR/1 ".join(["a"] * (most + 1))
    for text in ("(" * (most + 1) + "a" + ")" * (most + 1), "NOT " * (most + 1) + "a", "-" * 5000 + "a", chain, "(" * 50_000):
        with pytest.raises(UsageError, match="deeper"):
            parse(text)
    # Chains inside chains are as deep as they are together.
    inner = " NEAR/1 ".join(["a"] * (most // 2 + 1))
    with pytest.raises(UsageError, match="deeper"):
        parse(f"({inner}) NEAR/1 " + inner)


def test_too_long_and_too_many():
    with pytest.raises(UsageError, match="100001 characters"):
        parse("a" * 100_001)
    with pytest.raises(UsageError, match="more than 1024 words"):
        parse("a " * 1025)

    def many(prefix, most):
        return 400, [f"{prefix}{i}" for i in range(400)]

    with pytest.raises(UsageError, match="more than 10000 terms"):
        parse_tree(" ".join(f"{letter}*" for letter in "abcdefghijklmnopqrstuvwxyz"), UNSTEMMED, ["en"], many)


def test_a_wildcard_that_stands_for_too_much_is_named():
    def many(prefix, most):
        return 7123, []

    with pytest.raises(UsageError, match=r"pu\* matches at least 7123 terms.*character 7"):
        parse_tree("valve pu*", UNSTEMMED, ["en"], many)


@pytest.mark.parametrize(
    ("keywords", "boolean"),
    [
        ("Nobel prize", "Nobel AND prize"),
        ("opera singer italian spanish -soprano", "opera AND singer AND italian AND spanish AND NOT soprano"),
        ('man made catastrophes -"natural disaster"', 'man AND made AND catastrophes AND NOT "natural disaster"'),
        ("election +victory  -federal", "election AND victory AND NOT federal"),
        ('"plays of Shakespeare"+Macbeth', '"plays of Shakespeare" AND Macbeth'),
        ('+"amy macdonald" +love', '"amy macdonald" AND love'),
        ("female OR woman AND NOT NEAR", 'female AND "OR" AND woman AND "AND" AND "NOT" AND "NEAR"'),
        ("Al-Andalus taifa", '"Al Andalus" AND taifa'),
        ("a - b (c) {d} e* & f", "a AND b AND c AND d AND e AND f"),
    ],
)
def test_automatic(keywords, boolean):
    assert automatic(keywords) == boolean


def test_automatic_says_where_a_quotation_is_not_closed():
    with pytest.raises(UsageError, match=r"not closed at '\"b' \(character 3\)"):
        automatic('a "b')


@pytest.mark.parametrize("analyzer", [UNSTEMMED, STOPPING])
def test_all_titles_of_inex_2009_become_boolean_queries(shared_data, analyzer):
    titles = re.findall(r"<title>(.*?)</title>", (shared_data / "inex" / "INEX-2009-topics.xml").read_text("utf-8"))
    assert len(titles) == 115
    for title in titles:
        tree = parse(automatic(title), analyzer)
        assert parse(str(tree), analyzer) == tree
        negated = {term for found, under_not in words_of(tree) if under_not for term in found.terms}
        excluded = " ".join(quoted or plain for quoted, plain in re.findall(r'(?:^|\s)-(?:"([^"]*)"|(\S+))', title))
        assert negated == {f"en:{term}" for w in words(excluded) if (term := analyzer.term(w, "en")) is not None}
