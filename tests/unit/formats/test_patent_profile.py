"""Patents of any schema: a profile with a `[patent]` table is all that a new one needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perikope import cli
from perikope.core.errors import InputError
from perikope.core.options import declared
from perikope.document.tree import Document
from perikope.formats import Source, read
from perikope.formats._patent_keys import PatentKeys
from perikope.formats._profile import parse
from perikope.formats._traversal import read_document
from perikope.formats._xml import trees
from perikope.formats.walks import WALKS
from perikope.formats.xml import walk_for
from tests.support.trees import GOLDEN, check_tree

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8").partition("## Your own patents")[2].partition("\n## ")[0]


def block(language: str) -> str:
    """The first block of a language in the documentation of patent profiles."""
    return PAGE.partition(f"```{language}\n")[2].partition("```")[0]


PROFILE, LETTER = block("toml"), block("xml")


def document(folder: Path, letter: str = LETTER, profile: str = PROFILE) -> Document:
    """What the documented profile makes of a letter patent."""
    (folder / "letters.toml").write_text(profile, encoding="utf-8")
    (folder / "letter.xml").write_text(letter, encoding="utf-8")
    [made] = read(folder / "letter.xml", format=str(folder / "letters.toml"))
    check_tree(made)
    return made


class TestDocumentedProfile:
    """The made-up schema of the documentation, which is one file of TOML."""

    def test_it_becomes_the_tree_that_the_page_shows(self, tmp_path: Path) -> None:
        assert document(tmp_path).outline() == block("text")

    def test_its_bibliographic_data_are_those_of_every_patent(self, tmp_path: Path) -> None:
        letter = document(tmp_path)
        assert (letter.id, letter.cites) == ("XY-12345-B1", ("US-4111222-A", "EP-12345-A1", "DE-2660736-C2"))
        assert dict(letter.metadata) == {
            "publication": "XY12345B1", "patent": "XY12345", "country": "XY", "kind": "B1", "date": "2004-05-12",
            "application_date": "2001-03-09", "priority_date": "2000-03-10", "priorities": ["GB-5678-A"], "family": "GB-5678-A",
            "ipc": ["F04D13/08", "F04D29/24"], "applicant": ["Deep Works plc"], "inventor": ["Jane Brine"],
            "literature": ["Pump Review, 1991"],
        }  # fmt: skip

    def test_names_and_titles_are_found_at_their_places(self, tmp_path: Path) -> None:
        letter = document(tmp_path)
        paths = {letter.text_of(span): place.path for span, place in letter.places.items()}
        assert paths["Jane Brine"] == "/letter[1]/record[1]/maker[1]"
        assert paths["Magnetic pump"] == "/letter[1]/record[1]/called[1]"

    def test_it_is_searched_with(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        document(tmp_path)
        letters = tmp_path / "letters"
        letters.mkdir()
        (letters / "query.xml").write_text(LETTER, encoding="utf-8")
        earlier = (
            LETTER.replace("0012345", "0000077").replace("20040512", "19990512").replace("0005678", "1").replace("20000310", "19980310")
        )
        (letters / "earlier.xml").write_text(earlier, encoding="utf-8")
        (letters / "other-codes.xml").write_text(earlier.replace("0000077", "78").replace("F04D", "A61K"), encoding="utf-8")
        (letters / "later.xml").write_text(earlier.replace("0000077", "79").replace("19990512", "20010512"), encoding="utf-8")
        run(capsys, "index", letters, "--format", tmp_path / "letters.toml", "--to", tmp_path / "index")
        out = run(capsys, "search", tmp_path / "index", "--patent", "XY-12345-B1")
        assert "XY-77-B1" in out
        assert not any(id in out for id in ("XY-78-B1", "XY-79-B1", "XY-12345-B1#"))

    def test_claims_of_one_element_are_cut_apart_in_every_language(self, tmp_path: Path) -> None:
        lines = "<line>1. A pump.</line><line>2. The pump of claim 1. 3. A rotor.</line>"
        german = "<line>1. Pumpe.</line><line>2. Pumpe nach Anspruch 1.</line>"
        claims = f"<demands><demand>{lines}</demand></demands><demands tongue='de'><demand>{german}</demand></demands>"
        letter = document(tmp_path, f"{LETTER.partition('<demands>')[0]}{claims}</letter>")
        ids = [id for id in letter.span_ids.values() if id.startswith("claim")]
        assert ids == ["claim-1", "claim-2", "claim-3", "claim-1-de", "claim-2-de"]
        assert [target for _, target in letter.references][-2:] == ["claim-1", "claim-1-de"]

    def test_a_letter_that_says_nothing_of_itself_is_read(self, tmp_path: Path) -> None:
        letter = document(tmp_path, "<letter><account><para>A pump.</para></account></letter>")
        assert (letter.id, dict(letter.metadata), letter.cites) == ("letter.xml", {}, ())

    def test_the_page_names_every_key(self) -> None:
        assert [key for key in declared(PatentKeys) if f"`{key}`" not in PAGE] == []


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert done.value.code == 0, captured.err
    return captured.out


@pytest.mark.parametrize(
    ("patent", "complaint"),
    [
        ({"claim": ["c"]}, r"unknown key in \[patent\] 'claim'; did you mean 'claims'"),
        ({"claims": ["c"]}, r"\[patent\] claims names 'c', which is not listed under passages"),
        ({"description": ["d"]}, r"\[patent\] description names 'd', which is not listed under sections"),
        ({"numbers": "epo"}, r"\[patent\] numbers is wrong: unknown numbers 'epo'; .*valid: docdb, uspto"),
        ({"publication": {"number": "x"}}, r"\[patent\] publication has no path"),
        ({"publication": {"path": "x", "nummer": "y"}}, r"\[patent\] publication has an unknown key 'nummer'; did you mean 'number'"),
        ({"priorities": ["x", {"path": "y", "date": "["}]}, r"\[patent\] priorities number 2 \(date\) is wrong: '\[' is not an XPath"),
        ({"titles": {"path": "x", "language": 1}}, r"\[patent\] titles \(language\) must be an XPath"),
        ({"ipc": {"path": "x", "form": "ipc"}}, r"\[patent\] ipc \(form\) must be date, stem, uspto-class, uspto-ipc or"),
        ({"printed": "("}, r"\[patent\] printed is wrong: '\(' is not an XPath"),
    ],
)
def test_a_mistake_is_named_with_its_table(patent: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        parse({"walk": "patent", "passages": ["p"], "patent": patent}, "x", "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert len(str(caught.value).splitlines()) == 1


def test_the_table_needs_a_walk_that_reads_it() -> None:
    with pytest.raises(InputError, match=r'walk must name a walk that reads \[patent\]: write walk = "patent"'):
        parse({"passages": ["p"], "patent": {}}, "x")


class TestWalksKeepNothing:
    """A walk answers questions: what it answered before changes nothing."""

    @pytest.mark.parametrize("source", sorted((GOLDEN / "sources").glob("*.xml")), ids=lambda source: source.name)
    def test_the_same_walk_reads_a_document_twice_alike(self, source: Path) -> None:
        origin = Source(str(source), source.name, format="xml")
        for tree in trees(origin):
            walk = walk_for(tree, origin)
            assert read_document(walk, tree, origin) == read_document(walk, tree, origin)

    @pytest.mark.parametrize("name", WALKS.names())
    def test_only_public_methods_are_overridden(self, name: str) -> None:
        inherited = {method for base in WALKS[name].__mro__[1:-1] for method in vars(base)}
        private = {method for method in vars(WALKS[name]) if method.startswith("_") and not method.startswith("__")}
        assert private & inherited == set()
