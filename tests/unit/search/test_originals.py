"""A hit can be opened at its location in the file that it was read from."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.formats import read
from perikope.search.facade import Index
from perikope.search.originals import open_original

PROFILE = """
roots = ["note"]
id = ["@key"]
sections = ["chapter"]
titles = ["head"]
passages = ["par"]
skipped = ["remark"]
marks = {em = "it"}
"""

NOTE = """<!DOCTYPE note [
  <!ENTITY x "y">
]>
<note key="{key}">
  <chapter><head>Pumps</head>
    <par>A magnet drives
      the <em>rotor</em>.</par><remark>not text</remark>
    loose words about valves
    <par>The shaft is sealed.</par>
  </chapter>
</note>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "note.toml").write_text(PROFILE, "utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.xml").write_text(NOTE.format(key="n1"), "utf-8")
    both = "".join(f'<?xml version="1.0"?>\n{NOTE.format(key=key)}' for key in ("n2", "n3"))
    (tmp_path / "docs" / "two.xml").write_text(both, "utf-8")
    with zipfile.ZipFile(tmp_path / "docs" / "more.zip", "w") as archive:
        archive.writestr("a.xml", NOTE.format(key="n4"))
        archive.writestr("b.xml", NOTE.format(key="n5"))
    return tmp_path


@pytest.fixture
def index(folder: Path) -> Index:
    index = Index.create(folder / "idx")
    index.add(read(folder / "docs", format=str(folder / "note.toml")))
    index.commit()
    return index


@pytest.mark.parametrize(("document", "line"), [("n1", 6), ("n2", 7), ("n3", 19), ("n4", 6), ("n5", 6)])
def test_every_passage_is_found_in_its_file(index: Index, folder: Path, document: str, line: int) -> None:
    locations = []
    for hit in index.search("magnet rotor valves shaft", k=100, filter=f"id={document}"):
        if hit.document == document:
            original = open_original(index, hit.name, folder / "docs", format=str(folder / "note.toml"))
            assert original.place == hit.place
            assert " ".join(original.text.split()) == hit.text
            locations.append((original.place.path, original.line))
    assert sorted(locations) == [
        ("/note[1]/chapter[1]", line - 1),
        ("/note[1]/chapter[1]/par[1]", line),
        ("/note[1]/chapter[1]/par[2]", line + 3),
    ]


def test_says_what_is_missing(index: Index, folder: Path) -> None:
    profile = str(folder / "note.toml")
    with pytest.raises(UsageError, match="names no passage"):
        open_original(index, "n1", folder / "docs", format=profile)
    with pytest.raises(UsageError, match="has no passage"):
        open_original(index, "n1#@99", folder / "docs", format=profile)
    (folder / "other").mkdir()
    (folder / "other" / "x.xml").write_text(NOTE.format(key="n1"), "utf-8")
    with pytest.raises(InputError, match=r"does not contain 'one\.xml'"):
        open_original(index, "n1#@1", folder / "other", format=profile)
    (folder / "docs" / "one.xml").write_text(NOTE.format(key="n9"), "utf-8")
    with pytest.raises(InputError, match="index the file again"):
        open_original(index, "n1#@1", folder / "docs", format=profile)


def test_other_formats_have_no_locations(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Pumps\n\nA magnet.\n", "utf-8")
    index = Index.create(tmp_path / "idx")
    index.add(read(tmp_path / "a.md"))
    index.commit()
    with pytest.raises(UsageError, match="has no recorded location in its file"):
        open_original(index, "a.md#@1", tmp_path / "a.md")
