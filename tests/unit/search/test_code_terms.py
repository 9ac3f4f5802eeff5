"""Classification codes as terms: `F04D` finds documents by their metadata, and nothing else changes."""

import json
from math import e, log2, pi

import pytest

from perikope.build.indexing import build
from perikope.cli import main
from perikope.core.errors import UsageError
from perikope.fetch.expansion import expand
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.parts import fetch_parts
from perikope.fetch.search import fetch
from perikope.query.code_terms import codes_in, split_code_term, with_codes, without_codes
from perikope.query.terms import parse_query
from perikope.query.topic import Topic
from perikope.search.asking import read_asked
from perikope.search.facade import Index
from perikope.search.options import SearchOptions

DOCUMENTS = [
    {"id": "a", "title": "Pump", "metadata": {"ipc": ["F04D 25/06", "F04D 29/00"], "date": "1999-01-01"}, "sections": [
        {"part": "abstract", "passages": ["A rotor."]}, {"part": "description", "passages": ["The pump of brine.", "Gasket."]}]},
    {"id": "b", "title": "Valve", "metadata": {"ipc": ["F04D 25/08"], "cpc": ["F04D 25/08"]}, "sections": [
        {"part": "abstract", "passages": ["A valve for brine."]}, {"part": "claims", "passages": ["A valve.", "The valve of claim 1."]}]},
    {"id": "c", "title": "Screen", "metadata": {"ipc": ["G09G 3/28"]}, "sections": [
        {"part": "abstract", "passages": ["A screen with a rotor and brine."]}]},
    {"id": "d", "title": "F04D", "sections": [{"part": "abstract", "passages": ["The text names F04D itself."]}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    (folder / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    build(str(folder / "idx"), [str(folder / "documents.jsonl")])
    return Index.open(folder / "idx")


def found(index, query, **options):
    """The documents of a search, each once, in order."""
    return list(dict.fromkeys(hit.document for hit in index.search(query, **{"k": 50, **options})))


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("F04D", {"F04D": 1}),
        ("pump f04d 25/06, F04D25/06", {"F04D25/06": 2}),
        ("F04D 25", {"F04D25": 1}),
        ("F04D  25/06 F04D   25/06", {"F04D25/06": 2}),
        ("pump F04D0025060000 f04d0025001200", {"F04D25/06": 1, "F04D25/0012": 1}),
        ("F04D00250600001 F04D002506", {}),
        ("vitamin B12 for F16 jets", {}),
        ("XF04D F04DX F04D/x", {}),
    ],
)
def test_codes_are_recognised_in_text(text, codes):
    assert dict(codes_in(text)) == codes


def test_every_level_of_a_code_finds_its_documents(index):
    assert set(found(index, "G09G")) == {"c"}
    assert set(found(index, "F04D 25")) == {"a", "b", "d"}, "the text of d has the word"
    assert set(found(index, "F04D25/06")) == {"a"}
    assert set(found(index, "F04D25/07")) == set()


def test_a_query_of_codes_shows_each_document_once(index):
    results = index.search("G09G 3/28")
    assert [hit.document for hit in results] == ["c"]
    assert results[0].score > 0
    assert index.explain("G09G 3/28", results.names()[0][0]).value == results[0].score


@pytest.mark.parametrize("fetch_model", ["bm25", "pl2", "lm"])
@pytest.mark.parametrize("options", [{}, {"fetch_parts": "ipc=2,abstract"}])
def test_an_explanation_lists_what_each_code_contributes(index, fetch_model, options):
    node = index.explain("G09G 3 G09G", "c#@1", fetch=fetch_model, **options)
    assert node.label == "fetch score of the document: no passage contains a word of the query"
    assert node.operation == "sum"
    assert node.recomputed() == pytest.approx(node.value)
    times = 2 if options else 1
    codes = [f"code ipc=G09G3 occurs {times}×", f"code ipc=G09G occurs {times}×"]
    assert [child.label for child in node.children] == [*codes, *(["smoothing for length"] if fetch_model == "lm" else [])]


def test_a_fetch_score_of_words_and_codes_lists_both(index):
    node = index.explain("rotor F04D", "a#@1", model="psg_doc")
    nodes = [node]
    for one in nodes:
        nodes += one.children
    (score,) = [one for one in nodes if one.label == "fetch score of the document"]
    assert [one.label for one in score.children] == ["'rotor' occurs 1×", "code ipc=F04D occurs 2×"]
    assert score.recomputed() == pytest.approx(score.value)


@pytest.mark.parametrize("syntax", ["boolean", "automatic"])
def test_a_boolean_query_with_a_code_says_that_it_is_a_word(index, syntax):
    (note,) = index.search("brine f04d 25/08", syntax=syntax).notes
    assert note == (
        f"with syntax {syntax}, F04D25/08 is a word of the text, not a classification code; "
        "use filter='ipc=F04D25/08' or filter='ipc!=F04D25/08', or plain words with syntax='words'"
    )
    assert found(index, "brine", filter=["ipc=F04D25/08"], syntax=syntax) == ["b"]
    assert set(found(index, "brine", filter=["ipc!=F04D25/08"], syntax=syntax)) == {"a", "c"}


def test_only_a_code_that_documents_have_gives_a_note(index):
    assert index.search("brine OR A01B", syntax="boolean").notes == ()
    assert index.search("brine F04D").notes == ()
    of_topic = index.search(Topic("1", "brine NOT F04D", patent="a"), syntax="boolean").notes
    assert [note for note in of_topic if "F04D is a word of the text" in note] == [of_topic[-1]]


def test_a_plot_for_codes_says_that_no_passage_contains_a_word(index, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["explain", str(index.folder), "G09G", "c#@1", "--model", "prox", "--plot", str(tmp_path / "x.svg")])
    assert "no passage contains a word of the query, so there are no curves to plot" in capsys.readouterr().err


def test_codes_rank_documents_and_words_rank_passages(index):
    plain, with_code = index.search("brine", k=9), index.search("brine G09G", k=9, model="psg_doc")
    assert {hit.document for hit in plain} == {"a", "b", "c"}
    assert with_code[0].document == "c"
    assert plain[0].document != "c"


def test_a_code_that_no_document_has_changes_no_score(index):
    snapshot, model = index.snapshot, parse_fetch_model("pl2")
    query = parse_query("rotor brine valve", snapshot.analyzer, ["en"])
    with_code = with_codes(parse_query("rotor brine valve A01B", snapshot.analyzer, ["en"]), snapshot)
    assert [term for term in with_code.terms if split_code_term(term)] == ["ipc=A01B", "cpc=A01B"]
    assert without_codes(with_code).terms == (*query.terms, "en:a01b")
    plain, other = fetch(snapshot, query, model, 10), fetch_parts(snapshot, with_code, model, 10, {})
    assert plain.documents.tolist() == other.documents.tolist()
    assert plain.scores.tolist() == other.scores.tolist()


def test_an_index_without_codes_reads_them_as_words(tmp_path):
    (tmp_path / "documents.jsonl").write_text(json.dumps(DOCUMENTS[3]) + "\n")
    build(str(tmp_path / "idx"), [str(tmp_path / "documents.jsonl")])
    other = Index.open(tmp_path / "idx")
    assert with_codes(parse_query("F04D", other.snapshot.analyzer, ["en"]), other.snapshot).terms == ("en:f04d",)


def test_a_field_of_codes_is_a_part_with_a_length(index):
    snapshot, model = index.snapshot, parse_fetch_model("pl2(c=1)")
    query = with_codes(parse_query("F04D", snapshot.analyzer, ["en"]), snapshot)
    by_codes = fetch_parts(snapshot, query, model, 10, {"ipc": 1.0})
    assert [snapshot.document_id(number) for number in by_codes.documents] == ["a", "b"]
    assert found(index, "F04D", fetch_parts="ipc") == ["a", "b"]

    # Two of the four codes of the collection are in a, one is in b; PL2 by hand.
    def pl2(tf, length):
        average, mean = 4 / 4, 3 / 4
        tfn = tf * log2(1 + average / length)
        return (tfn * log2(tfn / mean) + (mean - tfn) * log2(e) + 0.5 * log2(2 * pi * tfn)) / (tfn + 1)

    assert by_codes.scores.tolist() == pytest.approx([pl2(2, 2), pl2(1, 1)])


def test_bo1_takes_words_and_codes_of_the_chosen_parts(index):
    snapshot, parts = index.snapshot, {"abstract": 1.0, "ipc": 1.0}
    query = parse_query("rotor", snapshot.analyzer, ["en"])
    candidates = fetch_parts(snapshot, query, parse_fetch_model("pl2"), 1, parts)
    assert [snapshot.document_id(number) for number in candidates.documents] == ["a"]
    expanded = expand(snapshot, query, candidates, "bo1(documents=1,terms=10)", parts)
    assert set(expanded.terms) == {"en:rotor", "ipc=F04D25/06", "ipc=F04D29/00"}
    assert "en:gasket" in expand(snapshot, query, candidates, "bo1(documents=1,terms=10)").terms


def test_the_codes_of_a_patent_fetch_documents_at_a_level(index):
    options = {"fetch_from": "ipc", "browse_from": "abstract", "code_filter": False, "date_limit": False, "model": "psg_doc"}
    assert set(found(index, Topic("1", patent="a"), **options)) == set(), "no other document has its full codes"
    assert set(found(index, Topic("1", patent="a"), **options, code_level="subclass")) == {"b"}
    with pytest.raises(UsageError, match="browse_from cannot have ipc"):
        found(index, Topic("1", patent="a"), browse_from="ipc")


def test_all_words_of_a_patent_are_a_query(index):
    options = SearchOptions.of({"fetch_words": "all", "fetch_from": "title,abstract,claims,ipc", "weighted": True, "browse_words": "all"})
    prepared = read_asked(index.snapshot, Topic("1", patent="b"), options)
    weights = dict(zip(prepared.fetch.terms, prepared.fetch.weights, strict=True))
    assert weights == {"en:brine": 1.0, "ipc=F04D25/08": 1.0}, "words of no other document are left out"
    few = read_asked(index.snapshot, Topic("1", patent="c"), options.updated({"fetch_words": 1, "fetch_from": "abstract"}))
    assert len(few.fetch.terms) == 1
