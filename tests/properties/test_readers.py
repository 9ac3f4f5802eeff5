"""Fast ways of the XML readers give what the plain ways give: white space, rules, XPaths, and mentions in patents."""

from __future__ import annotations

import re
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from perikope.formats._bibliography import publications
from perikope.formats._inline import Inline, collapsed
from perikope.formats._patent_keys import NUMBERS, PatentKeys
from perikope.formats._profile import NOTHING, SEMANTIC, Profile, Rule, parse
from perikope.formats._source import language_or_nothing
from perikope.formats._xpaths import Path, elements, is_true, items, texts, with_all_around
from perikope.formats.walks import Added
from perikope.formats.walks.patent import PatentWalk
from perikope.patents import headings
from perikope.patents import mentions as mentions_module
from perikope.patents.mentions import KINDS, may_name, mentions, mentions_of_all, named_first

SPACES = " \t\n\r\f\v\xa0\u2028\u2029"
OTHER_SPACES = "\x1c\x1f\x85\u1680\u2003\u202f\u3000"
TEXTS = st.text(st.sampled_from(f"ab.é中{SPACES}{OTHER_SPACES}  "), max_size=120)
TAGS = st.sampled_from(["a", "b", "c", "d", "x"])
TREES = st.recursive(
    st.builds(lambda tag, text: (tag, text, []), TAGS, st.text("xy ", max_size=4)),
    lambda inner: st.builds(
        lambda tag, text, children: (tag, text, children), TAGS, st.text("xy ", max_size=4), st.lists(inner, max_size=4)
    ),
    max_leaves=25,
)
WORDS = [
    "claim 1", "claims 1 to 3 or 5", "FIG. 2A", "Figs. 3 and 4B", "Anspruch 2", "Ansprüchen 1 bis 3", "revendication 1", "Example 2:",
    "[0042]", "Abb. 3", "the preceding claims", "pump", "\n", "İ", "Σ", "ΑΣ", "claim 0", "example 007", "請求項 3", "the", "(", "die", ". ",
]  # fmt: skip
PASSAGES = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=6)


def tree(described: tuple[str, str, list]) -> etree._Element:  # type: ignore[type-arg]
    tag, text, children = described
    element = etree.Element(tag, {"k": text} if len(text) > 1 else {})
    element.text = text
    for child in children:
        element.append(tree(child))
    return element


@given(TEXTS)
def test_white_space_collapses_as_by_a_regular_expression(text: str) -> None:
    assert collapsed(text) == re.sub(f"[{SPACES}]+", " ", text)


@given(TEXTS, TEXTS)
def test_a_text_alone_is_a_run_as_pieces_are(before: str, text: str) -> None:
    for first in ("", before):
        one, two = Inline(), Inline()
        for inline in (one, two):
            inline.text(first)
        two.text(text)
        assert one.alone(text) == two.take()


@given(st.lists(st.tuples(st.booleans(), TEXTS), max_size=6))
def test_a_marked_text_is_an_open_and_closed_mark(pieces: list[tuple[bool, str]]) -> None:
    one, two = Inline(), Inline()
    for is_marked, text in pieces:
        if is_marked:
            one.marked("b", text)
            two.open("b")
            two.text(text)
            two.close()
        else:
            one.text(text)
            two.text(text)
    assert one.take() == two.take()


STEPS = st.one_of(
    st.tuples(st.just("text"), TEXTS),
    st.tuples(st.just("keep"), TEXTS),
    st.tuples(st.sampled_from(["line", "separate", "open", "close"]), st.just("")),
    st.tuples(st.just("text"), st.sampled_from(["\0", "\1", " \0 ", " ", "a", "\u2003"])),
)


def plain_run(steps: list[tuple[str, str]]) -> tuple[str, list[tuple[str, int, int]], list[str]]:
    """The run by the definition: each piece is written at once, after the white space of what was written before."""
    text, is_open, marks, refs = "", [], [], []
    for step, piece in [*steps, *[("close", "")] * len(steps)]:
        at_line = not text or text.endswith("\n")
        if step == "line" and not at_line:
            text = text[:-1] + "\n" if text.endswith(" ") else text + "\n"
        elif step == "keep":
            text += piece
        elif step == "text" or (step == "separate" and not at_line):
            piece = re.sub(f"[{SPACES}]+", " ", piece or " | " if step == "separate" else piece)
            text += piece[1:] if piece.startswith(" ") and (at_line or text.endswith(" ")) else piece
        elif step == "open":
            is_open.append(len(text))
        elif step == "close" and is_open:
            start = is_open.pop()
            if start < len(text):
                marks.append(("b", start, len(text)))
                refs.append("x")
    text = text.rstrip()
    first = len(text) - len(text.lstrip())
    trimmed = []
    for tag, start, end in reversed(marks):
        start, end = max(start, first), min(end, len(text))
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start < end:
            trimmed.append((tag, start - first, end - first))
    return text[first:], trimmed, refs[:1]


@settings(max_examples=500)
@given(st.lists(STEPS, max_size=12))
def test_a_run_is_what_its_pieces_write_one_after_the_other(steps: list[tuple[str, str]]) -> None:
    inline, depth = Inline(), 0
    for step, piece in steps:
        if step == "open":
            inline.open("b", "x")
            depth += 1
        elif step == "close":
            if depth:
                inline.close()
                depth -= 1
        elif step in ("text", "keep"):
            inline.text(piece, keep=step == "keep")
        else:
            getattr(inline, step)()
    while depth:
        inline.close()
        depth -= 1
    assert inline.take() == plain_run(steps)
    assert inline.take() == ("", [], [])


def plain_rule(profile: Profile, element: etree._Element) -> Rule:
    """The rule by the definition: the first entry whose tags stand around the element."""
    if profile.semantic and element.get(profile.semantic) is not None:
        return SEMANTIC
    around = [str(ancestor.tag) for ancestor in element.iterancestors()]
    for needed, rule in profile.rules.get(str(element.tag)) or profile.rules["*"]:
        if list(needed) == around[: len(needed)]:
            return rule
    return SEMANTIC if profile.others else NOTHING


PROFILES = [
    parse({"passages": ["a", "b/c/a"], "sections": ["b", "a/b"], "skipped": ["c/*", "d/d/d"], "marks": {"c": "c"}}, "one"),
    parse({"passages": ["*"], "titles": ["x/a"], "skipped": ["a/b/c/d"]}, "two"),
    parse({"passages": ["a"], "semantic": "k", "others": True}, "three"),
]


@given(TREES)
def test_rules_from_contexts_are_those_by_definition(described: tuple[str, str, list]) -> None:  # type: ignore[type-arg]
    root = tree(described)
    for profile in PROFILES:
        context = profile.contexts.inside(None)
        waiting = [(root, context)]
        while waiting:
            element, around = waiting.pop()
            rule, inside = around[str(element.tag)]
            expected = plain_rule(profile, element)
            assert profile.rule(element) is expected
            assert rule is expected or expected is SEMANTIC
            assert inside is profile.contexts.inside(element)
            waiting += [(child, inside) for child in element]


def test_tags_that_a_profile_does_not_name_are_not_kept() -> None:
    context = PROFILES[0].contexts.inside(None)
    for number in range(100):
        context[f"other{number}"]
    assert all(tag in PROFILES[0].contexts.named for tag in context)


@given(TREES)
def test_short_xpaths_find_what_the_xpath_machine_finds(described: tuple[str, str, list]) -> None:  # type: ignore[type-arg]
    root = tree(described)
    for text in (".", "@k", "a", "x", "@none", "descendant::b", "descendant::none"):
        plain = etree.XPath(text, smart_strings=False)
        for element in root.iter():
            found = plain(element)
            assert items(Path(text), element) == found
            assert is_true(Path(text), element) is bool(found)
            collapsed_texts = (" ".join(item.split() if isinstance(item, str) else "".join(item.itertext()).split()) for item in found)
            assert texts(Path(text), element) == [line for line in collapsed_texts if line]


@given(TREES)
def test_a_spread_xpath_finds_nothing_beyond_what_it_finds_at_the_root(described: tuple[str, str, list]) -> None:  # type: ignore[type-arg]
    root = tree(described)
    for text in (".//a", "descendant-or-self::a[@k]", ".//a/b", "descendant-or-self::*[self::a or self::b][@k='xy']"):
        path = Path(text)
        assert path.is_spread
        holding = with_all_around(elements(path, root))
        for element in root.iter():
            assert element in holding or not elements(path, element)


def test_xpaths_whose_result_depends_on_positions_or_other_places_are_not_spread() -> None:
    texts = (".//a[1]", "a", "//a", "../a", "descendant::a[last()]", ".//a | .//b", ".//a/..", ".//a[following-sibling::b]", "id('x')")
    assert not any(Path(text).is_spread for text in texts)


@settings(max_examples=300)
@given(PASSAGES, st.integers(0, 4))
def test_mentions_of_all_are_those_of_each(passages: list[str], before: int) -> None:
    found = mentions_of_all(passages, [before] * len(passages))
    assert [list(things) for things in found] == [list(mentions(passage, before)) for passage in passages]


@settings(max_examples=300)
@given(PASSAGES, st.integers(0, 4), st.sets(st.sampled_from(KINDS)))
def test_mentions_of_some_kinds_are_those_among_all(passages: list[str], before: int, kinds: set[str]) -> None:
    found = mentions_of_all(passages, [before] * len(passages), kinds)
    assert [list(things) for things in found] == [
        [thing for thing in mentions(passage, before) if thing[0] in kinds] for passage in passages
    ]


PARTS = [
    "any preceding claim", "the previous claims", "foregoing claims", "Claim above", "claims hereinbefore", "prior art", "claim", "above",
    "revendications ci-dessus", "vorhergehenden Ansprüche", "nach obigem Patentanspruch", "Anspruch", "voranstehenden",
    "revendications qui précèdent",
    "une des précédentes revendications", "revendication", "reivindicaciones anteriores", "reivindicaciones",
    "rivendicazioni precedenti", "precedente", "een der voorgaande conclusies", "vorgaande conclusie", "conclusies",
    "Ansprüchen vorstehend",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PARTS), max_size=4).map(" ".join))
def test_all_claims_before_are_mentioned_where_the_whole_pattern_finds_it(text: str) -> None:
    assert (("claim", "2") in mentions(text, 3)) is (mentions_module._BEFORE.search(text.lower()) is not None)


CAPTIONS = [
    "Background", "of the invention", "DRAWINGS", "Terminology", "examples", "1.2 ", "state", "of", "pump", "l'invention", "état",
    "[0001]", ".", ":", "2", " ", "cross-reference", "Résumé", "【", "the", "-",
]  # fmt: skip


@settings(max_examples=500)
@given(st.lists(st.sampled_from(CAPTIONS), max_size=6), st.sampled_from(["", " "]))
def test_main_headings_are_those_by_definition(words: list[str], between: str) -> None:
    text = between.join(words)
    plain = text.strip().strip("[]<>【】").rstrip(".:- ")
    if numbering := headings._NUMBERING.match(plain):
        plain = plain[numbering.end() :]
    plain = plain.lower().replace("\u2019", "'")
    found = headings._WORD.findall(plain)
    if len(found) == 1:
        expected = plain in headings._ONE_WORD
    else:
        has_digit = any(map(str.isdigit, plain))
        expected = not has_digit and not headings._SAYING_WORDS.isdisjoint(found) and headings._HEADING_WORDS.issuperset(found)
    assert headings.is_main(text) == (expected and len(text) <= headings.LONGEST)


CITED_PATHS = ("descendant-or-self::a", ".//b", "descendant::b/c")
CITING = PatentKeys(cites_in_text=NUMBERS.check("cites_in_text", [{"path": path, "words": True} for path in CITED_PATHS]))


@given(TREES, st.lists(st.sampled_from(range(30)), max_size=8, unique=True))
def test_patents_cited_in_text_come_in_the_order_of_passages(described: tuple[str, str, list], passages: list[int]) -> None:  # type: ignore[type-arg]
    root = tree(described)
    everything = list(root.iter())
    for number, element in enumerate(everything):
        element.text = f"EP-A-{1000 + number} 123"
    # Passages come in the order of the document.
    blocks = [Added(0, everything[number], "", "", "", "", False) for number in sorted(passages) if number < len(everything)]
    found = PatentWalk._cited_in_text(SimpleNamespace(keys=CITING, root=root), blocks)  # type: ignore[arg-type]
    plain = [number for block in blocks for number in publications(CITING, CITING.cites_in_text, block.element)]
    assert list(dict.fromkeys(found)) == list(dict.fromkeys(plain))


ATTRIBUTES = st.dictionaries(
    st.sampled_from(["id", "lang", "num", "{http://www.w3.org/XML/1998/namespace}id"]), st.sampled_from(["", "de", "x", "fr"])
)


@given(ATTRIBUTES)
def test_ids_and_languages_are_in_the_first_attribute_that_has_one(attributes: dict[str, str]) -> None:
    profile, element = PROFILES[0], etree.Element("a", attributes)
    values = [value for name in profile.ids if (value := element.get(name))]
    assert profile.id_of(element) == (values[0] if values else "")
    codes = [code for name in profile.languages if (code := language_or_nothing(element.get(name) or ""))]
    assert profile.language_of(element) == (codes[0] if codes else "")


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*WORDS, "LA ", "les\xa0", "<Beispiel 3>", "[1] The FIGURES 2 to 4"]), max_size=4).map(" ".join))
def test_what_names_nothing_at_first_sight_names_nothing(text: str) -> None:
    first = text.split("\n")[0]
    assert may_name(first) or not list(named_first(first))
    assert may_name(first) or not list(named_first(" ".join(first.split())))
