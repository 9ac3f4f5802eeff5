"""Filters: conditions on the metadata of documents, evaluated once per distinct value.

    field=value   field!=value   field=a|b|c   field=G06*   field=*pump*   field<v  <=  >  >=   field=a..b
    ipc=G06F   field~G06F   id=a|b   field="Exact Value"

- `=` keeps documents with one of the values in the field. `!=` keeps documents with none of them, including those
  without the field. Upper and lower case are the same.
- `*` before or after a value stands for any text. `*` alone matches every value.
- A value in `"quotes"` is taken literally: case counts, and a date, a number or a code is only a text. Quotes also
  protect characters that have a meaning here (`|`, `*`, `..`, quotes), in fields too.
- `<`, `<=`, `>`, `>=` and `a..b` (both ends included) compare dates if the bound is a date, numbers if it is a number,
  else texts. If the bound is a date or a number, values that are neither do not match. `=` with a date is `a..a`:
  `date=2013` matches the whole year. A date is `2013`, `2013-04`, `2013-04-01`, `2013-04-01T12:30` or `20130401`. Two
  dates are compared at the precision that both have, so `date<=2013` and `date>=2013` both include the whole of 2013.
  Time zones are ignored.
- In the fields ipc, ipcr, cpc and ecla, and after `~` in any field, a value is a classification code and matches all
  codes inside it: `ipc=G06F` matches `G06F 17/30`, with any spacing.
- `path=guide/install.md` keeps the documents of a file, and `folder=guide` those of a folder and all folders inside it;
  see `perikope.fetch.file_fields`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, Protocol

import numpy as np

from perikope.core.arrays import Array, Bytes, Integers, Mask, Unsigned64
from perikope.core.errors import unknown
from perikope.core.scanner import Scanner
from perikope.fetch.conditions import (
    Between,
    CodePrefix,
    Codes,
    Condition,
    Equal,
    Inside,
    SameValue,
    Wildcard,
    compare,
    encoded,
    is_almost_a_date,
    is_too_large,
    quote,
    read_codes,
)
from perikope.fetch.file_fields import FILE_FIELDS, FOLDER, file_fields, holder_of
from perikope.index.facets import metadata_pairs
from perikope.index.joined_texts import joined_ids
from perikope.index.ranges import ranges
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.strings import hash_strings
from perikope.patents.codes import CODE_FIELDS, LEVELS, parse_code

ID = "id"
"""The name that stands for the id of a document in filters. A metadata field with this name cannot be used."""


class Filter(Protocol):
    """A condition on documents. Filters are hashable, and equal if they have the same content."""

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents of a segment that satisfy the filter; it may include deleted documents."""
        ...

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """The metadata fields of the filter that are not in `known`."""
        ...

    def __hash__(self) -> int: ...


def mask(segment: Segment, filter: Filter) -> Mask:
    """The mask of documents of a segment that satisfy a filter; it may include deleted documents.

    The most recently used masks are cached with the segment, one bit per document.
    """
    if isinstance(filter, All):
        return filter.documents(segment)
    packed = segment.remember(_packed_mask, filter)
    return np.unpackbits(packed, count=segment.documents).view(bool)


def _packed_mask(segment: Segment, filter: Filter) -> Bytes:
    return np.packbits(filter.documents(segment))


def known_fields(snapshot: Snapshot) -> list[str]:
    """The fields that filters accept: the metadata fields of the documents in the index, and those of their files."""
    return sorted(snapshot.ask_all(_fields_of_shard))


def _fields_of_shard(snapshot: Snapshot) -> set[str]:
    return {field for segment in snapshot.segments for field in segment.facets.fields}.union(file_fields(snapshot))


def unknown_fields(snapshot: Snapshot, filter: Filter) -> list[str]:
    """The fields of a filter that no document has, which are probably misspelt."""
    return filter.unknown_fields(frozenset(known_fields(snapshot)))


@dataclass(frozen=True, slots=True)
class Where:
    """The filter that keeps documents with a value in a field that satisfies at least one of several tests."""

    field: str
    tests: tuple[Condition, ...]

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents with a value that satisfies one of the tests; see `Filter.documents`."""
        holder = holder_of(segment, self.field)
        return _having(holder, [test.keys(holder, self.field) for test in self.tests])

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """The field of the filter, if it is not in `known`; else an empty list. See `Filter.unknown_fields`."""
        return [] if self.field in known else [self.field]

    def __str__(self) -> str:
        return self.write("")

    def write(self, negation: str) -> str:
        """The filter in the notation of this module; `negation` is `!` for the opposite filter, else empty."""
        # In a field of codes, "=" may stand for a code and for a literal text.
        operators = [test.operator for test in self.tests]
        operator = "=" if "=" in operators else operators[0]
        field = self.field if _FIELD.fullmatch(self.field) and self.field == self.field.strip() else quote(self.field)
        return f"{field}{negation}{operator}{'|'.join(map(str, self.tests))}"


@dataclass(frozen=True, slots=True)
class Negated:
    """The filter that keeps the documents that another filter does not keep."""

    filter: Where

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents that the other filter does not keep; see `Filter.documents`."""
        return ~self.filter.documents(segment)

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """The field of the other filter, if it is not in `known`; else an empty list. See `Filter.unknown_fields`."""
        return self.filter.unknown_fields(known)

    def __str__(self) -> str:
        return self.filter.write("!")


@dataclass(frozen=True, slots=True)
class Ids:
    """The filter that keeps documents with these ids, and documents whose ids match one of the patterns."""

    ids: frozenset[str]
    patterns: tuple[Wildcard, ...] = ()

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents with these ids; see `Filter.documents`."""
        chosen = np.zeros(segment.documents, bool)
        chosen[numbers_of(segment, self.ids)] = True
        for pattern in self.patterns:
            chosen[pattern.among(segment.remember(joined_ids, pattern.exact))] = True
        return chosen

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """An empty list, because ids are not metadata. See `Filter.unknown_fields`."""
        return []

    def __str__(self) -> str:
        return self.write("")

    def write(self, negation: str) -> str:
        """The filter in the notation of this module; `negation` is `!` for the opposite filter, else empty."""
        return f"id{negation}={'|'.join([*map(quote, sorted(self.ids)), *map(str, self.patterns)])}"


@dataclass(frozen=True, slots=True)
class Without:
    """The filter that keeps all documents except those with these ids, or with ids that match one of the patterns."""

    ids: frozenset[str]
    patterns: tuple[Wildcard, ...] = ()

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents with other ids; see `Filter.documents`."""
        return ~Ids(self.ids, self.patterns).documents(segment)

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """An empty list, because ids are not metadata. See `Filter.unknown_fields`."""
        return []

    def __str__(self) -> str:
        return Ids(self.ids, self.patterns).write("!")


@dataclass(frozen=True, slots=True)
class SharedCodes:
    """The filter that keeps documents that share a classification code, at a level, with a set of codes.

    Without any valid code, it keeps all documents. Codes of different fields are compared with each other, because
    offices use different fields for the same codes (`ipc` or `ipcr`).
    """

    fields: tuple[str, ...]
    codes: frozenset[str]
    level: str = "full"

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise unknown("level of classification codes", self.level, LEVELS)

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents that share a code; see `Filter.documents`."""
        wanted = [code for code in map(parse_code, self.codes) if code is not None]
        if not wanted:
            return np.ones(segment.documents, bool)
        keys: list[Integers | range] = []
        for field in self.fields:
            codes: Codes = segment.remember(read_codes, field)
            keys += [codes.sharing(code, self.level) for code in wanted]
        return _having(segment, keys)

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """All fields if none of them is in `known`, else an empty list: one field with codes is enough."""
        return [] if known.intersection(self.fields) else list(self.fields)


def codes_of(metadata: Mapping[str, object], fields: Iterable[str] = CODE_FIELDS) -> frozenset[str]:
    """The classification codes in the metadata of a document, in normal form. Values that are not codes are left out.

    >>> sorted(codes_of({"ipc": ["G06F  17/30", "H04L 9/00"], "year": 2010}))
    ['G06F17/30', 'H04L9/00']
    """
    wanted = frozenset(fields)
    codes = (parse_code(value) for field, value in metadata_pairs(metadata) if field in wanted)
    return frozenset(str(code) for code in codes if code is not None)


@dataclass(frozen=True, slots=True)
class All:
    """The filter that keeps documents that satisfy all of several filters; without filters, all documents."""

    filters: tuple[Filter, ...]

    def documents(self, segment: Segment) -> Mask:
        """The mask of documents that satisfy all filters; see `Filter.documents`."""
        chosen = np.ones(segment.documents, bool)
        for filter in self.filters:
            chosen &= mask(segment, filter)
        return chosen

    def unknown_fields(self, known: frozenset[str]) -> list[str]:
        """The fields of all filters that are not in `known`, without repetitions; see `Filter.unknown_fields`."""
        return list(dict.fromkeys(field for filter in self.filters for field in filter.unknown_fields(known)))


# Passages


def passage_mask(
    segment: Segment, documents_of_passages: Integers, passages: Integers, parts: frozenset[str] | None, tags: frozenset[str] | None
) -> Mask:
    """The mask of passages that are in one of the parts and have one of the tags.

    None allows all parts or tags. `passages` are numbers in the segment, and `documents_of_passages` the number of the
    document of each passage. The mask is aligned with `passages`.
    """
    allowed = np.ones(passages.size, bool)
    if parts is None and tags is None:
        return allowed
    segment.joined.require(documents_of_passages)
    spans = _spans_of(segment, documents_of_passages, passages)
    for property, wanted in (("part", parts), ("tag", tags)):
        if wanted is not None:
            chosen = np.array([label in wanted for label in segment.labels], bool)
            allowed &= chosen[_labels_of(segment, property, spans)]
    return allowed


def known_parts(snapshot: Snapshot) -> list[str]:
    """The parts of the documents in the index."""
    return sorted(snapshot.ask_all(_parts_of_shard) - {""})


def _parts_of_shard(snapshot: Snapshot) -> set[str]:
    return {part for segment in snapshot.segments for part in segment.parts}


def known_tags(snapshot: Snapshot) -> list[str]:
    """The tags of the passages in the index."""
    return sorted(snapshot.ask_all(_tags_of_shard) - {""})


def _tags_of_shard(snapshot: Snapshot) -> set[str]:
    tags: set[str] = set()
    for segment in snapshot.segments:
        segment.joined.require(np.arange(segment.documents))
        first = segment["document.first_passage"].astype(np.int64)
        spans = _spans_of(segment, np.repeat(np.arange(segment.documents), np.diff(first)), np.arange(first[-1]))
        tags |= {segment.labels[label] for label in np.flatnonzero(np.bincount(_labels_of(segment, "tag", spans))).tolist()}
    return tags


def _spans_of(segment: Segment, documents: Integers, passages: Integers) -> Integers:
    """The span of each passage. The documents of the passages must be verified (`Segment.joined`)."""
    first = segment["document.first_span"].astype(np.int64, copy=False)
    span_in_document = segment.columns["passage.span"][passages].astype(np.int64)
    if np.any(span_in_document >= first[documents + 1] - first[documents]):
        raise segment.columns.damaged("has a damaged column (passage.span)")
    spans: Integers = first[documents] + span_in_document
    return spans


def _labels_of(segment: Segment, property: str, spans: Integers) -> Array:
    labels = segment.columns[f"span.{property}"][spans]
    if labels.size and int(labels.max()) >= len(segment.labels):
        raise segment.columns.damaged(f"has a damaged column (span.{property})")
    return labels


def _having(segment: Segment, keys: Iterable[Integers | range]) -> Mask:
    """The mask of documents of a segment that have at least one of the facet keys."""
    chosen = np.zeros(len(segment.facets.values), bool)
    for some in keys:
        chosen[slice(some.start, some.stop) if isinstance(some, range) else some] = True
    having = np.zeros(segment.documents, bool)
    having[segment.facets.documents(np.flatnonzero(chosen))] = True
    return having


def numbers_of(segment: Segment, ids: frozenset[str]) -> list[int]:
    """The numbers, in the segment, of the documents with these ids. Unknown ids are ignored."""
    names, codes = _hashed(ids)
    first, end = (np.searchsorted(segment["document_hash"], codes, side).astype(np.int64) for side in ("left", "right"))
    wanted = np.repeat(np.arange(codes.size), end - first).tolist()
    numbers = segment["document_of_hash"][ranges(first, end)].tolist()
    return [number for number, name in zip(numbers, wanted, strict=True) if segment.document_ids[number] == names[name]]


@lru_cache(maxsize=4)
def _hashed(ids: frozenset[str]) -> tuple[list[bytes], Unsigned64]:
    """The ids as bytes, and their hashes; cached, because every segment needs them."""
    names = [encoded(id) for id in ids]
    return names, hash_strings(np.cumsum([len(name) for name in names], dtype=np.uint64), np.frombuffer(b"".join(names), np.uint8))


# The notation


_HELP = "write field=value, field!=value, field=a|b, field=beginning*, field=*part*, field<value, field=from..to or field~G06F"
_QUOTES = "put a value that contains quotes, |, * or .. into quotes, with a \\ before each quote inside"
_FIELD = re.compile(r"[^\"=!<>~]+")
_OPERATOR = re.compile(r"!=|!~|<=|>=|=|<|>|~")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r"(?:(?!\.\.)[^\"|*])+")


def parse_filter(text: str) -> Filter:
    """Parse a filter; the notation is described at the top of this file.

    >>> print(parse_filter("year=2010..2013"), parse_filter("ipc=g06f 17|H04L"), parse_filter('by!="a|b"'))
    year="2010".."2013" ipc~G06F17|H04L by!="a|b"
    >>> print(parse_filter("name=*pump"), parse_filter('name="Pump"*|pumps'))
    name=*pump name="Pump"*|pumps
    """
    return _FilterParser(text).filter()


@dataclass(frozen=True, slots=True)
class _Value:
    text: str
    at: int
    quoted: bool = False


class _FilterParser(Scanner):
    """Grammar: filter = field operator item { "|" item };  value = quoted | plain.

    item = value ".." value | ["*"] value ["*"] | "*".
    """

    _file_field = ""
    """The field, if it is one of files. Its values are no dates, even if they look like dates (`folder=2013/4`)."""

    def filter(self) -> Filter:
        field = self.field()
        self._file_field = field if field in FILE_FIELDS else ""
        operator = self.match(_OPERATOR) or self.fail("expected =, !=, <, <=, >, >= or ~ after the field", _HELP)
        if self.peek() in ("=", "<", ">", "~", "!"):
            self.fail("expected a value after the operator", "put a value that begins with =, <, >, ~ or ! into quotes")
        if field == ID:
            return self.ids(operator)
        if operator[0] in "<>":
            return Where(field, (self.bound(operator),))
        read = self.code_item if operator.endswith("~") or field in CODE_FIELDS else self.item
        tests = [read(operator) for _ in self.alternatives()]
        where = Where(field, tuple(dict.fromkeys(tests)))
        return Negated(where) if operator.startswith("!") else where

    def field(self) -> str:
        quoted = self.quoted()
        name = quoted.text if quoted else (self.match(_FIELD) or "").rstrip()
        return name if name or quoted else self.fail("expected the name of a field", _HELP)

    def ids(self, operator: str) -> Filter:
        if operator not in ("=", "!="):
            self.fail("ids can be compared with = and != only", "write id=a|b, id!=a|b or id=beginning*")
        ids: set[str] = set()
        patterns: list[Wildcard] = []
        for _ in self.alternatives():
            before, value, after = self.affixed()
            if before or after:
                patterns.append(Wildcard(value.text, before, after, value.quoted))
            else:
                ids.add(value.text)
        given = frozenset(ids), tuple(dict.fromkeys(patterns))
        return Ids(*given) if operator == "=" else Without(*given)

    def bound(self, operator: str) -> Condition:
        value = self.value()
        bound = self.dated(value)
        if self.rest():
            self.fail(f"{operator} takes one value", "put a value that contains |, * or .. into quotes")
        if operator.startswith("<"):
            return Between(high=bound, high_open=operator == "<")
        return Between(low=bound, low_open=operator == ">")

    def alternatives(self) -> Iterator[None]:
        """Yield once before each alternative of a list `a|b|c`; the caller reads the alternative."""
        yield
        while self.take("|"):
            yield
        if self.rest():
            self.fail("unexpected character", f"a * stands before or after a value only; {_QUOTES}")

    def affixed(self) -> tuple[bool, _Value, bool]:
        """A value, and whether a `*` stands before and after it. A `*` alone has an empty value."""
        before = self.take("*")
        if before and (not self.rest() or self.peek() == "|"):
            return True, _Value("", self.at), True
        return before, self.value(), self.take("*")

    def item(self, operator: str) -> Condition:
        before, value, after = self.affixed()
        if before or after:
            return Wildcard(value.text, before, after, value.quoted or not value.text)
        if self.take(".."):
            return self.between(value, self.value())
        return Equal(value.text) if value.quoted else SameValue(self.dated(value))

    def code_item(self, operator: str) -> Condition:
        is_code = operator.endswith("~")
        before, value, after = self.affixed()
        if before and is_code and value.text:
            self.fail("a code cannot begin with *", "leave out the first *, or write = in place of ~", at=value.at)
        if before and not is_code:
            return Wildcard(value.text, before, after, value.quoted or not value.text)
        if after:
            return CodePrefix(re.sub(r"\s", "", value.text).upper())
        if not is_code and self.take(".."):
            return self.between(value, self.value())
        if value.quoted and not is_code:
            return Equal(value.text)
        code = parse_code(value.text)
        if code is None:
            example = "write G06, G06F, G06F17, G06F17/30 or G*, or put it into quotes to match it literally"
            self.fail(f"{value.text!r} is not a classification code", example, at=value.at)
        return Inside(code)

    def dated(self, value: _Value) -> str:
        """The text of a value. Raises `UsageError` for an unquoted value that is almost a date or a number."""
        if not value.quoted and not self._file_field and is_almost_a_date(value.text):
            example = "write 2013, 2013-04 or 2013-04-01, or put it into quotes to match it literally"
            self.fail(f"{value.text!r} is not a valid date", example, at=value.at)
        if not value.quoted and is_too_large(value.text):
            self.fail("the number is too large", "write a smaller one, or put it into quotes to match it literally", at=value.at)
        return value.text

    def between(self, low: _Value, high: _Value) -> Condition:
        for end in (low, high):
            self.dated(end)
        if compare(low.text, high.text) > 0:
            self.fail("the range ends before it begins", "swap its ends", at=low.at)
        return Between(low.text, high.text)

    def value(self) -> _Value:
        self.space()
        start = self.at
        if quoted := self.quoted():
            return quoted
        if self.text.startswith('"', self.at):
            self.fail("the quote is not closed", 'add a " at the end of the value')
        plain = (self.match(_PLAIN) or "").rstrip()
        if self._file_field == FOLDER and plain.endswith("/") and (folder := plain.rstrip("/")):
            # `folder=guide/` and `folder=guide/*` mean the folder with everything in it, as `folder=guide` does.
            self.take("*")
            plain = folder
        advice = 'write "" for an empty text, and <= or >= for a range with one end'
        return _Value(plain, start) if plain else self.fail("expected a value", advice)

    def quoted(self) -> _Value | None:
        self.space()
        start = self.at
        text = self.match(_QUOTED)
        return None if text is None else _Value(re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL), start, True)

    def fail(self, message: str, advice: str, *, at: int | None = None) -> NoReturn:
        """Raise `UsageError` with a message, a position in the filter and an advice; see `Scanner.error`."""
        raise self.error(message, at, advice)
