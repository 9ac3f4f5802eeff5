"""The EPO's own files: what the golden trees do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import read
from tests.support.trees import GOLDEN, check_tree, passages, titles


def document_of(xml: str, folder: Path) -> Document:
    path = folder / "patent.xml"
    path.write_text(xml, encoding="utf-8")
    [document] = read(path, format="epo")
    check_tree(document)
    return document


def fulltext(content: str, number: str = "1063298", country: str = "EP") -> str:
    id = f"<document-id><country>{country}</country><doc-number>{number}</doc-number><kind>A2</kind></document-id>"
    data = f'<bibliographic-data><publication-reference data-format="docdb">{id}</publication-reference></bibliographic-data>'
    return f'<fulltext-document xmlns="http://www.epo.org/fulltext">{data}{content}</fulltext-document>'


def test_both_schemas_are_one_format() -> None:
    for name in ("epo.fulltext.xml", "epo.published.xml"):
        [document] = read(GOLDEN / "sources" / name, format="epo")
        assert document.metadata["kind"] in ("A1", "B1")
    with pytest.raises(UnreadableFile, match="patent-document"):
        list(read(GOLDEN / "sources" / "clef-ip.abstract.xml", format="epo"))


def test_a_number_before_a_paragraph_stays_and_names_it(tmp_path: Path) -> None:
    document = document_of(
        fulltext('<description lang="EN"><p>[0001]    A pump. </p><p>[2] A seal.</p><p>[1], see there.</p></description>'), tmp_path
    )
    assert passages(document) == ["[0001] A pump.", "[2] A seal.", "[1], see there."]
    assert list(document.span_ids.values()) == ["p0001", "p0002"]
    assert list(document.citations.values()) == ["[0001]", "[0002]"]


def test_numbers_are_written_as_elsewhere(tmp_path: Path) -> None:
    content = '<description lang="EN"><p>[0001] A pump.</p></description>'
    assert document_of(fulltext(content, "0100832", "WO"), tmp_path).id == "WO-2001000832-A2"
    assert document_of(fulltext(content, "2004248206", "US"), tmp_path).id == "US-20040248206-A2"


def test_claims_are_cut_apart(tmp_path: Path) -> None:
    claims = "<claims lang='EN'><claim><claim-text>1. A pump.</claim-text><claim-text>2. The pump of claim 1.</claim-text></claim></claims>"
    german = (
        "<claims lang='DE'><claim><claim-text>1. Pumpe.</claim-text><claim-text>2. Pumpe nach Anspruch 1.</claim-text></claim></claims>"
    )
    document = document_of(fulltext(f'<description lang="EN"><p>[0001] A pump.</p></description>{claims}{german}'), tmp_path)
    assert list(document.span_ids.values()) == ["p0001", "claim-1", "claim-2", "claim-1-de", "claim-2-de"]
    assert [target for _, target in document.references] == ["claim-1", "claim-1-de"]


def test_a_published_patent_without_its_fields_is_read(tmp_path: Path) -> None:
    description = '<description lang="en"><heading>Pumps</heading><p num="0001">A pump.</p></description>'
    document = document_of(f'<ep-patent-document lang="en">{description}</ep-patent-document>', tmp_path)
    assert (document.id, titles(document), passages(document)) == ("patent.xml", ["Pumps"], ["A pump."])
    fields = "<SDOBI><B100><B110>1599001</B110><B130>B1</B130><B140><date>20080611</date></B140><B190>EP</B190></B100></SDOBI>"
    document = document_of(f'<ep-patent-document>{fields}<abstract lang="en"><p>A pump.</p></abstract></ep-patent-document>', tmp_path)
    assert (document.id, document.metadata["date"]) == ("EP-1599001-B1", "2008-06-11")
