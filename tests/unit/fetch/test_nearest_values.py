from dataclasses import replace

import pytest

from perikope.core.errors import UsageError
from perikope.document.tree import TreeBuilder
from perikope.fetch import nearest_values
from perikope.fetch.filters import All, parse_filter
from perikope.fetch.nearest_values import notes_on_filter
from tests.support.collections import index_of, plain_document


def document(id, **metadata):
    builder = TreeBuilder(id, metadata=metadata)
    builder.passage("a pump")
    return builder.build()


@pytest.fixture(scope="module")
def snapshot():
    documents = [
        document("a", kind="A1", by="Robert Bosch GmbH", date="2011-02-03", size=9, ipc="F04D 13/02"),
        document("b", kind="B1", by="Siemens AG", date="20130401", size=10, ipc=["F04D 29/00", "H02K 1/00"]),
        document("c", kind="B1", by="Bosch", date="1999", size="large", title=None),
        document("d", kind="B2", by="Zeta", size=100.5),
    ]
    return index_of(documents, [2])._snapshot


@pytest.mark.parametrize(
    ("filter", "note"),
    [
        ("by=Siemens", "no document has by=Siemens; the nearest value is Siemens AG"),
        ("by=BOSH", "no document has by=BOSH; the nearest values are Bosch, Robert Bosch GmbH"),
        ("by=*bosh*", "no document has by=*bosh*; the nearest values are Bosch, Robert Bosch GmbH"),
        ('by="bosch"', 'no document has by="bosch"; the nearest values are Bosch, Robert Bosch GmbH'),
        ("by!=bosh", "no document has by=bosh; the nearest values are Bosch, Robert Bosch GmbH"),
        ("kind=B1|X", "no document has kind=X; the values of kind are B1, A1, B2"),
        ("date<1990", "no document has date<1990; the values of date lie between 1999 and 20130401"),
        ("date=2001..2002", "no document has date=2001..2002; the values of date lie between 1999 and 20130401"),
        # 9 is less than 10 as a number, and more as a text.
        ("size>1000", "no document has size>1000; the values of size lie between 9 and 100.5"),
        ("by>zz", "no document has by>zz; the values of by lie between Bosch and Zeta"),
        ("kind>2020", "no document has kind>2020; no value of kind can be compared with 2020"),
        ("ipc=F04B", "no document has ipc=F04B; the nearest codes are F04D13/02, F04D29/00"),
        ("ipc=C07*", "no document has ipc=C07*; the codes of ipc begin with other letters"),
    ],
)
def test_a_value_that_no_document_has(snapshot, filter, note):
    assert notes_on_filter(snapshot, parse_filter(filter)) == [note]


@pytest.mark.parametrize("filter", ["by=bosch", "by=*BOSCH*", "kind!=A1", "date=2013", "size<10", "ipc=F04D", "id=nothing", "kind=*"])
def test_nothing_is_said_of_values_that_documents_have(snapshot, filter):
    assert notes_on_filter(snapshot, All((parse_filter(filter),))) == []


def test_among_many_values_only_those_that_share_a_part_are_compared(monkeypatch):
    monkeypatch.setattr(nearest_values, "_COMPARED", 5)
    snapshot = index_of([document(f"d{i}", by=f"company {i}") for i in range(40)] + [document("x", by="Magnetwerk Süd")])._snapshot
    assert notes_on_filter(snapshot, parse_filter("by=magnetwrk süd")) == [
        "no document has by=magnetwrk süd; the nearest value is Magnetwerk Süd"
    ]
    [note] = notes_on_filter(snapshot, parse_filter("by=zzz"))
    assert note == "no document has by=zzz; the most frequent values of by are " + ", ".join(
        ["Magnetwerk Süd", "company 0", "company 1", "company 10", "company 11", "company 12"]
    )


def test_a_note_is_short():
    snapshot = index_of([document("d", by="a long name of a company " * 20)])._snapshot
    [note] = notes_on_filter(snapshot, parse_filter(f"by={'nothing ' * 40}"))
    assert len(note) < 250


def test_a_bound_that_no_value_can_be_compared_with_is_an_error():
    dated = [plain_document(id, "", "pump") for id in ("a", "b")]
    values = ({"date": "2013-04-01", "year": 2013, "version": "1.2"}, {"date": "2014", "year": 2014, "version": "1.10b"})
    index = index_of([replace(document, metadata=value) for document, value in zip(dated, values, strict=True)], [1])

    def found(condition):
        return {hit.document for hit in index.search("pump", filter=condition)}

    for condition in ("date<yesterday", "date>=soon", "year>inf", "year=nan..zzz", "year<=20l3", "date!=a..b"):
        with pytest.raises(UsageError, match=r"cannot be compared: all values of (date|year) are dates or numbers, and '.*' is neither"):
            found(condition)
    # A field with one text is compared as text on purpose, in all segments.
    assert found("version<1.2a") == {"a", "b"}
    assert found("version>=1.2a") == set()
    assert found("version>1.10a") == {"a", "b"}
    assert found("date<2014") == found("year<2014") == {"a"}


@pytest.mark.parametrize("condition", ["year>=1e999", "year<-1e999", "year=1e999", "year=1..1e999", f"year>{'9' * 500}"])
def test_a_number_that_is_too_large_is_an_error(condition):
    with pytest.raises(UsageError, match="the number is too large"):
        parse_filter(condition)
    assert parse_filter('year="1e999"')
