"""Publications of one patent become one document."""

from __future__ import annotations

from pathlib import Path

from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.formats import read
from perikope.patents.families import merge_publications
from tests.support.patents import families, patent_xml
from tests.support.trees import check_tree


def documents_of(folder: Path, *xmls: str) -> list[Document]:
    for number, xml in enumerate(xmls):
        (folder / f"{number}.xml").write_text(xml, encoding="utf-8")
    return list(read(folder))


def sections(document: Document) -> list[tuple[str, str]]:
    spans, labels = document.spans, document.labels
    return [(labels[spans.part[i]], labels[spans.language[i]]) for i in document.of_kind(Kind.SECTION) if spans.parent[i] == 0]


def test_the_latest_publication_counts_and_earlier_ones_fill_the_gaps(tmp_path: Path) -> None:
    family = families()[0]
    merged = list(merge_publications(documents_of(tmp_path, *(patent.xml for patent in family.members))))
    for document in merged:
        check_tree(document)
    assert [document.id for document in merged] == ["EP-900100", "US-20020010000"]
    european = merged[0]
    parts = [("bibliography", "en"), ("description", "en"), ("claims", "de"), ("claims", "en"), ("claims", "fr"), ("abstract", "en")]
    assert sections(european) == parts
    assert (european.metadata["date"], european.metadata["publication"]) == ("2001-08-22", ["EP0900100B1", "EP0900100A1"])
    assert (european.metadata["kind"], european.metadata["country"], european.metadata["ipc"]) == (["B1", "A1"], "EP", list(family.codes))
    assert european.title == "Submersible pump"


def test_ids_references_citations_and_places_are_kept(tmp_path: Path) -> None:
    alone = documents_of(tmp_path, families()[0].members[1].xml)[0]
    [merged] = merge_publications(documents_of(tmp_path, *(patent.xml for patent in families()[0].members[:2])))
    numbers = {id: span for span, id in merged.span_ids.items()}
    assert set(numbers) == set(alone.span_ids.values())
    for span, id in alone.span_ids.items():
        assert merged.text_of(numbers[id]) == alone.text_of(span)
        assert (merged.citations.get(numbers[id]), merged.places[numbers[id]]) == (alone.citations.get(span), alone.places[span])
    named = {span: id for id, span in numbers.items()}
    references = {(named[span], target) for span, target in merged.references}
    assert references == {(alone.span_ids[span], target) for span, target in alone.references} != set()
    # What an earlier publication gave has no place in the latest one's file.
    abstract = next(span for span in merged.of_kind(Kind.PASSAGE) if merged.labels[merged.spans.part[span]] == "abstract")
    assert abstract not in merged.places


def test_marks_keep_their_places(tmp_path: Path) -> None:
    parts = ("EP", "0900001", "A1", "2001-08-22")
    xml = patent_xml(*parts, titles={"EN": "Pump"}, description=["The BIG pump BIG lifts."]).replace("BIG", "<b>big <i>red</i></b>")
    [before] = documents_of(tmp_path, xml)
    [after] = merge_publications([before])
    marks = [[(one.labels[one.spans.tag[i]], one.text_of(i)) for i in one.of_kind(Kind.MARK)] for one in (before, after)]
    assert marks[0] == marks[1] != []


def test_metadata_and_citations_are_united(tmp_path: Path) -> None:
    first = patent_xml(
        "EP",
        "0900001",
        "A1",
        "2001-08-22",
        titles={"EN": "Pump"},
        abstract="A pump.",
        codes=["F04D 13/08"],
        cites=["DE-1234567-C1", "EP-900001-A1"],
    )
    second = patent_xml(
        "EP",
        "0900001",
        "B1",
        "2003-05-14",
        titles={"EN": "Pump"},
        description=["A pump."],
        codes=["F04D 29/42", "F04D 13/08"],
        cites=["GB-7-A"],
    )
    [merged] = merge_publications(documents_of(tmp_path, first, second))
    assert merged.metadata["ipc"] == ["F04D29/42", "F04D13/08"]
    assert merged.cites == ("GB-7-A", "DE-1234567-C1")


def test_other_documents_are_passed_on_as_they_are() -> None:
    builder = TreeBuilder("EP-1-A1", title="Not a patent")
    builder.passage("It only looks like one.")
    document = builder.build()
    assert list(merge_publications([document])) == [document]
    assert list(merge_publications([])) == []


def test_real_pairs_are_merged(shared_data: Path) -> None:
    paths = sorted((shared_data / "patents").glob("EP-*.xml"))
    merged = list(merge_publications(read(paths, hashes=False)))
    assert [document.id for document in merged] == ["EP-1000000", "EP-1000006"]
    assert ("abstract", "en") in sections(merged[0])
    for document in merged:
        check_tree(document)
