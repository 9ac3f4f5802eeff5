"""CLEF-IP and MAREC: what the golden trees do not show, and the real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from perikope.document import Document, Kind, Place
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
            assert without_space("".join(part.itertext())) in text, f"{document.id}: {part.tag}"


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
