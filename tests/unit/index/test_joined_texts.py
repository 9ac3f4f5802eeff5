from hypothesis import given
from hypothesis import strategies as st

from perikope.index.joined_texts import JoinedTexts
from tests.support.collections import index_of, plain_document

texts = st.text("aAbBßéÉ. |*", max_size=4)


def strings_of(values):
    """A column of strings: the ids of documents of an index."""
    [segment] = index_of([plain_document(value, "", "text") for value in values])._snapshot.segments
    return segment.document_ids


@given(st.lists(texts.filter(str.strip), min_size=1, max_size=6, unique=True), texts, st.booleans(), st.booleans(), st.booleans())
def test_texts_that_contain_a_text(values, wanted, before, after, fold):
    strings = strings_of(values)
    stored = [strings.text(number) for number in range(len(values))]
    first = len(values) // 2
    joined = JoinedTexts.of(strings, range(first, len(values)), fold=fold)
    folded = str.casefold if fold else str
    part = folded(wanted)
    expected = []
    for number, value in enumerate(map(folded, stored[first:])):
        if part in value if before and after else value.endswith(part) if before else value.startswith(part) if after else value == part:
            expected.append(number)
    assert joined.containing(part.encode(), before=before, after=after).tolist() == expected
    bound = part.encode()
    signs = [(value > bound) - (value < bound) for value in (folded(value).encode() for value in stored[first:])]
    assert joined.compare(bound).tolist() == signs


def test_no_texts():
    joined = JoinedTexts.of(strings_of(["a"]), range(0), fold=True)
    assert joined.containing(b"a", before=True, after=True).tolist() == []
    assert joined.compare(b"a").tolist() == []
