"""CLEF-IP and MAREC: what the golden trees do not show, and the real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from perikope.document.tree import Document, Kind, Place
from perikope.formats import documents, read, sources
from perikope.formats._xml import trees
from tests.contracts.test_places import check_places
from tests.support.patents import families, patent_xml
from tests.support.trees import check_tree


def document_of(xml: str, folder: Path) -> Document:
    path = folder / "patent.xml"
    path.write_text(xml, encoding="utf-8")
    [document] = read(path)
    check_tree(document)
    return document


def cited(document: Document) -> dict[str, str]:
    """How each span with an id is cited."""
    return {id: document.citations.get(span, "") for span, id in document.span_ids.items()}


def with_description(country: str, description: str, rest: str = "") -> str:
    return (
        f'<patent-document country="{country}" doc-number="2005099001" kind="A1" lang="EN" date="20050106">{rest}'
        f'<description lang="EN">{description}</description></patent-document>'
    )


def test_numbers_of_us_paragraphs_leave_out_the_abstract(tmp_path: Path) -> None:
    counted = '<abstract lang="EN"><p num="p-0001">A pump.</p></abstract>'
    apart = '<abstract lang="EN"><p num="A-0001">A pump.</p></abstract>'
    described = '<p num="p-0002">The pump lifts.</p><p num="p-0003">The pump leaks.</p>'
    assert cited(document_of(with_description("US", described, counted), tmp_path)) == {"p0001": "[0001]", "p0002": "[0002]"}
    assert cited(document_of(with_description("US", described, apart), tmp_path)) == {"p0002": "[0002]", "p0003": "[0003]"}


def test_numbers_that_are_not_printed_are_not_cited(tmp_path: Path) -> None:
    described = '<p num="p0001">The pump lifts.</p><p num="h-0002">The pump leaks.</p>'
    assert cited(document_of(with_description("WO", described), tmp_path)) == {"p0001": ""}
    assert cited(document_of(with_description("EP", described), tmp_path)) == {"p0001": "[0001]"}


def test_two_paragraphs_of_one_number_keep_the_first_id(tmp_path: Path) -> None:
    document = document_of(with_description("EP", '<p num="0001">The pump.</p><p num="0001">The seal.</p>'), tmp_path)
    assert list(document.span_ids.values()) == ["p0001"]
    assert list(document.citations.values()) == ["[0001]", "[0001]"]


def test_a_file_with_next_to_nothing_is_a_document(tmp_path: Path) -> None:
    document = document_of('<patent-document><abstract lang="EN"><p>A pump.</p></abstract></patent-document>', tmp_path)
    assert (document.id, dict(document.metadata), document.title) == ("patent.xml", {}, "")


def test_the_title_is_in_the_language_of_the_description(tmp_path: Path) -> None:
    titles = {"EN": "Pump", "FR": "Pompe", "DE": "Pumpe"}
    parts = ("EP", "0900001", "A1", "2001-08-22")
    assert document_of(patent_xml(*parts, titles=titles, description=["Eine Pumpe."], language="DE"), tmp_path).title == "Pumpe"
    assert document_of(patent_xml(*parts, titles=titles, abstract="Una bomba.", language="ES"), tmp_path).title == "Pump"
    only = document_of(patent_xml(*parts, titles={"FR": "Pompe"}, description=["A pump."]), tmp_path)
    assert (only.title, only.language) == ("Pompe", "en")


def test_claims_only_in_another_language_are_still_referred_to(tmp_path: Path) -> None:
    xml = patent_xml(
        "EP", "0900001", "A1", "2001-08-22", titles={}, description=["Nach Anspruch 1."], language="DE", claims={"EN": ["A pump."]}
    )
    document = document_of(xml, tmp_path)
    assert [target for _, target in document.references] == ["claim-1-en"]


def test_a_place_of_a_claim_inside_a_line_opens_it(tmp_path: Path) -> None:
    lines = (
        "<claim-text>1. A pump. 2. The pump of claim 1.</claim-text><claim-text>3. A seal,</claim-text><claim-text>of rubber.</claim-text>"
    )
    document = document_of(f'<patent-document><claims lang="EN"><claim>{lines}</claim></claims></patent-document>', tmp_path)
    claim = "/patent-document[1]/claims[1]/claim[1]"
    assert {id: document.places[span] for span, id in document.span_ids.items()} == {
        "claim-1": Place(f"{claim}/claim-text[1]", 0, 11),
        "claim-2": Place(f"{claim}/claim-text[1]", 11, 34),
        "claim-3": Place(claim, 34, 54),
    }


def test_claims_whose_first_number_is_not_found_are_claims(tmp_path: Path) -> None:
    lines = "".join(
        f"<claim-text>{line}</claim-text>" for line in ("What is Claimed is", "1 A pump", "of steel.", "2. The pump of claim 1.")
    )
    document = document_of(f'<patent-document><claims lang="EN"><claim>{lines}</claim></claims></patent-document>', tmp_path)
    found = {document.span_ids.get(span, ""): document.text_of(span) for span in document.of_kind(Kind.PASSAGE)}
    assert found == {"": "What is Claimed is", "claim-1": "1 A pump\nof steel.", "claim-2": "2. The pump of claim 1."}
    assert [target for _, target in document.references] == ["claim-1"]


def test_where_a_link_leads_forward_the_words_count(tmp_path: Path) -> None:
    def claim(number: int, text: str) -> str:
        return f'<claim id="c{number}" num="{number}"><claim-text>{number}. {text}</claim-text></claim>'

    claims = [
        claim(1, "A pump."),
        claim(2, 'The pump of <claim-ref idref="c4">claim 1</claim-ref>.'),
        claim(3, 'The pump of <claim-ref idref="c3">claim 1</claim-ref>.'),
        claim(4, 'The pump of <claim-ref idref="c1">claim 1</claim-ref> or <claim-ref idref="c2">the other</claim-ref>.'),
        claim(5, 'A set for the pump of <claim-ref idref="c6">what follows</claim-ref>.'),
        claim(6, "A lid."),
    ]
    document = document_of(f'<patent-document><claims lang="EN">{"".join(claims)}</claims></patent-document>', tmp_path)
    named = [(document.span_ids[span], target) for span, target in document.references]
    assert named == [
        ("claim-2", "claim-1"), ("claim-3", "claim-1"), ("claim-4", "claim-1"), ("claim-4", "claim-2"), ("claim-5", "claim-6"),
    ]  # fmt: skip


def test_examples_in_brackets_are_referred_to(tmp_path: Path) -> None:
    long = "The pump was filled with water and then run for an hour. " * 4
    described = f"<p>(Example 1)</p><p>{long}</p><p>(Comparative Example 1)</p><p>{long} It was worse than in Example 1.</p>"
    document = document_of(with_description("WO", described), tmp_path)
    assert "example-1" in document.span_ids.values()
    assert [target for _, target in document.references] == ["example-1"]


def test_a_notice_of_copyright_is_no_text(tmp_path: Path) -> None:
    paragraphs = "<p>A pump.</p><p>COPYRIGHT: (C)1998,JPO</p><p>COPYRIGHT: (C)2003,JPO&amp;NCIPI </p><p>Its copyright is old.</p>"
    document = document_of(f'<patent-document><abstract lang="EN">{paragraphs}</abstract></patent-document>', tmp_path)
    assert [document.text_of(span) for span in document.of_kind(Kind.PASSAGE)] == ["A pump.", "Its copyright is old."]


def test_names_that_were_escaped_twice(tmp_path: Path) -> None:
    name = "<last-name>Smith &amp;amp; Co &amp;copy of R&amp;D; &amp;lt;Pumps&amp;gt;</last-name>"
    applicant = f'<applicant format="original"><addressbook>{name}</addressbook></applicant>'
    xml = f"<patent-document><bibliographic-data><parties><applicants>{applicant}</applicants></parties></bibliographic-data>"
    document = document_of(f"{xml}<abstract><p>A pump.</p></abstract></patent-document>", tmp_path)
    assert document.metadata["applicant"] == ["Smith & Co &copy of R&D; <Pumps>"]


def test_families_are_read_as_they_are_meant(tmp_path: Path) -> None:
    for family in families():
        found = {}
        for patent in family.everything:
            found[patent.id] = document = document_of(patent.xml, tmp_path)
            assert (document.id, document.metadata["date"]) == (patent.id, patent.date)
        members = [found[patent.id].metadata for patent in family.members]
        others = [found[patent.id].metadata for patent in (family.earlier, family.later, family.other_codes)]
        assert len({str(member["family"]) for member in members}) == 1
        assert all(other["family"] != members[0]["family"] and other["priorities"] != members[0]["priorities"] for other in others)
        assert {member["priority_date"] for member in members} == {family.priority_date}
        assert family.earlier.date < family.priority_date < family.later.date
        assert family.other_codes.date < family.priority_date
        assert all(set(family.codes) & set(other["ipc"]) for other in (*members, *others[:2]))  # type: ignore[call-overload]
        assert not set(family.codes) & set(others[2]["ipc"])  # type: ignore[call-overload]
    assert len(families()) == 10
    assert len({patent.id for family in families() for patent in family.everything}) == 60


def real(folder: Path) -> Iterator[tuple[Document, etree._Element]]:
    """The real patents of both schemas, each with the tree of its file."""
    for source in sources([*sorted(folder.glob("*.xml")), folder / "marec.zip"], hashes=False):
        source = source.carried()
        yield from zip(documents(source), (tree.root for tree in trees(source)), strict=True)


def without_space(text: str) -> str:
    return "".join(text.replace("|", "").split())


@pytest.fixture(scope="module")
def patents(shared_data: Path) -> list[tuple[Document, etree._Element]]:
    folder = shared_data / "patents"
    if not folder.is_dir():
        pytest.skip("no patents")
    return list(real(folder))


def test_no_character_of_a_real_patent_is_lost(patents: list[tuple[Document, etree._Element]]) -> None:
    assert len(patents) == 278
    for document, root in patents:
        check_tree(document)
        text = without_space(document.text)
        for part in [*root.iter("invention-title"), *root.iterchildren("abstract", "description", "claims")]:
            # The notice at the end of Japanese abstracts is no text of theirs.
            expected = without_space("".join(part.itertext())).removesuffix("COPYRIGHT:(C)1998,JPO")
            assert expected in text, f"{document.id}: {part.tag}"


def test_real_patents_are_found_at_their_places(patents: list[tuple[Document, etree._Element]]) -> None:
    for document, root in patents[::9]:
        assert check_places(document, root)
        assert document.places.keys() >= set(document.of_kind(Kind.PASSAGE))


def test_every_claim_of_a_real_patent_has_its_number(patents: list[tuple[Document, etree._Element]]) -> None:
    claims = numbered = dependent = 0
    for document, _ in patents:
        referring = {span for span, _ in document.references}
        for span in document.of_kind(Kind.PASSAGE):
            if document.labels[document.spans.tag[span]] == "claim":
                claims += 1
                numbered += document.span_ids.get(span, "").startswith("claim-")
                dependent += span in referring
    assert claims > 5800
    assert numbered == claims
    assert dependent > 0.75 * claims


def test_claims_of_real_patents_whose_numbers_or_links_are_wrong(patents: list[tuple[Document, etree._Element]]) -> None:
    found = {document.id: document for document, _ in patents}

    def targets(document: str, claim: int) -> list[str]:
        own = {span: id for span, id in found[document].span_ids.items() if id == f"claim-{claim}"}
        return [target for span, target in found[document].references if span in own]

    for id, count in (("WO-1995010595-A1", 10), ("WO-1995010710-A2", 14), ("WO-1995010845-A1", 6), ("WO-2008070025-A1", 22)):
        claims = [name for name in found[id].span_ids.values() if name.startswith("claim-")]
        assert claims == [f"claim-{number}" for number in range(1, count + 1)], id
        assert targets(id, 2) == ["claim-1"]
    assert targets("US-20030000528-A1", 31) == targets("US-20030000528-A1", 32) == ["claim-30"]
    for id in ("US-20030001662-A1", "US-20030003118-A1", "US-20030004557-A1"):
        assert targets(id, 21) == ["claim-20"]
    assert targets("EP-1125724-B1", 3) == ["claim-1"]
