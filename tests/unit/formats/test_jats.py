"""JATS: what is a passage, what is left out, and real articles against another reading of them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perikope.document.tree import Document, Kind
from perikope.formats import read
from tests.support.trees import check_tree, passages, titles

NOWHERE = "<article><front><journal-meta/><article-meta>{meta}</article-meta></front><body>{body}</body><back>{back}</back>{rest}</article>"


def article(folder: Path, body: str = "<p>Text.</p>", *, meta: str = "", back: str = "", rest: str = "") -> Document:
    path = folder / "article.nxml"
    path.write_text(NOWHERE.format(meta=meta, body=body, back=back, rest=rest), encoding="utf-8")
    [document] = read(path)
    check_tree(document)
    return document


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ('<article-id pub-id-type="doi">10.1/x</article-id><article-id pub-id-type="pmc">12</article-id>', "PMC12"),
        ('<article-id pub-id-type="pmid">7</article-id><article-id pub-id-type="pmcid">PMC12</article-id>', "PMC12"),
        ('<article-id pub-id-type="pmc">PMC12</article-id>', "PMC12"),
        ('<article-id pub-id-type="doi">10.1/x</article-id><article-id pub-id-type="pmid">7</article-id>', "PMID7"),
        ('<article-id pub-id-type="doi">10.1/x</article-id>', "10.1/x"),
        ('<article-id pub-id-type="publisher-id">A-3</article-id>', "A-3"),
        ("", "article.nxml"),
    ],
)
def test_the_id_is_the_best_known_one(ids: str, expected: str, tmp_path: Path) -> None:
    assert article(tmp_path, meta=ids).id == expected


def test_of_the_front_only_abstracts_are_text(tmp_path: Path) -> None:
    meta = "<title-group><article-title>T</article-title><subtitle>S</subtitle></title-group><kwd-group><kwd>K</kwd></kwd-group>"
    meta += (
        '<abstract><title>Abstract</title><p>A.</p></abstract><abstract abstract-type="toc"><p>B.</p></abstract><unheard-of>X</unheard-of>'
    )
    document = article(tmp_path, meta=meta, back="<ack><p>Thanks.</p></ack><ref-list><ref><label>1</label>R</ref></ref-list>")
    assert passages(document) == ["A.", "B.", "Text."]
    assert titles(document) == ["T", "Abstract"]
    assert document.metadata["keywords"] == "K"
    assert {document.labels[document.spans.part[passage]] for passage in document.of_kind(Kind.PASSAGE)} == {"abstract", ""}


def test_authors_have_two_kinds_of_names(tmp_path: Path) -> None:
    names = "<name><surname>Curie</surname><given-names>Marie</given-names></name>"
    names += "<string-name><given-names>Lise</given-names> <surname>Meitner</surname></string-name>"
    names += "<string-name>Emmy  Noether</string-name><string-name><given-names>Plato</given-names></string-name>"
    document = article(tmp_path, meta=f'<contrib-group><contrib contrib-type="author">{names}</contrib></contrib-group>')
    assert document.metadata["author"] == ["Marie Curie", "Lise Meitner", "Emmy Noether", "Plato"]


def test_figures_and_tables_give_captions_and_rows(tmp_path: Path) -> None:
    figure = '<fig id="F1"><label>Figure 1</label><caption><title>Pump.</title><p>Seen from above.</p></caption></fig>'
    table = '<table-wrap id="T1"><label>Table 1</label><caption><p>Leaks</p></caption><alternatives><graphic/>'
    table += "<table><thead><tr><th/><th>a</th><th><p>b</p>"
    table += (
        "<p>c</p></th></tr></thead><tbody><tr><td/><td/></tr><tr><td>1</td><td/><td>2<break/>3</td></tr></tbody></table></alternatives>"
    )
    table += "<table-wrap-foot><p>Note.</p></table-wrap-foot></table-wrap>"
    document = article(tmp_path, f"<sec><title>S</title>{figure}</sec>", rest=f"<floats-group>{table}</floats-group>")
    assert passages(document) == ["Pump.\nSeen from above.", "Leaks", "1 | 2 3"]
    assert titles(document) == ["S", "a | b c"]
    assert sorted(document.citations.values()) == ["Figure 1", "Table 1", "Table 1"]
    assert {"F1", "T1"} <= set(document.span_ids.values())


def test_a_paragraph_keeps_the_list_and_the_table_in_it(tmp_path: Path) -> None:
    rows = "<tr><td>1</td><td>2</td></tr><tr><td>3</td></tr>"
    table = f'<table-wrap id="T"><label>Table 1</label><caption><p>C</p></caption><table>{rows}</table></table-wrap>'
    document = article(
        tmp_path, f"<p>Before <list><list-item><p>one</p></list-item><list-item><p>two</p></list-item></list>{table}after.</p>"
    )
    assert passages(document) == ["Before\none\ntwo\nTable 1\nC\n1 | 2\n3\nafter."]


def test_marks_and_cross_references(tmp_path: Path) -> None:
    document = article(
        tmp_path,
        '<p id="p1">As <italic>in</italic> <xref rid="B1 B2">[1]</xref> and <sup><xref rid="F1">a</xref></sup>.</p>'
        '<fig id="F1"><caption><p>A pump.</p></caption></fig>',
    )
    passage = next(document.of_kind(Kind.PASSAGE))
    marks = [(document.labels[document.spans.tag[mark]], document.text_of(mark)) for mark in document.of_kind(Kind.MARK)]
    assert marks == [("it", "in"), ("xref", "[1]"), ("sup", "a"), ("xref", "a")]
    assert document.references == ((passage, "F1"),)
    assert document.span_ids[passage] == "p1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('A pump<xref rid="n"><sup>1</sup></xref> leaks<sup><xref rid="a">2</xref>,<xref rid="b">3</xref></sup>.', "A pump 1 leaks 2,3."),
        ('Water<xref rid="a">4</xref>, 10<sup>3</sup> m', "Water 4, 103 m"),
        ('Fig. S<xref rid="f">1</xref>, pump<xref rid="f">s</xref>', "Fig. S1, pumps"),
    ],
)
def test_numbers_of_notes_and_sources_are_not_glued_to_words(text: str, expected: str, tmp_path: Path) -> None:
    assert passages(article(tmp_path, f"<p>{text}</p>")) == [expected]


def test_what_the_reference_list_names_is_cited(tmp_path: Path) -> None:
    both = (
        '<ref><element-citation><pub-id pub-id-type="pmid">5</pub-id><pub-id pub-id-type="doi">10.1/five</pub-id></element-citation></ref>'
    )
    doi = '<ref><mixed-citation>X <pub-id pub-id-type="doi">10.1/six</pub-id></mixed-citation></ref><ref>nothing</ref>'
    assert article(tmp_path, back=f"<ref-list>{both}{both}{doi}</ref-list>").cites == ("PMID5", "10.1/six")


def test_labels_of_sections_are_in_their_titles_and_formulas_are_passages(tmp_path: Path) -> None:
    body = "<sec><label>1</label><title>One</title><disp-formula><label>(1)</label>a = b<tex-math>a=b</tex-math></disp-formula></sec>"
    document = article(tmp_path, body)
    assert titles(document) == ["1 One"]
    assert passages(document) == ["(1) a = b"]


def test_translated_abstracts_have_their_language(tmp_path: Path) -> None:
    document = article(tmp_path, meta='<trans-abstract xml:lang="fr"><p>Bref.</p></trans-abstract>')
    [first, _] = document.of_kind(Kind.PASSAGE)
    assert document.labels[document.spans.language[first]] == "fr"


BEFORE_NUMBER = re.compile(r"(?<=\w{2}) (?=\d)")


class TestRealArticles:
    """The 61 articles that are here as they come, and as someone else cut them into passages."""

    @pytest.fixture(scope="class")
    @staticmethod
    def pairs(shared_data: Path) -> list[tuple[Document, dict[str, Any]]]:
        folder = shared_data / "evidence-inference"
        if not (folder / "nxml").is_dir():
            pytest.skip(f"no articles at {folder}")
        paths = {path.stem: path for path in (folder / "nxml").glob("*.nxml")}
        with gzip.open(folder / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
            expected = {record["id"]: record for record in map(json.loads, lines) if record["id"] in paths}
        assert len(expected) == len(paths) == 61
        return [(document, expected[id]) for id in sorted(paths) for document in read(paths[id])]

    def test_ids_titles_citations_and_metadata_are_the_same(self, pairs: list[tuple[Document, dict[str, Any]]]) -> None:
        for document, expected in pairs:
            check_tree(document)
            assert document.id == expected["id"]
            assert document.title == " ".join(expected["title"].split())
            assert {id for id in document.cites if id.startswith("PMID")} == set(expected["cites"])
            assert document.metadata["journal"] == expected["metadata"]["journal"]
            assert document.metadata["year"] == expected["metadata"]["year"]

    def test_passages_agree_in_number_and_text(self, pairs: list[tuple[Document, dict[str, Any]]]) -> None:
        ours = Counter((document.id, letters(text)) for document, _ in pairs for text in passages_and_headers(document))
        theirs = Counter((record["id"], letters(text)) for _, record in pairs for text in texts(record))
        assert abs(ours.total() - theirs.total()) <= 0.02 * theirs.total()
        characters = size(theirs)
        assert size(theirs - ours) <= 0.02 * characters
        assert size(ours - theirs) <= 0.02 * characters
        assert (theirs & ours).total() >= 0.98 * theirs.total()

    def test_words_are_glued_together_only_there(self, pairs: list[tuple[Document, dict[str, Any]]]) -> None:
        ours = Counter((document.id, " ".join(text.split())) for document, _ in pairs for text in passages_and_headers(document))
        theirs = Counter((record["id"], " ".join(text.split())) for _, record in pairs for text in texts(record))
        # We keep the numbers of notes and sources apart from the word before them; the other reader does not.
        ours_glued, theirs_glued = (
            Counter({(id, BEFORE_NUMBER.sub("", text)): times for (id, text), times in found.items()}) for found in (ours, theirs)
        )
        assert (theirs_glued & ours_glued).total() >= 0.96 * theirs_glued.total()
        spaces_of_theirs, spaces_of_ours = (sum(text.count(" ") * times for (_, text), times in found.items()) for found in (theirs, ours))
        assert spaces_of_theirs < spaces_of_ours < 1.05 * spaces_of_theirs


def passages_and_headers(document: Document) -> Iterator[str]:
    """The texts of passages, and of the header rows of tables, which are passages in the other form."""
    yield from passages(document)
    for title in document.of_kind(Kind.TITLE):
        if document.labels[document.spans.tag[document.spans.parent[title]]] == "table":
            yield from document.text_of(title).split("\n")


def letters(text: str) -> str:
    """A text without the white space of its layout: the other reader puts nothing between lines."""
    return "".join(text.replace("|", "").split())


def texts(record: dict[str, Any]) -> Iterator[str]:
    yield from (passage["text"] for passage in record["passages"])
    for section in record["sections"]:
        yield from texts(section)


def size(passages: Counter[tuple[str, str]]) -> int:
    return sum(len(text) * times for (_, text), times in passages.items())
