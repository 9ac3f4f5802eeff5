"""Conditions on one value of a metadata field, evaluated once per distinct value.

A bound that is a date is compared with dates, a bound that is a number with numbers, and any other bound with texts,
without regard to upper and lower case. A value that cannot be compared with the bound does not satisfy the condition.
A bound that is neither date nor number is an error in a field whose values all are (`nearest_values.check_comparable`).
Two dates are compared at the precision that both have: 2013 equals each of its days.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Floats, Integers, Mask
from perikope.index.facets import number_text
from perikope.index.joined_texts import JoinedTexts
from perikope.index.segments import Segment
from perikope.patents.codes import LEVELS, Code, parse_code


def encoded(text: str) -> bytes:
    """A text as the index stores it: in UTF-8, in which lone surrogates are encoded as well."""
    return text.encode("utf-8", "surrogatepass")


def quote(text: str) -> str:
    """A text in quotes, which the notation of filters reads literally."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Condition(Protocol):
    """A condition on one value of a metadata field."""

    def keys(self, segment: Segment, field: str) -> range | Integers:
        """The facet keys of the field's values that satisfy the condition."""
        ...

    @property
    def operator(self) -> str:
        """The operator between field and value in the notation of filters, such as `=`."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Equal:
    """The condition that a value equals this text exactly."""

    value: str

    def keys(self, segment: Segment, field: str) -> range:
        """The key of the value that equals the text, as a range; see `Condition.keys`."""
        return segment.facets.find(segment.facets.keys(field), encoded(self.value))

    @property
    def operator(self) -> str:
        """The operator `=`; see `Condition.operator`."""
        return "="

    def __str__(self) -> str:
        return quote(self.value)


@dataclass(frozen=True, slots=True)
class SameValue:
    """The condition that a value is the same as this text if upper and lower case do not count.

    A number is the same however it is written, and a date is the same as each date inside it.
    """

    value: str

    def keys(self, segment: Segment, field: str) -> range | Integers:
        """The keys of the values that are the same; see `Condition.keys`."""
        number = _as_number(self.value)
        found = [Wildcard(self.value).keys(segment, field)]
        if number != self.value:
            found.append(Equal(number).keys(segment, field))
        if is_date(self.value):
            found.append(Between(self.value, self.value).keys(segment, field))
        return found[0] if len(found) == 1 else np.unique(np.concatenate([np.asarray(keys, np.int64) for keys in found]))

    @property
    def operator(self) -> str:
        """The operator `=`; see `Condition.operator`."""
        return "="

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Wildcard:
    """The condition that a value contains this text: as a whole, or at its beginning, its end or anywhere."""

    text: str
    before: bool = False
    """Whether other text may stand before the text."""
    after: bool = False
    """Whether other text may stand after the text."""
    exact: bool = False
    """Whether upper and lower case count."""

    def keys(self, segment: Segment, field: str) -> range | Integers:
        """The keys of the values that contain the text; see `Condition.keys`."""
        keys = segment.facets.keys(field)
        if not self.text and (self.before or self.after):
            return keys
        # Only one spelling is possible, so that a binary search is enough.
        if not self.before and (self.exact or self.text.casefold() == self.text.upper()):
            return segment.facets.beginning(keys, encoded(self.text)) if self.after else segment.facets.find(keys, encoded(self.text))
        return keys.start + self.among(segment.remember(joined_values, (field, self.exact)))

    def among(self, texts: JoinedTexts) -> Integers:
        """The numbers of the texts that contain the text; the texts are folded unless case counts."""
        return texts.containing(encoded(self.text if self.exact else self.text.casefold()), before=self.before, after=self.after)

    @property
    def operator(self) -> str:
        """The operator `=`; see `Condition.operator`."""
        return "="

    def __str__(self) -> str:
        if not self.text:
            return "*"
        return f"{'*' * self.before}{quote(self.text) if self.exact else self.text}{'*' * self.after}"


def joined_values(segment: Segment, key: tuple[str, bool]) -> JoinedTexts:
    """The values of a metadata field, folded unless case counts. `key` is the field and whether case counts.

    `Segment.remember` caches the result.
    """
    field, exact = key
    return JoinedTexts.of(segment.facets.values, segment.facets.keys(field), fold=not exact)


@dataclass(frozen=True, slots=True)
class Between:
    """The condition that a value lies between two bounds, compared as dates, numbers or texts.

    A bound of None does not limit the value. An open end excludes the bound itself.
    """

    low: str | None = None
    high: str | None = None
    low_open: bool = False
    high_open: bool = False

    def keys(self, segment: Segment, field: str) -> Integers:
        """The keys of the values between the bounds; see `Condition.keys`."""
        values: FieldValues = segment.remember(read_values, field)
        inside = np.ones(len(values.keys), bool)
        if self.low is not None:
            sign, known = values.compare(segment, self.low)
            inside &= known & (sign >= (1 if self.low_open else 0))
        if self.high is not None:
            sign, known = values.compare(segment, self.high)
            inside &= known & (sign <= (-1 if self.high_open else 0))
        return values.keys.start + np.flatnonzero(inside)

    @property
    def operator(self) -> str:
        """The operator: `=` for two bounds (`a..b`), else `<`, `<=`, `>` or `>=`; see `Condition.operator`."""
        if self.low is not None:
            return "=" if self.high is not None else ">" if self.low_open else ">="
        return "<" if self.high_open else "<="

    def __str__(self) -> str:
        return "..".join(quote(bound) for bound in (self.low, self.high) if bound is not None)


@dataclass(frozen=True, slots=True)
class Inside:
    """The condition that a value is a classification code that equals this code or lies inside it."""

    code: Code

    def keys(self, segment: Segment, field: str) -> Integers:
        """The keys of the codes that equal the code or lie inside it; see `Condition.keys`."""
        codes: Codes = segment.remember(read_codes, field)
        return codes.inside(str(self.code))

    @property
    def operator(self) -> str:
        """The operator `~`; see `Condition.operator`."""
        return "~"

    def __str__(self) -> str:
        return str(self.code)


@dataclass(frozen=True, slots=True)
class CodePrefix:
    """The condition that a value is a classification code whose normal form begins with this text."""

    prefix: str

    def keys(self, segment: Segment, field: str) -> Integers:
        """The keys of the codes that begin with the text; see `Condition.keys`."""
        codes: Codes = segment.remember(read_codes, field)
        return codes.keys[codes.beginning(self.prefix)]

    @property
    def operator(self) -> str:
        """The operator `~`; see `Condition.operator`."""
        return "~"

    def __str__(self) -> str:
        return f"{quote(self.prefix)}*" if self.prefix else "*"


_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(
    rb"([0-9]{4})-(0[1-9]|1[0-2])(?:-(0[1-9]|[12][0-9]|3[01])"
    rb"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?"
)
_PLAIN_DATE = re.compile(rb"(1[5-9][0-9]{2}|2[01][0-9]{2})(?:(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01]))?")
"""A year, or a date without hyphens as in patents. Any other number of four or eight digits is only a number."""
_LONGEST = 400
"""Maximum length of a number or date, in bytes. A longer value is treated as text."""
_UNITS = np.array([10 ** (2 * (6 - precision)) for precision in range(7)], np.int64)
"""Divisors that cut a date YYYYMMDDhhmmss to a precision: index 1 for years, 2 for months, …, 6 for seconds."""


def _read_number(value: bytes) -> float:
    """A text as a number; NaN if it is not one."""
    if len(value) > _LONGEST or not _NUMBER.fullmatch(value):
        return nan
    number = float(value)
    return number if isfinite(number) else nan


def _read_date(value: bytes) -> tuple[int, int]:
    """Read a date: the number YYYYMMDDhhmmss, filled with zeros, and the precision.

    The precision is 1 for years, 2 for months, …, 6 for seconds. It is 0 if the text is not a date.

    >>> _read_date(b"2013-04"), _read_date(b"20130401"), _read_date(b"2013-13"), _read_date(b"2013-04-01T12:30Z")
    ((20130400000000, 2), (20130401000000, 3), (0, 0), (20130401123000, 5))
    """
    match = _PLAIN_DATE.fullmatch(value) or (_DATE.fullmatch(value) if len(value) <= _LONGEST else None)
    if match is None:
        return 0, 0
    parts = [part for part in match.groups() if part is not None]
    if len(parts) > 2 and int(parts[2]) > monthrange(int(parts[0]) or 4, int(parts[1]))[1]:
        return 0, 0
    return int(b"".join(parts).ljust(14, b"0")), len(parts)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of a metadata field, read as numbers and as dates.

    All arrays are aligned with `keys`. `number` is NaN, and `precision` 0, for values that are no number or date.
    """

    field: str
    keys: range
    number: Floats
    date: Integers
    precision: NDArray[np.int8]

    @property
    def has_text(self) -> bool:
        """Whether a value is neither a number nor a date."""
        return bool(np.any(np.isnan(self.number) & (self.precision == 0)))

    def compare(self, segment: Segment, bound: str) -> tuple[NDArray[np.int8], Mask]:
        """The sign of each value against a bound, and the mask of values that can be compared with the bound.

        The sign is -1 if the value is below the bound, 0 if both are equal, and 1 if the value is above.
        """
        wanted = encoded(bound)
        number, (date, precision) = _read_number(wanted), _read_date(wanted)
        if precision or not isnan(number):
            sign, known = np.zeros(len(self.keys), np.int8), np.zeros(len(self.keys), bool)
            if not isnan(number):
                known |= ~np.isnan(self.number)
                sign[known] = (self.number[known] > number).astype(np.int8) - (self.number[known] < number)
            if precision:
                dates = self.precision > 0
                unit = _UNITS[np.minimum(self.precision[dates], precision)]
                sign[dates] = np.sign(self.date[dates] // unit - date // unit)
                known |= dates
            return sign, known
        texts: JoinedTexts = segment.remember(joined_values, (self.field, False))
        return texts.compare(encoded(bound.casefold())), np.ones(len(self.keys), bool)


_ALMOST_A_DATE = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2}(\D.*)?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}.*|\d{4}-\d{2}-\d{2}.*")


_FRACTION = re.compile(r"-?(0|[1-9][0-9]{0,99})((\.[0-9]{1,99})?[eE][+-]?[0-9]{1,4}|\.[0-9]{1,99})")


def _as_number(text: str) -> str:
    """A number with a decimal point or an exponent, as the index writes it: `1.5` for `1.50` and `15e-1`.

    Other texts are returned unchanged.
    """
    number = float(text) if _FRACTION.fullmatch(text) else inf
    return number_text(number) if isfinite(number) else text


def is_too_large(text: str) -> bool:
    """Whether a text is written as a number that is too large to be one, such as `1e999`."""
    return isnan(_read_number(encoded(text))) and _NUMBER.fullmatch(encoded(text)) is not None


def is_text(bound: str) -> bool:
    """Whether a bound is neither a number nor a date, so that it is compared with values as texts."""
    return not is_date(bound) and isnan(_read_number(encoded(bound)))


def is_date(text: str) -> bool:
    """Whether a text can be read as a date."""
    return _read_date(encoded(text))[1] > 0


def is_almost_a_date(text: str) -> bool:
    """Whether a text looks like a date but cannot be read as one.

    >>> [is_almost_a_date(text) for text in ("2013-4-1", "01.04.2013", "2013-13-45", "2013-02-30")]
    [True, True, True, True]
    >>> [is_almost_a_date(text) for text in ("2013-04-01", "1.5", "G06F")]
    [False, False, False]
    """
    return not is_date(text) and isnan(_read_number(encoded(text))) and _ALMOST_A_DATE.fullmatch(text) is not None


def compare(value: str, bound: str) -> int:
    """Compare two texts as dates, else as numbers, else as texts.

    Returns -1 if `value` is below `bound`, 0 if both are equal, and 1 if `value` is above.

    >>> compare("2013-04-01", "2013"), compare("9", "10"), compare("9", "1O"), compare("20130401", "2013-05")
    (0, -1, 1, -1)
    """
    mine, theirs = encoded(value), encoded(bound)
    (my_date, my_precision), (their_date, their_precision) = _read_date(mine), _read_date(theirs)
    if my_precision and their_precision:
        unit = int(_UNITS[min(my_precision, their_precision)])
        return _order(my_date // unit, their_date // unit)
    my_number, their_number = _read_number(mine), _read_number(theirs)
    if isnan(my_number) or isnan(their_number):
        return _order(encoded(value.casefold()), encoded(bound.casefold()))
    return _order(my_number, their_number)


def _order(mine: Any, theirs: Any) -> int:
    return int(mine > theirs) - int(mine < theirs)


def read_values(segment: Segment, field: str) -> FieldValues:
    """Read the values of a metadata field as numbers and as dates. `Segment.remember` caches the result."""
    keys = segment.facets.keys(field)
    values = [segment.facets.values[key] for key in keys]
    dates = np.array([_read_date(value) for value in values], np.int64).reshape(-1, 2)
    return FieldValues(
        field, keys, np.array([_read_number(value) for value in values], np.float64), dates[:, 0], dates[:, 1].astype(np.int8)
    )


@dataclass(frozen=True, slots=True)
class Codes:
    """The values of a metadata field that are classification codes, sorted by normal form.

    `codes` are the normal forms, and `keys` the facet keys of the values, aligned with `codes`.
    """

    codes: NDArray[np.bytes_]
    keys: Integers

    def beginning(self, prefix: str) -> slice:
        """The slice of `codes` that begin with a prefix."""
        text = encoded(prefix)
        return slice(*np.searchsorted(self.codes, [text, text + b"\xff"]).tolist())

    def inside(self, code: str) -> Integers:
        """The keys of the codes that equal a code or lie inside it.

        These begin with the code, and continue with a character other than a digit if the code ends with a digit.
        """
        beginning = self.beginning(code)
        width = self.codes.dtype.itemsize
        keys = self.keys[beginning]
        if not code[-1].isdigit() or len(code) >= width:
            return keys
        following = self.codes[beginning].view(np.uint8).reshape(-1, width)[:, len(code)]
        return keys[(following < ord("0")) | (following > ord("9"))]

    def sharing(self, code: Code, level: str) -> Integers:
        """The keys of the codes that equal `code` at a level, such as `subclass`."""
        wanted = code.at(level)
        if level != "full" and LEVELS.index(code.level) >= LEVELS.index(level):
            return self.inside(wanted)
        text = encoded(wanted)
        first, end = np.searchsorted(self.codes, text, "left"), np.searchsorted(self.codes, text, "right")
        return self.keys[first:end]


def read_codes(segment: Segment, field: str) -> Codes:
    """Read the classification codes in a metadata field of a segment. `Segment.remember` caches the result."""
    codes = [(str(code).encode(), key) for key in segment.facets.keys(field) if (code := parse_code(segment.facets.values.text(key)))]
    codes.sort()
    # At least one byte, because numpy has no strings of length 0.
    width = max((len(code) for code, _ in codes), default=1)
    return Codes(np.array([code for code, _ in codes], f"S{width}"), np.array([key for _, key in codes], np.int64))
