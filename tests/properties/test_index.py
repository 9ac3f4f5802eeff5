"""What is written is what is read, however the collection is cut into segments."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.document.tree import Kind
from perikope.text.analysis import Analyzer
from tests.support.collections import collections, index_of
from tests.support.examples import examples
from tests.support.plain import PlainCollection, analyse

ANALYZER = Analyzer()
slow = examples(60)


@slow
@given(collections(), st.lists(st.integers(0, 5), max_size=2))
def test_documents_come_back_as_they_were(documents, cuts):
    snapshot = index_of(documents, cuts)._snapshot
    assert snapshot.totals.documents == len(documents)
    for number, document in enumerate(documents):
        segment, local = snapshot.locate(number)
        assert snapshot.document_id(number) == document.id
        assert snapshot.find_document(document.id) == number
        assert segment.text(local) == document.text
        spans = slice(int(segment["document.first_span"][local]), int(segment["document.first_span"][local + 1]))
        for name in ("kind", "parent", "start", "end"):
            assert segment[f"span.{name}"][spans].tolist() == list(getattr(document.spans, name))
        for name in ("tag", "part", "language"):
            labels = [document.labels[i] for i in getattr(document.spans, name)]
            assert [segment.labels[i] for i in segment[f"span.{name}"][spans]] == labels
    assert snapshot.find_document("absent") == -1


@slow
@given(collections(), st.lists(st.integers(0, 5), max_size=2))
def test_tokens_and_structure_are_those_of_the_documents(documents, cuts):
    snapshot = index_of(documents, cuts)._snapshot
    for number, document in enumerate(documents):
        segment, local = snapshot.locate(number)
        plain = analyse(document, ANALYZER)
        names = [segment.terms[int(token)].decode() or None for token in segment.tokens(local)]
        assert names == plain.terms
        assert int(segment["document.length"][local]) == len(plain.all_terms)
        for passage, span in zip(segment.passages_of(local), plain.passages, strict=True):
            inside = slice(int(segment["passage.first_token"][passage]), int(segment["passage.end_token"][passage]))
            assert [name for name in names[inside] if name] == plain.of_span(span)
            assert int(segment["passage.length"][passage]) == len(plain.of_span(span))
            section = segment.sections_of(local).start + int(segment["passage.section"][passage])
            assert int(segment["section.span"][section]) == plain.ancestors(span)[0]
        for section, span in zip(segment.sections_of(local), document.of_kind(Kind.SECTION), strict=True):
            assert int(segment["section.title_length"][section]) == len(plain.title_terms(span))


@slow
@given(collections(), st.lists(st.integers(0, 5), max_size=2))
def test_statistics_are_exact(documents, cuts):
    snapshot = index_of(documents, cuts)._snapshot
    plain = PlainCollection(documents, ANALYZER)
    terms = [*sorted(plain.occurrences), "en:absent"]
    statistics = snapshot.statistics(terms)
    assert statistics.documents == len(documents)
    assert statistics.tokens == plain.tokens
    assert statistics.passages == len(plain.passages)
    assert statistics.passage_tokens == sum(plain.passage_occurrences.values())
    for counted, expected in (
        (statistics.document_frequency, plain.document_frequency),
        (statistics.collection_frequency, plain.occurrences),
        (statistics.passage_frequency, plain.passage_frequency),
        (statistics.passage_collection_frequency, plain.passage_occurrences),
    ):
        assert counted.tolist() == [expected[term] for term in terms]


@slow
@given(collections(), st.lists(st.integers(0, 5), max_size=2), st.sampled_from(["", "abstract", "claims", "absent"]))
def test_statistics_of_a_part_are_exact(documents, cuts, part):
    snapshot = index_of(documents, cuts)._snapshot
    plain = [analyse(document, ANALYZER) for document in documents]
    terms = sorted({term for document in plain for term in document.all_terms})
    frequency, occurrences = snapshot.part_statistics(terms, part)
    counts = np.array([[part_terms(document, part).count(term) for document in plain] for term in terms]).reshape(len(terms), len(plain))
    assert frequency.tolist() == (counts > 0).sum(axis=1).tolist()
    assert occurrences.tolist() == counts.sum(axis=1).tolist()


def part_terms(plain, part):
    document, found = plain.document, []
    for term, start in zip(plain.terms, plain.starts, strict=True):
        holding = [i for i in range(len(document.spans)) if document.spans.start[i] <= start < document.spans.end[i]]
        if term is not None and document.labels[document.spans.part[holding[-1]]] == part:
            found.append(term)
    return found


@slow
@given(
    collections(min_size=2),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.sampled_from(["bm25", "psg_doc", "qsf_v", "qsf_v_title"]),
)
def test_a_cut_into_segments_changes_no_score(documents, cuts, model):
    query = "pump rotor magnet seal rotor"
    whole = index_of(documents).search(query, model=model, k=100).names()
    assert index_of(documents, cuts).search(query, model=model, k=100).names() == whole
