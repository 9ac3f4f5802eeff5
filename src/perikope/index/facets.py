"""Facets: the metadata of a segment as columns. They tell which documents have a given value in a given field.

Every distinct pair of a field and a value is a key. Keys are numbered in the order of field, then of the bytes of the
value. A binary search finds a key. The keys of one field, or of values with a common prefix, are a range of numbers.

    facet_fields                            the names of the fields
    facet.first_value                       the first key of each field
    facet_values                            the value of each key
    facet.first_document                    the offset of each key's first document in `facet.document`
    facet.document                          document numbers by key, in ascending order within a key
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import cast

import numpy as np
import orjson

from perikope.core.arrays import Array, Integers, Mask
from perikope.core.errors import IndexFormatError
from perikope.index.columns import ColumnFile, ColumnWriter, narrow
from perikope.index.layout import offsets
from perikope.index.ranges import portions, ranges
from perikope.index.strings import Strings
from perikope.kernels.facets import strictly_rising
from perikope.kernels.strings import merge_sorted

_BYTES_PER_PAIR, _BYTES_PER_VALUE = 32, 300
"""Peak memory while facets are built, in bytes: per pair of a document and a value, and per distinct value (without its
text)."""
_FIELD_BYTES = 4
"""Size of a field number in bytes. Merging compares keys as strings: the number of the field, then the value."""
_WHOLE_FLOATS = 1e16
"""A float that is a whole number is written without a decimal point or exponent if it is below this limit."""


def metadata_pairs(metadata: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of field and value in a document's metadata, both as text. A pair may be yielded twice.

    A key of a nested object becomes a field such as `by.name`, and each item of a list a value. Booleans are written
    as in JSON, numbers as by `number_text`. Null and numbers that are not finite give no value.

    >>> by = {"name": "Ada", "born": None}
    >>> sorted(metadata_pairs({"ipc": ["G06F 17/30", "H04L 9/00"], "year": 2010.0, "open": True, "by": by}))
    [('by.name', 'Ada'), ('ipc', 'G06F 17/30'), ('ipc', 'H04L 9/00'), ('open', 'true'), ('year', '2010')]
    """
    waiting: list[tuple[str, object]] = list(metadata.items())
    while waiting:
        field, value = waiting.pop()
        kind = type(value)
        if kind is str:
            yield field, value  # type: ignore[misc]
        elif kind is list:
            waiting += [(field, item) for item in value]  # type: ignore[attr-defined]
        elif kind is dict:
            waiting += [(f"{field}.{name}", item) for name, item in value.items()]  # type: ignore[attr-defined]
        elif kind is bool:
            yield field, "true" if value else "false"
        elif kind is int:
            yield field, str(value)
        elif kind is float:
            if isfinite(value):  # type: ignore[arg-type]
                yield field, number_text(value)  # type: ignore[arg-type]
        elif value is not None:
            # A tuple, a date or another type: converted by JSON, as in the stored record of the document.
            waiting.append((field, orjson.loads(orjson.dumps(value))))


def number_text(number: float) -> str:
    """Write a number as text. A whole number has no decimal point, since JSON does not distinguish 1 from 1.0.

    >>> [number_text(number) for number in (2010.0, 1.50, -0.0, 1e300)]
    ['2010', '1.5', '0', '1e+300']
    """
    return str(int(number)) if abs(number) < _WHOLE_FLOATS and number.is_integer() else repr(number)


class FacetBuilder:
    """Collects the metadata of documents and makes the columns of facets.

    Documents are added in the order of numbers.
    """

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, int]] = {}
        self._numbers = array("I")
        self._documents = array("I")
        self._distinct = 0
        self._characters = 0
        self._count = 0

    @property
    def memory(self) -> int:
        """The estimated peak memory of the builder in bytes, including the memory for making the columns."""
        return _BYTES_PER_PAIR * len(self._numbers) + _BYTES_PER_VALUE * self._distinct + 3 * self._characters

    def add(self, metadata: Mapping[str, object]) -> None:
        """Add the metadata of the next document."""
        # Equal values in a list are added once.
        for field, value in dict.fromkeys(metadata_pairs(metadata)):
            values = self._fields.setdefault(field, {})
            number = values.get(value)
            if number is None:
                number = values[value] = self._distinct
                self._distinct += 1
                self._characters += len(value)
            self._numbers.append(number)
            self._documents.append(self._count)
        self._count += 1

    def columns(self) -> dict[str, Array]:
        """Make the columns for all documents added so far; returns a dictionary from column names to arrays."""
        fields = sorted(self._fields)
        # Python compares texts by code points, which is also the order of their UTF-8 bytes.
        ordered = [sorted(self._fields[field]) for field in fields]
        numbers = (self._fields[field][value] for field, values in zip(fields, ordered, strict=True) for value in values)
        rank = np.empty(self._distinct, np.uint32)
        rank[np.fromiter(numbers, np.int64, self._distinct)] = np.arange(self._distinct, dtype=np.uint32)
        key_of_pair = rank[np.frombuffer(self._numbers, np.uint32)]
        by_key = np.argsort(key_of_pair, kind="stable")
        return {
            **_strings("facet_fields", [field.encode("utf-8", "surrogatepass") for field in fields]),
            "facet.first_value": narrow(offsets(np.array([len(values) for values in ordered], np.int64))),
            **_strings("facet_values", [value.encode("utf-8", "surrogatepass") for values in ordered for value in values]),
            "facet.first_document": narrow(offsets(np.bincount(key_of_pair, minlength=self._distinct))),
            "facet.document": np.frombuffer(self._documents, np.uint32)[by_key].astype(_document_type(self._count)),
        }

    def write(self, writer: ColumnWriter) -> None:
        """Write the columns of all documents added so far."""
        for name, values in self.columns().items():
            writer.write(name, values)


class Facets:
    """Reads the facets of a segment.

    A key is the number of a pair of field and value, see the docstring of the module.
    """

    def __init__(self, columns: ColumnFile, documents: int) -> None:
        self._columns = columns
        self._documents = documents
        self.field_names = columns.strings("facet_fields")
        self.values = columns.strings("facet_values")

    @classmethod
    def of(cls, built: FacetBuilder, documents: int) -> Facets:
        """The facets that `built` has collected, in memory. `documents` is the number of documents."""
        return cls(cast(ColumnFile, _BuiltColumns(built.columns())), documents)

    @property
    def first_value(self) -> Array:
        """The first key of each field, and the end."""
        return self._columns.whole("facet.first_value")

    @property
    def first_document(self) -> Array:
        """The offset of each key's first document, and the end."""
        return self._columns.whole("facet.first_document")

    @cached_property
    def fields(self) -> list[str]:
        """The names of all fields, sorted."""
        return [self.field_names.text(number) for number in range(len(self.field_names))]

    def keys(self, field: str) -> range:
        """The range of a field's keys; an empty range if no document has the field."""
        name = field.encode("utf-8", "surrogatepass")
        number = bisect_left(self.field_names, name)
        if number == len(self.field_names) or self.field_names[number] != name:
            return range(0)
        return range(int(self.first_value[number]), int(self.first_value[number + 1]))

    def at_least(self, keys: range, value: bytes) -> int:
        """The first key in `keys` whose value is at least `value`, or `keys.stop`.

        `keys` is a range that `keys()` returned.
        """
        return bisect_left(self.values, value, keys.start, keys.stop)

    def find(self, keys: range, value: bytes) -> range:
        """The key in `keys` that has this value, as a range of one key; an empty range if there is none."""
        key = self.at_least(keys, value)
        return range(key, key + 1) if key < keys.stop and self.values[key] == value else range(0)

    def beginning(self, keys: range, prefix: bytes) -> range:
        """The range of those `keys` whose values begin with `prefix`."""
        # UTF-8 never contains the byte 255, so the second bound sorts after every value with the prefix.
        return range(self.at_least(keys, prefix), self.at_least(keys, prefix + b"\xff"))

    def documents(self, keys: Array) -> Array:
        """The numbers of the documents of each key, concatenated in the order of `keys`, which must be ascending.

        A document number outside the segment raises an `IndexFormatError`.
        """
        documents: Array
        if keys.size and int(keys[-1]) - int(keys[0]) == keys.size - 1:
            documents = self._columns.rows("facet.document", int(self.first_document[keys[0]]), int(self.first_document[keys[-1] + 1]))
        else:
            first, end = (self.first_document[keys + i].astype(np.int64) for i in (0, 1))
            self._columns.require_ranges(("facet.document",), first, end)
            documents = self._columns["facet.document"][ranges(first, end)]
        if documents.size and int(documents.max()) >= self._documents:
            raise self.damaged()
        return documents

    def check(self, built: FacetBuilder) -> None:
        """Raise an `IndexFormatError` if the columns differ from those that `built` makes from the metadata."""
        for name, values in built.columns().items():
            if not np.array_equal(self._columns[name], values):
                raise self._columns.damaged(f"has facets that contradict its metadata (column {name})")

    def live(self, alive: Mask, chunk: int) -> Integers:
        """The number of live documents of every key.

        `alive` is a mask over the documents of the segment. About `chunk` document numbers are read at once.
        """
        return self.counts(np.arange(len(self.values)), alive, chunk)

    def counts(self, keys: Integers, chosen: Mask, chunk: int) -> Integers:
        """The number of chosen documents of each of some keys, in ascending order; no document is read if all are.

        `chosen` is a mask over the documents of the segment. About `chunk` document numbers are read at once.
        """
        count: Integers = self.first_document[keys + 1].astype(np.int64) - self.first_document[keys].astype(np.int64)
        if not chosen.all():
            first = offsets(count)
            for rows in portions(first, chunk):
                before = offsets(chosen[self.documents(keys[rows.start : rows.stop])])
                count[rows.start : rows.stop] = np.diff(before[first[rows.start : rows.stop + 1] - first[rows.start]])
        return count

    def key_strings(self, chosen: Array, number_of_field: Array) -> tuple[Array, Array]:
        """The chosen keys as byte strings that sort in the order of the keys; returns their lengths and their bytes.

        Each string is the merged number of the field, then the value. `chosen` is a mask over the keys;
        `number_of_field` maps the fields of this segment to merged numbers.
        """
        self.values.require_range(range(len(self.values)))
        lengths: Array = np.diff(self.values.ends.astype(np.int64), prepend=0)
        values_of_field: Array = np.diff(self.first_value.astype(np.int64))
        fields = np.repeat(number_of_field, values_of_field)[chosen]
        data = self.values.data if chosen.all() else self.values.data[np.repeat(chosen, lengths)]
        total = lengths[chosen] + _FIELD_BYTES
        field_bytes = (np.cumsum(total) - total)[:, None] + np.arange(_FIELD_BYTES)
        strings = np.empty(int(total.sum()), np.uint8)
        of_value = np.ones(strings.size, bool)
        of_value[field_bytes] = False
        strings[field_bytes] = fields.astype(">u4").view(np.uint8).reshape(-1, _FIELD_BYTES)
        strings[of_value] = data
        end = np.cumsum(total)
        if not strictly_rising(end - total, end, strings):
            raise self.damaged()
        return total, strings

    def damaged(self) -> IndexFormatError:
        """Make the error for columns of facets that contradict each other."""
        return self._columns.damaged("has damaged facets")


class _BuiltColumns(dict[str, Array]):
    """Columns in memory, with the methods of `ColumnFile` that `Facets` uses."""

    def strings(self, name: str) -> Strings:
        return Strings(self[f"{name}.ends"], self[f"{name}.bytes"], name)

    def whole(self, name: str) -> Array:
        return self[name]

    def rows(self, name: str, first: int, end: int) -> Array:
        return self[name][first:end]

    def require_ranges(self, names: tuple[str, ...], first: Integers, end: Integers) -> None:
        """Nothing is verified, because nothing was read from a file."""

    def damaged(self, what: str) -> IndexFormatError:
        return IndexFormatError(f"the index {what}: restore it from a copy or build it again")


def merge_facets(writer: ColumnWriter, sources: Sequence[Facets], new_document: Sequence[Array], chunk: int) -> None:
    """Write the facets of several segments as the facets of one merged segment.

    `new_document` has one array per segment: the new number of each document, or -1 for a document that is left out.
    About `chunk` document numbers are held in memory at a time.
    """
    fields = sorted({name for facets in sources for name in _field_names(facets)})
    number_of = {name: number for number, name in enumerate(fields)}
    live = [facets.live(new >= 0, chunk) for facets, new in zip(sources, new_document, strict=True)]
    keys = [np.flatnonzero(count) for count in live]
    pieces = [
        facets.key_strings(count > 0, np.array([number_of[name] for name in _field_names(facets)], np.int64))
        for facets, count in zip(sources, live, strict=True)
    ]
    lengths, data = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    del pieces
    end = np.cumsum(lengths)
    base = offsets(np.array([keys_of_source.size for keys_of_source in keys]))
    merged_key, example = merge_sorted(np.arange(end.size), base, end - lengths, end, data)
    merged_keys = [merged_key[base[i] : base[i + 1]] for i in range(len(sources))]
    count = np.zeros(example.size, np.int64)
    for count_of_key, old, new in zip(live, keys, merged_keys, strict=True):
        count[new] += count_of_key[old]

    begin = end[example] - lengths[example]
    of_field = data[begin[:, None] + np.arange(_FIELD_BYTES)].view(">u4").ravel()
    values_of_field = np.bincount(of_field, minlength=len(fields))
    used = np.flatnonzero(values_of_field)
    for name, values in _strings("facet_fields", [fields[number] for number in used.tolist()]).items():
        writer.write(name, values)
    writer.write("facet.first_value", narrow(offsets(values_of_field[used])))
    writer.stream("facet_values.bytes", np.uint8, _value_bytes(data, begin + _FIELD_BYTES, end[example], chunk))
    writer.write("facet_values.ends", narrow(np.cumsum(lengths[example] - _FIELD_BYTES)))
    first_document = offsets(count)
    writer.write("facet.first_document", narrow(first_document))

    def documents() -> Iterator[Array]:
        for portion in portions(first_document, chunk):
            base = first_document[portion.start]
            portion_documents = np.empty(int(first_document[portion.stop] - base), np.int64)
            next_of_key = first_document[portion.start : portion.stop] - base
            for i, facets in enumerate(sources):
                rows = slice(*np.searchsorted(merged_keys[i], [portion.start, portion.stop]))
                moved = new_document[i][facets.documents(keys[i][rows])]
                target, counts = merged_keys[i][rows] - portion.start, live[i][keys[i][rows]]
                portion_documents[ranges(next_of_key[target], next_of_key[target] + counts)] = moved[moved >= 0]
                next_of_key[target] += counts
            rising = portion_documents[1:] > portion_documents[:-1]
            rising[first_document[portion.start + 1 : portion.stop] - base - 1] = True
            if not rising.all():
                raise sources[0].damaged()
            yield portion_documents

    total_documents = sum(int((new >= 0).sum()) for new in new_document)
    writer.stream("facet.document", _document_type(total_documents), documents())


def _field_names(facets: Facets) -> list[bytes]:
    return [facets.field_names[number] for number in range(len(facets.field_names))]


def _strings(name: str, strings: list[bytes]) -> dict[str, Array]:
    ends = np.cumsum([len(string) for string in strings], dtype=np.int64)
    return {f"{name}.ends": narrow(ends), f"{name}.bytes": np.frombuffer(b"".join(strings), np.uint8)}


def _document_type(documents: int) -> np.dtype[np.unsignedinteger]:
    """The type of document numbers.

    It depends only on how many documents there are, not on which of them have metadata.
    """
    return np.min_scalar_type(max(documents - 1, 0))


def _value_bytes(data: Array, start: Array, end: Array, chunk: int) -> Iterator[Array]:
    view = data.data
    for first in range(0, start.size, chunk):
        bounds = zip(start[first : first + chunk].tolist(), end[first : first + chunk].tolist(), strict=True)
        yield np.frombuffer(b"".join([view[begin:stop] for begin, stop in bounds]), np.uint8)
