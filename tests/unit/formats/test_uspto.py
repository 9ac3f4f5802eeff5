"""Patents of the US office: what golden trees do not show, and every real file at hand."""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError, UnreadableFile
from perikope.document.tree import Document, Kind
from perikope.formats import Source, documents, read
from perikope.formats._xml import XmlDocument, chunks, trees, whole_text
from perikope.patents.codes import parse_code
from perikope.patents.uspto_numbers import application, ipc, publication, us_class
from tests.support.trees import GOLDEN, check_tree, describe, passages, titles

SOURCES = sorted((GOLDEN / "sources").glob("uspto.*.xml"))

GRANT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE us-patent-grant SYSTEM "us-patent-grant-v45-2014-04-03.dtd" [ ]>
<us-patent-grant lang="EN"><us-bibliographic-data-grant>
<publication-reference><document-id><country>US</country><doc-number>{number}</doc-number><kind>B2</kind><date>20180605</date></document-id>
</publication-reference>
<application-reference><document-id><country>US</country><doc-number>14990017</doc-number><date>20160107</date></document-id>
</application-reference>{more}
<invention-title>Kettle</invention-title></us-bibliographic-data-grant>
<description>{description}</description>
<claims><claim id="CLM-00001" num="00001"><claim-text>1. A kettle.</claim-text></claim></claims></us-patent-grant>
"""


def grant(number: str = "09990017", description: str = '<p num="0001">Water boils.</p>', more: str = "") -> str:
    return GRANT.format(number=number, description=description, more=more)


def read_text(folder: Path, text: str, format: str = "uspto") -> list[Document]:
    return list(read(_written(folder, text), format=format))


def _written(folder: Path, text: str) -> Path:
    path = folder / "ipg.xml"
    path.write_text(text, encoding="utf-8")
    return path


# Numbers and classes.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("US", "06530116", "B2", "20030311"), ("US", "6530116", "B2")),
        (("US", "6530116", "", "20030300"), ("US", "6530116", "")),
        (("US", "5,793,966", "", "19980800"), ("US", "5793966", "A")),
        (("US", "D0435854", "S", "20010102"), ("US", "D435854", "S1")),
        (("US", "D. 271298", "", "19831100"), ("US", "D271298", "S")),
        (("US", "RE037123", "E", "20010403"), ("US", "RE37123", "E1")),
        (("US", "PP012345", "P3", "20020108"), ("US", "PP12345", "P3")),
        (("US", "H0002001", "H1", "20011106"), ("US", "H2001", "H1")),
        (("US", "2004/0230573", "A1", "20041100"), ("US", "20040230573", "A1")),
        (("US", "0193250", "A1", "20040930"), ("US", "20040193250", "A1")),
        (("", "20010000044", "A1", "20010315"), ("US", "20010000044", "A1")),
        (("WO", "WO 02/25773", "A1", "20020300"), ("WO", "2002025773", "A1")),
        (("WO", "WO-0123241", "A2", "20010400"), ("WO", "2001023241", "A2")),
        (("WO", "WO 2004/002301", "A3", "20040400"), ("WO", "2004002301", "A3")),
        (("WO", "WO2009/157308", "", "20091200"), ("WO", "2009157308", "")),
        (("WO", "89/02682", "", "19890300"), ("WO", "1989002682", "")),
        (("EP", "0 663 640", "", "19950700"), ("EP", "663640", "")),
        (("JP", "8-93012", "", "19960400"), ("JP", "8093012", "")),
        (("JP", "2007-186048", "", "20070700"), ("JP", "2007186048", "")),
        (("KR", "10-2004-0032451", "", "20040400"), ("KR", "20040032451", "")),
    ],
)
def test_publication_has_one_form(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert publication(*given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("US", "09832323", "20010410"), ("US", "83232301", "A")),
        (("US", "10/035,260", "20020103"), ("US", "3526002", "A")),
        (("US", "60195933", "20000410"), ("US", "19593300", "P")),
        (("US", "61372662", "20100811"), ("US", "37266210", "P")),
        (("US", "13648029", "20121009"), ("US", "201213648029", "A")),
        (("US", "PCT/CH02/00573", "20021021"), ("CH", "200573", "W")),
        (("WO", "PCT/IB2019/057948", "20190919"), ("IB", "2019057948", "W")),
        (("EP", "PCTEP9906456", "19990902"), ("EP", "9906456", "W")),
        (("JP", "10-186098", "19980701"), ("JP", "18609898", "A")),
        (("JP", "2001-157805", "20010525"), ("JP", "2001157805", "A")),
        (("DE", "19840645.2", "19980905"), ("DE", "19840645", "A")),
        (("DE", "197 33 454", "19970802"), ("DE", "19733454", "A")),
        (("NO", "971605", "19970408"), ("NO", "971605", "A")),
    ],
)
def test_application_is_numbered_as_in_marec(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert application(*given) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 15328", "15/328"), ("15328", "15/328"), ("\n    4675\n  ", "4/675"), ("  2 16", "2/16"), ("700  2", "700/2"),
        ("428 641", "428/64.1"),
        ("2063081", "206/308.1"), ("200 6185", "200/61.85"), ("12340612", "123/406.12"), (" 24129 R", "24/129R"), ("290 40 C", "290/40C"),
        ("600300000", "600/300"), ("13938300R", "139/383R"), ("PLT226000", "PLT/226"), ("PLT226", "PLT/226"),
        ("D14432-  3", ""), ("", ""), ("omitted", ""),
    ],
)  # fmt: skip
def test_us_class_is_read_from_fixed_width(text: str, expected: str) -> None:
    assert us_class(text) == expected


@given(
    st.text(st.sampled_from("0123456789 DPLT/,.-RES\nWO"), max_size=14),
    st.sampled_from(["US", "WO", "JP", "DE", "KR", "", "?"]),
    st.text(max_size=8),
)
def test_no_number_however_odd_is_an_error(number: str, country: str, date: str) -> None:
    for found in (publication(country, number, "A", date), application(country, number, date)):
        assert found is None or (found[1] and re.fullmatch("[A-Z0-9]+", found[1]))
    assert "\n" not in us_class(number)


@given(
    st.sampled_from("ABCDEFGH"),
    st.integers(1, 99),
    st.sampled_from("ABKLXZ"),
    st.integers(1, 999),
    st.integers(0, 9999).map("{:02d}".format),
)
def test_ipc_of_all_three_schemas_is_the_same(section: str, number: int, letter: str, group: int, subgroup: str) -> None:
    subclass = f"{section}{number:02d}{letter}"
    expected = str(parse_code(f"{subclass} {group}/{subgroup}"))
    assert ipc(f"{subclass}{group:3d}{subgroup}") == expected
    assert ipc(f"{subclass}{group:03d}/{subgroup}") == expected


# Trees.


def test_a_file_that_says_nothing_of_itself_is_named_by_its_place(tmp_path: Path) -> None:
    bare = "<us-patent-grant><description><p>Water boils.</p></description></us-patent-grant>\n"
    assert [document.id for document in read_text(tmp_path, bare)] == ["ipg.xml"]
    two = [document.id for document in read_text(tmp_path, f"<?xml version='1.0'?>\n{bare}<?xml version='1.0'?>\n{bare}")]
    assert two == ["ipg.xml", "ipg.xml:3"]


def test_levels_of_headings_count_only_where_they_differ(tmp_path: Path) -> None:
    flat = '<heading level="2">EXAMPLES</heading><heading level="2">Example 1</heading><p num="0001">Water boils.</p>'
    (document,) = read_text(tmp_path, grant(description=flat))
    depth = {title: _depth(document, number) for number, title in _titles(document)}
    assert depth["Example 1"] == depth["EXAMPLES"] + 1
    nested = flat.replace('level="2">EX', 'level="3">EX').replace('level="2">Ex', 'level="1">Ex')
    (document,) = read_text(tmp_path, grant(description=nested))
    depth = {title: _depth(document, number) for number, title in _titles(document)}
    assert depth["Example 1"] == depth["EXAMPLES"]


def test_only_applications_are_cited_by_paragraph(tmp_path: Path) -> None:
    text = grant()
    (document,) = read_text(tmp_path, text)
    assert list(document.citations.values()) == ["claim 1"]
    (document,) = read_text(tmp_path, text.replace("us-patent-grant", "us-patent-application").replace("-data-grant", "-data-application"))
    assert list(document.citations.values()) == ["[0001]", "claim 1"]
    assert {"p0001", "claim-1"} <= set(document.span_ids.values())


def test_application_and_grant_are_one_family(tmp_path: Path) -> None:
    related = """<us-related-documents>
    <us-provisional-application><document-id><country>US</country><doc-number>62099917</doc-number><date>20150109</date></document-id>
    </us-provisional-application>
    <related-publication><document-id><country>US</country><doc-number>20170199917</doc-number><kind>A1</kind><date>20170713</date></document-id>
    </related-publication></us-related-documents>"""
    (earlier,), (later,) = (
        read_text(tmp_path, grant(number, more=more)) for number, more in (("20170199917", related), ("09990017", related))
    )
    assert earlier.metadata["family"] == later.metadata["family"] == "US-201562099917-P"
    assert later.metadata["priority_date"] == "2015-01-09"
    (alone,) = read_text(tmp_path, grant())
    assert alone.metadata["family"] == "US-201614990017-A"
    assert alone.metadata["priority_date"] == alone.metadata["application_date"] == "2016-01-07"


def test_sequences_are_passages(tmp_path: Path) -> None:
    listing = "<sequence-list><s200><s210>1</s210> <s211>6</s211> <s400>acgtac</s400></s200></sequence-list>"
    listing = f"<us-sequence-list-doc>{listing}</us-sequence-list-doc>"
    (document,) = read_text(tmp_path, grant().replace("</description>", f"</description>{listing}"))
    assert "1 6 acgtac" in passages(document)


def test_statement_before_the_claims_is_their_title() -> None:
    (document,) = read(GOLDEN / "sources" / "uspto.grant.xml")
    number = next(number for number, title in _titles(document) if title == "What is claimed is:")
    claims = document.spans.parent[number]
    assert document.labels[document.spans.tag[claims]] == "claims"
    assert document.places[number].path == "/us-patent-grant[1]/us-claim-statement[1]"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_whatever_is_missing_or_out_of_place_there_is_a_tree(source: Path, tmp_path: Path) -> None:
    chance = random.Random(11)
    path = tmp_path / "ipg.xml"
    for _ in range(60):
        for tree in trees(Source(str(source), source.name)):
            elements = [element for element in tree.root.iter() if element is not tree.root]
            for element in chance.sample(elements, chance.randrange(1, 12)):
                parent = element.getparent()
                if parent is None:
                    continue
                match chance.randrange(4):
                    case 0:
                        parent.remove(element)
                    case 1:
                        element.text = chance.choice(["", "0", "\u0660\u0661", "999999999999999999999", "PCT/", "\u2167", "A/B-C"])
                    case 2:
                        element.attrib.clear()
                    case 3:
                        parent.insert(0, element)
            path.write_bytes(etree.tostring(tree.root))
            try:
                (document,) = read(path, format="uspto")
            except InputError as error:
                assert "is empty" in str(error)  # noqa: PT017
            else:
                check_tree(document)


@pytest.mark.parametrize(
    "claims",
    ["", "<us-claim-statement>We claim again:</us-claim-statement><claims><claim><claim-text>1. A lid.</claim-text></claim></claims>"],
)
def test_statement_without_claims_is_not_lost(claims: str, tmp_path: Path) -> None:
    text = re.sub("<claims>.*</claims>", f"<us-claim-statement>We claim:</us-claim-statement>{claims}", grant())
    ((document, tree),) = pairs(_written(tmp_path, text))
    assert_nothing_is_lost(document, tree)
    assert_places_hold(document, tree)


# Many documents in one file.


def bulk() -> bytes:
    """All golden files one after the other: three schemas of the format `uspto` in one file."""
    return b"".join(source.read_bytes() for source in SOURCES)


def test_a_bulk_file_may_mix_schemas_and_is_split_for_workers(tmp_path: Path) -> None:
    path = tmp_path / "ipg.xml"
    path.write_bytes(bulk())
    single = [describe(document) for source in SOURCES for document in read(source, format="uspto")]
    assert [describe(document) for document in read(path, format="uspto")] == single
    source = Source(str(path), "ipg.xml", format="uspto")
    for size in (1, 4_000, 1 << 30):
        pieces = list(chunks(source, size))
        assert len(pieces) == (len(single) if size == 1 else 1 if size == 1 << 30 else len(pieces))
        assert [describe(document) for piece in pieces for document in documents(piece)] == single


def test_a_bulk_file_in_a_zip_is_indexed_by_workers_as_by_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ipg180605.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ipg180605.xml", "".join(grant(f"{number:08d}") for number in range(10_000_000, 10_000_400)))
    counts = []
    for workers in (1, 2):
        report = build(tmp_path / f"index{workers}", [tmp_path / "ipg180605.zip"], options=BuildOptions(workers=workers, format="uspto"))
        counts.append(report.documents)
    assert counts == [400, 400]


def test_another_root_is_refused_by_name_and_line(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"<article>.*<us-patent-grant>") as caught:
        read_text(tmp_path, grant() + "<?xml version='1.0'?>\n<article/>\n")
    assert f":{grant().count(chr(10)) + 1}:" in str(caught.value)


def test_damage_in_the_middle_of_a_bulk_file_names_its_line(tmp_path: Path) -> None:
    good = grant()
    with pytest.raises(InputError, match=r"cannot be read as XML") as caught:
        read_text(tmp_path, good + good.replace("<p num", "<q num") + good)
    assert f":{good.count(chr(10)) + 9}" in str(caught.value)


# What every file promises, made or real.

PARTS = {
    "abstract": ("abstract", "SDOAB", "subdoc-abstract"),
    "description": ("description", "SDODE", "subdoc-description"),
    "claims": ("us-claim-statement", "claims", "SDOCL", "subdoc-claims"),
}
TOTALS = (29, 477, 181, 443)
"""Documents, claims, codes and patents cited of the 28 real files."""


def pairs(path: Path) -> Iterator[tuple[Document, XmlDocument]]:
    """The documents of a file, each with the tree that it was made of."""
    return zip(read(path, format="uspto"), trees(Source(str(path), path.name)), strict=True)


def assert_nothing_is_lost(document: Document, tree: XmlDocument) -> None:
    """Each part has the same characters in order, except white space, bars between cells and cited numbers."""
    for part, tags in PARTS.items():
        of_part = {number for number, label in enumerate(document.labels) if label == part}
        spans = [number for number in range(len(document.spans)) if document.spans.kind[number] in (Kind.PASSAGE, Kind.TITLE)]
        found = "".join(document.text_of(number) for number in spans if document.spans.part[number] in of_part)
        assert bare(found) == bare("".join(printed(element) for element in tree.root.iterchildren(*tags))), part
    for number in tree.root.iterfind("subdoc-description//paragraph/number"):
        assert f"[{int(re.sub('[^0-9]', '', number.text)):04d}]" in document.citations.values()


def assert_places_hold(document: Document, tree: XmlDocument) -> None:
    """The path of every passage and title finds an element, and its offsets find the same text."""
    text = whole_text(tree.root)
    for number in range(len(document.spans)):
        if document.spans.kind[number] in (Kind.PASSAGE, Kind.TITLE) and number in document.places:
            place = document.places[number]
            (element,) = tree.root.xpath(place.path)
            assert text[place.start : place.end] == whole_text(element)
            if document.labels[document.spans.tag[number]] not in ("applicant", "inventor", "assignee"):
                assert bare(document.text_of(number)) == bare(printed(element))


def assert_marked_references_are_found(document: Document, tree: XmlDocument) -> None:
    """Every claim that a claim refers to in its tags is among its references, which are also made of words."""
    span_of_id = {id: number for number, id in document.span_ids.items()}
    for claim in tree.root.iter("claim", "CLM"):
        span = span_of_id[f"claim-{_claim_number(claim.get('num') or claim.get('id') or claim.get('ID'))}"]
        for reference in claim.iter("claim-ref", "CLREF", "dependent-claim-reference"):
            target = _claim_number(reference.get("idref") or reference.get("ID") or reference.get("depends_on"))
            assert (span, f"claim-{target}") in document.references


def _claim_number(text: str) -> int:
    return int(re.search("[0-9]+", text)[0])


def printed(element) -> str:
    """The text of an element without the numbers of paragraphs and tables, which are elements in pap only."""
    if element.tag == "number":
        return ""
    return (element.text or "") + "".join(printed(child) + (child.tail or "") for child in element)


def bare(text: str) -> str:
    return re.sub(r"[\s|]+", "", text)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_nothing_is_lost_and_places_hold(source: Path) -> None:
    for document, tree in pairs(source):
        assert_nothing_is_lost(document, tree)
        assert_places_hold(document, tree)
        assert_marked_references_are_found(document, tree)


def test_every_real_file_is_read_and_nothing_of_it_lost(shared_data: Path) -> None:
    paths = sorted((shared_data / "patents" / "uspto").glob("*.xml"))
    if not paths:
        pytest.skip("no files of the US office")
    totals = (0, 0, 0, 0)
    for path in paths:
        for document, tree in pairs(path):
            check_tree(document)
            assert_nothing_is_lost(document, tree)
            assert_places_hold(document, tree)
            assert_marked_references_are_found(document, tree)
            assert document.language == "en"
            assert re.fullmatch(r"US-D?[1-9][0-9]{5,10}-(A[12]|B[12]|S1)", document.id)
            assert {"date", "application_date", "priority_date", "family", "inventor"} <= set(document.metadata)
            claims = [citation for citation in document.citations.values() if citation.startswith("claim ")]
            declared = tree.root.findtext(".//number-of-claims") or tree.root.findtext(".//B577/PDAT")
            assert declared is None or len(claims) == int(declared)
            codes = sum(len(_values(document, scheme)) for scheme in ("ipc", "cpc", "uspc"))
            found = (1, len(claims), codes, len(document.cites))
            totals = tuple(map(sum, zip(totals, found, strict=True)))
    assert totals == TOTALS


@pytest.mark.parametrize(
    ("file", "id", "expected"),
    [
        ("v2-5-B2.xml", "US-6530116-B2", {"ipc": ["A47L5/14"], "uspc": ["15/328", "15/327.6", "15/326", "15/412"]}),
        ("USD435854S1.xml", "US-D435854-S1", {"uspc": ["D14/480"], "date": "2001-01-02", "family": "US-11651099-A"}),
        (
            "US20010000044A1.xml",
            "US-20010000044-A1",
            {"ipc": ["G06F17/60"], "uspc": ["705/26", "705/37"], "application_date": "1999-06-29"},
        ),
        ("US06859910.xml", "US-6859910-B2", {"priorities": ["US-19593300-P"], "assignee": ["Bluestreak.com"]}),
        ("v4-5-A2.xml", "US-20220160114-A2", {"priorities": ["US-201862756069-P", "CA-2019051575-W"], "priority_date": "2018-11-05"}),
        ("v4-0-A2_1.xml", "US-20050004655-A2", {"uspc": ["623/1.16"], "family": "DE-19840645-A"}),
    ],
)
def test_real_files_say_what_they_say(shared_data: Path, file: str, id: str, expected: dict[str, object]) -> None:
    path = shared_data / "patents" / "uspto" / file
    if not path.exists():
        pytest.skip("no files of the US office")
    (document,) = read(path)
    assert document.id == id
    assert {key: document.metadata.get(key) for key in expected} == expected


def test_real_bulk_file_holds_two_documents(shared_data: Path) -> None:
    path = shared_data / "patents" / "uspto" / "test.xml"
    if not path.exists():
        pytest.skip("no files of the US office")
    found = list(read(path))
    assert [document.id for document in found] == ["US-11147202-B2", "US-11147203-B2"]
    source = Source(str(path), path.name, format="uspto", source=path.name)
    split = [document for piece in chunks(source, 1) for document in documents(replace(piece))]
    assert [describe(document) for document in split] == [describe(document) for document in found]


def _values(document: Document, key: str) -> list[str]:
    value = document.metadata.get(key, [])
    return value if isinstance(value, list) else [str(value)]


def _titles(document: Document) -> list[tuple[int, str]]:
    assert titles(document)
    return [(number, document.text_of(number)) for number in document.of_kind(Kind.TITLE)]


def _depth(document: Document, number: int) -> int:
    depth = 0
    while (number := document.spans.parent[number]) >= 0:
        depth += 1
    return depth
