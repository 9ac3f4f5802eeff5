from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.fetch.conditions import Between, CodePrefix, Equal, Inside, SameValue, Wildcard, compare
from perikope.fetch.filters import (
    All,
    Ids,
    Negated,
    SharedCodes,
    Where,
    Without,
    codes_of,
    known_fields,
    known_parts,
    known_tags,
    mask,
    parse_filter,
    passage_mask,
    unknown_fields,
)
from perikope.patents.codes import parse_code
from tests.support.collections import index_of


def document(id, **metadata):
    builder = TreeBuilder(id, metadata=metadata)
    builder.passage("a pump")
    return builder.build()


@pytest.fixture(scope="module")
def snapshot():
    return index_of(
        [
            document("iso", date="2013-04-01", year=2013, ipc=["G06F 17/30", "H04L 9/00"], by={"name": "Ada | Co"}, share=0.5),
            document("month", date="2013-04", year=2014, ipc="G06F  1/16        20060101A I20051008RMEP", share=1.0),
            document("year", date="2013", year="2015", ipc="G06F0170000000", other="G06F 17/30", share=12),
            document("plain", date="20130402", year=999, cpc="g06f17/00", name='5" pipe', share="1.50"),
            document("time", date="2013-04-01T12:30:05Z", year="unknown", ipc="H04L9/00"),
            document("without"),
        ],
        [2, 3],
    )._snapshot


def found(snapshot, filter):
    filter = parse_filter(filter) if isinstance(filter, str) else filter
    chosen = [np.flatnonzero(mask(segment, filter)).tolist() for segment in snapshot.segments]
    return " ".join(segment.document_id(i) for segment, local in zip(snapshot.segments, chosen, strict=True) for i in local)


@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        ("year=2013", "iso"),
        ("year=2013|2014|nothing", "iso month"),
        ("year!=2013", "month year plain time without"),
        ("year!=2013|2014", "year plain time without"),
        ("year=201*", "iso month year"),
        ("year=*", "iso month year plain time"),
        ("year!=*", "without"),
        ("by.name = Ada*", "iso"),
        # Upper and lower case are the same, unless the value is in quotes.
        ("by.name=ada*", "iso"),
        ('by.name="ada"*', ""),
        ('by.name="Ada"*', "iso"),
        ("by.name=*CO", "iso"),
        ('by.name=*"CO"', ""),
        ("by.name=*da*", "iso"),
        ('by.name=*"| co"', ""),
        ('by.name=*"| Co"', "iso"),
        ("by.name=ada", ""),
        ("year=Unknown", "time"),
        ('year="Unknown"', ""),
        ("year!=UNKNOWN", "iso month year plain without"),
        ("year=*13*", "iso"),
        ("year=*NOW*|999", "plain time"),
        ("ipc=*17/30", "iso"),
        ("ipc=*rmep", "month"),
        ("year>U", "time"),
        ("year>UNKNOWN", ""),
        ("year>=UNKNOWN", "time"),
        ('by.name="Ada | Co"', "iso"),
        (r'name="5\" pipe"', "plain"),
        ('"by.name"="Ada | Co"', "iso"),
        # A number is found however it is written, a text as it is.
        ("share=0.50", "iso"),
        ("share=1.0", "month"),
        ("share=1", "month"),
        ("share=1.5", ""),
        ("share=1.50", "plain"),
        ('share="1.0"', ""),
        # Numbers as numbers, the rest as text: "unknown" comes after all digits.
        ("year<2014", "iso plain"),
        ("year<=2014", "iso month plain"),
        ("year>2013", "month year"),
        ("year>=2014.0", "month year"),
        ("year=999..2013", "iso plain"),
        ("share<1.5", "iso month"),
        ("share>=1.5", "year plain"),
        # Dates as far as both go.
        ("date<2013", ""),
        ("date<=2013", "iso month year plain time"),
        ("date>=2013", "iso month year plain time"),
        ("date>2013", ""),
        ("date<2014", "iso month year plain time"),
        ("date<2013-04", ""),
        ("date<=2013-04", "iso month year plain time"),
        ("date<2013-04-02", "iso time"),
        ("date<=2013-04-01", "iso month year time"),
        ("date>2013-04-01", "plain"),
        ("date>=2013-04-02", "month year plain"),
        ("date>=20130402", "month year plain"),
        ("date<20130402", "iso time"),
        ("date=2013-04-02..2013-05", "month year plain"),
        ("date=20130401..20130401", "iso month year time"),
        ("date<2013-04-01T12:30:06", "time"),
        ("date<=2013-04-01T12:30:04", "iso month year"),
        # Codes at the level that was given, in the fields that hold codes, and in any after ~.
        ("ipc=G06F", "iso month year"),
        ("ipc=g06f17", "iso"),
        ("ipc=G06F1", "month"),
        ("ipc=G06F 170", "year"),
        ("ipc=G06F17/30|H04L", "iso time"),
        ("ipc!=G06F", "plain time without"),
        ("ipc=G06F1*", "iso month year"),
        ("ipc=H*", "iso time"),
        ('ipc="H04L9/00"', "time"),
        ("cpc=G06F17", "plain"),
        ("other=G06F", ""),
        ("other~G06F", "year"),
        ("other~G06F*", "year"),
        ("other!~G06F", "iso month plain time without"),
        # The document's own id.
        ("id=iso|time|nothing", "iso time"),
        ("id!=iso|time", "month year plain without"),
        ("id=*T*", "month time without"),
        ("id=*O|plain", "iso plain"),
        ('id="T"*', ""),
        ("id!=*t*|iso", "year plain"),
        ("absent=1", ""),
        ("absent!=1", "iso month year plain time without"),
    ],
)
def test_documents_that_a_filter_keeps(snapshot, filter, ids):
    assert found(snapshot, filter) == ids


@pytest.mark.parametrize(
    ("text", "filter"),
    [
        ("a=b", Where("a", (SameValue("b"),))),
        (" a = b c ", Where("a", (SameValue("b c"),))),
        ("a=b|b", Where("a", (SameValue("b"),))),
        ("a=1.0", Where("a", (SameValue("1.0"),))),
        ("a=007", Where("a", (SameValue("007"),))),
        ('a="x*"', Where("a", (Equal("x*"),))),
        ('a="x"*', Where("a", (Wildcard("x", after=True, exact=True),))),
        ('a=""', Where("a", (Equal(""),))),
        ('a="1..2"|3..4', Where("a", (Equal("1..2"), Between("3", "4")))),
        ("a<b", Where("a", (Between(high="b", high_open=True),))),
        ("a>=b", Where("a", (Between(low="b"),))),
        ("a!=b*", Negated(Where("a", (Wildcard("b", after=True),)))),
        ("a=*b|*B*", Where("a", (Wildcard("b", before=True), Wildcard("B", before=True, after=True)))),
        ('a= * "b" *', Where("a", (Wildcard("b", True, True, True),))),
        ("a=*|b", Where("a", (Wildcard("", True, True, True), SameValue("b")))),
        ("ipc=G06*", Where("ipc", (CodePrefix("G06"),))),
        ("ipc=*", Where("ipc", (Wildcard("", True, True, True),))),
        ("ipc~*", Where("ipc", (CodePrefix(""),))),
        ('ipc=g06f 17|"x"', Where("ipc", (Inside(parse_code("G06F17")), Equal("x")))),
        ("a~g06f 17*|h04", Where("a", (CodePrefix("G06F17"), Inside(parse_code("H04"))))),
        ("a=b=c", Where("a", (SameValue("b=c"),))),
        ("id=a b", Ids(frozenset(["a b"]))),
        ("id=a|b*", Ids(frozenset(["a"]), (Wildcard("b", after=True),))),
        ('id!=*"a"', Without(frozenset(), (Wildcard("a", before=True, exact=True),))),
        ('id!="a|b"|c', Without(frozenset(["a|b", "c"]))),
        (r'"a=\"\\"=b', Where('a="\\', (SameValue("b"),))),
    ],
)
def test_filters_as_they_are_written(text, filter):
    assert parse_filter(text) == filter
    assert parse_filter(str(filter)) == filter
    assert hash(parse_filter(text)) == hash(filter)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected the name of a field at the end; write field=value"),
        ("=a", "expected the name of a field at '=a' (character 1)"),
        ("year", "expected =, !=, <, <=, >, >= or ~ after the field at the end"),
        ("year!2013", "expected =, !=, <, <=, >, >= or ~ after the field at '!2013' (character 5)"),
        ("year==2013", "expected a value after the operator at '=2013' (character 6); put a value"),
        ("year=", 'expected a value at the end; write "" for an empty text'),
        ("year=a||b", "expected a value at '|b' (character 8)"),
        ("year=a|", "expected a value at the end"),
        ('year="a', "the quote is not closed"),
        ('year=5" pipe', "; a * stands before or after a value only; put a value that contains quotes, |, * or .. into quotes"),
        ("year=a*b", "unexpected character at 'b' (character 8); a * stands before or after a value only"),
        ("year=**", "expected a value"),
        ("year=..2013", "expected a value"),
        ("year=2010..", "expected a value at the end"),
        ("year=2013..2010", "the range ends before it begins at '2013..2010' (character 6); swap its ends"),
        ("date=2013-05..2013-04-30", "the range ends before it begins"),
        ("name=b..A", "the range ends before it begins"),
        ("year<1|2", "< takes one value at '|2' (character 7)"),
        ("year<1*", "< takes one value"),
        ("year>=1..2", ">= takes one value"),
        ("ipc=pump", "'pump' is not a classification code at 'pump' (character 5); write G06, G06F"),
        ("tag~pump", "'pump' is not a classification code"),
        ("tag~*G06", "a code cannot begin with *"),
        ("tag~G06..G07", "unexpected character"),
        ("date=2013-4-1", "'2013-4-1' is not a valid date at '2013-4-1' (character 6); write 2013"),
        ("id<3", "ids can be compared with = and != only"),
        ("id=a*b", "unexpected character"),
    ],
)
def test_errors_point_at_what_is_wrong(text, complaint):
    with pytest.raises(UsageError) as error:
        parse_filter(text)
    assert str(error.value).startswith(f"cannot read {text!r}: ")
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("value", "bound", "sign"),
    [
        ("9", "10", -1), ("1e1", "10", 0), ("+3", "-3", 1), (".5", "0.5", 0), ("a", "10", 1), ("10", "a", -1), ("", "", 0), ("a", "é", -1),
        ("2013", "2013-04-01", 0), ("2013-04-01", "2013", 0), ("2013-05", "2013-04-01", 1), ("20130401", "2013", 0),
        ("20130401", "2014", -1), ("2013-04-01T10", "2013-04-01 10:30", 0), ("2013-04-01T10:30:59.5+02:00", "2013-04-01T10:30:59", 0),
        # Not dates: the month or the day is none, or the year too far off. Then numbers, or texts.
        ("20131301", "2013", 1), ("20130432", "2013", 1), ("99990101", "9999", 1), ("2013-13", "2013", 1), ("2013-4", "2013", 1),
        ("9" * 500, "1", 1), ("1" + "0" * 400, "2", -1),
    ],
)  # fmt: skip
def test_comparing_a_value_with_a_bound(value, bound, sign):
    assert compare(value, bound) == sign
    assert compare(bound, value) == -sign


def test_codes_that_are_shared(snapshot):
    def sharing(level, *codes, fields=("ipc",)):
        return found(snapshot, SharedCodes(fields, frozenset(codes), level))

    assert sharing("full", "G06F 17/30") == "iso"
    assert sharing("full", "G06F17/00", "H04L 9/00") == "iso time"
    assert sharing("full", "G06F17/30", "G06F17/00", fields=("ipc", "cpc", "other")) == "iso year plain"
    assert sharing("group", "G06F 17/99") == "iso"
    assert sharing("subclass", "G06F 99/99") == "iso month year"
    assert sharing("class", "H04W 1/00") == "iso time"
    assert sharing("class", "G06") == "iso month year"
    # A code that does not go so far is the same as none that does.
    assert sharing("group", "G06F") == ""
    assert sharing("full", "A01B 1/00") == ""
    # Nothing to compare with: nothing is dropped.
    everything = "iso month year plain time without"
    assert sharing("full") == sharing("full", "no code") == everything


def test_an_unknown_level_lists_those_there_are():
    with pytest.raises(UsageError, match="did you mean 'group'"):
        SharedCodes(("ipc",), frozenset(), "groups")


def test_codes_of_a_document(snapshot):
    segment, local = snapshot.locate(snapshot.find_document("iso"))
    assert codes_of(segment.metadata(local)) == {"G06F17/30", "H04L9/00"}
    assert codes_of({"ipc": "G06F0017300000", "ecla": ["G06F 17/30"], "other": "A01B", "cpc": {"main": "A01B"}}) == {"G06F17/30"}
    assert codes_of({"cpc": {"main": "A01B"}}, ["cpc.main"]) == {"A01B"}
    assert codes_of({}) == frozenset()


def test_all_of_several(snapshot):
    filters = tuple(map(parse_filter, ["ipc=G06F", "date<=2013-04-01", "year<2014"]))
    assert found(snapshot, All(filters)) == "iso"
    assert found(snapshot, All(())) == "iso month year plain time without"


def test_fields_that_no_document_has(snapshot):
    assert known_fields(snapshot) == ["by.name", "cpc", "date", "ipc", "name", "other", "share", "year"]
    assert unknown_fields(snapshot, parse_filter("yaer=2013")) == ["yaer"]
    filters = ("yaer!=1", "year=1", "by=Ada", "yaer=2", "id=x")
    assert unknown_fields(snapshot, All((*map(parse_filter, filters), Without(frozenset("x"))))) == ["yaer", "by"]
    assert unknown_fields(snapshot, SharedCodes(("ipc", "ipcr"), frozenset())) == []
    assert unknown_fields(snapshot, SharedCodes(("ipcr", "ecla"), frozenset())) == ["ipcr", "ecla"]


@dataclass(frozen=True)
class Counted:
    asked: ClassVar = []

    def documents(self, segment):
        self.asked.append(segment)
        return np.ones(segment.documents, bool)

    def unknown_fields(self, known):
        return []


def test_masks_are_kept_with_the_segment_and_what_is_got_is_ones_own(snapshot):
    segment = snapshot.segments[0]
    mask(segment, Counted())[:] = False
    assert mask(segment, All((Counted(),))).all()
    assert Counted.asked == [segment]
    for number in range(100):
        mask(segment, Ids(frozenset([str(number)])))
    mask(segment, Counted())
    assert len(Counted.asked) == 2, "a bounded number of masks is kept"


def test_many_ids_are_found_at_once():
    snapshot = index_of([document(f"d{i}") for i in range(50)], [20])._snapshot
    wanted = {f"d{i}" for i in range(0, 60, 3)}
    assert set(found(snapshot, Ids(frozenset(wanted))).split()) == wanted & {f"d{i}" for i in range(50)}
    assert found(snapshot, Ids(frozenset())) == ""


def structured(id):
    builder = TreeBuilder(id, title="T")
    builder.passage("one")
    with builder.span(Kind.SECTION, "sec", part="abstract"):
        builder.passage("two", tag="claim")
        builder.passage("three", part="claims")
    with builder.span(Kind.SECTION, "sec", part="claims"):
        builder.passage("four", tag="claim", marks=[("b", 0, 2)])
        with builder.span(Kind.SECTION, "inner"):
            builder.passage("five", tag="li")
    return builder.build()


@pytest.mark.parametrize(
    ("parts", "tags", "kept"),
    [
        (None, None, "one two three four five"), (["claims"], None, "three four five"), (["abstract"], None, "two"), ([""], None, "one"),
        (None, ["claim"], "two four"), (["claims"], ["claim", "li"], "four five"), (["nothing"], None, ""), (None, ["nothing"], ""),
        ([], None, ""),
    ],
)  # fmt: skip
def test_passages_by_part_and_tag(parts, tags, kept):
    snapshot = index_of([document("first"), structured("a"), structured("b"), structured("c")], [2])._snapshot
    sets = [None if names is None else frozenset(names) for names in (parts, tags)]
    for id in "abc":
        segment, local = snapshot.locate(snapshot.find_document(id))
        passages = np.array(segment.passages_of(local))[::-1]
        chosen = passages[passage_mask(segment, np.full(passages.size, local), passages, *sets)]
        spans = [segment.span_of("passage.span", local, passage) for passage in sorted(chosen.tolist())]
        assert " ".join(segment.text(local)[segment.characters(span)] for span in spans) == kept
    assert known_parts(snapshot) == ["abstract", "claims", "title"]
    assert known_tags(snapshot) == ["claim", "li", "p"]
