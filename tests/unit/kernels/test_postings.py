"""Each kernel of inversion equals its plain twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.postings import count_stored, count_units, cut_windows, invert, invert_parts, renumber_postings, select_part

documents_of_tokens = st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=6)


def flat(documents):
    return np.array([token for document in documents for token in document], np.uint32), offsets(documents)


def offsets(lists):
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


@given(documents_of_tokens)
def test_invert(documents):
    first, document, frequency = invert(*flat(documents), 5)
    for term in range(5):
        expected = [(i, tokens.count(term)) for i, tokens in enumerate(documents) if term in tokens and term != 0]
        inside = slice(first[term], first[term + 1])
        assert list(zip(document[inside].tolist(), frequency[inside].tolist(), strict=True)) == expected


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 5, 63])), max_size=10), max_size=5))
def test_frequencies_in_parts(documents):
    tokens, first_token = flat([[token for token, _ in document] for document in documents])
    part_of_token = np.array([part for document in documents for _, part in document], np.uint8)
    first, document, frequency = invert(tokens, first_token, 4)
    parts, part_frequency = invert_parts(tokens, part_of_token, first_token, first, document)
    before = count_stored(parts)
    assert before[-1] == part_frequency.size
    for term in range(1, 4):
        inside = slice(int(first[term]), int(first[term + 1]))
        stored = part_frequency[before[inside.start] : before[inside.stop]]
        for part in (0, 1, 5, 63, 7):
            selected = select_part(parts[inside], frequency[inside], stored, part)
            assert selected.tolist() == [documents[d].count((term, part)) for d in document[inside]]


@given(documents_of_tokens)
def test_count_units(units):
    tokens, first = flat(units)
    holding, occurrences = count_units(tokens, first[:-1], first[1:], 5)
    assert holding.tolist() == [0, *(sum(term in unit for unit in units) for term in range(1, 5))]
    assert occurrences.tolist() == [0, *(sum(unit.count(term) for unit in units) for term in range(1, 5))]


lists_of_documents = st.lists(
    st.lists(st.sampled_from([0, 1, 65535, 65536, 70000, 200000, 2**32 - 1]), unique=True).map(sorted), max_size=5
)


@given(lists_of_documents)
def test_cut_windows(postings):
    document = np.array([d for of_term in postings for d in of_term], np.uint32)
    first_window, number, first_of_window, low = cut_windows(offsets(postings), document)
    ends = [*first_of_window.tolist(), document.size]
    for term, expected in enumerate(postings):
        found = []
        for window in range(first_window[term], first_window[term + 1]):
            found += [(int(number[window]) << 16) | int(d) for d in low[ends[window] : ends[window + 1]]]
        assert found == expected
        assert len(set(number[first_window[term] : first_window[term + 1]].tolist())) == first_window[term + 1] - first_window[term]


@given(lists_of_documents, st.data())
def test_renumber_postings(postings, data):
    postings = [[d % 8 for d in of_term if d < 70000] for of_term in postings]
    new_number = np.array(data.draw(st.lists(st.integers(-1, 50), min_size=8, max_size=8)), np.int64)
    places = data.draw(st.permutations(range(len(postings))))
    kept = [[d for d in of_term if new_number[d] >= 0] for of_term in postings]
    by_place = sorted(range(len(postings)), key=lambda term: places[term])
    starts = offsets([kept[term] for term in by_place])
    document = np.array([d for of_term in postings for d in of_term], np.uint32)
    frequency = np.arange(document.size, dtype=np.uint32)
    out = [np.zeros(starts[-1], kind) for kind in (np.uint32, np.uint32, np.int64)]
    renumber_postings(np.array(places, np.int64), offsets(postings), document, frequency, new_number, starts[:-1].copy(), *out)
    assert out[0].tolist() == [int(new_number[d]) for term in by_place for d in kept[term]]
    assert (out[1] == out[2]).all()
