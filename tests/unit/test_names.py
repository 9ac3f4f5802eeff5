from hypothesis import given
from hypothesis import strategies as st

from perikope.names import document_name, encode, passage_name, running_number, split_name

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ids, ids)
def test_a_name_splits_into_what_it_was_made_of(document, passage):
    name = passage_name(document, passage)
    assert split_name(name) == (document, passage)
    assert document_name(name) == encode(document)
    assert len(name.split()) == 1


def test_the_name_of_a_document_has_no_passage():
    assert split_name("EP1130000B1") == ("EP1130000B1", "")


def test_running_numbers_count_from_one():
    assert running_number(0) == "@1"
