import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.core.names import document_name, element_path, encode, normal_path, passage_name, running_number, split_name
from perikope.search.views import printable

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ids, ids)
def test_a_name_splits_into_what_it_was_made_of(document, passage):
    name = passage_name(document, passage)
    assert split_name(name) == (document, passage)
    assert document_name(name) == encode(document)
    assert len(name.split()) == 1


@given(ids, ids)
def test_a_name_is_printed_as_it_is(document, passage):
    name = passage_name(document, passage)
    assert printable(name) == name


@pytest.mark.parametrize("character", ["\x1b", "\x85", "\x9b", "\u00ad", "\u200b", "\u2028", "\u202e", "\u2066", "\ufeff", "\U000e0041"])
def test_characters_that_nobody_sees_are_encoded(character):
    name = passage_name(f"a{character}b", f"p{character}q")
    assert name.isascii()
    assert name.isprintable()
    assert split_name(name) == (f"a{character}b", f"p{character}q")


def test_letters_and_joiners_stay_as_they_are():
    assert encode("ü/日本.md") == "ü/日本.md"
    assert encode("\u0645\u06cc\u200c\u0631\u0648\u0645") == "\u0645\u06cc\u200c\u0631\u0648\u0645"


def test_the_name_of_a_document_has_no_passage():
    assert split_name("EP1130000B1") == ("EP1130000B1", "")


def test_running_numbers_count_from_one():
    assert running_number(0) == "@1"


def test_paths_that_differ_in_written_ones_alone_are_the_same():
    assert normal_path("/patent-document/claims[01]/claim[3]") == "/patent-document[1]/claims[1]/claim[3]"
    path = element_path([("article", 1), ("a/b", 2), ("", 3)])
    assert normal_path(path) == path


@pytest.mark.parametrize(
    "path", ["", "/", "claim[1]", "//claim", "/a/", "/a[0]", "/a[-1]", "/a[x]", "/a[1][2]", "/a b", "/a[@lang='en']", "/a/@id"]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(UsageError, match="is not the path of an element"):
        normal_path(path)


@given(st.text("/[]12ab ", max_size=12))
def test_a_normal_path_stays_as_it_is(text):
    try:
        path = normal_path(text)
    except UsageError:
        return
    assert normal_path(path) == path
