"""Each kernel of the join equals its plain twin."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.join import add_titles, count_terms, occurrences_of_ranges, scan, sum_ancestors
from perikope.kernels.tokens import ESCAPE, encode_tokens

lists_of_tokens = st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=5)


def offsets(lists):
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


# The lower 16 bits of 131073 and of 70000 are another term; runs of 0 fill whole blocks without query terms.
some_tokens = st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4464, 65534, 65535, 65536, 70000, 131073])
tokens_also_wide = st.lists(st.lists(some_tokens, max_size=40), max_size=5)


wanted_terms = st.lists(st.sampled_from([1, 2, 65534, 65535, 70000, 131073]), unique=True)


@given(tokens_also_wide, wanted_terms, st.data())
def test_scan(documents, terms, data):
    codes, first = encode_tokens(np.array([token for document in documents for token in document], np.uint32), offsets(documents))
    absent = data.draw(st.integers(0, len(terms)))
    term, position, end = scan(codes, first[:-1], first[1:], np.array([*terms[:absent], -1, *terms[absent:]], np.int64))
    place_of = {wanted: i + (i >= absent) for i, wanted in enumerate(terms)}
    expected = [[(place_of[token], at) for at, token in enumerate(document) if token in place_of] for document in documents]
    assert list(zip(term.tolist(), position.tolist(), strict=True)) == [pair for found in expected for pair in found]
    assert end.tolist() == offsets(expected)[1:].tolist()


@given(st.lists(st.sampled_from([0, 1, 2, 3, ESCAPE, ESCAPE - 1]) | st.integers(0, ESCAPE), max_size=40))
def test_scan_of_forged_codes_stays_inside(codes):
    terms = [1, ESCAPE, 2**31, 5]
    term, position, _ = scan(np.array(codes, np.uint16), np.array([0]), np.array([len(codes)]), np.array(terms, np.int64))
    expected, at, place = [], 0, 0
    while at < len(codes):
        token = codes[at]
        if token == ESCAPE and at + 2 < len(codes):
            token = codes[at + 1] | codes[at + 2] << 16
            at += 2
        elif token == ESCAPE:
            token = 0  # the token is cut off and means nothing
        expected += [(terms.index(token), place)] if token in terms else []
        at, place = at + 1, place + 1
    assert list(zip(term.tolist(), position.tolist(), strict=True)) == expected


@given(st.lists(st.lists(st.integers(0, 20), unique=True).map(sorted), min_size=1, max_size=4), st.data())
def test_occurrences_of_ranges(positions, data):
    bounds = offsets(positions)
    flat = np.array([at for document in positions for at in document], np.int32)
    ranges = data.draw(st.lists(st.tuples(st.integers(0, len(positions) - 1), st.integers(0, 22), st.integers(0, 22))))
    document, first, end = (np.array([r[i] for r in ranges], np.int64) for i in range(3))
    low, high = occurrences_of_ranges(flat, bounds, document, first, end)
    for i, (d, a, b) in enumerate(ranges):
        assert low[i] == bounds[d] + sum(at < a for at in positions[d])
        assert high[i] == bounds[d] + sum(at < b for at in positions[d])


def counts_of(first_entry, term, count):
    return [dict(zip(term[a:b].tolist(), count[a:b].tolist(), strict=True)) for a, b in itertools.pairwise(first_entry)]


def plain_counts(terms):
    return {term: terms.count(term) for term in sorted(set(terms))}


def entries_of(units):
    bounds = offsets(units)
    term = np.array([t for unit in units for t in unit], np.int32)
    return count_terms(term, bounds[:-1], bounds[1:], 6)


@given(
    st.lists(st.lists(st.integers(0, 99), max_size=30) | st.lists(st.integers(0, 5), max_size=30), max_size=5), st.sampled_from([100, 1000])
)
def test_count_terms(units, terms):
    bounds = offsets(units)
    term = np.array([t for unit in units for t in unit], np.int32)
    found = counts_of(*count_terms(term, bounds[:-1], bounds[1:], terms))
    assert found == [plain_counts(unit) for unit in units]
    assert [list(unit) for unit in found] == [sorted(unit) for unit in found]


@st.composite
def trees(draw):
    """Parents of sections, each before its children."""
    count = draw(st.integers(1, 6))
    return [-1] + [draw(st.integers(-1, i - 1)) for i in range(1, count)]


@given(trees(), st.data())
def test_add_titles(parents, data):
    titles = data.draw(st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=len(parents), max_size=len(parents)))
    units = data.draw(lists_of_tokens)
    sections = data.draw(st.lists(st.integers(0, len(parents) - 1), min_size=len(units), max_size=len(units)))
    found = add_titles(entries_of(units), np.array(sections, np.int64), np.array(parents, np.int64), entries_of(titles), 6)
    expected = []
    for unit, section in zip(units, sections, strict=True):
        terms = list(unit)
        while section >= 0:
            terms += titles[section]
            section = parents[section]
        expected.append(plain_counts(terms))
    assert counts_of(*found) == expected


@given(trees(), st.data())
def test_sum_ancestors(parents, data):
    values = data.draw(st.lists(st.integers(0, 9), min_size=len(parents), max_size=len(parents)))
    found = sum_ancestors(np.array(values, np.int64), np.array(parents, np.int64))
    for section in range(len(parents)):
        total, at = 0, section
        while at >= 0:
            total, at = total + values[at], parents[at]
        assert found[section] == total
