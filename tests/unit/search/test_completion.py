"""Completions of the word that a user types."""

import pytest

from perikope.core.errors import UsageError
from perikope.query import completion
from perikope.query.completion import SuggestedWord, complete
from perikope.search.facade import Index
from perikope.text.analysis import fold, words
from tests.support.collections import index_of, plain_document

PASSAGES = [
    "A magnetic coupling drives the pump.",
    "Couplings and courses: the magnet is magnetised, and the organisation is happy.",
    "Der Kurs der Kupplung; Öl, öl, ÖL. Study the KX-200 and KX-210 pumps.",
    "Happiness is a coupled pump, and studies of 2000 counters.",
    "Pumping costs; a pump is a pump.",
]


@pytest.fixture(scope="module", params=[[], [2], [1, 2, 3, 4]], ids=["one segment", "two", "five"])
def index(request):
    return index_of([plain_document(f"d{number}", "", text) for number, text in enumerate(PASSAGES)], request.param)


def plain(index, typed):
    """For each term with a word that begins with the typed word: its words with this beginning, and its documents."""
    analyzer = index.snapshot.analyzer
    forms, documents = {}, {}
    for document in index.documents():
        for word in words(document.text):
            term = analyzer.term(word, "en")
            if term is not None:
                documents.setdefault(term, set()).add(document.id)
                if fold(word).startswith(fold(typed)):
                    forms.setdefault(term, set()).add(word.lower() if typed == typed.lower() else word)
    return [(forms[term], len(documents[term])) for term in forms]


TYPED = """
    c co cou coupl coupli couplings m magneti magnetis happ happy happi stud studi studie k kx 2 20 ö Ö P pumpi o x zz
"""


@pytest.mark.parametrize("typed", TYPED.split())
def test_words_with_this_beginning_are_found_most_frequent_first(index, typed):
    expected = plain(index, typed)
    found = index.suggest(typed, k=50)
    counts = [word.documents for word in found]
    assert counts == sorted((count for _, count in expected), reverse=True)
    for word in found:
        assert any(word.word in forms and word.documents == count for forms, count in expected)


def test_only_the_last_word_is_completed(index):
    assert index.suggest("the magnetic coupli") == index.suggest("coupli") == (SuggestedWord("coupling", 3),)
    assert index.suggest("over-coupli") == index.suggest("coupli")


@pytest.mark.parametrize("typed", ["", " ", "pump ", "pump,", "?", "the", "x" * 65])
def test_nothing_is_suggested_without_the_beginning_of_a_word(index, typed):
    assert index.suggest(typed) == ()


def test_number_of_words_is_limited(index):
    assert index.suggest("p", k=1) == (SuggestedWord("pump", 4),)
    with pytest.raises(UsageError, match="k must be a whole number of at least 1"):
        index.suggest("p", k=0)


def test_words_of_deleted_documents_are_not_suggested(tmp_path):
    index = Index.create(tmp_path / "idx")
    index.add([plain_document("d1", "", "coupling counter"), plain_document("d2", "", "counter")])
    index.commit()
    index.delete(["d1"])
    index.commit()
    assert index.suggest("cou") == (SuggestedWord("counter", 1),)


def test_language_limits_the_words(tmp_path):
    index = Index.create(tmp_path / "idx")
    index.add([{"id": "en", "language": "en", "passages": ["the pump and the pumice"]}])
    index.add([{"id": "de", "language": "de", "passages": ["die Pumpe und der Pumpenkopf"]}])
    index.commit()
    assert [word.word for word in index.suggest("pum", language="de")] == ["pumpe", "pumpenkopf"]
    assert [word.word for word in index.suggest("pum", language="en")] == ["pumice", "pump"]
    assert {word.word for word in index.suggest("pum")} == {"pumpe", "pumpenkopf", "pumice", "pump"}
    assert [word.word for word in index.suggest("die Kupplung der pum")] == [word.word for word in index.suggest("pum", language="de")]
    with pytest.raises(UsageError, match="no text in the language 'fr'"):
        index.suggest("pum", language="fr")


def test_work_is_bounded(tmp_path, monkeypatch):
    """However many terms begin with a letter, few are looked up, and few documents are read."""
    index = Index.create(tmp_path / "idx", stemmer="none")
    index.add([plain_document(f"d{number}", "", f"a{number:04} " * (number + 1)) for number in range(500)])
    index.commit()
    read, looked_up = [], []
    forms, look_up = completion.forms_by_document, index.snapshot.look_up
    monkeypatch.setattr(completion, "forms_by_document", lambda *given: (read.append(one) or one for one in forms(*given)))
    monkeypatch.setattr(index.snapshot, "look_up", lambda terms: looked_up.append(len(terms)) or look_up(terms))
    assert len(complete(index.snapshot, "a", k=10)) == len(read) == 10
    assert max(looked_up) == completion._CANDIDATES
    read.clear()
    assert len(complete(index.snapshot, "a", k=100)) == len(read) == completion._READ


def test_dictionary_for_json(index):
    assert index.suggest("coupli")[0].to_dict() == {"word": "coupling", "documents": 3}
