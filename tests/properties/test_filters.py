"""A filter keeps the documents whose metadata match, however the collection is split, changed and merged."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.document.tree import TreeBuilder
from perikope.fetch.conditions import compare, quote
from perikope.fetch.filters import All, Ids, SharedCodes, Without, known_fields, mask, parse_filter, passage_mask, unknown_fields
from perikope.index import commit as commits
from perikope.index.check import check
from tests.support.collections import collections, index_of
from tests.support.examples import examples
from tests.unit.index.test_facets import COLUMNS

CODES = {
    "G06F 17/30": "G06F 17 30", "G06F0017300000": "G06F 17 30", "g06f17/30": "G06F 17 30", "G06F  1/16  20060101A I2005": "G06F 1 16",
    "G06F 170/00": "G06F 170 00", "G06K 17/00": "G06K 17 00", "H04L": "H04L", "H04L 9": "H04L 9", "G06": "G06",
}  # fmt: skip
"""Codes as they are written, and their parts."""
DATES = {
    "2012": "2012", "2013": "2013", "2013-04": "2013 04", "2013-04-01": "2013 04 01", "20130401": "2013 04 01", "2013-12-31": "2013 12 31",
    "20121231": "2012 12 31", "2013-04-01T10:30": "2013 04 01 10 30",
}  # fmt: skip
NUMBERS = ["3", "10", "-2", "1.5", "1e3"]
TEXTS = ["", "a", "ab", "aB", "ABC", "abc", "b", "a|b", "Straße", "STRASSE", 'say "x"', "été", "ÉTÉ", "*", "a..b", "\U00010000"]
FIELDS = ["year", "ipc", "x", "a.b", "odd =|field"]

scalars = st.one_of(
    st.sampled_from([*CODES, *DATES, *TEXTS, *NUMBERS]), st.sampled_from([3, 10, -2, 1.5, 1000.0, 2013, 20130401, True, False, None])
)
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.lists(st.lists(scalars, max_size=2), max_size=2))
metadata = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(["year", "ipc", "x", "odd =|field"], values), "a": st.dictionaries(st.just("b"), values)}
)


@st.composite
def histories(draw):
    """Documents, where they are cut into segments, and which are deleted then."""
    found = []
    for number in range(draw(st.integers(1, 7))):
        builder = TreeBuilder(f"d{number}", metadata=draw(metadata))
        builder.passage("a pump")
        found.append(builder.build())
    ids = [document.id for document in found]
    return found, draw(st.lists(st.integers(0, 7), max_size=3)), draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))


def plain_values(metadata, field):
    """The values of a field, straight from the metadata."""
    name, _, rest = field.partition(".")
    value = metadata.get(name)
    if rest:
        value = (value or {}).get(rest)
    found, waiting = [], [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, bool):
            found.append("true" if value else "false")
        elif isinstance(value, float):
            found.append(str(int(value)) if value == int(value) else str(value))
        elif value is not None:
            found.append(str(value))
    return found


def is_number(text):
    try:
        return bool(float(text)) or True
    except ValueError:
        return False


def plain_sign(value, bound):
    """Below, equal or above; None where the value cannot be read as the bound can."""
    if (bound in DATES or is_number(bound)) and not ((value in DATES and bound in DATES) or (is_number(value) and is_number(bound))):
        return None
    if value in DATES and bound in DATES:
        pairs = list(zip(DATES[value].split(), DATES[bound].split(), strict=False))
        mine, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    else:
        try:
            mine, theirs = float(value), float(bound)
        except ValueError:
            mine, theirs = value.casefold(), bound.casefold()
    return (mine > theirs) - (mine < theirs)


def plain_same(value, wanted):
    """Whether a value is what was written without quotes: as a text without case, as a number, or as a date."""
    number = str(float(wanted)).removesuffix(".0") if wanted in ("1.50", "1E3") else wanted
    return value.casefold() == wanted.casefold() or value == number or (wanted in DATES and plain_sign(value, wanted) == 0)


def plain_wildcard(value, part, before, after):
    if before and after:
        return part in value
    return value.endswith(part) if before else value.startswith(part)


def plain_inside(value, code):
    mine, wanted = (CODES.get(text, "").split() for text in (value, code))
    if not mine:
        return False
    symbol, *rest = wanted
    return mine[0] == symbol and mine[1 : len(wanted)] == rest if rest else mine[0].startswith(symbol)


def plain_level(code, level):
    symbol, *rest = code.split()
    if level in ("class", "subclass"):
        return symbol[: {"class": 3, "subclass": 4}[level]]
    return [symbol, *rest[: 1 if level == "group" else 2]]


bounds = st.sampled_from([*DATES, *NUMBERS, *TEXTS])
SIGNS = {"<": [-1], "<=": [-1, 0], ">": [1], ">=": [0, 1]}


@st.composite
def conditions(draw):
    """A filter as it is written, its field, and what it says of a value of that."""
    field = draw(st.sampled_from(FIELDS))
    name = quote(field) if field.startswith("odd") else field
    kind = draw(st.sampled_from(["equal", "same", "wildcard", "compare", "between", "code", "code prefix"]))
    negation = draw(st.sampled_from(["", "!"])) if kind != "compare" else ""
    if kind == "equal":
        wanted = draw(st.lists(st.sampled_from([*TEXTS, *NUMBERS, *DATES]), min_size=1, max_size=3))
        rest, holds = "=" + "|".join(map(quote, wanted)), wanted.__contains__
    elif kind == "same" and field != "ipc":
        wanted = draw(st.sampled_from(["A", "aB", "strasse", "Été", "3", "1.50", "1E3", "2013", "2013-04"]))
        rest, holds = f"={wanted}", lambda value: plain_same(value, wanted)
    elif kind in ("same", "wildcard"):
        before, after = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
        # In a field of codes, only a wildcard at the beginning is about the text.
        part = draw(st.sampled_from(["", *([] if field == "ipc" and not before else ["a", "B", "20", "201", "é", "SS", "4-0"])]))
        exact, before, after = draw(st.booleans()) and bool(part), before or not part, after or not part
        written = quote(part) if exact else part
        rest = f"={'*' * before}{written}{'*' * after}" if part else "=*"
        holds = lambda value: plain_wildcard(*((value, part) if exact else (value.casefold(), part.casefold())), before, after)  # noqa: E731
    elif kind == "compare":
        operator, bound = draw(st.sampled_from([*SIGNS])), draw(bounds)
        rest, holds = f"{operator}{quote(bound)}", lambda value: plain_sign(value, bound) in SIGNS[operator]
    elif kind == "between":
        low, high = draw(st.tuples(bounds, bounds).filter(lambda pair: compare(*pair) <= 0))
        rest = f"={quote(low)}..{quote(high)}"
        holds = lambda value: plain_sign(value, low) in (0, 1) and plain_sign(value, high) in (-1, 0)  # noqa: E731
    elif kind == "code":
        wanted = draw(st.lists(st.sampled_from([*CODES]), min_size=1, max_size=2))
        operator = draw(st.sampled_from(["=", "~"])) if field == "ipc" else "~"
        rest, holds = operator + "|".join(wanted), lambda value: any(plain_inside(value, code) for code in wanted)
    else:
        prefix = draw(st.sampled_from(["", "G", "G06", "g06f", "H0"]))
        rest, holds = f"~{prefix}*", lambda value: value in CODES and CODES[value].startswith(prefix.upper())
    return f"{name}{negation}{rest}", field, holds, bool(negation)


def kept(index, filter):
    return {
        segment.document_id(local)
        for segment in index._snapshot.segments
        for local in np.flatnonzero(mask(segment, filter) & segment.alive).tolist()
    }


def states(history):
    """An index with some documents deleted and then merged, each time with the documents that are left."""
    documents, cuts, deleted = history
    index = index_of(documents, cuts)
    yield index, documents
    if deleted:
        index.delete(deleted)
        index.commit()
        documents = [document for document in documents if document.id not in deleted]
        yield index, documents
    index.compact()
    yield index, documents


@examples(300)
@given(histories(), st.lists(conditions(), min_size=1, max_size=4))
def test_a_filter_keeps_what_a_plain_look_keeps(history, wanted):
    for index, documents in states(history):
        everywhere = {document.id for document in documents}
        for text, field, holds, negated in wanted:
            expected = {document.id for document in documents if any(map(holds, plain_values(document.metadata, field))) != negated}
            assert kept(index, parse_filter(text)) == expected, text
            assert parse_filter(str(parse_filter(text))) == parse_filter(text)
            everywhere &= expected
        assert kept(index, All(tuple(parse_filter(text) for text, *_ in wanted))) == everywhere


@examples(150)
@given(
    histories(),
    st.lists(st.sampled_from([*CODES]), max_size=3),
    st.sampled_from(["class", "subclass", "group", "full"]),
    st.sampled_from([("ipc",), ("ipc", "x"), ("a.b", "year")]),
)
def test_shared_codes(history, codes, level, fields):
    wanted = [plain_level(CODES[code], level) for code in codes]
    for index, documents in states(history):
        expected = {
            document.id
            for document in documents
            if not codes
            or any(
                plain_level(CODES[value], level) in wanted
                for field in fields
                for value in plain_values(document.metadata, field)
                if value in CODES
            )
        }
        assert kept(index, SharedCodes(fields, frozenset(codes), level)) == expected


@examples(60)
@given(histories(), st.sets(st.sampled_from([f"d{i}" for i in range(9)])))
def test_ids(history, ids):
    for index, documents in states(history):
        everything = {document.id for document in documents}
        assert kept(index, Ids(frozenset(ids))) == everything & ids
        assert kept(index, Without(frozenset(ids))) == everything - ids


@pytest.mark.parametrize("most", [1, 12])
@examples(100)
@given(history=histories())
def test_facets_are_those_of_a_rebuild_and_whole(most, history):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "MAX_SEGMENTS", most)
        for index, documents in states(history):
            assert not check(Path(index.folder)).problems
            fields = {field for field in FIELDS for document in documents if plain_values(document.metadata, field)}
            assert set(known_fields(index._snapshot)) >= fields
            for field in FIELDS:
                missing = [] if field in known_fields(index._snapshot) else [field]
                assert unknown_fields(index._snapshot, parse_filter(f"{quote(field)}=*")) == missing
        # The last state is one segment, or none where everything was deleted.
        if documents:
            (merged,), (rebuilt,) = index._snapshot.segments, index_of(documents)._snapshot.segments
            assert merged.facets.fields == sorted(fields)
            for name in COLUMNS:
                assert merged[name].dtype == rebuilt[name].dtype, name
                assert merged[name].tolist() == rebuilt[name].tolist(), name


@examples(60)
@given(
    collections(),
    st.lists(st.integers(0, 5), max_size=2),
    st.none() | st.frozensets(st.sampled_from(["", "abstract", "claims", "absent"])),
    st.none() | st.frozensets(st.sampled_from(["p", "absent"])),
)
def test_passages_by_part_and_tag(documents, cuts, parts, tags):
    snapshot = index_of(documents, cuts)._snapshot
    for segment in snapshot.segments:
        first = segment["document.first_passage"].astype(np.int64)
        passages = np.arange(first[-1])
        found = passage_mask(segment, np.repeat(np.arange(segment.documents), np.diff(first)), passages, parts, tags)
        expected = []
        for local in range(segment.documents):
            for passage in segment.passages_of(local):
                span = segment.span_of("passage.span", local, passage)
                labels = segment.label("part", span), segment.label("tag", span)
                expected.append((parts is None or labels[0] in parts) and (tags is None or labels[1] in tags))
        assert found.tolist() == expected
