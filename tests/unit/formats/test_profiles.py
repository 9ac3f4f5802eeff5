"""TEI, DocBook and xml2rfc: schemas that are nothing but a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from perikope.core.errors import InputError
from perikope.document.tree import Document, Kind
from perikope.formats import read
from perikope.formats.xml import profiles
from tests.support.trees import GOLDEN, check_tree, passages, titles


def document(folder: Path, content: str) -> Document:
    """What is made of a file whose schema is seen from its root."""
    path = folder / "file.xml"
    path.write_text(content, encoding="utf-8")
    [found] = read(path)
    check_tree(found)
    return found


@pytest.mark.parametrize("name", ["jats", "inex", "tei", "docbook", "rfc"])
def test_needs_no_code(name: str) -> None:
    assert profiles()[name].summary
    assert profiles()[name].walk == "general"


SOURCES = [(source, name) for source in sorted((GOLDEN / "sources").iterdir()) if (name := source.name.partition(".")[0]) in profiles()]


@pytest.mark.parametrize(("source", "name"), SOURCES, ids=[source.name for source, _ in SOURCES])
def test_a_schema_is_seen_from_the_root(source: Path, name: str) -> None:
    assert list(read(source)) == list(read(source, format=name))


class TestTei:
    def test_abstract_body_and_back(self, tmp_path: Path) -> None:
        header = "<fileDesc><titleStmt><title>T</title></titleStmt></fileDesc><profileDesc><abstract><p>A.</p></abstract></profileDesc>"
        body = "<body><div><head>H</head><p><s>One.</s> <s>Two.</s></p></div></body><back><div><listBibl>X</listBibl></div></back>"
        content = f"<teiHeader>{header}</teiHeader><text>{body}</text>"
        found = document(tmp_path, f'<TEI xmlns="http://www.tei-c.org/ns/1.0">{content}</TEI>')
        assert passages(found) == ["A.", "One. Two."]
        assert titles(found) == ["T", "H"]
        assert found.labels[found.spans.part[next(found.of_kind(Kind.PASSAGE))]] == "abstract"

    def test_references_lead_to_ids(self) -> None:
        [found] = read(GOLDEN / "sources" / "tei.grobid.xml")
        assert {target for _, target in found.references} == {"fig_0"}
        assert "fig_0" in found.span_ids.values()
        assert found.cites == ("10.9999/eye",)

    def test_numbers_of_sections_are_kept_and_reference_lists_leave_no_section(self) -> None:
        [found] = read(GOLDEN / "sources" / "tei.grobid.xml")
        assert titles(found) == ["Sorting shells by sound", "1 Introduction", "2 Method", "Acknowledgements"]
        assert all(found.text_of(section) for section in found.of_kind(Kind.SECTION))


class TestDocBook:
    @pytest.mark.parametrize("root", ["book", "article", "chapter", "section", "sect1", "refentry"])
    @pytest.mark.parametrize("namespace", ["", ' xmlns="http://docbook.org/ns/docbook" version="5.1"'])
    def test_roots_of_both_versions(self, root: str, namespace: str, tmp_path: Path) -> None:
        found = document(tmp_path, f"<{root}{namespace}><title>T</title><section><title>S</title><para>x</para></section></{root}>")
        assert found.title == "T"
        assert titles(found) == ["T", "S"]
        assert passages(found) == ["x"]

    def test_of_the_information_only_title_and_abstract_are_text(self, tmp_path: Path) -> None:
        information = "<title>T</title><author><firstname>A</firstname><surname>B</surname></author><abstract><para>a</para></abstract>"
        for tag in ("info", "bookinfo"):
            found = document(tmp_path, f"<book><{tag}>{information}</{tag}><chapter><title>C</title><para>x</para></chapter></book>")
            assert titles(found) == ["T", "C"]
            assert passages(found) == ["a", "x"]
            assert found.metadata["author"] == "A B"

    def test_references_without_text_say_the_title(self, tmp_path: Path) -> None:
        sections = '<section id="a"><title>Care</title><para>x</para></section>'
        sections += '<section id="b"><info><title>Oil</title></info><para>y</para></section>'
        found = document(tmp_path, f'<article>{sections}<para>See <xref linkend="a"/> and <xref linkend="b"/>.</para></article>')
        assert passages(found)[-1] == "See Care and Oil."
        assert {target for _, target in found.references} == {"a", "b"}

    def test_what_stands_in_another_file_is_asked_for(self, tmp_path: Path) -> None:
        (tmp_path / "c.xml").write_text("<para>c</para>")
        with pytest.raises(InputError, match="uses &c;, which is declared in another file"):
            document(tmp_path, '<!DOCTYPE book [<!ENTITY c SYSTEM "c.xml">]><book><para>x</para>&c;</book>')


class TestRfc:
    def test_titles_of_both_versions(self, tmp_path: Path) -> None:
        old = document(
            tmp_path, '<rfc number="1"><front><title>T</title></front><middle><section title="S"><t>x</t></section></middle></rfc>'
        )
        new = document(
            tmp_path, '<rfc number="1"><front><title>T</title></front><middle><section><name>S</name><t>x</t></section></middle></rfc>'
        )
        assert old.id == new.id == "RFC1"
        assert titles(old) == titles(new) == ["T", "S"]
        assert passages(old) == passages(new) == ["x"]

    def test_a_list_in_a_paragraph_follows_it(self, tmp_path: Path) -> None:
        found = document(tmp_path, "<rfc><front><title>T</title></front><middle><t>a <list><t>b</t><t>c</t></list> d</t></middle></rfc>")
        assert passages(found) == ["a d", "b", "c"]

    def test_months_have_names_and_references_too(self, tmp_path: Path) -> None:
        front = '<front><title>T</title><date year="2004" month="June" day="3"/></front>'
        back = '<back><references><reference anchor="RFC2119"><front><title>Words</title></front><seriesInfo name="RFC" value="2119"/>'
        middle = (
            '<middle><section anchor="s" title="Terms"><t>As in <xref target="RFC2119"/>, see <xref target="s"/>.</t></section></middle>'
        )
        found = document(tmp_path, f"<rfc>{front}{middle}{back}</reference></references></back></rfc>")
        assert passages(found) == ["As in RFC2119, see Terms."]
        assert [target for _, target in found.references] == ["s"]
        assert (found.cites, found.metadata["date"]) == (("RFC2119",), "2004-06-03")

    def test_code_keeps_its_shape(self) -> None:
        [found] = read(GOLDEN / "sources" / "rfc.version3.xml")
        assert 'heat = 1*DIGIT\n       "C"' in passages(found)
