"""`perikope show`: a document with the ids of its passages."""

import json
import os
from pathlib import Path

import pytest

from perikope import cli
from perikope.formats import read
from perikope.search.facade import Index
from perikope.search.viewing import view_document
from tests.cli.test_commands import fails, run
from tests.support.collections import index_of

SOURCES = Path(__file__).parents[1] / "golden" / "sources"
DOCUMENTS = [
    {"id": "EP-1000000-B1", "title": "Pumps", "metadata": {"publication": "EP1000000B1", "patent": "EP1000000", "by": {"name": "Ada"}},
     "cites": ["d7"], "sections": [
         {"id": "s1", "title": "Rotor", "part": "description", "passages": [{"id": "p1", "text": "The rotor turns."}, "Two\nlines."],
          "sections": [{"title": "Shaft", "passages": ["A shaft."]}]},
         {"part": "claims", "passages": [{"id": "claim-1", "text": "A pump\u001b[31m with a rotor."}]}]},
    {"id": "a b#1", "passages": ["Odd id."]},
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("show")
    (folder / "d.jsonl").write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    with pytest.raises(SystemExit):
        cli.main(["index", str(folder), "--to", str(folder / "idx")])
    return folder / "idx"


TEXT = """\
Pumps
document     EP-1000000-B1
source       d.jsonl
language     en
publication  EP1000000B1
patent       EP1000000
by.name      Ada
cites        d7

# Pumps

-- description --

## Rotor  [s1]

> [p1]
> The rotor turns.

  [@2]
  Two
  lines.

### Shaft

  [@3]
  A shaft.

-- claims --

  [claim-1]
  A pump [31m with a rotor.

"""


def test_the_whole_document_with_a_marked_passage(index, capsys):
    for name in ("EP-1000000-B1#p1", "EP1000000B1#p1", "EP 1 000 000 B1#p1", "ep1000000#p1"):
        code, out, _ = run(capsys, "show", index, name)
        assert code == 0
        assert out == TEXT
    assert run(capsys, "show", index, "EP1000000")[1] == TEXT.replace("> ", "  ")


def test_an_element_marks_everything_in_it(index, capsys):
    out = run(capsys, "show", index, "EP1000000#/document[1]/sec[1]/sec[1]")[1]
    assert [line for line in out.splitlines() if line.startswith(">")] == ["> ### Shaft", "> [@3]", "> A shaft."]


def test_the_outline(index, capsys):
    code, out, _ = run(capsys, "show", index, "EP1000000B1", "--outline")
    assert code == 0
    assert out.endswith("""\
cites        d7

Pumps
  Rotor  [s1]  2 passages (p1 … @2)
    Shaft  1 passage (@3)
  -- claims --  1 passage (claim-1)
""")


def test_json_has_highlights(index, capsys):
    view = json.loads(run(capsys, "show", index, "EP1000000B1#p1", "--query", "rotors", "--json")[1])
    assert (view["document"], view["title"], view["marked"], view["cites"]) == ("EP-1000000-B1", "Pumps", "p1", ["d7"])
    words = {text["id"]: [text["text"][start:end] for start, end in text["highlights"]] for text in view["texts"]}
    assert words == {"": [], "s1": ["Rotor"], "p1": ["rotor"], "@2": [], "@3": [], "claim-1": ["rotor"]}
    assert [text["id"] for text in view["texts"] if text["marked"]] == ["p1"]


def test_ids_with_special_characters(index, capsys):
    for name in ("a b#1", "a%20b%231", "a%20b%231#@1"):
        assert "Odd id." in run(capsys, "show", index, name)[1]


def test_mistakes_suggest_what_may_be_meant(index, capsys):
    fails(capsys, "similar names: EP1000000B1", "show", index, "EP1000001B1")
    fails(capsys, "there is no document 'a b+1' in", "show", index, "a b+1")
    fails(capsys, "similar names: a b#1", "show", index, "a b+1")
    fails(capsys, "has no element '/document[1]/sec[9]'", "show", index, "EP1000000B1#/document[1]/sec[9]")
    fails(capsys, "has no passage 'p11'; did you mean 'p1'?", "show", index, "EP1000000B1#p11")


def test_a_terminal_gets_a_pager_that_begins_at_the_passage(index, capsys, monkeypatch):
    paged = []
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setenv("LESS", "")
    assert run(capsys, "show", index, "EP1000000B1#p1", "--query", "rotor")[0] == 0
    assert "\x1b[1mrotor\x1b[0m" in paged[0]
    assert os.environ["LESS"] == "-R +/^>"
    assert run(capsys, "show", index, "EP1000000B1", "--no-pager")[1].startswith("\x1b[1mPumps")
    assert len(paged) == 1


@pytest.mark.parametrize("segment", ["markup", "tags:p"])
def test_no_text_of_a_document_is_left_out(segment):
    """All characters of every format are in a title, a passage or another text."""
    from perikope.document.segmentation import segmenter

    documents = [segmenter(segment)(document) for document in read(SOURCES)]
    index = index_of(documents)
    for document in documents:
        view = view_document(index.snapshot, document.id)
        shown = "".join(text.text for text in view.texts)
        assert "".join(shown.split()) == "".join(document.text.split()), document.id
        passages = [text.id for text in view.texts if text.kind == "passage"]
        segment, local = index.snapshot.locate(index.snapshot.find_document(document.id))
        assert passages == list(segment.passage_spans(local))


def test_an_empty_query_word_is_an_error(index):
    with pytest.raises(Exception, match="the"):
        view_document(Index.open(index).snapshot, "EP1000000B1", "the")
