import os
import threading

import pytest

from perikope.core.errors import IndexFormatError, InputError, UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.search.facade import Index
from tests.support.collections import index_of, plain_document


def manual():
    builder = TreeBuilder("manual 7", title="KX-200 heat pump", metadata={"year": "2024"})
    with builder.span(Kind.SECTION, "sec", part="care"):
        builder.title("Descaling")
        builder.passage("Switch it off.", id="off")
        builder.passage("Every three months.", tag="li")
        builder.passage("Rinse twice.")
    return builder.build()


@pytest.fixture(scope="module")
def index():
    other = plain_document("other", "Pumps", "A pump has a rotor.", "Descaling is not needed.")
    return index_of([manual(), other])


def test_a_hit_brings_its_context(index):
    hit = next(hit for hit in index.search("descaling the heat pump every month") if hit.passage == "@2")
    assert (hit.document, hit.name) == ("manual 7", "manual%207#@2")
    assert hit.path == ("KX-200 heat pump", "Descaling")
    assert hit.text == "Every three months."
    assert (hit.before, hit.after) == ("Switch it off.", "Rinse twice.")
    assert (hit.part, hit.tag, hit.metadata) == ("care", "li", {"year": "2024"})
    assert [hit.text[start:end] for start, end in hit.highlights] == ["Every", "months"]
    assert manual().text[hit.start : hit.end] == hit.text


def test_a_passage_with_an_id_keeps_it(index):
    assert "manual%207#off" in dict(index.search("heat pump").names())


def test_context_finds_what_the_passage_does_not_say(index):
    query = "how often descaling of the KX-200"
    assert index.search(query, model="qsf_v_title")[0].document == "manual 7"
    assert index.search(query, model="bm25")[0].document == "other"


def test_models_without_context_return_only_passages_that_match(index):
    assert [hit.text for hit in index.search("rotor", model="bm25")] == ["A pump has a rotor."]
    assert len(index.search("rotor", model="qsf_v")) == 2


def test_k_and_documents_limit_the_result(index):
    assert len(index.search("pump", k=1)) == 1
    assert {hit.document for hit in index.search("pump rotor", documents=1)} == {"other"}
    with pytest.raises(UsageError, match="at least 1"):
        index.search("pump", k=0)


def test_results_are_a_sequence(index):
    results = index.search("pump", k=3)
    assert [hit.rank for hit in results] == [1, 2, 3]
    assert results[-1] == results[2]
    assert results[:2] == [results[0], results[1]]
    with pytest.raises(IndexError):
        results[3]


def test_fetch_and_browse_may_use_two_queries(index):
    results = index.search("rotor", browse_query="descaling")
    assert results[0].text == "Descaling is not needed."


def test_a_query_that_matches_nothing_gives_an_empty_ranking(index):
    assert list(index.search("zeppelin")) == []


@pytest.mark.parametrize(("query", "complaint"), [("", "empty"), (" ?! ", "empty"), ("the of and", "only stop words")])
def test_a_query_without_a_word_is_an_error(index, query, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search(query)


def test_explain_names_what_is_missing(index):
    assert index.explain("heat pump", "manual%207#off").value > 0
    with pytest.raises(UsageError, match="no document 'nowhere'"):
        index.explain("heat pump", "nowhere#off")
    with pytest.raises(UsageError, match="no passage 'p9'; its passages are off, @2, @3"):
        index.explain("heat pump", "manual%207#p9")
    with pytest.raises(UsageError, match="was not fetched for this query"):
        index.explain("rotor", "manual%207#off")


def test_an_id_that_is_there_is_refused_and_nothing_is_lost(index):
    with pytest.raises(InputError, match="'other' is already in the index"):
        index.add([plain_document("new", "", "text"), plain_document("other", "", "text")], duplicates="error")
    index.rollback()
    assert len(Index.open(index.folder)) == 2
    with pytest.raises(InputError, match="'new' is given twice"):
        index.add([plain_document("new", "", "text"), plain_document("new", "", "text")], duplicates="error")
    index.rollback()


def test_what_was_added_is_found_after_the_commit(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add([plain_document("d1", "", "rotor")])
    assert list(index.search("rotor")) == []
    index.commit()
    reader = Index.open(index.folder)
    index.add([plain_document("d2", "", "rotor")])
    index.commit()
    assert [hit.document for hit in index.search("rotor")] == ["d1", "d2"]
    assert [hit.document for hit in reader.search("rotor")] == ["d1"]


def test_a_second_writer_is_told(tmp_path):
    first = Index.create(tmp_path / "index")
    first.add([plain_document("d1", "", "rotor")])
    with pytest.raises(IndexFormatError, match="has unfinished changes in this process"):
        Index.open(first.folder).add([plain_document("d2", "", "rotor")])
    first.commit()


def test_folders_that_are_no_index_are_named(tmp_path):
    with pytest.raises(IndexFormatError, match="is not an index: make one with"):
        Index.open(tmp_path)
    index = Index.create(tmp_path / "index")
    Index.create(tmp_path / "index")  # nothing in it yet, so nothing to lose
    index.add(plain_document("d1", "", "rotor"))
    index.commit()
    with pytest.raises(UsageError, match=r"already an index: .*\(--sync\), .*\(--append\).*; in Python, Index\.open"):
        Index.create(tmp_path / "index")
    with pytest.raises(IndexFormatError, match="is not an index: it is not a folder"):
        Index.open(tmp_path / "index" / "manifest.json")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        Index.create(tmp_path)


def test_many_threads_see_the_same(index):
    expected = index.search("heat pump descaling").names()
    rankings = []
    threads = [threading.Thread(target=lambda: rankings.append(index.search("heat pump descaling").names())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rankings == [expected] * 8


def test_parts_have_languages_of_their_own():
    builder = TreeBuilder("d1", title="Pumps")
    with builder.span(Kind.SECTION, "abstract", part="abstract", language="fr"):
        builder.passage("Les pompes et la vanne.")
    builder.passage("The pumps and the valve.")
    index = index_of([builder.build()])
    assert index.languages == ["en", "fr"]
    assert [hit.text for hit in index.search("pompe", model="bm25", language="fr")] == ["Les pompes et la vanne."]
    assert [hit.text for hit in index.search("pompe", model="bm25")] == ["Les pompes et la vanne."]
    assert list(index.search("pompe", model="bm25", language="en")) == []
    assert [hit.text for hit in index.search("pumping", model="bm25")] == ["The pumps and the valve."]


def test_mistakes_in_python_are_named(index):
    for mistake in ({"query": None}, {"query": "pump", "k": 2.5}, {"query": "pump", "documents": "3"}):
        with pytest.raises(UsageError):
            index.search(**mistake)
    with pytest.raises(UsageError, match="names no passage"):
        index.explain("heat pump", "other")


def test_candidates_may_come_from_elsewhere(index):
    results = index.search("descaling", candidates={"manual 7": 1.0, "unknown": 9.0}, model="qsf_v")
    assert {hit.document for hit in results} == {"manual 7"}
    assert list(index.search("descaling", candidates={})) == []
    assert results.matches.score_of_document.tolist() == [1.0]


def test_deleting_and_replacing(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add([plain_document("d1", "", "rotor"), plain_document("d2", "", "rotor seal")])
    index.commit()
    other = Index.open(index.folder)
    index.add(plain_document("d1", "", "rotor valve"), replace=True)
    assert index.delete("d2") == 1
    index.commit()
    assert [hit.text for hit in index.search("rotor")] == ["rotor valve"]
    assert len(other.search("rotor")) == 2, "a reader keeps its snapshot"
    assert other.refresh()
    assert not other.refresh()
    assert [hit.document for hit in other.search("rotor")] == ["d1"]
    with pytest.raises(UsageError, match="no document 'd2'"):
        index.delete(["d2"])
    index.rollback()


def test_half_of_what_was_meant_is_not_committed(tmp_path):
    def documents():
        yield plain_document("d1", "", "rotor")
        raise RuntimeError("the disk is gone")

    index = Index.create(tmp_path / "index")
    with pytest.raises(RuntimeError):
        index.add(documents())
    index.commit()
    assert len(index) == 0


def test_a_child_cannot_go_on_with_its_parents_changes(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add(plain_document("d1", "", "rotor"))
    child = os.fork()
    if child == 0:
        try:
            index.commit()
        except UsageError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    index.commit()
    assert len(index) == 1


def test_a_writer_can_wait_for_another(tmp_path):
    first = Index.create(tmp_path / "index")
    first.add(plain_document("d1", "", "rotor"))
    second = Index.open(first.folder, wait=30)
    thread = threading.Timer(0.3, first.commit)
    thread.start()
    second.add(plain_document("d2", "", "rotor"))
    second.commit()
    thread.join()
    assert len(second) == 2
