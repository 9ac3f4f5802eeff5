"""Profiles: every key has its effect, every mistake is named, and a user's profile works on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from perikope import cli
from perikope.core.errors import InputError
from perikope.core.options import declared
from perikope.document.tree import Document, Kind
from perikope.formats import FORMATS, read
from perikope.formats._profile import NOTHING, ProfileKeys, Role, load, parse
from tests.support.trees import check_tree, passages, titles

RECIPES = """\
name = "recipes"
summary = "Recipes of our kitchen"
roots = ["recipe"]
title = ["name"]
id = [{path = "@number", form = "recipe-{}"}]
sections = ["step"]
titles = ["step/@title"]
passages = ["text", "hint"]
skipped = ["name"]

[marks]
strong = "b"

[metadata]
cook = "by"
"""
PANCAKES = """\
<recipe number="7">
  <name>Pancakes</name>
  <step title="Mix"><text>Stir the <strong>flour</strong>.</text><hint>Slowly.</hint></step>
</recipe>
"""


def document(folder: Path, profile: str, content: str) -> Document:
    """What a profile makes of a file."""
    (folder / "my.toml").write_text(profile, encoding="utf-8")
    (folder / "file.xml").write_text(content, encoding="utf-8")
    [found] = read(folder / "file.xml", format=str(folder / "my.toml"))
    check_tree(found)
    return found


def outline(folder: Path, profile: str, content: str) -> list[str]:
    """The lines of the tree below its root, without its title."""
    lines = document(folder, profile, content).outline().splitlines()
    return [line[2:] for line in lines[1:] if not line.startswith("  title title ")]


def test_a_whole_profile(tmp_path: Path) -> None:
    found = document(tmp_path, RECIPES, PANCAKES.replace("<step", "<by>Ann</by><step"))
    assert (found.id, found.title, dict(found.metadata)) == ("recipe-7", "Pancakes", {"cook": "Ann"})
    assert passages(found) == ["Ann", "Stir the flour.", "Slowly."]
    assert titles(found) == ["Pancakes", "Mix"]


class TestKeys:
    """One test per key, in the order of the documentation."""

    def test_name_and_format_and_summary(self) -> None:
        profile = parse({"passages": ["p"]}, "recipes")
        assert (profile.name, profile.format, profile.summary) == ("recipes", "recipes", "")
        profile = parse({"passages": ["p"], "name": "a", "format": "b", "summary": "c"}, "recipes")
        assert (profile.name, profile.format, profile.summary) == ("a", "b", "c")

    def test_roots_and_when(self) -> None:
        profile = parse({"passages": ["p"], "roots": ["a", "b"], "when": "c or d"}, "x")
        fits = [profile.fits(etree.fromstring(text)) for text in ("<a><c/></a>", "<b><d/></b>", "<a/>", "<e><c/></e>")]
        assert fits == [True, True, False, False]
        assert parse({"passages": ["p"]}, "x").fits(etree.fromstring("<anything/>"))

    def test_a_file_with_another_root_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"root <recette>.*<recipe>"):
            document(tmp_path, RECIPES, "<recette><text>x</text></recette>")

    def test_a_file_without_what_it_must_hold_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"root <r>, but does not meet `when` of the profile my"):
            document(tmp_path, 'when = "front"\npassages = ["p"]', "<r><p>x</p></r>")

    @pytest.mark.parametrize(
        ("ids", "expected"),
        [('["@no", "number"]', "5"), ('["number", "@no"]', "5"), ('["nothing", "@code"]', "C"), ('["nothing"]', "file.xml")],
    )
    def test_id(self, ids: str, expected: str, tmp_path: Path) -> None:
        content = '<r code="C"><number> 5 </number><p>x</p></r>'
        assert document(tmp_path, f'id = {ids}\npassages = ["p"]\nskipped = ["number"]', content).id == expected

    def test_language_and_languages(self, tmp_path: Path) -> None:
        content = '<r tongue="de"><p>x</p><p sprache="fr">y</p><p xml:lang="it">z</p></r>'
        for key, expected in (('languages = ["sprache"]', ["de", "fr", "de"]), ("", ["de", "de", "it"])):
            found = document(tmp_path, f'language = ["@tongue"]\npassages = ["p"]\n{key}', content)
            assert [found.labels[found.spans.language[passage]] for passage in found.of_kind(Kind.PASSAGE)] == expected

    def test_cites_takes_what_all_paths_find_in_their_forms(self, tmp_path: Path) -> None:
        profile = 'cites = [{path = "//n", form = "N{}"}, {path = "//a/@href", form = "stem"}, "//n[2]"]\npassages = ["p"]\nskipped = ["n"]'
        found = document(tmp_path, profile, '<r><n>1</n><n>2</n><n>1</n><p>x<a href="../b/c.xml"/></p></r>')
        assert found.cites == ("N1", "N2", "c", "2")

    def test_ids(self, tmp_path: Path) -> None:
        content = '<r><p id="a" key="b">x</p><p xml:id="c">y</p></r>'
        assert list(document(tmp_path, 'passages = ["p"]', content).span_ids.values()) == ["a", "c"]
        assert list(document(tmp_path, 'passages = ["p"]\nids = ["key"]', content).span_ids.values()) == ["b"]

    def test_semantic(self, tmp_path: Path) -> None:
        content = '<r><who s="1"><p>by <who s="2">Ann</who></p></who><p>by <who>Bob</who></p></r>'
        assert outline(tmp_path, 'semantic = "s"\npassages = ["p"]', content) == [
            "element who",
            "  passage p 'by Ann'",
            "    mark who 'Ann'",
            "passage p 'by Bob'",
        ]

    def test_others(self, tmp_path: Path) -> None:
        content = "<r><who><p>by <em>Ann</em></p></who></r>"
        assert outline(tmp_path, 'others = true\npassages = ["p"]', content) == [
            "element who",
            "  passage p 'by Ann'",
            "    mark em 'Ann'",
        ]
        assert outline(tmp_path, 'passages = ["p"]', content) == ["passage p 'by Ann'"]

    def test_sections_elements_and_titles(self, tmp_path: Path) -> None:
        profile = 'sections = ["s"]\nelements = ["l"]\ntitles = ["h", "s/@t"]\npassages = ["p"]'
        content = '<r><s t="A"><h>B</h></s><s><h>C</h><h>D</h><p>x</p><l><h>E</h><p>y</p></l></s></r>'
        assert outline(tmp_path, profile, content) == [
            "section s",
            "  title title 'A'",
            "  passage h 'B'",
            "section s",
            "  title title 'C'",
            "  passage h 'D'",
            "  passage p 'x'",
            "  element l",
            "    passage h 'E'",
            "    passage p 'y'",
        ]

    def test_labels(self, tmp_path: Path) -> None:
        profile = 'sections = ["s"]\ntitles = ["h"]\nlabels = ["n"]\npassages = ["p"]'
        content = "<r><s><n>1</n><h>A</h><n>(a)</n><p>x</p><n>(b)</n><n>(c)</n><p>y<n>!</n>z</p><n>(d)</n></s></r>"
        found = document(tmp_path, profile, content)
        assert titles(found) == ["1 A"]
        assert passages(found) == ["(a) x", "(b)", "(c) y! z", "(d)"]
        assert passages(document(tmp_path, profile, "<r><p>x</p><n>(e)</n></r>")) == ["x", "(e)"]

    def test_names(self, tmp_path: Path) -> None:
        profile = 'elements = ["fig", "t"]\nnames = ["fig/n"]\npassages = ["p"]'
        found = document(tmp_path, profile, "<r><fig><n>Figure 2</n><p>x</p>loose<t><p>y</p></t></fig><p>z</p></r>")
        assert {found.text_of(span): citation for span, citation in found.citations.items()} == dict.fromkeys(
            ["x", "loose", "y"], "Figure 2"
        )
        assert passages(found) == ["x", "loose", "y", "z"]

    def test_headings(self, tmp_path: Path) -> None:
        content = "<r><h1>A</h1><p>x</p><h2>B</h2><p>y</p><h1>C</h1><p>z</p></r>"
        assert outline(tmp_path, 'passages = ["p"]\nheadings = {h1 = 1, h2 = 2}', content) == [
            "section h1",
            "  title title 'A'",
            "  passage p 'x'",
            "  section h2",
            "    title title 'B'",
            "    passage p 'y'",
            "section h1",
            "  title title 'C'",
            "  passage p 'z'",
        ]

    def test_passages_inside_passages_begin_a_line_and_blocks_follow(self, tmp_path: Path) -> None:
        content = "<r><p>a <p>b</p> c <i><l><p>d</p><l><p>e</p></l></l></i> f</p><p>g</p></r>"
        assert passages(document(tmp_path, 'passages = ["p"]\nelements = ["l"]', content)) == ["a\nb\nc f", "d", "e", "g"]

    def test_whole_keeps_blocks_inside(self, tmp_path: Path) -> None:
        content = "<r><p>a <l><p>d</p><p>e</p></l> f</p><q>g <l><p>h</p></l></q></r>"
        assert passages(document(tmp_path, 'passages = ["p", "q"]\nwhole = ["p"]\nelements = ["l"]', content)) == ["a\nd\ne\nf", "g", "h"]

    def test_references_to_what_a_whole_passage_holds_lead_to_it(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nwhole = ["p"]\nelements = ["l"]\nreferences = {see = "to"}'
        content = '<p>a <see to="two"/><l id="one"><p id="two">b</p></l></p><p id="three">c <l id="four"/></p>'
        content += '<p><see to="one two four three five">d</see></p>'
        found = document(tmp_path, profile, f"<r>{content}</r>")
        last = list(found.of_kind(Kind.PASSAGE))[-1]
        assert found.references == ((last, "one"), (last, "three"))
        assert list(found.span_ids.values()) == ["three", "one"]

    def test_preformatted_keeps_white_space(self, tmp_path: Path) -> None:
        content = "<r><pre>\n  a\n    <b>b  c</b>\n</pre><p>\n  a\n    b  c\n</p></r>"
        found = document(tmp_path, 'passages = ["p"]\npreformatted = ["pre"]\nmarks = {b = "b"}', content)
        assert passages(found) == ["  a\n    b  c", "a b c"]
        assert [found.text_of(mark) for mark in found.of_kind(Kind.MARK)] == ["b  c"]

    def test_code_is_cut_and_has_its_tag_and_language(self, tmp_path: Path) -> None:
        lines = "\n".join(f"line {number}" for number in range(400))
        content = f"<r><code lang='C' id='x'>{lines}</code><p>a  b</p><sh>  c\n    d</sh></r>"
        found = document(tmp_path, 'passages = ["p"]\ncode = ["code/@lang", "sh"]', content)
        tags = [found.labels[found.spans.tag[i]] for i in found.of_kind(Kind.PASSAGE)]
        assert tags == ["code", "code", "code", "p", "code"]
        assert passages(found)[3:] == ["a b", "  c\n    d"]
        assert "\n".join(passages(found)[:3]) == lines
        assert found.metadata["code_language"] == ["c"]
        assert {found.places[i].path for i in list(found.of_kind(Kind.PASSAGE))[:3]} == {"/r[1]/code[1]"}
        assert found.span_ids == {next(found.of_kind(Kind.ELEMENT)): "x"}

    def test_header_rows_are_the_title_of_their_table(self, tmp_path: Path) -> None:
        profile = 'elements = ["table"]\nrows = ["tr"]\ncells = ["td"]\nheader_cells = ["th", "head/tr/td"]\npassages = ["p"]'
        first = "<table><head><tr id='h'><td>A</td><td>B</td></tr></head><tr><th>c</th><td>d</td></tr></table>"
        second = "<table><tr><th>A</th></tr><tr><td/><th>B</th></tr><tr><td>c</td></tr></table>"
        third = "<table><tr><th>A</th></tr></table><table><tr>x</tr><tr><td>y</td></tr></table>"
        found = document(tmp_path, profile, f"<r>{first}{second}{third}</r>")
        assert titles(found) == ["A | B", "A\nB"]
        assert passages(found) == ["c | d", "c", "A", "x", "y"]
        assert [found.labels[found.spans.tag[i]] for i in found.of_kind(Kind.SECTION)] == ["r", "table", "table"]
        assert list(found.span_ids.values()) == ["h"]

    def test_rows_and_cells(self, tmp_path: Path) -> None:
        profile = 'elements = ["table"]\nrows = ["tr"]\ncells = ["td"]\npassages = ["p"]\nbreaks = ["br"]\nmarks = {b = "b"}'
        content = (
            "<r><table><tr><td/><td><b>a</b></td><td> </td><td><p>b</p><p>c</p></td><td>d<br/>e</td></tr><tr><td> </td></tr></table></r>"
        )
        found = document(tmp_path, profile, content)
        assert passages(found) == ["a | b c | d e"]
        assert [found.text_of(mark) for mark in found.of_kind(Kind.MARK)] == ["a"]

    def test_marks_and_references(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nmarks = {i = "it", cite = "cite"}\nreferences = {see = "to", cite = "xlink:href"}'
        content = '<p id="a">x <i>y</i> <see to="#b c gone">z</see> <see to="d"/><cite xlink:href="#e">w</cite></p>'
        content += "".join(f'<p id="{id}">{id}</p>' for id in "bcde")
        content = f'<r xmlns:xlink="http://www.w3.org/1999/xlink">{content}</r>'
        assert outline(tmp_path, profile, content)[:4] == [
            "passage p #a ->b ->c ->d ->e 'x y z w'",
            "  mark it 'y'",
            "  mark link 'z'",
            "  mark cite 'w'",
        ]

    def test_filled_references_say_what_they_lead_to(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nsections = ["s"]\ntitles = ["h", "s/@t"]\nskipped = ["list"]\nreferences = {see = "to", hint = "to"}'
        content = '<s id="a"><about><h>Of <i>Pumps</i></h></about><p>x</p></s><s id="b" t="Of  seals"><p id="c">y</p></s>'
        content += '<list><s id="d"><h>Not text</h></s></list><s id="e"><s id="f"><h>Inner</h><p>z</p></s></s>'
        for target, name in {
            "#a": "Of Pumps",
            "b": "Of seals",
            "c": "c",
            "d": "d",
            "e": "e",
            "f": "Inner",
            "g": "g",
            "a b": "Of Pumps, Of seals",
        }.items():
            content_with = f'<r>{content}<p>See <see to="{target}"/>, <see to="a">this</see>, <see/><hint to="a"/>.</p></r>'
            assert passages(document(tmp_path, f'{profile}\nfilled = ["see"]', content_with))[-1] == f"See {name}, this, ."
            assert passages(document(tmp_path, profile, content_with))[-1] == "See , this, ."

    def test_a_section_without_anything_is_none(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nsections = ["s"]\nskipped = ["list"]\nelements = ["fig"]'
        content = '<s><list>x</list> <s/></s><s id="a"/><s><fig id="b"/></s><s><p>y</p></s>'
        assert outline(tmp_path, profile, f"<r>{content}</r>") == [
            "section s #a", "section s", "  element fig #b", "section s", "  passage p 'y'",
        ]  # fmt: skip

    def test_numbers_of_titles_in_attributes(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nsections = ["s"]\ntitles = ["h"]\nlabels = ["h/@n"]'
        content = '<s><h n="1">One</h><p>x</p></s><s><h n="2.1">2.1 Two</h><p>y</p></s><s><h>Three</h><p>z</p></s>'
        assert titles(document(tmp_path, profile, f"<r>{content}</r>")) == ["1 One", "2.1 Two", "Three"]

    def test_notices_are_passages_that_are_no_text(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nnotices = {p = "Copyright [0-9]{4}"}'
        assert passages(document(tmp_path, profile, "<r><p>Copyright\n 1998</p><p>Copyright 1998, all rights</p></r>")) == [
            "Copyright 1998, all rights"
        ]

    def test_leading_titles_belong_to_the_section_after_them(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nsections = ["s"]\nleading_titles = {h = "s"}\nparts = {h = "claims", s = "claims"}'
        assert outline(tmp_path, profile, "<r><h>A</h> <s><p>x</p></s><h>B</h><p>y</p><h>C</h><s/></r>") == [
            "section s part=claims",
            "  title title 'A'",
            "  passage p 'x'",
            "passage h part=claims 'B'",
            "passage p 'y'",
            "passage h part=claims 'C'",
        ]

    def test_tags_that_spans_get(self, tmp_path: Path) -> None:
        profile = 'passages = ["q"]\nsections = ["s"]\ntags = {q = "p", s = "section"}'
        assert outline(tmp_path, profile, "<r><s><q>x</q></s></r>") == ["section section", "  passage p 'x'"]

    def test_skipped_and_breaks(self, tmp_path: Path) -> None:
        content = "<r><note>n</note><p>a<br/>b<note>c <i>d</i></note>e</p></r>"
        assert passages(document(tmp_path, 'passages = ["p"]\nskipped = ["note"]\nbreaks = ["br"]', content)) == ["a\nbe"]

    def test_parts(self, tmp_path: Path) -> None:
        content = "<r><front><p>a</p></front><p>b</p><c>d</c></r>"
        found = document(tmp_path, 'passages = ["p", "c"]\nparts = {front = "abstract", c = "claims"}', content)
        assert [found.labels[found.spans.part[passage]] for passage in found.of_kind(Kind.PASSAGE)] == ["abstract", "", "claims"]

    def test_citations(self, tmp_path: Path) -> None:
        content = '<r><p num="0042">a</p><p>b</p><c n="007" k="x">d</c><c n="z" k="x">e</c></r>'
        found = document(tmp_path, 'passages = ["p", "c"]\ncitations = {p = "[{num}]", c = "claim {n:d} of {k}"}', content)
        assert {found.text_of(span): citation for span, citation in found.citations.items()} == {"a": "[0042]", "d": "claim 7 of x"}

    def test_metadata(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nskipped = ["m"]\n[metadata]\none = "m/a"\nall = "m/b"\nnone = "m/z"\ncount = "count(m/b)"\n'
        profile += 'who = {path = "m/who", join = ["last", "first"], form = "by {}"}\nday = {path = "m/day", form = "date"}'
        content = "<r><m><a> x\n y</a><b>1</b><b>2</b><b>1</b><who><first>A</first><last>B</last></who><day>20200131</day></m><p>t</p></r>"
        found = document(tmp_path, profile, content)
        assert dict(found.metadata) == {"one": "x y", "all": ["1", "2"], "count": "3.0", "who": "by B A", "day": "2020-01-31"}

    def test_a_tag_without_a_role_is_passed_through(self, tmp_path: Path) -> None:
        assert passages(document(tmp_path, 'passages = ["p"]', "<r><x><y>a</y> b<p>c <z>d</z></p></x>e</r>")) == ["a b", "c d", "e"]


class TestTags:
    """How tags are written."""

    profile = parse(
        {"passages": ["p", "a/p", "b/a/p"], "skipped": ["front/*", "c/p"], "elements": ["front/keep"], "sections": ["back/d/*"]}, "x"
    )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("<r><p/></r>", Role.PASSAGE),
            ("<c><p/></c>", Role.SKIPPED),
            ("<front><anything/></front>", Role.SKIPPED),
            ("<front><keep/></front>", Role.ELEMENT),
            ("<front><p/></front>", Role.SKIPPED),
            ("<back><d><p/></d></back>", Role.SECTION),
            ("<r><d><q/></d></r>", None),
            ("<r><q/></r>", None),
        ],
    )
    def test_the_longest_that_fits_counts(self, text: str, expected: Role | None) -> None:
        element = list(etree.fromstring(text).iter())[-1]
        assert self.profile.rule(element).role is expected

    def test_of_two_as_long_the_one_without_a_star_counts(self) -> None:
        rules = parse({"passages": ["*", "p"], "skipped": ["q"]}, "x")
        assert [rules.rule(etree.Element(tag)).role for tag in ("p", "q", "z")] == [Role.PASSAGE, Role.SKIPPED, Role.PASSAGE]

    def test_nothing_is_nothing(self) -> None:
        assert parse({"passages": ["p"]}, "x").rule(etree.Element("q")) is NOTHING

    def test_what_a_tag_means_is_not_taken_from_another_place(self, tmp_path: Path) -> None:
        profile = 'passages = ["p"]\nskipped = ["a/b/p"]'
        assert passages(document(tmp_path, profile, "<r><b><p>1</p></b><a><b><p>2</p></b></a><b><p>3</p></b></r>")) == ["1", "3"]


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"passage": ["p"]}, r"unknown key of a profile 'passage'; did you mean 'passages'\? valid: name, format"),
    ({}, "passages must list at least one tag"),
    ({"passages": 1}, "passages must be a list of texts"),
    ({"passages": [1]}, "passages number 1 must be text, not a whole number"),
    ({"passages": [""]}, "passages number 1 is empty"),
    ({"passages": ["p"], "skipped": ["p"]}, "skipped names 'p', which passages names too; a tag has one role"),
    ({"passages": ["p"], "headings": {"p": 1}}, "headings names 'p', which passages names too"),
    ({"passages": ["p"], "marks": {"p": "b"}}, "marks names 'p', which passages names too"),
    ({"passages": ["p"], "titles": ["h"], "preformatted": ["h"]}, "preformatted names 'h', which titles names too"),
    ({"passages": ["p"], "whole": ["q"]}, "whole names 'q', which is not listed under passages"),
    ({"passages": ["p"], "notices": {"q": "x"}}, "notices names 'q', which is not listed under passages"),
    ({"passages": ["p"], "notices": {"p": "("}}, r"\[notices\] p is not a regular expression"),
    ({"passages": ["p"], "filled": ["p"]}, "filled names 'p', which is not listed under references"),
    ({"passages": ["p"], "labels": ["p/@n"]}, "labels takes the number of 'p' from an attribute, but 'p' is not listed under titles"),
    (
        {"passages": ["p"], "elements": ["s"], "titles": ["s/@t"]},
        "titles takes the title of 's' from an attribute, but 's' is not listed under sections",
    ),
    ({"passages": ["<p>"]}, "'<p>' is no tag"),
    ({"passages": ["*/p"]}, r"'\*/p' is no tag"),
    ({"passages": ["//p"]}, "'//p' is no tag"),
    ({"passages": ["p[1]"]}, r"'p\[1\]' is no tag"),
    ({"passages": ["p"], "headings": ["h1"]}, r"headings must be a table: write \[headings\]"),
    ({"passages": ["p"], "headings": {"h1": 0}}, r"\[headings\] h1 must be a whole number in \[1, 9\], not 0"),
    ({"passages": ["p"], "headings": {"h1": "1"}}, r"\[headings\] h1 must be a whole number, not text"),
    ({"passages": ["p"], "headings": {"h1": True}}, r"\[headings\] h1 must be a whole number, not true or false"),
    ({"passages": ["p"], "marks": {"b": 1}}, r"\[marks\] b must be text"),
    ({"passages": ["p"], "references": {"b": ""}}, r"\[references\] b is empty"),
    ({"passages": ["p"], "parts": {"b": []}}, r"\[parts\] b must be text, not a list"),
    ({"passages": ["p"], "citations": {"b": 2}}, r"\[citations\] b must be text"),
    ({"passages": ["p"], "citations": {"b": "[{num"}}, r"\[citations\] b has a brace without .*: '\[{num'; write {num} or {num:d}"),
    ({"passages": ["p"], "citations": {"b": "num}"}}, r"\[citations\] b has a brace without"),
    ({"passages": ["p"], "citations": {"b": "{num:x} {}"}}, r"\[citations\] b has a brace without"),
    ({"passages": ["p"], "name": 3}, "name must be text"),
    ({"passages": ["p"], "roots": {}}, "roots must be a list of texts"),
    ({"passages": ["p"], "walk": "patents"}, "walk is wrong: unknown walk 'patents'; did you mean 'patent'"),
    ({"passages": ["p"], "when": "a["}, r"when is wrong: 'a\[' is not an XPath"),
    ({"passages": ["p"], "when": ""}, "when is wrong: '' is not an XPath"),
    ({"passages": ["p"], "id": "a["}, r"id is wrong: 'a\[' is not an XPath"),
    ({"passages": ["p"], "id": ["a", "a["]}, r"id number 2 is wrong: 'a\[' is not an XPath"),
    ({"passages": ["p"], "id": [""]}, "id number 1 is wrong: '' is not an XPath"),
    ({"passages": ["p"], "id": [7]}, "id number 1 must be an XPath or a table with the keys path, join, between, form"),
    ({"passages": ["p"], "cites": ["no-such-function()"]}, r"cites number 1 is wrong: 'no-such-function\(\)' is not an XPath"),
    ({"passages": ["p"], "cites": ["x:a"]}, "cites number 1 is wrong: 'x:a' is not an XPath"),
    ({"passages": ["p"], "cites": ["$a"]}, r"cites number 1 is wrong: '\$a' is not an XPath"),
    ({"passages": ["p"], "metadata": {"a": {"xpath": "b"}}}, r"\[metadata\] a has an unknown key 'xpath'; did you mean 'path'"),
    ({"passages": ["p"], "metadata": {"a": {"form": "{}"}}}, r"\[metadata\] a has no path"),
    ({"passages": ["p"], "metadata": {"a": {"path": "b", "join": 1}}}, r"\[metadata\] a \(join\) must be an XPath, not a whole number"),
    ({"passages": ["p"], "metadata": {"a": {"path": "b", "join": ["c("]}}}, r"\[metadata\] a \(join\) number 1 is wrong: 'c\(' is"),
    ({"passages": ["p"], "metadata": {"a": {"path": "b", "form": "time"}}}, r"\[metadata\] a \(form\) must be date, stem"),
    ({"passages": ["p"], "metadata": {"a": {"path": "b", "form": "{} {}"}}}, r"a \(form\) must be .* or a text with {}"),
    ({"passages": ["p"], "metadata": {"a": {"path": "b", "form": 1}}}, r"a \(form\) must be .* or a text with {}"),
]


@pytest.mark.parametrize(("content", "complaint"), MISTAKES)
def test_a_mistake_is_named(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        parse(content, "x", "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"passages = [", "is not TOML"),
        (b'passages = ["\xff"]', "is not UTF-8 text"),
        (b'passage = ["p"]', "unknown key of a profile 'passage'"),
        (None, "cannot read the profile: No such file or directory; check the path"),
    ],
)
def test_a_file_that_is_no_profile_is_named(content: bytes | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:")
    assert complaint in str(caught.value)


def test_a_profile_that_changed_is_read_again(tmp_path: Path) -> None:
    assert passages(document(tmp_path, 'passages = ["p"]', "<r><p>a</p><q>b</q></r>")) == ["a", "b"]
    assert passages(document(tmp_path, 'passages = ["p"]\nskipped = ["q"]', "<r><p>a</p><q>b</q></r>")) == ["a"]


def test_a_hostile_nest_of_lists_in_passages_is_read_in_good_time(tmp_path: Path) -> None:
    lists = "<x><l><p>a</p></l></x>" * 20_000
    found = document(tmp_path, 'passages = ["p"]\nelements = ["l"]', f"<r><p>{lists}</p></r>")
    assert len(passages(found)) == 20_000
    last = max(found.of_kind(Kind.PASSAGE))
    assert found.places[last].path == "/r[1]/p[1]/x[20000]/l[1]/p[1]"


def test_a_passage_that_refers_to_much_is_read_in_good_time(tmp_path: Path) -> None:
    links = "".join(f'<see to="a{number}">x</see><see to="a{number}"/>' for number in range(20_000))
    targets = "".join(f'<p id="a{number}">x</p>' for number in range(20_000))
    profile = 'passages = ["p"]\nreferences = {see = "to"}\nfilled = ["see"]'
    assert len(document(tmp_path, profile, f"<r><p>{links}</p>{targets}</r>").references) == 20_000


class TestCommandLine:
    """`perikope index folder --format my.toml`."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "kitchen"
        folder.mkdir()
        (folder / "pancakes.xml").write_text(PANCAKES, encoding="utf-8")
        (folder / "list.txt").write_text("Eggs.")
        (tmp_path / "my.toml").write_text(RECIPES, encoding="utf-8")
        return folder

    @staticmethod
    def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as done:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return done.value.code, captured.out, captured.err

    def test_index_and_search(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = self.run(capsys, "index", folder, "--format", tmp_path / "my.toml", "--to", tmp_path / "index")
        assert (code, err) == (0, "")
        code, out, _ = self.run(capsys, "search", tmp_path / "index", "flour")
        assert code == 0
        assert "recipe-7" in out
        assert "Pancakes › Mix" in out

    @pytest.mark.parametrize(
        ("profile", "complaint"),
        [
            (None, "my.toml: cannot read the profile: No such file or directory; check the path"),
            ("passages", "my.toml: is not TOML"),
            ('passages = ["p"]\nskipped = ["p"]', "my.toml: skipped names 'p', which passages names too; a tag has one role"),
            ('passages = ["p"]\nwhen = "("', "my.toml: when is wrong: '(' is not an XPath"),
        ],
    )
    def test_a_mistake_is_one_line(
        self, profile: str | None, complaint: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "my.toml"
        path.unlink()
        if profile is not None:
            path.write_text(profile)
        code, _, err = self.run(capsys, "index", folder, "--format", path, "--to", tmp_path / "index")
        assert code == 2
        assert err.count("\n") == 1
        assert complaint in err


def test_profiles_that_come_with_the_program_are_formats() -> None:
    assert {"jats", "inex", "tei", "docbook", "rfc"} <= set(FORMATS.names())


class TestDocumentation:
    """The page about profiles is right."""

    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8").partition("## Your own XML")[2].partition("\n## ")[0]

    def block(self, language: str) -> str:
        return self.page.partition(f"```{language}\n")[2].partition("```")[0]

    def test_its_example_becomes_the_tree_it_shows(self, tmp_path: Path) -> None:
        found = document(tmp_path, self.block("toml"), self.block("xml"))
        assert found.outline() == self.block("text")
        assert (found.id, found.cites, dict(found.metadata)) == ("recipe-7", ("recipe-12",), {"cook": "Ann Cook", "date": "2019-03-01"})

    def test_it_names_every_key(self) -> None:
        assert [key for key in declared(ProfileKeys) if f"`{key}`" not in self.page] == []
