"""What the patent formats share: numbers, mentions in words, headings, lists of claims."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from perikope.formats._bibliography import Bibliography, normal_codes
from perikope.formats._claims import cut, joined
from perikope.formats._inline import Run
from perikope.patents.headings import Headings, heading_level, is_capitals, is_main
from perikope.patents.mentions import cited_patents, claim_starts, mentions, named_first
from perikope.patents.numbers import PatentNumber, number_of_id, patent_number
from tests.support.growth import is_linear


@pytest.mark.parametrize(
    ("parts", "id", "written"),
    [
        (("EP", "1000000", "A1"), "EP-1000000-A1", "EP1000000A1"),
        (("EP", "0000012", "B1"), "EP-12-B1", "EP0000012B1"),
        (("WO", "1978000001", "A1"), "WO-1978000001-A1", "WO1978000001A1"),
        (("WO", "7900001", "A1"), "WO-1979000001-A1", "WO1979000001A1"),
        (("WO", "0100832", "A1"), "WO-2001000832-A1", "WO2001000832A1"),
        (("WO", "03092592", "A2"), "WO-2003092592-A2", "WO2003092592A2"),
        (("US", "2004248206", "A1"), "US-20040248206-A1", "US20040248206A1"),
        (("US", "20040248206", "A1"), "US-20040248206-A1", "US20040248206A1"),
        (("US", "2004248206", "A"), "US-2004248206-A", "US2004248206A"),
        (("US", "D0435854", "S1"), "US-D435854-S1", "USD435854S1"),
        (("US", "H1", "H"), "US-H1-H", "USH1H"),
        (("JP", "10000001", "A"), "JP-10000001-A", "JP10000001A"),
        ((" de ", "3 546 191", "a1"), "DE-3546191-A1", "DE3546191A1"),
        (("GB", "9726001", ""), "GB-9726001", "GB9726001"),
    ],
)
def test_numbers_have_one_form(parts: tuple[str, str, str], id: str, written: str) -> None:
    number = patent_number(*parts)
    assert (number.id, number.written) == (id, written)
    assert number_of_id(id).id == id


def test_metadata_says_what_is_known_and_nothing_else() -> None:
    application = PatentNumber("EP", "98123456", "A", "1998-12-09")
    later, earlier = PatentNumber("GB", "2", "A", "1998-01-05"), PatentNumber("GB", "1", "A", "1997-12-09")
    assert Bibliography().metadata() == {}
    alone = Bibliography(application=application).metadata()
    assert alone == {"application_date": "1998-12-09", "priority_date": "1998-12-09", "family": "EP-98123456-A"}
    claimed = Bibliography(application=application, priorities=[later, earlier]).metadata()
    assert (claimed["priority_date"], claimed["priorities"], claimed["family"]) == ("1997-12-09", ["GB-2-A", "GB-1-A"], "GB-1-A")
    assert Bibliography(application=application, family="7").metadata()["family"] == "7"
    assert normal_codes(["F04D0013080000", "F04D 13/08", "none"]) == ["F04D13/08"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A pump according to claim 1, wherein", "1"),
        ("The pump of claims 1, 2 and/or 4", "1 2 4"),
        ("as claimed in any one of claims 1 to 3 or claim 7", "1 2 3 7"),
        ("according to Claims 2-4, 6", "2 3 4 6"),
        ("Pumpe nach Anspruch 1 oder 2", "1 2"),
        ("nach einem der Patentansprüche 1 bis 3", "1 2 3"),
        ("gemäss den Ansprüchen 1 und 3", "1 3"),
        ("selon la revendication 2", "2"),
        ("selon l'une quelconque des revendications 1 à 3", "1 2 3"),
        ("según la reivindicación 1", "1"),
        ("secondo le rivendicazioni 1 e 2", "1 2"),
        ("volgens conclusie 4", "4"),
        ("請求項1に記載の", "1"),
        ("The method of claim 1further comprising", "1"),
        ("the pump of claim 12a", ""),
        ("claims priority of 12 patents", ""),
        ("claim 3 of US 4,111,222", ""),
        ("the claimed 3 pumps", ""),
        ("claim 1000", ""),
    ],
)
def test_claims_are_found_in_the_words_of_many_languages(text: str, expected: str) -> None:
    assert [which for what, which in mentions(text) if what == "claim"] == expected.split()


@pytest.mark.parametrize(
    "text",
    [
        "The pump of any preceding claim",
        "as claimed in any of the foregoing claims",
        "nach einem der vorhergehenden Ansprüche",
        "nach mindestens einem der voranstehenden Patentansprüche",
        "selon l'une des revendications précédentes",
        "según cualquiera de las reivindicaciones anteriores",
        "secondo una delle rivendicazioni precedenti",
    ],
)
def test_preceding_claims_are_all_before(text: str) -> None:
    assert [which for _, which in mentions(text, before=4)] == ["1", "2", "3"]
    assert list(mentions(text)) == []


def test_figures_examples_and_paragraphs_are_found() -> None:
    text = "See FIGS. 2A-2C and 4, figure 7, Abbildung 8, Examples 1 to 3 and Fig. 9, [0042]; not Fig. X or Example A or [42]."
    assert list(mentions(text)) == [
        *(("figure", which) for which in ("2A", "2B", "2C", "4", "7", "8")),
        *(("example", which) for which in ("1", "2", "3")),
        ("figure", "9"),
        ("paragraph", "0042"),
    ]
    assert list(mentions("[0042] The pump.")) == []
    assert list(mentions("FIG. 1is a chart and FIG. 2a a view")) == [("figure", "1"), ("figure", "2A")]
    assert list(mentions("for example 10ml, Comparative Example 2, Production Examples 3 to 5, Example 6 of JP-A-7-295212")) == []


def test_what_a_passage_is_about_stands_at_its_beginning() -> None:
    assert list(named_first("[0003] FIGS. 3 to 5 are views")) == [("figure", "3"), ("figure", "4"), ("figure", "5")]
    assert list(named_first("Examples 1 to 3")) == [("example", "1"), ("example", "2"), ("example", "3")]
    assert list(named_first("Die Figuren 1 und 2 zeigen")) == [("figure", "1"), ("figure", "2")]
    assert list(named_first("FIG. 1is a flow-chart")) == [("figure", "1")]
    assert list(named_first("(Example 1)")) == list(named_first("[Example 1] Glue")) == [("example", "1")]
    assert list(named_first("Further, Fig. 1")) == []


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 9)), min_size=1, max_size=6))
def test_lists_of_numbers_are_read_as_they_are_written(ranges: list[tuple[int, int]]) -> None:
    written = ", ".join(f"{first} to {first + more}" if more else str(first) for first, more in ranges)
    expected = dict.fromkeys(str(number) for first, more in ranges for number in range(first, first + more + 1))
    # A comma ends a range, so that what stands on both sides of it is no range.
    assert [which for what, which in mentions(f"of claims {written}.") if what == "claim"] == list(expected)


@pytest.mark.parametrize(
    "piece", ["claims 1,", "FIG. 1 and ", "1. ", "1 ", "\n 1 ", ".\n", " ", "claim ", "preceding ", "U.S. 1,111,", "Example 1 to "]
)
def test_words_are_read_in_linear_time(piece: str) -> None:
    def read(size: int) -> None:
        text = piece * size
        for found in (mentions(text, before=3), named_first(text), cited_patents(text), claim_starts([text])):
            list(found)

    assert is_linear(read, 2000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WO 95/11968", "WO-1995011968"),
        ("WO95/19978", "WO-1995019978"),
        ("WO 2004/096131", "WO-2004096131"),
        ("WO 98/050431", "WO-1998050431"),
        ("International Publication No. WO 99/07407", "WO-1999007407"),
        ("U.S. Patent No. 6,001,611", "US-6001611"),
        ("US 6,110, 949", "US-6110949"),
        ("U. S. Patent No. 5, 714, 320", "US-5714320"),
        ("US-A-5 612 742", "US-5612742"),
        ("U.S. Pat. Nos. 5,001,116 and 4,994,443", "US-5001116 US-4994443"),
        ("US 2004/0193250 A1", "US-20040193250-A1"),
        ("EP 0 549 478", "EP-549478"),
        ("EP 0 349 115 A1", "EP-349115-A1"),
        ("EP-A-184 790", "EP-184790"),
        ("EP0372484", "EP-372484"),
        ("EP 1 000 000 B1", "EP-1000000-B1"),
        ("DE 197 29 591", "DE-19729591"),
        ("DE-A1- 3 546 191", "DE-3546191-A1"),
        ("DE 2660736 C2", "DE-2660736-C2"),
        ("GB 2 255 561", "GB-2255561"),
        ("JP-A-57-101835", "JP-57101835"),
        ("Japanese Patent Laid-open No. Hei 9-249927", "JP-9249927"),
        ("JP-A-2000-039724", "JP-2000039724"),
        ("EP-1 ,162,196", "EP-1162196"),
        ("United States Patent 5,973,053", "US-5973053"),
        ("U.S. Patent Application Nos. 2008/0176783 and 2009/0005590", "US-20080176783 US-20090005590"),
        ("U.S. Patent Application No. 11/071,244", ""),
        ("3,935, 074", ""),
        ("U.S. Provisional Application No. 60/558,239", ""),
        ("PCT/EP98/01234", ""),
        ("the patent of the same applicant", ""),
    ],
)
def test_cited_patents_are_found_where_their_number_is_certain(text: str, expected: str) -> None:
    assert " ".join(patent_number(*parts).id for parts in cited_patents(text)) == expected


def test_headings_are_told_by_their_words_and_their_case() -> None:
    main = [
        "FIELD OF THE INVENTION",
        "Technical Field",
        "2. Description of the Related Art",
        "Stand der Technik",
        "Examples",
        "[Background Art]",
    ]
    main += ["Kurze Beschreibung der Zeichnungen", "Brève description des dessins", "BEST MODE FOR CARRYING OUT THE INVENTION"]
    for text in main:
        assert is_main(text), text
    for text in ("The pump", "The invention is new", "Invention", "Art of pumps", "Fig. 2", "", "Example 1 of the invention"):
        assert not is_main(text), text
    assert is_capitals("SUBMERSIBLE PUMPS FOR BRINE")
    for text in ("TABLE 1", "EPO", "ACGT ACGT GGTT", "RGV SF-268 CNS", "MKTAYIAKQR QISFVKSHFS", "SEQ ID NO", "Pumps For Brine"):
        assert not is_capitals(text), text


def paragraphs(*texts: str) -> list[etree._Element]:
    root = etree.fromstring("<description>" + "".join(f"<p>{text}</p>" for text in texts) + "</description>")
    return list(root)


LONG = "A pump has an impeller and a volute, which together lift the brine, and a strainer before them that keeps the grains outside."


def headings_of(*texts: str) -> list[tuple[int, str]]:
    headings = Headings(lambda element: (element.text or "").startswith("["))
    levels, outline = [], 1
    for element in paragraphs(*texts):
        text = "".join(element.itertext())
        if headings.is_heading(element, text):
            level, outline = heading_level(text, outline)
            levels.append((level, text))
    return levels


def test_levels_follow_numbering_and_case() -> None:
    texts = (
        "EXAMPLES",
        "1. Pumps",
        LONG,
        "1.1 Impellers",
        LONG,
        "2. Seals",
        LONG,
        "<b>Notes</b>",
        LONG,
        "Example 3",
        LONG,
        "REFERENCES",
        LONG,
    )
    assert headings_of(*texts) == [
        (1, "EXAMPLES"), (2, "1. Pumps"), (3, "1.1 Impellers"), (2, "2. Seals"), (3, "Notes"), (2, "Example 3"), (1, "REFERENCES"),
    ]  # fmt: skip


def test_lines_of_lists_and_tables_and_sentences_are_no_headings() -> None:
    assert headings_of("1. Pump", "2. Seal", "3. Cable", LONG) == []
    assert headings_of("Example 2 shows the seal.", "In the drawings,", "the field of the invention is", "SUMMARY OF THE INVENTION") == []
    assert headings_of("Pumps", LONG, "Seals", LONG) == []
    assert headings_of(f"BACKGROUND OF THE INVENTION {LONG}", LONG) == []


def test_a_line_without_a_number_among_numbered_paragraphs_is_a_heading() -> None:
    texts = ("Pumps", f"[0001] {LONG}", "Seals", "Of rubber", f"[0002] {LONG}", "and so on", f"[0003] {LONG}", "EMI3.1", "End")
    assert headings_of(*texts) == [
        (2, "Pumps"), (2, "Seals"), (2, "Of rubber"),
    ]  # fmt: skip


def test_claims_that_ran_on_are_found_where_their_numbers_are_missing() -> None:
    assert claim_starts(["1. A pump.", "(a) of 2. Kind", "3. A seal. 4. A cable. 5. A plug.", "6. A lid"]) == [
        (1, 0, 0), (3, 2, 0), (4, 2, 11), (5, 2, 23), (6, 3, 0),
    ]  # fmt: skip
    assert claim_starts(["A pump of 1. Sort", "2.5 litres", "99. bottles"]) == []
    assert claim_starts([]) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["What is Claimed is", "1 A pump", "of 5 parts", "2. The pump of claim 1."], [(1, 1, 0), (2, 3, 0)]),
        (["I CLAIM:", ".1. A pump with a rotor. 2. The pump of claim 1.", "3. A seal."], [(1, 1, 0), (2, 1, 25), (3, 2, 0)]),
        (["", "a rotor in a casing; and", "a seal.", "2. The pump of claim 1."], [(1, 1, 0), (2, 3, 0)]),
        (["We claim", "A rotor in a casing. 2. A seal.", "3. A lid.", "4. A plug."], [(1, 1, 0), (2, 1, 21), (3, 2, 0), (4, 3, 0)]),
        (["9. A lid.\n10 A plug.", "1 1. A seal.", "12. A pump."], []),
        (["1. A lid. 9", "\n 2 A plug. 3. A hat", "4. A seal."], [(1, 0, 0), (2, 1, 2), (3, 1, 12), (4, 2, 0)]),
    ],
)
def test_the_first_claims_are_found_though_their_numbers_are_not(lines: list[str], expected: list[tuple[int, int, int]]) -> None:
    assert claim_starts(lines) == expected


def test_a_number_with_a_space_in_it_is_found_where_it_is_missing() -> None:
    lines = [*(f"{number}. A pump." for number in range(1, 11)), "1 1. A seal.", "12. A lid."]
    assert [number for number, _, _ in claim_starts(lines)] == list(range(1, 13))
    assert [number for number, _, _ in claim_starts([*lines[:8], "1 2. A seal."])] == list(range(1, 9))


@pytest.mark.parametrize(
    "lines",
    [
        ["AMENDED CLAIMS", "[received by the Bureau on 8 February 1995; original claims 2 and 3 amended]", "2. A pump.", "3. A seal."],
        ["Patentansprüche", "2. Eine Pumpe.", "3. Eine Dichtung."],
        ["The embodiments in which an exclusive property is claimed are:", "2. A pump.", "3. A seal."],
    ],
)
def test_what_announces_claims_is_none(lines: list[str]) -> None:
    assert [number for number, _, _ in claim_starts(lines)] == [2, 3]


def test_steps_of_a_claim_are_no_list() -> None:
    assert claim_starts(["A method of pumping, which comprises", "first opening, and then", "2) closing a valve"]) == [(2, 2, 0)]


@given(st.lists(st.sampled_from(["pump", "a", "<b>", "seal,", "of", " ", "\n  "]), min_size=1, max_size=12), st.data())
def test_cutting_a_run_loses_nothing(words: list[str], data: st.DataObject) -> None:
    raw = " ".join(words)
    text = " ".join(raw.split())
    if not text:
        return
    places = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=3)))
    borders = [0, *places, len(raw)]
    pieces = [cut(Run(text, [("b", 0, len(text))], []), raw, first, last) for first, last in pairwise(borders)]
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(text.split())
    whole = joined([piece for piece in pieces if piece.text])
    assert "".join(whole.text.split()) == "".join(text.split())
    for _, start, end in whole.marks:
        assert whole.text[start:end] == whole.text[start:end].strip() != ""
