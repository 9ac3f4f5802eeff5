"""Lists of terms, beside what Python lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.arrays import frozen
from perikope.kernels.join import TermCounts, count_terms
from perikope.kernels.term_lists import ListsOfTerms, all_occurrences, counts_of_terms, lists_of_terms
from perikope.kernels.tokens import encode_tokens

TERMS = 65_700
tokens = st.lists(st.lists(st.one_of(st.integers(0, 5), st.integers(65_530, TERMS + 3)), max_size=12), min_size=1, max_size=4)


def occurrences_of(documents, base):
    first = np.cumsum([0, *map(len, documents)])
    codes, first_code = encode_tokens(np.array([token for document in documents for token in document], np.uint32), first)
    codes, begin, end = frozen(codes), frozen(first_code[:-1].copy()), frozen(first_code[1:].copy())
    return all_occurrences(codes, begin, end, TERMS, base)


@given(tokens, st.sampled_from([0, 100_000]))
def test_all_tokens_but_stop_words_and_damaged_ones_are_occurrences(documents, base):
    term, position, end = occurrences_of(documents, base)
    expected = [[(base + token, at) for at, token in enumerate(document) if 0 < token < TERMS] for document in documents]
    assert list(zip(term.tolist(), position.tolist(), strict=True)) == [pair for document in expected for pair in document]
    assert end.tolist() == np.cumsum([len(document) for document in expected]).tolist()


@given(tokens, st.lists(st.sampled_from([1, 2, 5, 6, 65_534, 65_535, 65_536, TERMS - 1]), unique=True))
def test_frequencies_from_lists_are_those_of_the_units(documents, wanted):
    term, _, end = occurrences_of(documents, 0)
    ends = frozen(np.concatenate([[0], end]))
    counts = TermCounts(*count_terms(frozen(term), ends[:-1], ends[1:], TERMS))
    lists = ListsOfTerms(*map(frozen, lists_of_terms(TermCounts(*map(frozen, counts)), TERMS)))
    numbers = np.array(wanted, np.int64)
    first, found, count, unit = counts_of_terms(*lists, numbers, np.arange(numbers.size), len(documents))
    expected = [(u, i, document.count(t)) for u, document in enumerate(documents) for i, t in enumerate(wanted) if t in document]
    assert list(zip(unit.tolist(), found.tolist(), count.tolist(), strict=True)) == expected
    assert first.tolist() == np.searchsorted([u for u, _, _ in expected], range(len(documents) + 1)).tolist()
