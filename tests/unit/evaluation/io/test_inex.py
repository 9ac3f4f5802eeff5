import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import InputError, UsageError
from perikope.document.tree import Place
from perikope.evaluation.io import inex
from perikope.evaluation.io.inex import Extract, RelevantText, extracts, words_of
from perikope.evaluation.io.judgements import judgement_form, read_judgements
from perikope.evaluation.io.runs import read_run, run_form
from perikope.evaluation.io.topics import read_topics, topic_form
from perikope.query.topic import Topic

TOPICS = """<?xml version="1.0"?>
<!DOCTYPE inex-topic-file [
<!ENTITY lt "lessthan">
<!ENTITY amp "ampersand">
<!ENTITY secret SYSTEM "file:///etc/passwd">
<!ELEMENT topic (title, castitle)>
]>
<inex-topic-file>
<topic id="2009901" ct_no="1">
  <title>museum  &amp; music</title>
  <castitle>//article[about(., museum)]//sec[about(.//p, "piano music" -jazz)]</castitle>
  <phrasetitle>"piano music" museum</phrasetitle>
  <description>museums &lt; 100 years old</description>
  <narrative>Long ago.</narrative>
</topic>
<topic id="2009902" ct_no="2">
  <title>steam organ</title>
  <castitle></castitle>
</topic>
</inex-topic-file>
"""


def written(folder: Path, content: str, name: str = "topics.xml") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path


@pytest.mark.parametrize("name", ["topics.xml", "topics.xml.gz", "topics"])
@pytest.mark.parametrize(
    ("field", "queries"),
    [
        ("", ["museum & music", "steam organ"]),
        ("title", ["museum & music", "steam organ"]),
        ("castitle", ['museum "piano music" -jazz', "steam organ"]),
        ("phrasetitle", ['"piano music" museum', "steam organ"]),
        ("Title, phrasetitle", ['museum & music "piano music" museum', "steam organ steam organ"]),
    ],
)
def test_topics_by_field(tmp_path: Path, name: str, field: str, queries: list[str]) -> None:
    path = written(tmp_path, TOPICS, name)
    assert topic_form(path) == "inex"
    assert read_topics(path, field=field) == [Topic(f"200990{number}", query) for number, query in enumerate(queries, start=1)]


def test_entities_of_a_dtd_are_never_read(tmp_path: Path) -> None:
    one = TOPICS[: TOPICS.index('<topic id="2009902"')] + "</inex-topic-file>"
    assert read_topics(written(tmp_path, one), field="description")[0].query == "museums < 100 years old"
    with pytest.raises(InputError, match=r"topics\.xml:10: uses &secret;"):
        read_topics(written(tmp_path, TOPICS.replace("&amp;", "&secret;")))


def test_topics_of_other_years(tmp_path: Path) -> None:
    content = '<inex_topic topic_id="414" ct_no="3" query_type="CO+S"><title>hip hop</title><description>x</description></inex_topic>'
    assert read_topics(written(tmp_path, content)) == [Topic("414", "hip hop")]


@pytest.mark.parametrize(
    ("content", "field", "line", "message"),
    [
        (TOPICS, "description", 16, "topic '2009902' has no field 'description'; choose from its fields: title"),
        (TOPICS, "titel", 9, "topic '2009901' has no field 'titel'; choose from its fields: title, castitle"),
        (TOPICS.replace("2009902", "2009901"), "", 16, "occurs twice in the file"),
        (TOPICS.replace('id="2009902" ', ""), "", 16, "the query id is empty"),
        (TOPICS[:-30], "", 18, "cannot be read as XML"),
        (TOPICS[:300], "", 11, "cannot be read as XML"),
        ("<inex-topic-file/>", "", 1, "no <topic> elements"),
    ],
)
def test_a_wrong_topic_is_named_with_its_line(tmp_path: Path, content: str, field: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_topics(written(tmp_path, content), field=field)
    assert caught.value.line == line


def test_the_topics_of_2009(shared_data: Path) -> None:
    path = shared_data / "inex" / "INEX-2009-topics.xml"
    for field in ("title", "castitle", "phrasetitle", "title,description,narrative"):
        topics = read_topics(path, field=field)
        assert [topic.qid for topic in topics] == [str(2009001 + number) for number in range(115)]
        assert not any("about(" in topic.query or "ampersand" in topic.query for topic in topics)


@pytest.mark.parametrize(
    ("castitle", "words"),
    [
        ("//article", ""),
        ("//a[about(., x)]", "x"),
        ("//a[about(.//(sec|p),x y) and (about(.//st,z) or about(.//st,see also))]", "x y z see also"),
        ('//a[about(., "f(x)" +y)]', '"f(x)" +y'),
        ("//a[about(., f(x) g)]", "f(x) g"),
        ("//a[about(., x", ""),
        ("//a[about(x)]", ""),
        ("about(about(., x), y)", "y"),
    ],
)
def test_words_of_a_castitle(castitle: str, words: str) -> None:
    assert words_of(castitle) == words


JUDGED = "2009901 Q0 1528075 49158 58542 126 28893:20397 126:28761\n2009901 Q0 77 0 900 0\n2009902 Q0 78 0 900 -1\n"


def test_judgements_of_characters(tmp_path: Path) -> None:
    path = written(tmp_path, JUDGED, "qrels.gz")
    assert judgement_form(path) == "inex"
    assert inex.read_judgements(path) == {
        "2009901": {"1528075": RelevantText(((126, 28761), (28893, 20397)), 49158, 58542, 126), "77": RelevantText((), 0, 900, 0)},
        "2009902": {"78": RelevantText((), 0, 900, -1)},
    }
    assert read_judgements(path) == {"2009901": {"1528075": 1, "77": 0}, "2009902": {"78": 0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 d 5 100", "expected at least 6 columns"),
        ("1 Q0 d five 100 0 0:5", "the relevant characters must be a whole number"),
        ("1 Q0 d 5 100 0 0-5", "a range must be start:length, such as 126:28761, not '0-5'"),
        ("1 Q0 d 5 100 0 -1:5", "a range must be"),
        ("1 Q0 d 0 100 0 3:0", "a range must be"),
        ("1 Q0 d 5 100 0 96:5", "goes beyond the end of the document"),
        ("1 Q0 d 10 100 0 4:5 0:5", "two ranges overlap"),
        ("1 Q0 d 6 100 0 0:5", "the ranges have 5 characters, not 6"),
        ("1 Q0 d 5 100 0", "the ranges have 0 characters, not 5"),
        ("1 Q0 d 5 100 101 0:5", "the best entry point 101 is not in the document"),
        ("1 Q0 d 5 100 -1 0:5", "the best entry point -1 is not in the document"),
        ("1 Q0 d -5 100 0", "must not be negative"),
        ("2009901 Q0 77 0 900 0", "'77' is judged twice for topic '2009901'"),
        (f"1 Q0 d 5 {'9' * 40} 0 0:5", "the length of the document is too large"),
    ],
)
def test_a_wrong_judgement_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, f"{JUDGED}\n{line}\n", "qrels")
    for read in (inex.read_judgements, read_judgements):
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        assert (caught.value.path, caught.value.line) == (path, 5)


def test_a_run_keeps_the_order_of_its_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "1 Q0 d2 1 0.5 me 10 5\n1 Q0 d1 2 0.9 me 0 7\n1 Q0 d2 3 0.1 me 20 5\n", "run")
    assert run_form(path) == "inex"
    run = inex.read_run(path)
    assert run == {"1": [Extract("d2", 10, 5, 0.5), Extract("d1", 0, 7, 0.9), Extract("d2", 20, 5, 0.1)]}
    assert [(extract.line, extract.end) for extract in run["1"]] == [(1, 15), (2, 7), (3, 25)]
    # By document: the first result of each counts, and the order stays.
    by_document = read_run(path)["1"]
    assert list(by_document) == ["d2", "d1"]
    assert by_document["d2"] > by_document["d1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 d 2 0.5 me 10", "expected 8 columns"),
        ("1 Q0 d x 0.5 me 10 5", "the rank must be a whole number"),
        ("1 Q0 d 2 x me 10 5", "the score must be a number"),
        ("1 Q0 d 2 inf me 10 5", "finite"),
        ("1 Q0 d 2 0.5 me /article[1] 5", "the start must be a whole number"),
        ("1 Q0 d 2 0.5 me 10 5.5", "the length must be a whole number"),
        ("1 Q0 d 2 0.5 me -1 5", "not -1 and 5"),
        ("1 Q0 d 2 0.5 me 1 0", "not 1 and 0"),
        ("1 Q0 d1 2 0.5 me 0 7", "occurs twice"),
    ],
)
def test_a_wrong_line_of_a_run_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, f"1 Q0 d1 1 0.9 me 0 7\n{line}\n", "run")
    for read in (inex.read_run, read_run):
        with pytest.raises(InputError, match=message) as caught:
            read(path)
        assert (caught.value.path, caught.value.line) == (path, 2)


stretches = st.tuples(st.sampled_from(["d1", "report%207"]), st.integers(0, 99), st.integers(1, 99))


@given(st.lists(stretches, unique=True), st.data())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, int]], data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("runs") / data.draw(st.sampled_from(["run", "run.gz"]))
    ranking = [Extract(*row, data.draw(st.floats(-9, 9))) for row in rows]
    inex.write_run(path, [("1", ranking), ("2", [])], "me")
    found = inex.read_run(path).get("1", [])
    assert [(result.document, result.start, result.length) for result in found] == rows
    scores = [result.score for result in found]
    assert scores == sorted(set(scores), reverse=True)


def test_hits_become_stretches_of_their_files() -> None:
    places = [Place("/a[1]/p[1]", 10, 30), Place("/a[1]/p[1]/b[1]", 10, 30), Place("/a[1]/p[2]", 40, 40)]
    hits = [("d1#p1", 3.0), ("d1#p2", 2.0), ("d1#p3", 1.0)]
    assert extracts(hits, places.__getitem__) == [Extract("d1", 10, 20, 3.0)]
    with pytest.raises(UsageError, match="which an INEX run needs; index the XML files themselves"):
        extracts(hits, lambda number: None)


@pytest.mark.parametrize(
    ("rankings", "tag", "message"),
    [
        ([("a b", [])], "t", "cannot stand in a run"),
        ([("1", []), ("1", [])], "t", "ranked twice"),
        ([("1", [Extract("d 1", 0, 1, 1.0)])], "t", "name 'd 1' cannot stand"),
        ([("1", [Extract("d", 0, 1, float("nan"))])], "t", "finite"),
        ([], "my run", "tag 'my run' cannot stand"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, rankings: list[tuple[str, list[Extract]]], tag: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        inex.write_run(tmp_path / "run", rankings, tag)
    assert os.listdir(tmp_path) == []
