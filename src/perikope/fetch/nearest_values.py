"""Values that a filter asks for and no document has, with the nearest values that documents do have."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

import numpy as np

from perikope.core.errors import MOST_SHOWN, UsageError
from perikope.core.scanner import excerpt
from perikope.fetch.conditions import (
    Between,
    CodePrefix,
    Codes,
    Condition,
    Equal,
    FieldValues,
    Inside,
    SameValue,
    Wildcard,
    is_date,
    is_text,
    joined_values,
    read_codes,
    read_values,
)
from perikope.fetch.file_fields import holders
from perikope.fetch.filters import All, Filter, Negated, Where
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.patents.codes import CODE_FIELDS

_COMPARED = 2000
"""Maximum number of values per segment that are compared with a missing value."""
_SUGGESTED = 3
"""Maximum number of values that a note names."""
_ALIKE = 0.7
"""Minimum similarity of a suggested value, from 0 to 1 (`difflib`)."""
_FEW = 6
"""If a field has at most this number of values, a note lists them all."""


def notes_on_filter(snapshot: Snapshot, filter: Filter) -> list[str]:
    """One note per value that a filter asks for and no document has; it names the nearest values."""
    if isinstance(filter, All):
        return [note for inner in filter.filters for note in notes_on_filter(snapshot, inner)]
    where = filter.filter if isinstance(filter, Negated) else filter
    if not isinstance(where, Where):
        return []
    missing = [test for test in where.tests if not any(has for _, has in snapshot.ask(_some_has_value, where.field, test))]
    return [f"no document has {_shortened(_written(where.field, test))}; {_nearest(snapshot, where.field, test)}" for test in missing]


def check_comparable(snapshot: Snapshot, filter: Filter) -> None:
    """Raise `UsageError` if a filter compares a field of dates and numbers with a bound that is neither.

    A field with at least one other value is compared as text, for example versions such as 1.2 and 1.10b.
    """
    if isinstance(filter, All):
        for inner in filter.filters:
            check_comparable(snapshot, inner)
    where = filter.filter if isinstance(filter, Negated) else filter
    if not isinstance(where, Where):
        return
    for test in where.tests:
        bounds = [bound for bound in (test.low, test.high) if bound is not None and is_text(bound)] if isinstance(test, Between) else []
        if bounds and (example := _example_if_typed(snapshot, where.field)):
            raise UsageError(
                f"{_shortened(_written(where.field, test))} cannot be compared: all values of {where.field} are dates or numbers, and "
                f"{excerpt(bounds[0])} is neither; write a bound such as {example}"
            )


def _example_if_typed(snapshot: Snapshot, field: str) -> str:
    """A value of a field whose values are all dates or numbers; empty if it has others, or none at all."""
    answers = [answer for _, answer in snapshot.ask(_typed_example, field)]
    return "" if any(has_text for has_text, _ in answers) else next((example for _, example in answers if example), "")


def _typed_example(snapshot: Snapshot, field: str) -> tuple[bool, str]:
    """Whether a field has a value that is neither a date nor a number, and the first value otherwise."""
    example = ""
    for holder in holders(snapshot, field):
        values: FieldValues = holder.remember(read_values, field)
        if values.has_text:
            return True, ""
        if values.keys:
            example = example or holder.facets.values.text(values.keys[0])
    return False, example


def _some_has_value(snapshot: Snapshot, field: str, test: Condition) -> bool:
    return any(holder.remember(_has_value, (field, test)) for holder in holders(snapshot, field))


def _has_value(segment: Segment, key: tuple[str, Condition]) -> bool:
    """Whether a field of a segment has a value that satisfies a condition. `key` is the field and the condition."""
    field, test = key
    return len(test.keys(segment, field)) > 0


def _written(field: str, test: Condition) -> str:
    """A filter of one condition as people write it, without quotes that a date or a number does not need."""
    written = str(Where(field, (test,)))
    if isinstance(test, (Between, Inside, CodePrefix)):
        written = written.replace('"', "")
    return written.replace(f"{field}~", f"{field}=", 1) if field in CODE_FIELDS else written


def _nearest(snapshot: Snapshot, field: str, test: Condition) -> str:
    """The nearest values that documents have in a field, in words."""
    if isinstance(test, Between):
        return _where_values_lie(snapshot, field, (test.low if test.low is not None else test.high) or "")
    if isinstance(test, (Inside, CodePrefix)):
        near = _nearest_codes(snapshot, field, test.prefix if isinstance(test, CodePrefix) else str(test.code))
        return f"the nearest codes are {_listed(near)}" if near else f"the codes of {field} begin with other letters"
    wanted = test.text if isinstance(test, Wildcard) else test.value if isinstance(test, (Equal, SameValue)) else str(test)
    near = _nearest_texts(snapshot, field, wanted)
    if near:
        return f"the nearest values are {_listed(near)}" if len(near) > 1 else f"the nearest value is {_listed(near)}"
    frequent = _frequent(snapshot, field)
    return f"the {'values' if len(frequent) <= _FEW else 'most frequent values'} of {field} are {_listed(frequent[:_FEW])}"


def _nearest_texts(snapshot: Snapshot, field: str, wanted: str) -> list[str]:
    """The values that are most similar to a text, as a whole or in one of their words; the most similar first."""
    folded = wanted.casefold()
    values_of: dict[str, dict[str, bool]] = {}
    for _, similar in snapshot.ask(_similar_values, field, folded):
        for value in similar:
            whole = value.casefold()
            for form in (whole, *whole.split()):
                values_of.setdefault(form, {}).setdefault(value, form == whole)
    near = difflib.get_close_matches(folded, values_of, 2 * _SUGGESTED, _ALIKE)
    # Of the values with a similar word, those that consist of it come first.
    values = [value for form in near for value in sorted(values_of[form], key=lambda value: (not values_of[form][value], value))]
    return list(dict.fromkeys(values))[:_SUGGESTED]


def _similar_values(snapshot: Snapshot, field: str, folded: str) -> list[str]:
    return [value for segment in holders(snapshot, field) for value in _similar(segment, field, folded)]


def _similar(segment: Segment, field: str, folded: str) -> Iterator[str]:
    """Yield values of a field that may be similar to a text: all values, or those that share a part with the text."""
    keys = segment.facets.keys(field)
    if len(keys) <= _COMPARED:
        yield from map(segment.facets.values.text, keys)
        return
    texts = segment.remember(joined_values, (field, False))
    for share in (0.75, 0.5, 0.25):
        length = max(2, round(share * len(folded)))
        for part in (folded[:length], folded[-length:]):
            numbers = Wildcard(part, before=True, after=True).among(texts)[:_COMPARED]
            yield from (segment.facets.values.text(keys.start + number) for number in numbers.tolist())
            if numbers.size:
                return


def _nearest_codes(snapshot: Snapshot, field: str, wanted: str) -> list[str]:
    """The codes of a field that have the longest beginning in common with a code."""
    answers = [answer for _, answer in snapshot.ask(_codes_beginning, field, wanted)]
    longest = max(length for length, _ in answers)
    return sorted(set[str]().union(*(near for length, near in answers if length == longest)))[:_SUGGESTED]


def _codes_beginning(snapshot: Snapshot, field: str, wanted: str) -> tuple[int, set[str]]:
    """The length of the longest beginning that codes of a field have in common with a code, and these codes."""
    for length in range(len(wanted), 0, -1):
        near: set[str] = set()
        for segment in holders(snapshot, field):
            codes: Codes = segment.remember(read_codes, field)
            near.update(code.decode() for code in np.unique(codes.codes[codes.beginning(wanted[:length])])[:_SUGGESTED].tolist())
        if near:
            return length, near
    return 0, set()


def _where_values_lie(snapshot: Snapshot, field: str, bound: str) -> str:
    """The least and the greatest value of a field among those that can be compared with a bound, in words."""
    answers = [answer for _, answer in snapshot.ask(_ends, field, bound)]
    least, greatest = ([end for answer in answers for end in answer[i]] for i in (0, 1))
    if not least:
        return f"no value of {field} can be compared with {_shortened(bound)}"
    return f"the values of {field} lie between {_shortened(min(least)[1])} and {_shortened(max(greatest)[1])}"


End = tuple[float, str]
"""A value of a field, with the number by which it is compared."""


def _ends(snapshot: Snapshot, field: str, bound: str) -> tuple[list[End], list[End]]:
    """The least and the greatest value in each segment among those that can be compared with a bound."""
    least: list[End] = []
    greatest: list[End] = []
    for segment in holders(snapshot, field):
        values: FieldValues = segment.remember(read_values, field)
        _, known = values.compare(segment, bound)
        if not known.any():
            continue
        order = values.date if is_date(bound) and (values.precision > 0).any() else values.number
        order = np.arange(known.size) if np.isnan(order[known]).all() else order
        rows = np.flatnonzero(known & ~np.isnan(order))
        for end, row in ((least, rows[order[rows].argmin()]), (greatest, rows[order[rows].argmax()])):
            end.append((float(order[row]), segment.facets.values.text(values.keys[int(row)])))
    return least, greatest


def _frequent(snapshot: Snapshot, field: str) -> list[str]:
    """Values of a field by falling number of documents; one more than a note lists."""
    counts: Counter[str] = Counter()
    for _, answer in snapshot.ask(_frequent_of_shard, field):
        counts.update(answer)
    return [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: _FEW + 1]]


def _frequent_of_shard(snapshot: Snapshot, field: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for segment in holders(snapshot, field):
        keys = segment.facets.keys(field)
        documents = np.diff(segment.facets.first_document[keys.start : keys.stop + 1].astype(np.int64))
        for number in np.argsort(-documents, kind="stable")[: _FEW + 1].tolist():
            counts[segment.facets.values.text(keys.start + number)] += int(documents[number])
    return counts


def _listed(values: list[str]) -> str:
    return ", ".join(map(_shortened, values))


def _shortened(value: str) -> str:
    return value if len(value) <= MOST_SHOWN else excerpt(value)[1:-1]
