"""The kernels that number and check the rows of a join equal their plain twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.gather import number_column
from perikope.kernels.joined_rows import SOUND, JoinedDocuments, PassageRows, SectionRows, number_passages, number_sections

small = st.integers(-2, 4)
BASE, BASE_OF_SECTIONS = 3, 10
TOKENS = 3


def documents(passages, sections, spans):
    first_span = np.cumsum([0, *spans])[:-1]
    columns = (np.array(values, np.int64) for values in (passages, sections, spans, first_span, [TOKENS] * len(passages)))
    return JoinedDocuments(*columns, BASE, BASE_OF_SECTIONS)


def is_range(first, end, length):
    return first <= end <= TOKENS and length <= end - first


# Most rows are right, so that whole tables are.
ranges = st.one_of(st.just((0, 2, 1)), st.just((1, 1, 0)), st.tuples(small, small, small))


@given(st.lists(st.lists(st.tuples(st.integers(-1, 0) | small, ranges), max_size=4), min_size=1, max_size=3))
def test_sections(given):
    rows = [(parent, *title) for document in given for parent, title in document]
    parent, first, end, length = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    counts = [len(document) for document in given]
    table = SectionRows(np.zeros(len(rows), np.int64), parent.copy(), first, end, length)
    state = number_sections(documents([0] * len(given), counts, [0] * len(given)), table)
    sound = all(-1 <= parent < i and is_range(*title) for document in given for i, (parent, title) in enumerate(document))
    assert (state == SOUND) == sound
    if sound:
        base = np.repeat(np.cumsum([0, *counts])[:-1], counts) + BASE_OF_SECTIONS
        assert table.document.tolist() == (np.repeat(np.arange(len(given)), counts) + BASE).tolist()
        assert table.parent.tolist() == np.where(parent >= 0, parent + base, -1).tolist()


passages = st.tuples(st.integers(0, 1) | small, ranges, st.integers(0, 1) | small)
PARTS = np.array([0, 2, 1, 9, 0, 1], np.uint8)
LABELS = 3


@given(st.lists(st.tuples(st.lists(passages, max_size=3), st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=2))
def test_passages(given):
    rows = [(section, *tokens, span) for document, _, _ in given for section, tokens, span in document]
    section, first, end, length, span = (np.array([row[i] for row in rows], np.int64) for i in range(5))
    counts, sections, spans = [len(document) for document, _, _ in given], [n for _, n, _ in given], [n for _, _, n in given]
    empty = np.zeros(len(rows), np.int64)
    table = PassageRows(empty.copy(), section.copy(), first, end, length, span, empty.copy())
    seen = np.zeros(LABELS, bool)
    state = number_passages(documents(counts, sections, spans), table, number_column(PARTS), seen)
    document = np.repeat(np.arange(len(given)), counts)
    first_span, first_section = np.cumsum([0, *spans])[document], np.cumsum([0, *sections])[document]
    sound = all(
        0 <= section < sections[d] and is_range(*tokens) and 0 <= span < spans[d] and PARTS[at + span] < LABELS
        for (section, *tokens, span), d, at in zip(rows, document, first_span, strict=True)
    )
    assert (state == SOUND) == sound
    if sound:
        assert table.document.tolist() == (document + BASE).tolist()
        assert table.section.tolist() == (section + first_section + BASE_OF_SECTIONS).tolist()
        assert table.part.tolist() == PARTS[first_span + span].tolist()
        assert set(np.flatnonzero(seen)) == set(table.part.tolist())
