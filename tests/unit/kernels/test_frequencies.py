"""Frequencies in given documents: those of the postings."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.kernels.fetch_inputs import WINDOW
from perikope.kernels.frequencies import frequencies_in
from perikope.kernels.postings import cut_windows


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), documents=st.sampled_from([1, 300, WINDOW, WINDOW + 1, 140_000]), wanted=st.sampled_from([0, 1, 40, 1000])
)
def test_frequencies_are_those_of_the_postings(seed, documents, wanted):
    random = np.random.default_rng(seed)
    lists = [np.sort(random.choice(documents, int(documents * random.random() ** 6), replace=False)) for _ in range(5)]
    frequency = random.integers(1, 256, sum(map(len, lists))).astype(np.uint8)
    first = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    first_window, window, first_of_window, low = cut_windows(first, np.concatenate(lists).astype(np.uint32))
    first_posting = np.append(first_of_window, first[-1]).astype(np.uint32)
    rows = random.permutation(5)
    table = np.full((5, 4), -1)
    table[:, 1], table[:, 2] = first_window[:-1], first_window[1:]
    chosen = np.sort(random.choice(documents, min(wanted, documents), replace=False))
    found = np.zeros((chosen.size, 5), np.uint8)
    frequencies_in(low, frequency, window, first_posting.view(np.uint8), 4, table, rows, 1, chosen, found)
    for column, term in enumerate(rows.tolist()):
        of_document = dict(zip(lists[term].tolist(), frequency[first[term] : first[term + 1]].tolist(), strict=True))
        assert found[:, column].tolist() == [of_document.get(document, 0) for document in chosen.tolist()]
