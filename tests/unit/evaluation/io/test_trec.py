from pathlib import Path

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io.topics import read_topics, topic_form
from perikope.query.topic import Topic

OLD = """
<top>
<num> Number: 051
<title> Topic: Airship   Subsidies

<desc> Description:
Which airships are paid for
by a state?

<narr> Narrative:
Names of R&D &amp; firms, if (a < b).

</top>
<top>
<num>Number: MB01</num>
<title>Title: second</title>
<desc>Description: another &lt;one&gt;</desc>
</top>
"""

NEW = """<topics task="x">
  <topic number="7"><query>steam organ</query><question>who plays it?</question><narrative>n</narrative></topic>
  <topic number="8"> plain text </topic>
</topics>"""


def written(folder: Path, content: str) -> Path:
    path = folder / "topics.txt"
    path.write_text(content)
    return path


def test_topics_as_they_were_and_are(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    assert topic_form(path) == "trec"
    assert read_topics(path) == [Topic("51", "Airship Subsidies"), Topic("MB01", "second")]
    both = read_topics(path, field="title,desc")
    assert both == [
        Topic("51", "Airship Subsidies Which airships are paid for by a state?"),
        Topic("MB01", "second another <one>"),
    ]
    first = path.read_text().split("</top>")[0] + "</top>"
    assert read_topics(written(tmp_path, first), field="narrative")[0].query == "Names of R&D & firms, if (a < b)."


def test_topics_in_xml(tmp_path: Path) -> None:
    path = written(tmp_path, NEW)
    assert topic_form(path) == "trec"
    assert read_topics(path) == [Topic("7", "steam organ"), Topic("8", "plain text")]
    with pytest.raises(InputError, match="topic '8' has no field 'question'") as caught:
        read_topics(path, field="query,question")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (OLD[:40], 2, "the topic that begins here does not end"),
        (OLD.replace("</top>\n<top>", "\n<top>"), 2, "the topic that begins here does not end"),
        (OLD.replace("</top>\n<top>", "\n"), 15, "two numbers; is a </top> missing"),
        (OLD.replace("<num> Number: 051", ""), 2, "has no number"),
        (OLD.replace("<title> Topic: Airship   Subsidies", ""), 2, "topic '51' has no field 'title'; choose from its fields: desc, narr"),
        (OLD + "\n\nmore", 21, "there is text outside"),
        ("more" + OLD, 1, "there is text outside"),
        (OLD + OLD, 20, "query id '51' occurs twice in the file"),
        ("<topics>\n</topics>", 1, "no <topic> elements"),
        ("<x>\n</x>", 1, "no <top>"),
    ],
)
def test_a_wrong_topic_is_named_with_its_line(tmp_path: Path, content: str, line: int, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        read_topics(path, "trec")
    assert (caught.value.path, caught.value.line) == (path, line)


@pytest.mark.parametrize("field", [",", "title,", " "])
def test_a_list_of_fields_without_names(tmp_path: Path, field: str) -> None:
    with pytest.raises(UsageError, match="is not a list of fields"):
        read_topics(written(tmp_path, OLD), field=field)
