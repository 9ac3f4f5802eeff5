"""Front matter: YAML and TOML with dates, lists and nested keys; what is broken or hostile does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from perikope.core.errors import InputWarning
from perikope.document.tree import Document
from perikope.formats import read
from perikope.formats._front_matter import front_matter
from perikope.index.facets import metadata_pairs
from tests.support.trees import check_tree, passages


def load(tmp_path: Path, text: str) -> Document:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    [document] = read(tmp_path)
    check_tree(document)
    return document


def values(front: str) -> dict[str, object]:
    found = front_matter(f"---\n{front}\n---\ntext")
    assert (found.text, found.problem) == ("text", "")
    return found.values


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ('a: b\nquoted: "x: y"\nempty:\n# note', {"a": "b", "quoted": "x: y"}),
        ("# first a comment\n\n'a b': c", {"a b": "c"}),
        ("folded: >\n  one\n  two\nkept: |\n  one\n  two", {"folded": "one two", "kept": "one\ntwo"}),
        ("names:\n- Ann\n- 'Bob'\nurl: http://x.y/z#a", {"names": ["Ann", "Bob"], "url": "http://x.y/z#a"}),
        ("list: []\nmap: {}", {"list": [], "map": {}}),
        ("by:\n  name: Ann\n  at: [Bonn, Rome]", {"by": {"name": "Ann", "at": ["Bonn", "Rome"]}}),
        ("draft: true\nno: no\non: 'true'", {"draft": True, "no": "no", "on": "true"}),
        ("year: 2013\nratio: 0.5\nbelow: -3", {"year": 2013, "ratio": 0.5, "below": -3}),
        ("version: 1.10\nzip: 01234\ntime: 12:30\nbig: 123456789012345678901", {
            "version": "1.10", "zip": "01234", "time": "12:30", "big": "123456789012345678901"}),
        ("date: 2013-04-01\nother: 2013-4-1", {"date": "2013-04-01", "other": "2013-04-01"}),
        ("date: 2013-04-01 12:30:00 +0200\nother: 2013-04-01T12:30:00Z", {"date": "2013-04-01T12:30", "other": "2013-04-01T12:30"}),
        ("tags: pump, magnet\nkeywords: one", {"tags": ["pump", "magnet"], "keywords": ["one"]}),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        ("all: &all {a: 1}\nsome:\n  <<: *all\n  b: 2\nagain: *all", {"all": {"a": 1}, "some": {"a": 1, "b": 2}, "again": {"a": 1}}),
    ],
)  # fmt: skip
def test_values(front: str, expected: dict[str, object]) -> None:
    assert values(front) == expected


@pytest.mark.parametrize(
    "text", ["---\na: b\ntext", "---\nprose without a key\n---\n", " ---\na: b\n---\n", "---\n- a: b\n---\n", "text\n---\na: b\n---\n"]
)
def test_text_that_is_no_front_matter_stays(text: str) -> None:
    assert front_matter(text) == ({}, text, "", 0)


def test_the_usual_keys_are_used(tmp_path: Path) -> None:
    front = "title: 'Pumps: all'\nid: 7\nlang: de\ndate: 2013-4-1\ntags: a, b\nby: {name: Ann}\nversion: 2"
    document = load(tmp_path, f"---\n{front}\n---\nText")
    assert (document.id, document.title, document.language) == ("7", "Pumps: all", "de")
    assert sorted(metadata_pairs(document.metadata)) == [
        ("by.name", "Ann"), ("date", "2013-04-01"), ("tags", "a"), ("tags", "b"), ("version", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("front", "line", "reason", "expected"),
    [
        ("id: mine\ntitle: Pumps: an overview\ntags: [a]", 3, "mapping values are not allowed", ("mine", "Pumps: an overview")),
        ('title: Pumps\nby: "Ann', 4, "unexpected end of stream", ("page.md", "Pumps")),
        ("title: Pumps\n\tname: x", 3, "tab character", ("page.md", "Pumps")),
        ("title: Pumps\nx: [a", 4, "did not find expected", ("page.md", "Pumps")),
        ("title: Pumps\nx: " + "[" * 100_000, 3, "nested deeper than 32", ("page.md", "Pumps")),
    ],
    ids=["colon", "quote", "tab", "bracket", "deep"],
)
def test_broken_front_matter_is_named_and_the_document_is_read(
    front: str, line: int, reason: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    with pytest.warns(InputWarning, match=reason) as caught:
        document = load(tmp_path, f"---\n{front}\n---\nThe text.")
    assert str(caught[0].message).startswith(f"{tmp_path / 'page.md'}:{line}: the front matter is not valid YAML (")
    assert ((document.id, document.title), passages(document)) == (expected, ["The text."])


def test_aliases_cannot_make_a_small_file_large(tmp_path: Path) -> None:
    levels = "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.warns(InputWarning, match="more than 10,000 values"):
        document = load(tmp_path, f"---\na: &a [{', '.join('x' * 10)}]\n{levels}---\nThe text.")
    assert sum(1 for _ in metadata_pairs(document.metadata)) < 100


def test_an_alias_inside_its_own_value_and_tags_of_objects_are_plain_text(tmp_path: Path) -> None:
    document = load(tmp_path, "---\na: &a [*a]\nb: !!python/object/apply:os.system ['echo']\n---\nThe text.")
    assert document.metadata == {"a": ["*a"], "b": ["echo"]}


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("# note\n\ntitle = 'Pumps'\ntags = ['a', 'b']\ndraft = false", {"title": "Pumps", "tags": ["a", "b"], "draft": False}),
        ("date = 2013-04-01\nat = 2013-04-01T12:30:00+02:00", {"date": "2013-04-01", "at": "2013-04-01T12:30"}),
        ('tags = "pump, magnet"\nempty = ""', {"tags": ["pump", "magnet"]}),
        ("weight = 3\nratio = 0.5\nbig = 123456789012345678901\nnone = nan", {
            "weight": 3, "ratio": 0.5, "big": "123456789012345678901", "none": "nan"}),
        ("[params]\nby.name = 'Ann'\n[[menu]]\nat = 07:30:00", {"params": {"by": {"name": "Ann"}}, "menu": [{"at": "07:30:00"}]}),
    ],
)  # fmt: skip
def test_values_of_toml(front: str, expected: dict[str, object]) -> None:
    assert front_matter(f"+++\n{front}\n+++\ntext") == (expected, "text", "", 0)


@pytest.mark.parametrize(
    "text", ["+++\na = 1\ntext", "+++\nprose\n+++\n", " +++\na = 1\n+++\n", "+++\n[link](x)\n+++\n", "---\na = 1\n+++\n"]
)
def test_text_that_is_no_toml_front_matter_stays(text: str) -> None:
    assert front_matter(text) == ({}, text, "", 0)


def test_the_usual_keys_of_toml_are_used(tmp_path: Path) -> None:
    front = "title = 'Pumps'\nid = '7'\nlang = 'de'\ndate = 2013-04-01\n[params]\nauthor = 'Ann'"
    document = load(tmp_path, f"+++\n{front}\n+++\nText")
    assert (document.id, document.title, document.language, passages(document)) == ("7", "Pumps", "de", ["Text"])
    assert sorted(metadata_pairs(document.metadata)) == [("date", "2013-04-01"), ("params.author", "Ann")]


@pytest.mark.parametrize(
    ("front", "line", "reason", "metadata"),
    [
        ("title = 'Pumps'\nby = Ann\ntags = ['a', 'b']\n[params]\nx = 1", 3, "Invalid value", {"by": "Ann", "tags": ["a", "b"]}),
        ("title = 'Pumps'\nx = 1\nx = 2", 4, "Cannot overwrite a value", {"x": 2}),
        ("title = 'Pumps'\ntags = [\n'a',", 4, "Invalid value|Unclosed array", {}),
        ("title = 'Pumps'\nx = " + "[" * 100_000, 2, "nested deeper than 32", {}),
        ("title = 'Pumps'\n" + "a." * 40 + "a = 1", 2, "nested deeper than 32", {}),
        ("title = 'Pumps'\nx = [" + "1," * 10_001 + "]", 2, "more than 10,000 values", {}),
        ("title = 'Pumps'\nx = 0x" + "f" * 9_000, 3, "digits", {}),
    ],
    ids=["value", "twice", "bracket", "deep", "dots", "many", "digits"],
)
def test_broken_toml_is_named_and_the_document_is_read(
    front: str, line: int, reason: str, metadata: dict[str, object], tmp_path: Path
) -> None:
    with pytest.warns(InputWarning, match=reason) as caught:
        document = load(tmp_path, f"+++\n{front}\n+++\nThe text.")
    assert str(caught[0].message).startswith(f"{tmp_path / 'page.md'}:{line}: the front matter is not valid TOML (")
    assert str(caught[0].message).endswith("only its lines of the form `key = value` are used")
    assert (document.title, passages(document)) == ("Pumps", ["The text."])
    assert {key: value for key, value in document.metadata.items() if key != "x" or value == 2} == metadata
