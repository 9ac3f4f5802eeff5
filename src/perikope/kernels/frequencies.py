"""Look up how often terms occur in given documents."""

from __future__ import annotations

from perikope.core.arrays import Bytes, Integers, Unsigned16
from perikope.kernels.dictionary import read
from perikope.kernels.fetch_inputs import WINDOW
from perikope.kernels.jit import kernel
from perikope.kernels.ordered import lower_bound
from perikope.kernels.seeking import seek


@kernel
def frequencies_in(
    documents: Unsigned16, frequencies: Bytes, window_of_list: Unsigned16, first_posting: Bytes, posting_size: int,
    table: Integers, rows: Integers, column: int, wanted: Integers, found: Bytes,
) -> None:  # fmt: skip
    """Write the frequency of each term in each wanted document to `found`, whose shape is (documents, terms).

    `found` must be 0. A frequency of 255 stands for 255 or more. The first arguments are fields of `SegmentPostings`,
    and `table`, `rows` and `column` those of `WeightedTerms`. `wanted` are documents of the segment in ascending order.
    """
    for term in range(rows.size):
        for at in range(table[rows[term], column], table[rows[term], column + 1]):
            base = window_of_list[at] * WINDOW
            posting, end = read(first_posting, posting_size, at), read(first_posting, posting_size, at + 1)
            i = lower_bound(wanted, 0, wanted.size, base)
            while i < wanted.size and wanted[i] < base + WINDOW and posting < end:
                posting = seek(documents, posting, end, posting, wanted[i] - base)
                if posting < end and documents[posting] == wanted[i] - base:
                    found[i, term] = frequencies[posting]
                i += 1
