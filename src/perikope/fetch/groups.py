"""Groups of documents with equal metadata, such as publications of one patent family or versions of one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import unknown
from perikope.fetch.file_fields import holder_of
from perikope.fetch.filters import known_fields
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS, parse_code

STRUCTURE = ("document", "section")
"""Words that name a unit of the documents, and not a metadata field of the same name."""


def field_named(snapshot: Snapshot, name: str, others: Sequence[str] = ()) -> str:
    """The metadata field that a user names: `family`, or `metadata.family` if the word has another meaning as well.

    Raises `UsageError` if no document has the field. `others` are words that could have been meant as well.
    """
    known = known_fields(snapshot)
    if name in known:
        return name
    if (plain := name.removeprefix("metadata.")) in known:
        return plain
    raise unknown("metadata field", plain, [*others, *known])


def groups_of(snapshot: Snapshot, documents: Integers, field: str) -> Integers:
    """The group number of each document: equal if the values in a metadata field are equal, -1 without the field.

    `documents` are document numbers in ascending order. Documents with several values are in one group only if all of
    their values are equal.
    """
    values: list[list[bytes]] = [[] for _ in range(documents.size)]
    for row, value in _values_of(snapshot, documents, field):
        values[row].append(value)
    numbers: dict[tuple[bytes, ...], int] = {}
    # Keys are sorted by value, so each list of values is sorted too, and equal sets of values have equal lists.
    return np.array([numbers.setdefault(tuple(some), len(numbers)) if some else -1 for some in values], np.int64)


def count_values(snapshot: Snapshot, documents: Integers, field: str, level: str = "full") -> dict[str, int]:
    """The number of documents that have each value of a metadata field, most frequent first, then by value.

    `documents` are document numbers in ascending order. Classification codes in a field of codes (`CODE_FIELDS`) are
    shortened to `level`, unless it is `full`. A document counts once for each of its shortened codes.
    """
    pairs: Iterable[tuple[int, str]] = ((row, value.decode("utf-8", "replace")) for row, value in _values_of(snapshot, documents, field))
    if level != "full" and field in CODE_FIELDS:
        pairs = {(row, _shortened(value, level)) for row, value in pairs}
    counts = Counter(value for _, value in pairs)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _shortened(value: str, level: str) -> str:
    """A classification code at a level; another text as it is."""
    code = parse_code(value)
    return value if code is None else code.at(level)


def _values_of(snapshot: Snapshot, documents: Integers, field: str) -> Iterator[tuple[int, bytes]]:
    """Yield the values of a field: the index of the document in `documents`, and the value.

    The values of a document are in order.
    """
    for rows, pairs in snapshot.ask_about(_values_of_shard, documents, field):
        row_of = np.arange(documents.size)[rows].tolist()
        yield from ((row_of[row], value) for row, value in pairs)


def _values_of_shard(snapshot: Snapshot, documents: Integers, field: str) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    bounds = documents.searchsorted(snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        local = documents[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
        facets = holder_of(segment, field).facets
        keys = facets.keys(field)
        if not local.size or not keys:
            continue
        row_of_document = np.full(segment.documents, -1, np.int64)
        row_of_document[local] = np.arange(bounds[i], bounds[i + 1])
        # The keys of a field are consecutive, and each has a list of documents. Other documents are skipped.
        of_keys = facets.documents(np.arange(keys.start, keys.stop))
        first = facets.first_document[keys.start : keys.stop + 1].astype(np.int64)
        chosen = np.flatnonzero(row_of_document[of_keys] >= 0)
        key_of_chosen = keys.start + np.searchsorted(first - first[0], chosen, "right") - 1
        pairs = zip(row_of_document[of_keys[chosen]].tolist(), key_of_chosen.tolist(), strict=True)
        found += [(row, facets.values[key]) for row, key in pairs]
    return found
