"""Metadata as columns: which documents of a segment have a value in a field.

Every distinct pair of a field and a value is a key. Keys are sorted by field, then by the bytes of the value, so one is found by
halving, those that begin alike stand side by side, and so do all of a field.

    facet_fields, facet.first_value         the fields; where the values of each begin
    facet_values, facet.first_document      the values; where the documents of each begin
    facet.document                          rising within a key
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite

import numpy as np
import orjson

from perikope.core.arrays import Array
from perikope.core.errors import IndexFormatError
from perikope.index.columns import ColumnFile, ColumnWriter, narrow
from perikope.index.layout import offsets, ranges
from perikope.kernels.facets import strictly_rising
from perikope.kernels.strings import merge_sorted

_BYTES_PER_PAIR, _BYTES_PER_VALUE = 32, 300
"""What a value of a document, and a distinct one besides its text, take at the peak of building."""
_FIELD_BYTES = 4
"""While keys are merged, the number of their field stands before the value: so both are compared at once."""
_WHOLE_FLOATS = 1e16
"""Below this a float that is whole is written without a point or an exponent."""


def metadata_pairs(metadata: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The fields and values of a document's metadata, as text; the same pair may come twice.

    Objects become fields with dots, lists several values, numbers and booleans what JSON writes for them; null is no value.

    >>> sorted(metadata_pairs({"ipc": ["G06F 17/30", "H04L 9/00"], "year": 2010.0, "open": True, "by": {"name": "Ada", "born": None}}))
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
            # Tuples, dates and whatever else the record is written with.
            waiting.append((field, orjson.loads(orjson.dumps(value))))


def number_text(number: float) -> str:
    """The one way in which a number is written: a whole one without a point, as JSON does not tell 1 from 1.0.

    >>> [number_text(number) for number in (2010.0, 1.50, -0.0, 1e300)]
    ['2010', '1.5', '0', '1e+300']
    """
    return str(int(number)) if abs(number) < _WHOLE_FLOATS and number.is_integer() else repr(number)


class FacetBuilder:
    """Takes the metadata of documents one by one and makes the columns."""

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, int]] = {}
        self._numbers = array("I")
        self._documents = array("I")
        self._distinct = 0
        self._characters = 0
        self._count = 0

    @property
    def memory(self) -> int:
        """About how many bytes it takes, and writing with it."""
        return _BYTES_PER_PAIR * len(self._numbers) + _BYTES_PER_VALUE * self._distinct + 3 * self._characters

    def add(self, metadata: Mapping[str, object]) -> None:
        """Take the metadata of the next document."""
        # Equal values in a list count once.
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
        """The columns of what was taken."""
        fields = sorted(self._fields)
        # Python compares texts by code points, which is the order of their bytes.
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
        """Write the columns."""
        for name, values in self.columns().items():
            writer.write(name, values)


class Facets:
    """The fields and values of a segment; keys are numbers of pairs of the two."""

    def __init__(self, columns: ColumnFile, documents: int) -> None:
        self._columns = columns
        self._documents = documents
        self.field_names = columns.strings("facet_fields")
        self.values = columns.strings("facet_values")
        self.first_value, self.first_document = columns["facet.first_value"], columns["facet.first_document"]
        self._document = columns["facet.document"]

    @cached_property
    def fields(self) -> list[str]:
        """The names of all fields, in order."""
        return [self.field_names.text(number) for number in range(len(self.field_names))]

    def keys(self, field: str) -> range:
        """The keys of a field, none where no document has it."""
        name = field.encode("utf-8", "surrogatepass")
        number = bisect_left(self.field_names, name)
        if number == len(self.field_names) or self.field_names[number] != name:
            return range(0)
        return range(int(self.first_value[number]), int(self.first_value[number + 1]))

    def at_least(self, keys: range, value: bytes) -> int:
        """The first of a field's keys whose value is not below this one; the end of the keys where all are."""
        return bisect_left(self.values, value, keys.start, keys.stop)

    def find(self, keys: range, value: bytes) -> range:
        """The key of a value among those of a field: a range of one, or of none."""
        key = self.at_least(keys, value)
        return range(key, key + 1) if key < keys.stop and self.values[key] == value else range(0)

    def beginning(self, keys: range, prefix: bytes) -> range:
        """The keys of a field whose values begin so."""
        # No UTF-8 holds the largest byte: it comes after all that begin alike.
        return range(self.at_least(keys, prefix), self.at_least(keys, prefix + b"\xff"))

    def documents(self, keys: Array) -> Array:
        """The documents of keys (rising), those of each in rising order, checked to be some."""
        documents: Array
        if keys.size and int(keys[-1]) - int(keys[0]) == keys.size - 1:
            documents = self._document[int(self.first_document[keys[0]]) : int(self.first_document[keys[-1] + 1])]
        else:
            first, end = (self.first_document[keys + i].astype(np.int64) for i in (0, 1))
            documents = self._document[ranges(first, end)]
        if documents.size and int(documents.max()) >= self._documents:
            raise self.damaged()
        return documents

    def check(self, built: FacetBuilder) -> None:
        """Raise where the columns are not those that the records make."""
        for name, values in built.columns().items():
            if not np.array_equal(self._columns[name], values):
                raise self._columns.damaged(f"has facets that are not those of its metadata ({name})")

    def live(self, alive: Array, chunk: int) -> Array:
        """How many documents of each key are alive."""
        count = np.diff(self.first_document.astype(np.int64))
        if not alive.all():
            for keys in _portions(self.first_document, chunk):
                before = offsets(alive[self.documents(np.arange(keys.start, keys.stop))])
                own = self.first_document[keys.start : keys.stop + 1].astype(np.int64)
                count[keys.start : keys.stop] = np.diff(before[own - own[0]])
        return count

    def key_strings(self, kept: Array, number_of_field: Array) -> tuple[Array, Array]:
        """Chosen keys (a mask) as strings that sort like them: a number for the field, then the value. Their lengths, and their bytes."""
        lengths: Array = np.diff(self.values.ends.astype(np.int64), prepend=0)
        values_of_field: Array = np.diff(self.first_value.astype(np.int64))
        fields = np.repeat(number_of_field, values_of_field)[kept]
        data = self.values.data if kept.all() else self.values.data[np.repeat(kept, lengths)]
        total = lengths[kept] + _FIELD_BYTES
        places = (np.cumsum(total) - total)[:, None] + np.arange(_FIELD_BYTES)
        strings = np.empty(int(total.sum()), np.uint8)
        of_value = np.ones(strings.size, bool)
        of_value[places] = False
        strings[places] = fields.astype(">u4").view(np.uint8).reshape(-1, _FIELD_BYTES)
        strings[of_value] = data
        end = np.cumsum(total)
        if not strictly_rising(end - total, end, strings):
            raise self.damaged()
        return total, strings

    def damaged(self) -> IndexFormatError:
        """The error for columns that make no sense."""
        return self._columns.damaged("has damaged facets")


def merge_facets(writer: ColumnWriter, sources: Sequence[Facets], new_document: Sequence[Array], chunk: int) -> None:
    """Write the facets of several segments as one's, without documents whose new number is -1, some `chunk` documents at a time."""
    fields = sorted({name for facets in sources for name in _all(facets)})
    number_of = {name: number for number, name in enumerate(fields)}
    live = [facets.live(new >= 0, chunk) for facets, new in zip(sources, new_document, strict=True)]
    keys = [np.flatnonzero(count) for count in live]
    pieces = [
        facets.key_strings(count > 0, np.array([number_of[name] for name in _all(facets)], np.int64))
        for facets, count in zip(sources, live, strict=True)
    ]
    lengths, data = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    del pieces
    end = np.cumsum(lengths)
    base = offsets(np.array([own.size for own in keys]))
    place, example = merge_sorted(np.arange(end.size), base, end - lengths, end, data)
    places = [place[base[i] : base[i + 1]] for i in range(len(sources))]
    count = np.zeros(example.size, np.int64)
    for own, chosen, where in zip(live, keys, places, strict=True):
        count[where] += own[chosen]

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
        for portion in _portions(first_document, chunk):
            base = first_document[portion.start]
            found = np.empty(int(first_document[portion.stop] - base), np.int64)
            next_of_key = first_document[portion.start : portion.stop] - base
            for i, facets in enumerate(sources):
                own = slice(*np.searchsorted(places[i], [portion.start, portion.stop]))
                moved = new_document[i][facets.documents(keys[i][own])]
                where, many = places[i][own] - portion.start, live[i][keys[i][own]]
                found[ranges(next_of_key[where], next_of_key[where] + many)] = moved[moved >= 0]
                next_of_key[where] += many
            rising = found[1:] > found[:-1]
            rising[first_document[portion.start + 1 : portion.stop] - base - 1] = True
            if not rising.all():
                raise sources[0].damaged()
            yield found

    documents_in_all = sum(int((new >= 0).sum()) for new in new_document)
    writer.stream("facet.document", _document_type(documents_in_all), documents())


def _all(facets: Facets) -> list[bytes]:
    return [facets.field_names[number] for number in range(len(facets.field_names))]


def _strings(name: str, strings: list[bytes]) -> dict[str, Array]:
    ends = np.cumsum([len(string) for string in strings], dtype=np.int64)
    return {f"{name}.ends": narrow(ends), f"{name}.bytes": np.frombuffer(b"".join(strings), np.uint8)}


def _document_type(documents: int) -> np.dtype[np.unsignedinteger]:
    """The same for the same documents, whichever of them have metadata."""
    return np.min_scalar_type(max(documents - 1, 0))


def _portions(first: Array, chunk: int) -> Iterator[range]:
    """Ranges of as many keys as have that many documents together, but of one at least."""
    key, keys = 0, first.size - 1
    while key < keys:
        end = max(key + 1, int(np.searchsorted(first, first.dtype.type(min(int(first[key]) + chunk, int(first[-1]))), "right")) - 1)
        yield range(key, end)
        key = end


def _value_bytes(data: Array, start: Array, end: Array, chunk: int) -> Iterator[Array]:
    view = data.data
    for first in range(0, start.size, chunk):
        bounds = zip(start[first : first + chunk].tolist(), end[first : first + chunk].tolist(), strict=True)
        yield np.frombuffer(b"".join([view[begin:stop] for begin, stop in bounds]), np.uint8)
