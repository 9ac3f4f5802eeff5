"""Learned weights of tags equal those of a plain count over all tokens of the collection."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.browse.tags import KIND, Selection, learn_tags, semantic_tags, tag_table
from perikope.cli.learn_command import command
from perikope.core.errors import UsageError
from perikope.document.tree import Kind
from perikope.formats import Source
from perikope.formats import documents as read_documents
from perikope.index.saved_tables import read_table, write_table
from tests.support.collections import index_of, plain_document
from tests.support.proximity import PlainInfluence, structured_documents

EVERYTHING = Selection(occurrences=0, coverage=0.0, logical_coverage=0.0, logical_rank=1000)


def plain_weights(documents, relevant, deleted=()):
    """The mean weight, coverage and number of occurrences of each tag; `relevant` has one set of tokens per query."""
    plain = {document.id: PlainInfluence(document, k=1) for document in documents if document.id not in deleted}
    tokens = {(id, x) for id, tree in plain.items() for x in range(len(tree.tokens))}
    marked, occurrences = {}, {}
    for id, tree in plain.items():
        for span in range(len(tree.document.spans)):
            tag = tree.tag(span)
            occurrences[tag] = occurrences.get(tag, 0) + 1
            marked.setdefault(tag, set()).update((id, x) for x in range(len(tree.tokens)) if span in tree.holding(x))
    weights = {}
    for tag, its in marked.items():
        each = []
        for wanted in filter(None, relevant):
            rm, im = len(its & wanted), len(its - wanted)
            each.append(((rm + 0.5) / (len(wanted) + 0.5)) / ((im + 0.5) / (len(tokens) - len(wanted) + 0.5)))
        weights[tag] = sum(each) / len(each)
    return weights, {tag: len(its) / len(tokens) for tag, its in marked.items()}, occurrences


@settings(max_examples=60)
@given(
    documents=st.integers(1, 3).flatmap(lambda n: st.tuples(*(structured_documents(f"d{i}") for i in range(n)))).map(list),
    queries=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 2)), max_size=4), min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 1), max_size=1),
    delete=st.booleans(),
)
def test_weights_equal_those_counted_token_by_token(documents, queries, cuts, delete):
    index = index_of(documents, cuts, stemmer="none", stopwords="none")
    deleted = {"d0"} if delete and len(documents) > 1 else set()
    index.delete(deleted)
    index.commit()
    judgements, relevant = {}, []
    for number, judged in enumerate(queries):
        grades, tokens = {}, set()
        for document, passage, grade in judged:
            document = documents[document % len(documents)]
            if document.id in deleted:
                continue
            plain = PlainInfluence(document, k=1)
            passages = list(document.of_kind(Kind.PASSAGE))
            span = passages[passage] if passage < len(passages) else 0
            name = f"{document.id}#@{passage + 1}" if span else document.id
            if grades.setdefault(name, grade) == grade and grade >= 1:
                tokens |= {(document.id, x) for x in range(len(plain.tokens)) if span in plain.holding(x)}
        judgements[f"q{number}"] = grades
        relevant.append(tokens)
    if not any(relevant):
        with pytest.raises(UsageError, match="no query has relevant text"):
            learn_tags(index._snapshot, judgements, selection=EVERYTHING)
        return
    learned = learn_tags(index._snapshot, judgements, selection=EVERYTHING)
    weights, coverage, occurrences = plain_weights(documents, relevant, deleted)
    assert learned.table.weights == pytest.approx(weights)
    assert {tag: row.coverage for tag, row in learned.table.rows.items()} == pytest.approx(coverage)
    assert {tag: row.occurrences for tag, row in learned.table.rows.items()} == occurrences
    assert learned.table.weights["article"] == 1.0
    kinds = {
        document.labels[document.spans.tag[i]]
        for document in documents
        for i in range(len(document.spans))
        if document.spans.kind[i] != Kind.MARK
    }
    assert set(learned.table.logical) <= kinds
    assert learned.without_relevant == tuple(f"q{i}" for i, tokens in enumerate(relevant) if not tokens)
    assert learned.unknown == ()


def documents():
    return [
        plain_document("d1", "Pumps", "A magnet drives the rotor.", "The seal keeps the fluid inside."),
        plain_document("d2", "Valves", "The valve opens.", "A magnet closes the valve."),
    ]


def test_selection():
    snapshot = index_of(documents())._snapshot
    judgements = {"q1": {"d1#@1": 1, "d2#@2": 0}}
    learned = learn_tags(snapshot, judgements, selection=Selection(occurrences=3, logical_coverage=0.5))
    assert set(learned.table.rows) == {"p"}
    # A logical tag needs coverage, but not many occurrences.
    assert learned.table.logical == ("document", "p")
    everything = learn_tags(snapshot, judgements, selection=EVERYTHING).table
    assert set(everything.rows) == {"p", "title", "document"}
    # Titles contain nothing relevant, so their tag is not among those that contain relevant text most often.
    assert everything.logical == ("document", "p")
    assert learn_tags(snapshot, judgements, selection=Selection(0, 0, 0, 1)).table.logical == ("document",)
    assert set(learn_tags(snapshot, judgements, selection=Selection(0, 0, excluded={"p"})).table.rows) == {"title", "document"}
    assert learn_tags(snapshot, judgements).table.rows == {}
    with pytest.raises(UsageError, match="smoothing must be above 0"):
        learn_tags(snapshot, judgements, smoothing=0)


def test_elements_and_documents_can_be_judged_and_what_is_not_there_is_named():
    snapshot = index_of(documents())._snapshot
    whole, element = (learn_tags(snapshot, {"q": {name: 1}}, selection=EVERYTHING).table for name in ("d1", "d1#/document[1]/p[1]"))
    assert whole.weights["title"] > element.weights["title"]
    assert element == learn_tags(snapshot, {"q": {"d1#@1": 1}}, selection=EVERYTHING).table
    learned = learn_tags(snapshot, {"q": {"d1": 1, "d9#@1": 1, "d1#@9": 1, "d1#/document[1]/p[9]": 1}}, selection=EVERYTHING)
    assert learned.unknown == ("d9#@1", "d1#@9", "d1#/document[1]/p[9]")


def test_the_command_saves_a_table_that_models_use(tmp_path):
    index = index_of(documents())
    (tmp_path / "topics.tsv").write_text("q1\tmagnet rotor\nq2\tnothing\n")
    (tmp_path / "qrels").write_text("q1 0 d1#@1 1\nq3 0 d2#@1 1\n")
    arguments = [
        "tags",
        str(index.folder),
        str(tmp_path / "topics.tsv"),
        str(tmp_path / "qrels"),
        "--name",
        "mine",
        "--min-occurrences",
        "1",
    ]
    with pytest.raises(UsageError, match="lower --min-occurrences"):
        CliRunner().invoke(command, arguments[:-2], catch_exceptions=False)
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "document    1.00   100.00%            2  x" in done.output
    assert "3 tags learned from 1 topic into" in done.output
    assert "topic q2: no relevant text" in done.output
    table = tag_table(read_table("mine", KIND, index.folder))
    assert table.logical == ("document", "p")
    by_name = index.search("magnet rotor", model='prox_h(k=5,weights="mine",logical=mine)')
    inline = ",".join(f"{tag}={weight!r}" for tag, weight in table.weights.items())
    assert by_name.names() == index.search("magnet rotor", model=f"prox_h(k=5,weights=tags({inline}))").names()
    with pytest.raises(UsageError, match="unknown table of tags 'min'; did you mean 'mine'"):
        index.search("magnet rotor", model="prox_h(weights=min)")


PAGE = "<article><header><title>T</title><id>{}</id></header><bdy><sec><st>S</st><p>{}</p></sec></bdy></article>"


def test_a_tag_that_has_a_wordnetid_wherever_it_occurs_gets_no_weight():
    texts = (
        'the <city wordnetid="1">town</city> of <b>trade</b> and <event wordnetid="2">fair</event>',
        "an <event>event</event> without a number, in <b>bold</b>",
    )
    pages = [Source(f"{i}.xml", f"{i}.xml", format="inex", content=PAGE.format(i, text).encode()) for i, text in enumerate(texts)]
    snapshot = index_of([document for page in pages for document in read_documents(page)], [1])._snapshot
    assert semantic_tags(snapshot) == {"city"}
    tags = {"article", "bdy", "sec", "p", "title", "b", "event"}
    assert learn_tags(snapshot, {"q": {"0": 1}}, selection=EVERYTHING).table.weights.keys() == tags
    with_semantic = learn_tags(snapshot, {"q": {"0": 1}}, selection=replace(EVERYTHING, semantic=True)).table
    assert with_semantic.weights.keys() == {*tags, "city"}


def test_a_table_names_the_elements_that_may_be_results():
    index = index_of(documents())
    write_table(index.folder, "mine", KIND, {"tags": {"p": 2.0}, "logical": ["p", "absent"]})
    assert index.search("magnet", elements="mine").names() == index.search("magnet", elements=["p"]).names()
    with pytest.raises(UsageError, match="unknown tag of elements 'mines'; did you mean 'mine'"):
        index.search("magnet", elements="mines")
    write_table(index.folder, "other", KIND, {"tags": {}, "logical": ["absent"]})
    with pytest.raises(UsageError, match="no logical tag of the table 'other' occurs in the index"):
        index.search("magnet", elements="other")
