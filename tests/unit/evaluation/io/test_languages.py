"""Topics of one language: by the file of topics, by the topic's own option, or by its patent."""

import json

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io.topics import read_topics

CLAIMS = '<claims><claim num="1">A pump.</claim></claims>'
PATENT = f'<patent-document ucid="{{0}}" lang="{{1}}" country="EP" doc-number="{{2}}" kind="A1">{CLAIMS}</patent-document>'


@pytest.fixture
def topics(tmp_path):
    """Four topics: English and German by their tag, French by the patent, and one whose language nothing names."""
    (tmp_path / "tfiles").mkdir()
    (tmp_path / "tfiles" / "EP-1000003-A1.xml").write_text(PATENT.format("EP-1000003-A1", "FR", "1000003"))
    blocks = [
        "<tid>PSG-1</tid>\n<tfile>EP-1000001-A1.xml</tfile>\n<lang>EN</lang>\n",
        "<tid>PSG-2</tid>\n<tfile>EP-1000002-A1.xml</tfile>\n<lang>de</lang>\n",
        "<tid>PSG-3</tid>\n<tfile>EP-1000003-A1.xml</tfile>\n",
        "<tid>PSG-4</tid>\n<tfile>EP-1000004-A1.xml</tfile>\n",
    ]
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(blocks))
    return path


def read(path, language):
    notes = []
    return [topic.qid for topic in read_topics(path, language=language, on_note=notes.append)], notes


def test_topics_of_other_languages_are_left_out_counted_and_named(topics):
    kept, notes = read(topics, "en")
    assert kept == ["PSG-1", "PSG-4"]
    assert notes[0] == f"{topics}: 2 of 4 topics are not in the language 'en' and left out: PSG-2 (line 5, de), PSG-3 (line 9, fr)"
    assert notes[1] == f"{topics}: the language of 1 of 4 topics is not known; they are taken to be in 'en': PSG-4 (line 12)"
    assert read(topics, "FR")[0] == ["PSG-3", "PSG-4"]
    assert read(topics, "") == (["PSG-1", "PSG-2", "PSG-3", "PSG-4"], [])


def test_the_language_option_of_a_topic_is_its_language(tmp_path):
    path = tmp_path / "topics.jsonl"
    records = [{"qid": "1", "query": "pump", "language": "en"}, {"qid": "2", "query": "Pumpe", "language": "de"}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read(path, "de") == (["2"], [f"{path}: 1 of 2 topics are not in the language 'de' and left out: 1 (line 1, en)"])


def test_a_file_without_topics_of_the_language_is_an_error(topics):
    topics.write_text("<tid>PSG-2</tid>\n<tfile>EP-1000002-A1.xml</tfile>\n<lang>DE</lang>\n")
    with pytest.raises(InputError, match=r"topics\.txt:1: no topic is in the language 'en': PSG-2 \(line 1, de\); name another language"):
        read(topics, "en")


def test_a_wrong_language_is_reported_with_the_line_of_its_topic(topics):
    topics.write_text(topics.read_text().replace("<lang>de", "<lang>Ger man"))
    with pytest.raises(InputError, match=r"topics\.txt:5: 'Ger man' is not a language code"):
        read(topics, "en")
    with pytest.raises(UsageError, match="'english' is not a language code"):
        read(topics, "english")


def test_a_damaged_patent_is_reported_with_the_line_of_its_topic(topics):
    (topics.parent / "tfiles" / "EP-1000003-A1.xml").write_text("<patent-document")
    with pytest.raises(InputError, match=r"topics\.txt:9: "):
        read(topics, "en")
