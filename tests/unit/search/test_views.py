"""What a console, a notebook and a data frame show of results."""

import json
import re
import sys
from html.parser import HTMLParser

import pytest

from perikope.core.errors import PerikopeError
from perikope.document.tree import TreeBuilder
from perikope.search.facade import Index
from perikope.search.frames import columns_of
from tests.support.collections import index_of, plain_document

HOSTILE = '<script>alert("x")</script> rotor & \x1b[31m </mark> \u202eseal <img src=x onerror=alert(1)>'


class Tags(HTMLParser):
    """The tags and the text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.opened.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def index():
    pump = TreeBuilder("d1", title="Pumps", metadata={"year": 2013, "by": {"name": "Ada"}, "ipc": ["F04D", "F16C"], "mixed": 1})
    pump.heading(1, "Rotor")
    pump.passage("The rotor of the pump turns.", id="p1")
    pump.passage("filler " * 200 + "the rotor again " + "filler " * 200, id="long")
    return index_of([pump.build(), plain_document("d2", "", "A rotor."), plain_document("d 3", HOSTILE, HOSTILE)])


def test_the_text_of_results(index):
    results = index.search("rotor pump", model="bm25(k1=1.2)", k=2)
    assert repr(results) == str(results)
    lines = repr(results).split("\n")
    assert lines[0] == "2 hits"
    assert re.fullmatch(r"  1\. \d\.\d{4}  d1#p1  Pumps › Rotor", lines[1])
    assert lines[2] == "     The rotor of the pump turns."
    assert len(lines) == 5
    assert repr(index.search("zeppelin")) == "no hits"


def test_long_texts_and_many_hits_are_cut(index):
    shown = repr(next(hit for hit in index.search("rotor", k=9) if hit.passage == "long"))
    assert shown.startswith("Hit(")
    assert len(shown) < 160
    lines = repr(index.search("rotor")).split("\n")
    assert max(map(len, lines)) <= 100
    assert any(line.strip().startswith("… ") and "the rotor again" in line for line in lines)
    many = index_of([plain_document(f"d{i}", "", "rotor") for i in range(25)]).search("rotor", k=25)
    assert repr(many).endswith("\n… and 15 more")
    assert "… and 5 more" in many._repr_html_()


def test_notes_are_shown(index):
    results = index.search("rotor")
    results._notes = ("no <date> was known",)
    assert repr(results).split("\n")[1] == "note: no <date> was known"
    assert "Note: no &lt;date&gt; was known" in results._repr_html_()


def test_a_notebook_shows_heading_path_and_highlights(index):
    html = index.search("rotor pump", model="bm25", k=1)._repr_html_()
    tags = Tags(html)
    assert re.findall(r"<mark[^>]*>(\w+)</mark>", html) == ["rotor", "pump"]
    assert "Pumps › Rotor" in tags.text
    assert "The rotor of the pump turns." in tags.text
    assert "d1#p1" in tags.text
    assert Tags(index.search("zeppelin")._repr_html_()).text == "no hits"


def test_the_excerpt_of_a_long_hit_holds_its_first_highlight(index):
    html = index.search("again", model="bm25", k=1)._repr_html_()
    assert re.findall(r"<mark[^>]*>(\w+)</mark>", html) == ["again"]
    assert len(Tags(html).text) < 1000


def test_hostile_text_stays_text(index):
    results = index.search("rotor seal", model="bm25", filter="id=d 3")
    for html in (results._repr_html_(), results[0]._repr_html_()):
        tags = Tags(html)
        assert {*tags.opened} <= {"div", "span", "b", "bdi", "mark", "code"}
        assert tags.attributes <= {"style", "dir"}
        assert '<script>alert("x")</script>' in tags.text
    for shown in (repr(results), results._repr_html_()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "\x1b" not in repr(results[0])


def test_code_keeps_its_lines(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add({"id": "d1", "passages": [{"tag": "pre", "text": "def rotor():\n    pass"}]})
    html = Index.open(tmp_path / "index").search("rotor")._repr_html_()
    assert "pre-wrap" in html
    assert "def rotor():\n    pass" in Tags(html).text


def test_dictionaries_are_json(index, tmp_path):
    results = index.search("rotor pump", k=3)
    dicts = results.to_dicts()
    assert json.loads(json.dumps(dicts)) == [json.loads(json.dumps({**hit.to_dict(), "model": "coverage"})) for hit in results]
    assert [found["rank"] for found in dicts] == [1, 2, 3]
    first = next(found for found in dicts if found["passage"] == "p1")
    assert first["path"] == ("Pumps", "Rotor")
    assert first["metadata"] == {"year": 2013, "by": {"name": "Ada"}, "ipc": ["F04D", "F16C"], "mixed": 1}


def test_columns_have_one_type():
    metadata = [{"a": 1, "b": 1, "c": ["x"], "d": [1], "e": {"f": "g"}}, {"a": 2.5, "b": "two", "c": ["y", "z"], "d": [2], "e": 3}, {}]
    index = Index.create(index_of([]).folder.parent / "other")
    index.add({"id": f"d{i}", "passages": ["rotor"], "metadata": values} for i, values in enumerate(metadata))
    index.commit()
    columns = columns_of(list(index.search("rotor")))
    assert columns["document"] == ["d0", "d1", "d2"]
    assert {name: values for name, values in columns.items() if name.startswith("metadata.")} == {
        "metadata.a": [1.0, 2.5, None],
        "metadata.b": ["1", "two", None],
        "metadata.c": [["x"], ["y", "z"], None],
        "metadata.d": ["[1]", "[2]", None],
        "metadata.e.f": ["g", None, None],
        "metadata.e": [None, 3, None],
    }


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames(index, package):
    frames = pytest.importorskip(package)
    results = index.search("rotor pump", k=4)
    frame = getattr(results, f"to_{package}")()
    assert isinstance(frame, frames.DataFrame)
    assert [*frame.columns][:3] == ["rank", "score", "document"]
    assert [*frame["score"]] == [hit.score for hit in results]
    assert [*frame["path"]] == [" › ".join(hit.path) for hit in results]
    assert "Ada" in [*frame["metadata.by.name"]]
    empty = getattr(index.search("zeppelin"), f"to_{package}")()
    assert empty.shape[0] == 0
    assert [*empty.columns] == [name for name in frame.columns if not name.startswith("metadata.")]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(index, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PerikopeError, match=f"^to_{package} needs {package}, which is not installed: pip install {package}$"):
        getattr(index.search("rotor"), f"to_{package}")()
