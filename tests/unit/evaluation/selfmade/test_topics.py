"""Self-made topics have the right queries, answers and masks."""

from random import Random

import pytest

from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.evaluation.io.judgements import read_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.selfmade import KINDS, TopicSource
from perikope.evaluation.selfmade.topics import make_topics, write_topics
from perikope.evaluation.views import Looking
from perikope.search.options import SearchOptions
from perikope.text.analysis import Analyzer, words
from tests.support.collections import index_of

FIRST_SENTENCE = "The housing surrounds an impeller with eight curved blades."
LAST_SENTENCE = "Its outlet leads hot liquid slowly into the diffuser."
FIRST = f"{FIRST_SENTENCE} {LAST_SENTENCE}"


def document(id="pump", language="en", first=FIRST, title="Centrifugal pump"):
    builder = TreeBuilder(id, title=title, language=language)
    with builder.span(Kind.SECTION, "sec", id="s1"):
        builder.title("Housing and impeller")
        builder.passage(first, id="p1")
        with builder.span(Kind.ELEMENT, "list"):
            builder.passage("Bolts hold the cover.", id="p2")
        with builder.span(Kind.SECTION, "sec", id="s2"):
            builder.title("Summary")
            builder.passage("Shaft speed, pressure, flow and torque follow from the section above.", id="p3", refs=["s1", "absent"])
    return builder.build()


def drafts(kind, made=None, seed=1):
    made = made or document()
    found = list(KINDS[kind](TopicSource(made, Analyzer()), Random(seed)))
    ids = [[made.span_ids[span] for span in draft.answers] for draft in found]
    return [(draft.query, answers) for draft, answers in zip(found, ids, strict=True)], [made.text[d.start : d.end] for d in found]


def test_a_heading_is_answered_by_the_passages_directly_in_its_section():
    found, masked = drafts("heading")
    assert found == [("Housing and impeller", ["p1", "p2"])], "neither the document's title nor a heading of one word"
    assert masked == ["Housing and impeller"]


def test_a_sentence_is_answered_by_the_rest_of_its_passage():
    found, masked = drafts("sentence")
    assert [answers for _, answers in found] == [["p1"]], "the other passages have one sentence"
    assert masked == [found[0][0]]
    assert found[0][0] in (FIRST_SENTENCE, LAST_SENTENCE)


def test_keywords_are_content_words_of_a_sentence():
    found, masked = drafts("keywords")
    chosen = found[0][0].split()
    assert len(chosen) == 5
    assert {*chosen} <= {*words(masked[0])} - {"The", "with", "an", "Its", "the", "into"}


def test_a_reference_is_answered_by_the_passages_of_its_target_but_not_by_itself():
    found, masked = drafts("reference")
    assert found == [("Shaft speed, pressure, flow and torque follow from the section above.", ["p1", "p2"])]
    assert masked == [found[0][0]]


def test_other_languages_have_their_own_stop_words_and_sentences():
    german = document(
        language="de", first="Das Gehäuse umgibt ein Laufrad mit acht Schaufeln. Der Auslass führt die Flüssigkeit langsam zum Diffusor."
    )
    found, _ = drafts("keywords", german)
    assert not {"Das", "ein", "mit", "Der", "die", "in", "den"} & {*found[0][0].split()}
    chinese = document(language="zh", first="泵的壳体围绕叶轮和轴承安装。出口将液体引入扩散器中使用。")
    assert [answers for _, answers in drafts("sentence", chinese)[0]] == [["p1"]]


def collection(count=12):
    return [
        document(f"d{i}", first=FIRST.replace("eight", f"e{i}").replace("liquid", f"l{i}"), title=f"Pump model{i}") for i in range(count)
    ]


def test_topics_have_names_of_answers_and_masks():
    documents = collection()
    index = index_of(documents, cuts=[5])
    made = make_topics(index.snapshot, ("sentence",), count=5, seed=3)
    assert made.kinds == {"sentence": 5, "sentence_in_document": 5}
    for topic in made.topics:
        mask = made.masks[topic.qid]
        segment, local = index.snapshot.locate(mask.document)
        id = segment.document_id(local)
        assert made.judgements[topic.qid] == {f"{id}#p1": 1}
        taken = words(segment.text(local))[mask.first_token : mask.end_token]
        named = made.kind_of_topic[topic.qid] == "sentence_in_document"
        assert words(topic.query) == ([*words(f"Pump model{id[1:]}"), *taken] if named else taken)


def test_topics_are_the_same_for_the_same_seed_only():
    index = index_of(collection())
    assert make_topics(index.snapshot, count=5, seed=1) == make_topics(index.snapshot, count=5, seed=1)
    assert make_topics(index.snapshot, count=5, seed=1) != make_topics(index.snapshot, count=5, seed=2)
    alone = make_topics(index.snapshot, ("sentence",), count=5)
    assert [t for t in make_topics(index.snapshot, count=5).topics if "sentence" in t.qid] == list(alone.topics), "kinds are independent"


def test_a_heading_of_several_documents_is_no_topic():
    assert make_topics(index_of(collection()).snapshot, ("heading",)).topics == ()


def test_names_of_documents_are_optional():
    snapshot = index_of(collection()).snapshot
    assert set(make_topics(snapshot, ("sentence",), naming="never").kinds) == {"sentence"}
    assert set(make_topics(snapshot, ("sentence",), naming="always").kinds) == {"sentence_in_document"}
    untitled = index_of([document(f"d{i}", first=FIRST.replace("eight", f"e{i}"), title="") for i in range(3)]).snapshot
    assert set(make_topics(untitled, ("sentence",), naming="always").kinds) == {"sentence"}


def test_the_words_of_a_query_do_not_find_their_own_passage():
    made = make_topics(index_of(collection()).snapshot, ("sentence",), count=1, naming="never")
    looking = Looking(index_of(collection()).snapshot, made.judgements, masks=made.masks)
    plain = Looking(looking.snapshot, made.judgements)
    topic = made.topics[0]
    views = [one.view(one.prepare(topic, SearchOptions.of({}))) for one in (plain, looking)]
    row = int(views[0].judged.rows[0])
    counts = [int(view.matches.in_passages.first_entry[row + 1] - view.matches.in_passages.first_entry[row]) for view in views]
    assert counts[0] > 0 == counts[1]


def test_wrong_kinds_and_counts_are_clear_errors():
    snapshot = index_of(collection(2)).snapshot
    with pytest.raises(UsageError, match="sentense"):
        make_topics(snapshot, ("sentense",))
    with pytest.raises(UsageError, match="at least one kind"):
        make_topics(snapshot, ())


def test_written_topics_are_read_again(tmp_path):
    made = make_topics(index_of(collection()).snapshot, count=3)
    write_topics(made, tmp_path / "out")
    assert [(topic.qid, topic.query) for topic in read_topics(tmp_path / "out" / "topics.tsv")] == [(t.qid, t.query) for t in made.topics]
    assert read_judgements(tmp_path / "out" / "qrels.txt") == made.judgements
