"""Patents as queries: which words they become, and which documents may be found for them."""

import contextlib
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.document.tree import Kind, Place, TreeBuilder
from perikope.fetch.groups import groups_of
from perikope.query.patent import Forms, best_words, load_patent
from perikope.query.publications import find_publication, parse_publication
from perikope.text.analysis import Analyzer, words
from tests.support.collections import WORDS, collections, index_of, plain_document


def patent(id, abstract="", claims=(), description="", language="en", other_claims=(), **metadata):
    """A document with the parts and metadata that the readers of patents give."""
    country, number, kind = id.split("-")
    known = {"publication": country + number + kind, "patent": country + number, "country": country, "kind": kind}
    builder = TreeBuilder(id, title=f"Title of {id}", language=language, metadata={**known, **metadata})
    for part, text in (("abstract", abstract), ("description", description)):
        if text:
            with builder.span(Kind.SECTION, part, part=part):
                builder.passage(text)
    if claims:
        with builder.span(Kind.SECTION, "claims", part="claims"):
            for claim, text in enumerate(claims, 1):
                span = builder.passage(text, tag="claim", id=f"claim-{claim}")
                builder.places[span] = Place(f"/patent-document[1]/claims[1]/claim[{claim}]", 0, len(text))
    for code, texts in other_claims:
        with builder.span(Kind.SECTION, "claims", part="claims", language=code):
            for claim, text in enumerate(texts, 1):
                builder.passage(text, tag="claim", id=f"claim-{claim}-{code}")
    return builder.build()


PUMP = {"ipc": ["F04D 13/02"], "cpc": ["F04D 13/024"]}


def collection():
    """A family of two, prior art and later documents of the same and of another field."""
    return [
        patent(
            "EP-1000000-A1",
            "A pump whose rotor is driven by a magnetic coupling.",
            ["A pump comprising a rotor and a magnetic coupling.", "The pump of claim 1, wherein the coupling is sealed."],
            "The invention relates to pumps.",
            date="2000-05-10",
            priority_date="1998-11-10",
            family="19768124",
            priorities=["NL-1010536-A"],
            **PUMP,
        ),
        patent(
            "EP-1000000-B1",
            "",
            ["A pump comprising a rotor, a can and a magnetic coupling."],
            "The invention relates to pumps.",
            date="2003-02-12",
            priority_date="1998-11-10",
            family="19768124",
            priorities=["NL-1010536-A"],
            **PUMP,
        ),
        patent(
            "US-6200000-B1",
            "A pump with a magnetic coupling, as filed in America.",
            ["A pump comprising a magnetic coupling and a rotor."],
            date="2001-03-13",
            priority_date="1998-11-10",
            family="NL-1010536-A",
            **PUMP,
        ),
        patent(
            "GB-2100000-A",
            "A magnetic coupling for the rotor of a pump.",
            ["A magnetic coupling with a can."],
            date="1982-12-22",
            **PUMP,
        ),
        patent(
            "DE-4200000-A1",
            "A pump with a magnetic coupling, published too late.",
            ["A pump with a magnetic coupling."],
            date="1998-11-10",
            **PUMP,
        ),
        patent("FR-2700000-A1", "A clutch with a magnetic coupling.", ["A clutch."], date="1994-07-01", ipc=["F16D 27/00"]),
        patent("CH-600000-A5", "A pump of unknown date with a magnetic coupling and a rotor.", ["A pump."], **PUMP),
    ]


@pytest.fixture(scope="module")
def index():
    return index_of(collection(), [3, 5])


def found(index, query, **options):
    return sorted({hit.document for hit in index.search(query, model="bm25", k=100, **options)})


# Numbers


@pytest.mark.parametrize(
    ("written", "id"),
    [
        ("EP1000000A1", "EP-1000000-A1"),
        ("EP-1000000-A1", "EP-1000000-A1"),
        ("EP 1 000 000 A1", "EP-1000000-A1"),
        ("ep 1.000.000 b1", "EP-1000000-B1"),
        ("EP1000000", "EP-1000000-B1"),  # the latest
        ("US 6,200,000 B1", "US-6200000-B1"),
        ("US6200000", "US-6200000-B1"),
        ("GB 2100000", "GB-2100000-A"),
        ("CH600000A5", "CH-600000-A5"),
    ],
)
def test_a_number_in_any_usual_writing(index, written, id):
    assert index._snapshot.document_id(find_publication(index._snapshot, written)) == id


def test_ids_alone_are_enough():
    """Documents without the metadata of patents."""
    index = index_of([plain_document(id, "Pumps", "A pump.") for id in ("EP1000000A1", "EP 1000000 B2", "my own, no 7")])
    for written, id in (("EP-1000000-A1", "EP1000000A1"), ("EP1000000", "EP 1000000 B2"), ("my own, no 7", "my own, no 7")):
        assert index._snapshot.document_id(find_publication(index._snapshot, written)) == id


def test_merged_publications_are_found_by_any_of_them():
    merged = TreeBuilder("EP-1000000", metadata={"patent": "EP1000000"})
    merged.passage("A pump.")
    index = index_of([merged.build()])
    assert find_publication(index._snapshot, "EP1000000B1") == find_publication(index._snapshot, "EP 1000000") == 0


def test_a_deleted_document_is_not_found():
    index = index_of(collection(), [3])
    index.delete(["EP-1000000-B1"])
    index.commit()
    assert index._snapshot.document_id(find_publication(index._snapshot, "EP1000000")) == "EP-1000000-A1"
    with pytest.raises(UsageError, match="these publications of EP1000000: EP-1000000-A1"):
        find_publication(index._snapshot, "EP1000000B1")


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("EP1000001A1", "no EP1000001A1 in .*similar names: EP1000000A1, EP1000000B1"),
        ("EP1000000B9", "these publications of EP1000000: EP-1000000-A1, EP-1000000-B1"),
        ("ZZ99", "there is no ZZ99 in [^;]*$"),
        ("missing.xml", "neither a file, nor a document"),
        ("EP-1000000-A2.xml", "neither a file.*similar names: EP-1000000-A1"),
        ("", "is empty"),
        ("folder/missing.xml", "there is no such file"),
    ],
)
def test_a_number_that_is_not_there(index, written, complaint):
    with pytest.raises((UsageError, InputError), match=complaint):
        index.patent_query(written)


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_none(text):
    number = parse_publication(text)
    if number is not None:
        assert parse_publication(number.id) == number
        assert parse_publication(number.written) == number


@given(text=st.text(max_size=40))
@example(text="\0")
@example(text="/")
@example(text="\ud800")
@example(text="EP" + "9" * 30)
def test_any_text_is_a_patent_or_a_mistake(index, text):
    for arguments in ({"patent": text}, {"claims": text}, {"patent": "EP1000000A1", "claims": [text]}):
        with contextlib.suppress(PerikopeError):
            query = index.patent_query(**arguments)
            assert len(index.search(query, k=1)) <= 1


def test_a_folder_with_the_name_of_a_patent(index, tmp_path, monkeypatch):
    (tmp_path / "EP1000000A1").mkdir()
    monkeypatch.chdir(tmp_path)
    assert index.patent_query("EP1000000A1").patent.id == "EP-1000000-A1"


# Words


def plain_best_words(documents, text, languages, analyzer, left_out):
    """As the formula reads: every document looked through for every word."""
    held = []
    for document in documents:
        if document.id in left_out:
            continue
        spans = document.spans
        terms = set()
        for span, kind in enumerate(spans.kind):
            if kind in (Kind.PASSAGE, Kind.TITLE):
                language = document.labels[spans.language[span]]
                terms |= {
                    f"{language}:{analyzer.term(word, language)}" for word in words(document.text_of(span)) if analyzer.term(word, language)
                }
        held.append(terms)
    tf = Counter()
    for word in words(text):
        if analyzer.term(word, languages[0]) is not None and not word.isdecimal():
            terms = tuple(f"{code}:{analyzer.term(word, code)}" for code in languages if analyzer.term(word, code) is not None)
            tf[terms] += 1
    values = {}
    for terms, frequency in tf.items():
        df = max(sum(term in document for document in held) for term in terms)
        if df:
            values[terms] = frequency * math.log(len(held) / df)
    return sorted(values.items(), key=lambda item: (-item[1], item[0]))


@settings(max_examples=60)
@given(
    documents=collections(min_size=1, max_size=6),
    text=st.lists(st.sampled_from([*WORDS, "zeppelin", "clutch", "12"]), max_size=25).map(" ".join),
    languages=st.sampled_from([("en",), ("fr",), ("en", "fr")]),
    data=st.data(),
)
def test_words_are_weighed_as_the_formula_says(documents, text, languages, data):
    ids = [document.id for document in documents]
    left_out = data.draw(st.sets(st.sampled_from(ids)))
    cut = data.draw(st.integers(0, len(documents)))
    snapshot = index_of(documents, [cut] if 0 < cut < len(documents) else [])._snapshot
    best = best_words(snapshot, [(text, languages)], [snapshot.find_document(id) for id in left_out])
    expected = plain_best_words(documents, text, languages, Analyzer(), left_out)
    assert [word.terms for word in best] == [terms for terms, _ in expected]
    assert [word.value for word in best] == pytest.approx([value for _, value in expected])


def test_stop_words_numbers_and_unknown_words_are_no_words(index):
    best = best_words(index._snapshot, [("the pump 12 of 1 zeppelin and 13a", ["en"])])
    assert [word.terms for word in best] == [("en:pump",)]


def test_the_two_forms(index):
    query = index.patent_query("EP1000000A1", fetch_words=2, browse_words=3)
    assert len(query.fetch.terms) == 2
    assert set(query.fetch.terms) <= {"en:rotor", "en:magnet", "en:coupl", "en:pump", "en:driven"}
    assert len(query.browse.terms) == 3
    assert set(query.fetch.weights + query.browse.weights) == {1.0}
    assert str(query) == query.fetch.text


def test_weighted_words_weigh_what_the_text_repeats(index):
    query = index.patent_query("EP1000000A1", weighted=True)
    weights = dict(zip(query.browse.terms, query.browse.weights, strict=True))
    assert (weights["en:pump"], weights["en:coupl"], weights["en:rotor"]) == (2.0, 2.0, 1.0)


@pytest.mark.parametrize("source", ["title", "description", "title,abstract,claims", ["abstract", "claims"], "claims"])
def test_the_sources_of_words(index, source):
    by_fetch = index.patent_query("EP1000000A1", fetch_from=source, fetch_words=100)
    by_browse = index.patent_query("EP1000000A1", browse_from=source)
    assert set(by_fetch.fetch.terms) == set(by_browse.browse.terms) != set()


def test_words_that_only_the_family_holds_are_none():
    """Else they would be the best of all, and find nothing."""
    documents = collection()
    documents[0] = patent("EP-1000000-A1", "A flobby pump.", ["A flobby pump."], family="19768124", **PUMP)
    documents[1] = patent("EP-1000000-B1", "A flobby pump.", ["A flobby pump."], family="19768124", **PUMP)
    index = index_of(documents)
    assert index.patent_query("EP1000000A1").fetch.terms == ("en:pump",)
    assert index.patent_query("EP1000000A1", family_filter=False).fetch.terms[0] == "en:flobbi"


def test_a_patent_in_the_index_and_its_file_are_the_same_query(index, tmp_path):
    path = tmp_path / "query.jsonl"
    document = {
        "id": "EP-1000000-A1",
        "metadata": dict(collection()[0].metadata),
        "sections": [
            {"part": "abstract", "passages": ["A pump whose rotor is driven by a magnetic coupling."]},
            {
                "part": "claims",
                "passages": ["A pump comprising a rotor and a magnetic coupling.", "The pump of claim 1, wherein the coupling is sealed."],
            },
        ],
    }
    path.write_text(json.dumps(document))
    theirs, ours = index.patent_query(path), index.patent_query("EP1000000A1")
    assert (theirs.fetch, theirs.browse, theirs.filters) == (ours.fetch, ours.browse, ours.filters)
    assert index.patent_query(str(path)).fetch == index.patent_query(collection()[0]).fetch == ours.fetch


def test_overlapping_passages_count_their_words_once():
    builder = TreeBuilder("EP-1-A1")
    with builder.span(Kind.SECTION, "claims", part="claims"), builder.span(Kind.ELEMENT, "p"):
        builder.text("pump rotor seal")
    document = builder.build()
    spans = document.spans
    for start, end in ((0, 10), (5, 15)):  # as windows of two words would be
        spans.append(Kind.PASSAGE, 0, 2, start, end, spans.part[2], spans.language[2])
    index = index_of([document, plain_document("d2", "", "pump rotor seal")])
    assert load_patent(index._snapshot, document).pieces == load_patent(index._snapshot, "EP-1-A1").pieces
    assert [piece.text for piece in load_patent(index._snapshot, document).pieces] == ["pump rotor", " seal"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"fetch_words": 0}, "fetch_words must be"),
        ({"browse_words": "many"}, "browse_words must be"),
        ({"fetch_from": "abstrakt"}, "did you mean 'abstract'"),
        ({"browse_from": []}, "must name at least one part"),
        ({"code_level": "subgroup"}, "level of classification codes"),
        ({"claims": [9]}, "no claim '9'; its claims are claim-1, claim-2"),
        ({"claims": ["/patent-document/claims/claim[3]"]}, "no claim"),
        ({"claims": "…"}, "text of the claims is empty"),
    ],
)
def test_options_that_cannot_be(index, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.patent_query("EP1000000A1", **options)


# Claims


def test_what_announces_the_claims_is_not_offered_as_one():
    builder = TreeBuilder("EP-1-A1")
    with builder.span(Kind.SECTION, "claims", part="claims"):
        builder.places[builder.passage("I claim:", tag="claim-statement")] = Place("/patent-document[1]/claims[1]/claim-statement[1]", 0, 8)
        builder.places[builder.passage("A pump.", tag="claim", id="claim-1")] = Place("/patent-document[1]/claims[1]/claim[1]", 8, 15)
    index = index_of([builder.build()])
    with pytest.raises(UsageError, match=r"has no claim '9'; its claims are claim-1$"):
        index.patent_query("EP-1-A1", [9])


@pytest.mark.parametrize(
    "claims",
    [
        [2],
        ["2"],
        ["claim-2"],
        ["/patent-document/claims/claim[2]"],
        ["/patent-document[1]/claims[1]/claim[2]/claim-text[1]"],
        [2, "claim-2"],
    ],
)
def test_some_of_the_claims(index, claims):
    query = index.patent_query("EP1000000A1", claims, fetch_from="claims", fetch_words=100)
    assert set(query.browse.terms) == set(query.fetch.terms) <= {"en:pump", "en:claim", "en:wherein", "en:coupl", "en:seal"}
    assert "en:rotor" not in query.browse.terms


def test_a_path_of_all_claims(index):
    assert index.patent_query("EP1000000A1", ["/patent-document/claims"]).browse == index.patent_query("EP1000000A1").browse


def test_claims_as_amended(index):
    query = index.patent_query("EP1000000A1", "A clutch with a seal")
    assert set(query.browse.terms) == {"en:clutch"}
    assert query.fetch == index.patent_query("EP1000000A1").fetch
    assert query.filters == index.patent_query("EP1000000A1").filters


def test_claims_alone(index):
    query = index.patent_query(claims="A pump comprising a rotor")
    assert set(query.fetch.terms) == set(query.browse.terms) == {"en:pump", "en:rotor", "en:compris"}
    assert query.filters == ()
    assert query.notes == ("claims without a patent have no codes and no dates: documents are not filtered by them",)
    assert index.patent_query(claims="A pump", code_filter=False, date_limit=False).notes == ()
    assert "EP-1000000-A1" in found(index, query)


@pytest.mark.parametrize("arguments", [{}, {"claims": ""}, {"claims": [1]}])
def test_nothing_to_search_with(index, arguments):
    with pytest.raises(UsageError, match="give a patent"):
        index.patent_query(**arguments)


# What may be found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["GB-2100000-A"]),
        ({"date_limit": False}, ["CH-600000-A5", "DE-4200000-A1", "GB-2100000-A"]),
        ({"code_filter": False}, ["FR-2700000-A1", "GB-2100000-A"]),
        ({"family_filter": False}, ["GB-2100000-A"]),
        (
            {"family_filter": False, "date_limit": False},
            ["CH-600000-A5", "DE-4200000-A1", "EP-1000000-B1", "GB-2100000-A", "US-6200000-B1"],
        ),
        ({"date_limit": False, "family": ["DE-4200000-A1"]}, ["CH-600000-A5", "GB-2100000-A"]),
        ({"code_level": "class", "date_limit": False}, ["CH-600000-A5", "DE-4200000-A1", "GB-2100000-A"]),
    ],
)
@pytest.mark.parametrize("documents", [10, "all"])
def test_what_may_be_found(index, options, expected, documents):
    query = index.patent_query("EP1000000A1", **options)
    assert found(index, query, documents=documents) == expected
    assert query.notes == ()


def test_conditions_of_the_user_are_added(index):
    query = index.patent_query("EP1000000A1", date_limit=False)
    assert found(index, query, filter="country=DE") == ["DE-4200000-A1"]
    assert found(index, query, filter=["country=DE", "date<1990"]) == []


def test_the_family_is_known_by_any_of_its_signs():
    signs = [
        {"family": "F"},
        {"priorities": ["P-1-A", "P-2-A"]},
        {"family": "P-2-A"},
        {"patent": "EP1"},
        {"priorities": ["F"]},
        {"family": "Q"},
        {},
    ]
    members = [patent(f"EP-{7 + i}-A1", "A pump.", ["A pump."], **sign) for i, sign in enumerate(signs)]
    query = patent("EP-1-B1", "A pump.", ["A pump."], family="F", priorities=["P-2-A", "P-3-A"])
    index = index_of([*members, query])
    assert found(index, index.patent_query("EP1")) == ["EP-12-A1", "EP-13-A1"]
    assert found(index, index.patent_query("EP1", family=["EP-13-A1", "nowhere"])) == ["EP-12-A1"]


def test_filtered_or_not_the_scores_are_the_same(index):
    """A context-free model: what is left keeps its score."""
    free = index.patent_query("EP1000000A1", code_filter=False, date_limit=False)
    bound = index.patent_query("EP1000000A1")
    scores = {hit.name: hit.score for hit in index.search(free, model="bm25", k=100)}
    assert {hit.name: hit.score for hit in index.search(bound, model="bm25", k=100)}.items() <= scores.items()


def test_a_patent_without_codes_and_dates_is_not_filtered_by_them():
    bare = patent("EP-5-A1", "A pump with a rotor.", ["A pump with a rotor."])
    index = index_of([*collection(), bare])
    query = index.patent_query("EP5A1")
    assert query.notes == (
        "EP-5-A1 has no classification codes: documents are not filtered by codes",
        "EP-5-A1 has no date: documents are not filtered by date",
    )
    assert "FR-2700000-A1" not in found(index, query)  # holds neither word of it
    assert "DE-4200000-A1" in found(index, query)


def test_an_index_without_codes_and_dates_is_not_filtered_by_them():
    index = index_of([patent("EP-6-A1", "A pump.", ["A pump."])])
    query = index.patent_query(collection()[0])
    assert found(index, query) == ["EP-6-A1"]
    assert len(query.notes) == 2
    assert all(note.startswith("the documents of the index have no") for note in query.notes)


@pytest.mark.parametrize(
    ("metadata", "kept", "note"),
    [
        ({"application_date": "1999-01-01", "date": "2000-01-01"}, ["d-1-A"], "before its application date, 1999-01-01"),
        ({"date": "2000-01-01"}, ["d-1-A", "d-2-A"], "before its date, 2000-01-01"),
        ({"priority_date": "soon", "date": "1999-06-01"}, ["d-1-A"], "before its date, 1999-06-01"),
        ({"priority_date": ["1999-12-31", "1998-12-30"]}, [], ""),
    ],
)
def test_the_date_that_limits(metadata, kept, note):
    dated = [patent(f"d-{i}-A", "A pump.", ["A pump."], date=date) for i, date in enumerate(["1998-12-31", "1999-12-31"], 1)]
    index = index_of([*dated, patent("EP-1-A1", "A pump.", ["A pump."], **metadata)])
    query = index.patent_query("EP1", code_filter=False)
    assert found(index, query) == kept
    assert note in " ".join(query.notes)


# Languages


def translator(text, source, target):
    assert (source, target) == ("de", "en")
    return text.replace("Pumpe", "pump").replace("Läufer", "rotor").replace("Kupplung", "coupling")


GERMAN = ["Pumpe mit einem Läufer."]


def test_claims_in_the_index_s_own_language_are_taken_where_there_are_any():
    index = index_of([*collection(), patent("DE-1-A1", "", GERMAN, language="de")])
    query = index.patent_query(patent("EP-9-B1", "", GERMAN, language="de", other_claims=[("en", ["A pump."]), ("fr", ["Une pompe."])]))
    assert set(query.browse.terms) == {"en:pump", "de:pump"}


def test_claims_in_a_language_of_the_index_are_looked_up_in_it():
    index = index_of([*collection(), patent("DE-1-A1", "Ein Läufer.", GERMAN, language="de")])
    german = patent("EP-9-B1", "", GERMAN, language="de")
    query = index.patent_query(german)
    assert set(query.browse.terms) == {"de:pump", "en:pump", "de:lauf", "en:läufer"}, "prior art in every language counts; stemmed as there"
    assert query.browse.languages == ("en", "de"), "counted by language"
    assert index.patent_query(german, language="all").browse.languages == (), "counted as one collection"
    assert "DE-1-A1" in found(index, query)
    assert set(index.patent_query(german, language="de").browse.terms) == {"de:pump", "de:lauf"}
    translated = index.patent_query(german, translator=translator)
    assert translated.browse == query.browse
    assert any("is not translated, because its language (de) is searched too" in note for note in translated.notes)
    assert set(index.patent_query(german, translator=translator, language="en").browse.terms) == {"en:pump", "en:rotor"}


def test_claims_in_another_language_are_translated(index):
    german = patent("EP-9-B1", "", GERMAN, language="de", **PUMP)
    query = index.patent_query(german, translator=translator)
    assert set(query.browse.terms) == {"en:pump", "en:rotor"}
    assert "GB-2100000-A" in found(index, query)


def test_without_a_translator_words_are_looked_up_as_they_are(index):
    query = index.patent_query(patent("EP-9-B1", "", ["Rotor mit Läufer."], language="de"))
    assert query.browse.terms == ("en:rotor",)
    assert any("is not searched, and there is no translator" in note and note.startswith("de, ") for note in query.notes)


def test_nothing_of_it_is_in_the_index(index):
    query = index.patent_query(patent("EP-9-B1", "", ["Läufer."], language="de"))
    assert query.fetch.terms == query.browse.terms == ()
    assert any("no word of EP-9-B1 is in the index" in note for note in query.notes)
    assert len(index.search(query)) == len(index.search(query, documents="all", model="bm25")) == 0


# What a patent may lack


def test_the_abstract_of_a_family_member(index):
    query = index.patent_query("EP1000000B1")
    assert query.fetch == index.patent_query("EP1000000A1").fetch
    assert any("the abstract of EP-1000000-A1 is used" in note for note in query.notes)
    alone = index.patent_query(patent("EP-9-B1", "", ["A clutch."]))
    assert alone.fetch.terms == ("en:clutch",)
    assert any("has no abstract: words are taken from its claims" in note for note in alone.notes)


def test_without_claims_the_abstract_scores_passages(index):
    query = index.patent_query(patent("EP-9-A1", "A clutch."))
    assert query.browse.terms == ("en:clutch",)
    assert any("has no claims: words are taken from its abstract" in note for note in query.notes)


def test_a_patent_without_claims_and_abstract(index):
    with pytest.raises(UsageError, match="EP-9-A1 has neither claims nor an abstract to search with, only description, title; take words"):
        index.patent_query(patent("EP-9-A1", description="A pump."))


def test_a_file_that_is_no_patent(index, tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sirs")
    with pytest.raises(InputError, match=r"letter\.txt: is not a patent"):
        index.patent_query(path)


def test_a_file_of_several_documents(index, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{i}", "passages": ["A pump."]}) + "\n" for i in range(9)))
    with pytest.raises(InputError, match=r"must contain one patent, but contains d0, d1, d2, d3, d4 …"):
        index.patent_query(path)
    with pytest.raises(InputError, match="is a folder"):
        index.patent_query(tmp_path)
    with pytest.raises(InputError, match=r"missing\.jsonl"):
        index.patent_query(tmp_path / "missing.jsonl")


# Search with it


def test_passages_are_scored_by_the_second_form(index):
    query = index.patent_query("EP1000000A1", date_limit=False)
    results = index.search(query, model="bm25")
    assert results.matches.query.terms == query.browse.terms
    other = index.search(query, model="bm25", browse_query="clutch pump")
    assert set(other.matches.query.terms) == {"en:clutch", "en:pump"}
    node = index.explain(query, results[0].name, model="bm25")
    assert node.value == pytest.approx(results[0].score)
    assert len(index.search(query, model="bm25", expand="bo1", must_match=True)) <= len(results)


def test_a_recipe_does_not_ask_for_what_the_patent_brings(index, recwarn):
    index.search(index.patent_query("EP1000000A1"), recipe="albarede2021", k=3)
    assert not [str(warning.message) for warning in recwarn if "shares-codes-with" in str(warning.message)]
    index.search(index.patent_query("EP1000000A1", code_filter=False), recipe="albarede2021", k=3)
    assert [warning for warning in recwarn if "shares-codes-with" in str(warning.message)]


# One of each family


def test_one_document_of_each_family(index):
    free = {"model": "bm25", "k": 100}
    everything = index.search("pump with a magnetic coupling and a rotor", **free)
    best = {}
    for hit in everything:
        best.setdefault(hit.metadata.get("family", hit.document), hit.document)
    kept = index.search("pump with a magnetic coupling and a rotor", one_per="family", **free)
    assert [hit.name for hit in kept] == [hit.name for hit in everything if hit.document in best.values()]
    assert len({hit.document for hit in everything}) - len({hit.document for hit in kept}) == 1
    ranked = [id for id, _ in kept.document_ranking("maxp", 2)]
    assert ranked == [id for id, _ in everything.document_ranking() if id in best.values()][:2]
    assert index.search("pump", one_per="family", documents="all", **free).ranking.rows.size > 0


def test_groups_are_documents_with_the_same_values(index):
    snapshot = index._snapshot
    numbers = [snapshot.find_document(document.id) for document in collection()]
    groups = groups_of(snapshot, sorted_array([]), "family")
    assert groups.size == 0
    groups = groups_of(snapshot, sorted_array(numbers), "priorities").tolist()
    assert [groups[numbers.index(number)] for number in numbers][:3] == [0, 0, -1]
    codes = groups_of(snapshot, sorted_array(numbers), "cpc").tolist()
    assert codes.count(0) == 6
    assert codes.count(-1) == 1


def sorted_array(numbers):
    assert numbers == sorted(numbers)
    return np.array(numbers, np.int64)


def test_one_per_a_field_that_is_not_there(index):
    with pytest.raises(UsageError, match="unknown metadata field 'famly'; did you mean 'family'"):
        index.search("pump", one_per="famly")


def test_forms_know_their_defaults():
    assert Forms() == Forms(10, "abstract", 100, "claims", False)


def test_models_that_read_text_get_the_claims_as_written(index):
    query = index.patent_query("GB-2100000-A")
    assert query.browse.plain_text == "A magnetic coupling with a can."
    assert set(query.browse.text.split()) <= {"magnetic", "coupling", "can"}
    assert query.fetch.plain_text == "A magnetic coupling for the rotor of a pump."
    assert query.browse.positive.plain_text == query.browse.plain_text
