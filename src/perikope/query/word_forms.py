"""The words that a term stands for, as documents write them.

The dictionary of an index contains terms, which are stems. The words are read from some short documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from perikope.core.arrays import Integers32
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.text.analysis import word_spans

_CHOICE = 64
"""The documents to read are the shortest of this many documents with the term."""
_MORE = 1000
"""Words are first looked for in this many characters more than they take on average."""


def forms_by_document(snapshot: Snapshot, term: str, most: int | None = None) -> Iterator[Counter[str]]:
    """Yield the forms of a term in one document after the other, as written, each with its number of occurrences.

    With `most`, only the first occurrences in a document are counted; the text after them is not divided into words.
    """
    for segment, numbers in zip(snapshot.segments, snapshot.numbers_of_terms([term]), strict=True):
        number = int(numbers[0])
        if number >= 0:
            documents = segment.first_documents(number, _CHOICE)
            for document in documents[np.argsort(segment["document.tokens"][documents], kind="stable")].tolist():
                yield _forms_in(segment, number, document, most)


def _forms_in(segment: Segment, term: int, document: int, most: int | None) -> Counter[str]:
    text, positions = segment.text(document), np.flatnonzero(segment.tokens(document) == term)[:most]
    tokens = int(segment["document.tokens"][document])
    needed = tokens if most is None else int(positions[-1]) + 1 if positions.size else 0
    starts, ends = _first_words(text, needed, tokens)
    if starts.size < needed or starts.size > tokens:
        raise segment.columns.damaged(f"has a damaged text (document {document})")
    return Counter(text[start:end] for start, end in zip(starts[positions].tolist(), ends[positions].tolist(), strict=True))


def _first_words(text: str, needed: int, tokens: int) -> tuple[Integers32, Integers32]:
    """The starts and ends of the first words of a text, at least `needed` if it has as many; `tokens` is its number."""
    length = len(text) if needed >= tokens else _MORE + needed * len(text) // tokens
    while True:
        starts, ends = word_spans(text[:length])
        # The last word may be cut.
        if starts.size > needed or length >= len(text):
            return starts, ends
        length *= 2
