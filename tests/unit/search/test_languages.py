"""Which languages a query is searched in, and how they are counted: a query finds text in its own language."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.index.tombstones import Counts
from perikope.query import language as query_language
from perikope.query.language import MARGIN, clear_best_of, evidence_of, searched_languages
from perikope.text.analysis import Analyzer, words
from tests.cli.test_commands import run
from tests.support.collections import collections, index_of
from tests.support.plain import PlainCollection

EN = [
    "The pump has a rotor and a magnetic coupling on the shaft.",
    "A valve controls the flow of the fluid to the pump.",
    "The seal of the shaft is pressed by a spring.",
    "The rotor turns in a housing of steel with a cover.",
    "An engine drives the pump through a belt.",
    "The coupling slips if the torque of the engine is too large.",
    "A filter keeps sand out of the valve and the seal.",
    "The housing is closed with a cover and four screws.",
]
DE = [
    "Die Pumpe hat einen Rotor und eine magnetische Kupplung auf der Welle.",
    "Ein Ventil steuert den Durchfluss zu der Pumpe, und eine Feder drückt die Dichtung.",
]
FR = ["La pompe a un rotor et un accouplement magnétique sur un arbre avec une garniture."]
FEW = 0.1
MODELS = ["qsf_v_title", "bm25", "lm", "pl2", "psg_doc", "plm", "pl2(statistics=candidates)"]


def language_of(snapshot, query_words):
    return clear_best_of(evidence_of(snapshot, query_words))


def document(id, *passages, language="en", title=""):
    builder = TreeBuilder(id, title=title, language=language)
    for passage in passages:
        builder.passage(passage)
    return builder.build()


def several():
    """English, German and French pages, and a document with claims in three languages."""
    found = [document(f"en{i}", text, language="en-GB" if i == 2 else "en") for i, text in enumerate(EN * 4)]
    builder = TreeBuilder("ep", title="Pump with a magnetic coupling", language="en")
    with builder.span(Kind.SECTION, "claims", part="claims"):
        builder.passage("A pump with a rotor and a magnetic coupling.")
        builder.passage(DE[0], language="de")
        builder.passage("Pumpe nach Anspruch 1 mit einer Dichtung.", language="de")
        builder.passage(FR[0], language="fr")
    found += [document(f"de{i}", text, language="de") for i, text in enumerate(DE * 4)]
    return [*found, builder.build(), document("fr0", FR[0], language="fr")]


@pytest.fixture(autouse=True)
def few_tokens_are_enough(monkeypatch):
    """The collections of these tests are small: a real language with so few tokens proves nothing."""
    monkeypatch.setattr(query_language, "FEW_TOKENS", FEW)


@pytest.fixture(scope="module")
def index():
    return index_of(several(), cuts=[3, 9])


ENGLISH = "pump with a magnetic coupling"


@pytest.mark.parametrize(
    ("query", "language"),
    [
        (ENGLISH, "en"),
        ("the cover of the housing", "en"),
        ("Pumpe mit einer magnetischen Kupplung", "de"),
        ("eine Feder drückt die Dichtung", "de"),
        ("pompe avec un accouplement", "fr"),
        ("rotor", ""),  # one word never proves a language
        ("coupling", ""),
        ("pump rotor", ""),  # also German
        ("the cover und die Dichtung", ""),  # mixed
        ("zeppelin 4711", ""),
    ],
)
def test_the_language_of_a_query(index, query, language):
    assert language_of(index.snapshot, words(query)) == language


def test_a_page_in_another_language_does_not_hide_the_others(monkeypatch):
    monkeypatch.undo()
    # Loan words are frequent in the only German page, and rare in the English ones.
    english = [document(f"en{i}", text, "The proxy server keeps a build cache." if i == 0 else text) for i, text in enumerate(EN * 10)]
    loaned = document("de", "Der Proxy Server und sein Build Cache: Proxy, Server, Build, Cache.", language="de")
    wrong = document("wrong", "The habitat of a page.", language="de")
    mixed = index_of([*english, loaned, wrong])
    for query in ("proxy server", "build cache", "proxy server with a build cache", "the habitat of a page"):
        found = mixed.search(query, k=50)
        assert {"en0", "de"} & {hit.document for hit in found} or query.startswith("the habitat")
        assert language_of(mixed.snapshot, words(query)) != "de"
    assert [hit.document for hit in mixed.search("habitat of a page", model="bm25")] == ["wrong"]


def test_evidence_is_the_probability_of_words_in_each_language(index):
    snapshot = index.snapshot
    totals = snapshot.totals_by_language
    tokens = sum(counts.occurrences for counts in totals.values())
    plain = {}
    for code in totals:
        total = 0.0
        for word in ("the", "coupling", "zeppelin", "rotor"):
            terms = {other: Analyzer().term(word, other) for other in totals}
            everywhere = sum(text.count(f"{other}:{term}") for text in texts() for other, term in terms.items()) / tokens
            share = {}
            for other, term in terms.items():
                occurrences = sum(text.count(f"{other}:{term}") for text in texts())
                share[other] = 1 / 200 if term is None else (occurrences + FEW * everywhere) / (totals[other].occurrences + FEW)
            if max(share.values()):
                total += np.log(0.98 * share[code] + 0.02 * max(share.values()))
        plain[code] = total
    assert evidence_of(snapshot, ["the", "coupling", "zeppelin", "rotor", "the"]) == pytest.approx(plain)
    assert np.log(1 / 0.02) < MARGIN, "one word alone must not decide"


@cache
def texts():
    return [one.all_terms for one in PlainCollection(several(), Analyzer()).documents]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("query", [ENGLISH, "Pumpe mit einer magnetischen Kupplung", "pompe avec un accouplement"])
def test_a_query_finds_text_in_its_language(index, model, query):
    own = language_of(index.snapshot, words(query))
    hits = index.search(query, model=model, k=50)
    assert hits
    assert {hit.language for hit in hits} == {own}
    if query == ENGLISH:
        pooled = {hit.language for hit in index.search(query, model=model, k=50, language="all")}
        assert len(pooled) > 1, "otherwise this test cannot fail"


@pytest.mark.parametrize("options", [{"syntax": "boolean"}, {"expand": "bo1(documents=5)"}, {"browse_expand": "rm3"}, {"documents": "all"}])
def test_so_do_other_kinds_of_searches(index, options):
    query = "pump AND coupling NOT seal" if "syntax" in options else ENGLISH
    results = index.search(query, model="bm25", k=50, **options)
    assert {hit.language for hit in results} == {"en"}
    assert {term.partition(":")[0] for term in results.matches.query.terms} == {"en"}


def test_operators_are_no_english_words(index):
    # AND, OR and NOT are stop words of English; these words are German.
    query = index.check_query("(Dichtung OR Feder) AND Durchfluss NOT Welle", syntax="boolean")
    assert query.languages == ("de",)


def test_the_two_queries_of_a_search_have_one_language(index):
    results = index.search("rotor", browse_query="the cover of the housing", model="bm25", k=50)
    assert {hit.language for hit in results} == {"en"}


def test_a_given_language_is_searched_alone(index):
    assert {hit.language for hit in index.search("rotor", language="DE", k=50)} == {"de"}
    assert {hit.language for hit in index.search("rotor", k=50)} == {"en", "de", "fr"}


def test_all_languages_are_one_collection(index):
    query = index.check_query(ENGLISH, language="all")
    assert query.languages == ()
    assert {term.partition(":")[0] for term in query.terms} == {"en", "de", "fr"}
    assert index.search(ENGLISH, language="all").matches.statistics.documents == len(index)


def test_texts_in_no_known_language_are_searched_with_every_language():
    index = index_of([*several(), document("codes", "pump coupling KX-200", language="und")])
    assert "codes" in {hit.document for hit in index.search(ENGLISH, k=50)}
    assert "codes" in {hit.document for hit in index.search("pump", language="en", k=50)}
    assert {hit.document for hit in index.search("pump", language="und", k=50)} == {"codes"}


# A page whose language is stated wrongly.


def test_a_word_that_the_language_lacks_is_searched_in_all():
    index = index_of([*several(), document("wrong", "Zwischenwelle für Pumpe, Kupplung, Dichtung.", language="en")])
    query = "die Dichtung der Zwischenwelle mit einer Kupplung"
    assert searched_languages(index.snapshot, query).languages == ("de",)
    assert index.search(query, model="bm25")[0].document == "wrong"
    assert "wrong" not in {hit.document for hit in index.search("Pumpe mit einer Kupplung", model="bm25")}
    assert "wrong" in {hit.document for hit in index.search("Pumpe mit einer Kupplung", model="bm25", language="all")}
    assert "en:zwischenwell" in index.check_query(query).terms
    assert "en:zwischenwell" in index.check_query('"die Zwischenwelle" AND Kupplung mit Dichtung', syntax="boolean").terms
    assert "en:zwischenwell" in index.check_query("Zwischenw* AND die Kupplung mit Dichtung", syntax="boolean").terms


def test_stop_words_of_the_most_probable_language_are_searched_in_none(index):
    searched = searched_languages(index.snapshot, "mit Rotor")
    assert searched.is_unclear
    assert searched.languages[0] == "de"
    assert {*index.check_query("mit Rotor").terms} == {*index.check_query("Rotor").terms}


def test_a_note_says_which_language_was_searched(index):
    def notes(query, **options):
        return [note for note in index.search(query, **options).notes if note.startswith("searched in")]

    assert notes("Pumpe mit einer Kupplung") == ["searched in German; language='all' searches en too"]
    assert notes("the rotor with a cover") == ["searched in English; language='all' searches de and fr too"]
    assert notes("the cover of a housing") == [], "no other language has these words"
    for options in ({"language": "all"}, {"language": "en"}):
        assert notes(ENGLISH, **options) == []
    unclear = "searched in en, de and fr, since the language of the query is unclear; language='en' searches one of them"
    assert notes("rotor") == [unclear]


# Statistics.


@settings(max_examples=60)
@given(collections(), st.data())
def test_counts_by_language_are_those_of_the_texts(documents, data):
    index = index_of(documents, cuts=data.draw(st.lists(st.integers(0, len(documents)), max_size=2)))
    gone = data.draw(st.sets(st.sampled_from([document.id for document in documents]), max_size=2))
    index.delete(gone)
    index.commit()
    plain = PlainCollection([document for document in documents if document.id not in gone], Analyzer())
    expected = {}
    for code in ("en", "fr"):
        tokens, inside = (
            sum(n for term, n in counts.items() if term.startswith(code)) for counts in (plain.occurrences, plain.passage_occurrences)
        )
        labels = [[one.document.labels[one.document.spans.language[span]] for span in _texts(one)] for one in plain.documents]
        passages = sum(one.document.labels[one.document.spans.language[span]] == code for one, span in plain.passages)
        expected[code] = Counts(sum(code in of_document for of_document in labels), tokens, passages, inside)
    assert index.snapshot.totals_by_language == {code: counts for code, counts in expected.items() if counts.occurrences}


def _texts(one):
    return [*one.document.of_kind(Kind.PASSAGE), *one.document.of_kind(Kind.TITLE)]


def test_a_foreign_form_is_not_worth_more_for_being_rare():
    # The word is in half of the texts of each language, but there are nine times as many English texts.
    english = [document(f"en{i}", "rotor of the housing" if i % 2 else "cover of the valve") for i in range(36)]
    german = [document(f"de{i}", "rotor mit Welle" if i % 2 else "Deckel mit Welle", language="de") for i in range(4)]
    index = index_of([*english, *german])

    def best(of, **options):
        return max(hit.score for hit in index.search("rotor", k=100, **options) if hit.language == of)

    for options in ({"model": "bm25"}, {"model": "pl2"}, {"model": "lm(mu=2)"}, {"model": "psg_doc", "fetch": "pl2"}):
        assert best("de", **options) == pytest.approx(best("en", **options), rel=0.1), options
        assert best("de", language="all", **options) > 1.1 * best("en", language="all", **options), options


@pytest.mark.parametrize("fetch", ["bm25", "pl2", "dph", "lm", "sim"])
@pytest.mark.parametrize("parts", [None, {"claims": 1.0}])
def test_fetch_scores_are_those_of_a_collection_in_the_language(fetch, parts):
    """The English pages have as many words as the German ones, so the average length does not change with them."""

    def page(id, text, language):
        builder = TreeBuilder(id, language=language)
        builder.passage(text, part="claims")
        return builder.build()

    german = [page(f"de{i}", f"Ventil{' Ventil' * i} Pumpe" + " Welle" * (3 - i), "de") for i in range(4)] + [
        page("de9", "Welle " * 5, "de")
    ]
    english = [page(f"en{i}", "pump valve rotor cover shaft", "en") for i in range(30)]
    both, alone = (index_of(documents) for documents in ([*german, *english], german))
    options = {"fetch": fetch, "model": "bm25", "fetch_parts": parts}
    found, expected, pooled = (
        one.search("Ventil Pumpe", language=language, **options).matches.score_of_document
        for one, language in ((both, "de"), (alone, "de"), (both, "all"))
    )
    assert found == pytest.approx(expected)
    assert found != pytest.approx(pooled)


@pytest.mark.parametrize("model", ["bm25", "pl2", "psg", "lm", "qsf_v_title", "plm"])
def test_scores_of_passages_are_those_of_a_collection_in_the_language(model):
    german = [document(f"de{i}", text, "Eine Welle.", language="de", title="Pumpe") for i, text in enumerate(DE)]
    both = index_of([*german, *(document(f"en{i}", text) for i, text in enumerate(EN))])
    found, expected = (one.search("Ventil Pumpe Welle", model=model, language="de").names() for one in (both, index_of(german)))
    assert [name for name, _ in found] == [name for name, _ in expected]
    if model != "plm":  # which adds fetch scores, and so the average length of all documents
        assert [score for _, score in found] == pytest.approx([score for _, score in expected])


def test_one_language_is_counted_as_before():
    index = index_of([document(f"en{i}", text) for i, text in enumerate(EN)])
    for language in ("", "en", "all"):
        results = index.search(ENGLISH, language=language)
        assert results.matches.query.languages == ()
        assert results.matches.statistics.documents == len(EN)
        assert results.notes == ()
    assert "totals_by_language" not in vars(index.snapshot), "nothing is counted that is not needed"


def test_a_language_whose_documents_are_deleted_is_no_language():
    index = index_of([document("en", EN[0]), document("de", DE[0], language="de")])
    assert index.check_query("rotor").languages
    index.delete(["de"])
    index.commit()
    assert index.check_query("rotor").languages == ()


def test_scores_do_not_depend_on_segments():
    whole, cut = index_of(several()), index_of(several(), cuts=[2, 5, 9])
    for query in (ENGLISH, "rotor", "Pumpe mit einer Dichtung"):
        for model in MODELS:
            assert sorted(whole.search(query, model=model, k=50).names()) == sorted(cut.search(query, model=model, k=50).names())


# Hits, contexts and explanations.


def test_neighbours_in_another_language_are_left_out(index):
    hits = {hit.passage: hit for hit in index.search("Pumpe mit einer Dichtung", k=50) if hit.document == "ep"}
    assert hits["@2"].before == "", "the claim before it is English"
    assert hits["@2"].after.startswith("Pumpe nach")
    assert hits["@3"].after == "", "the claim after it is French"
    context = index.search("Anspruch", k=1).context(500)
    assert [piece.passages for piece in context.pieces] == [("@2", "@3")]
    both = index.search("rotor", filter="id=ep", k=3).context(500)
    assert all(len({*piece.passages} & {"@1", "@2", "@4"}) <= 1 for piece in both.pieces), "languages are not mixed in one piece"


def test_the_language_of_a_hit_is_a_code(index):
    [hit] = [hit for hit in index.search("the seal of the shaft", k=50, model="bm25") if hit.document == "en2"]
    assert hit.language == "en"
    assert hit.highlights, "words of text marked as en-GB are highlighted"


def labels(node):
    return [node.label, *(label for child in node.children for label in labels(child))]


def nodes(node):
    return [node, *(other for child in node.children for other in nodes(child))]


@pytest.mark.parametrize("model", MODELS)
def test_explanations_name_the_language(index, model):
    for query, name, language in (("rotor", "ep#@2", "de"), (ENGLISH, "ep#@1", "en"), ("rotor", "ep#@4", "fr")):
        node = index.explain(query, name, model=model)
        assert any(f" ({language}) " in label for label in labels(node)), model
        assert all(one.recomputed() == pytest.approx(one.value, abs=1e-9) for one in nodes(node))


def test_the_explanation_shows_the_counts_of_the_language(index):
    node = index.explain("rotor", "ep#@2", model="bm25")
    [idf] = [one.value for one in nodes(node) if one.label == "idf over passages"]
    passages = index.snapshot.totals_by_language["de"].passages
    holding = sum("Rotor" in text for text in DE * 4) + 1
    assert idf == pytest.approx(np.log(1 + (passages - holding + 0.5) / (holding + 0.5)))


def test_an_explanation_says_that_a_passage_is_no_result_because_of_its_language(index):
    assert index.explain(ENGLISH, "ep#@2").label.endswith("no result, because it is in de, and en is searched")
    assert "no result" not in index.explain(ENGLISH, "ep#@1").label


# Languages that the index does not have.


def test_an_unknown_language_is_an_error(index):
    message = "the index has no text in the language 'es'; choose one of en, de, fr, or all"
    with pytest.raises(UsageError, match=message):
        index.search("rotor", language="es")
    with pytest.raises(UsageError, match=message):
        index.patent_query(claims="A rotor.", language="es")
    assert len(index_of([]).search("rotor", language="es")) == 0, "an empty index has no languages"


def test_an_unknown_language_of_a_topic_is_a_problem_of_this_topic(index, tmp_path, capsys):
    topics = [
        {"qid": "a", "query": "rotor", "language": "es"},
        {"qid": "b", "query": "rotor", "language": "de"},
        {"qid": "c", "query": ENGLISH},
    ]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    code, _, err = run(capsys, "run", index.folder, tmp_path / "topics.jsonl", "--out", tmp_path / "a.run")
    assert code == 1
    assert "topic a: the index has no text in the language 'es'; choose one of en, de, fr, or all" in err
    assert "topics were searched in their languages: 1 in English, 1 in all languages or in the given one" in err
    assert {line.split()[0] for line in (tmp_path / "a.run").read_text().splitlines()} == {"b", "c"}
    code, _, err = run(capsys, "run", index.folder, tmp_path / "topics.jsonl", "--out", tmp_path / "a.run", "--language", "es")
    assert code == 2
    assert "'es'" in err


def test_the_command_prints_languages_where_there_are_several(index, capsys):
    code, out, err = run(capsys, "search", index.folder, ENGLISH, "-k", 1)
    assert code == 0
    assert "[claims, en]" in out
    assert err.splitlines() == ["perikope: note: searched in English; --language all searches de too"]
    alone = index_of([document("en", EN[0])])
    code, out, err = run(capsys, "search", alone.folder, ENGLISH)
    assert "[" not in out
    assert "searched in" not in err
    code, out, _ = run(capsys, "search", index.folder, "rotor", "--json", "--language", "fr")
    assert {json.loads(line)["language"] for line in out.splitlines()} == {"fr"}
