"""After any adding, replacing, deleting and merging, an index equals the index that is built from its content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.index import commit as commits
from perikope.text.analysis import Analyzer
from tests.support.collections import documents, index_of
from tests.support.examples import examples
from tests.support.plain import PlainCollection

ANALYZER = Analyzer()
IDS = [f"d{i}" for i in range(6)]
MODELS = ["bm25", "psg_doc", "qsf_v_title"]
QUERY = "pump rotor magnet seal rotor"


@st.composite
def changes(draw):
    """Steps of a writer: documents to add or replace, ids to delete, and what happens then."""
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        new = {id: draw(documents(id=id)) for id in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=3))}
        gone = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=2))
        steps.append((new, [id for id in gone if id not in new], draw(st.sampled_from(["commit", "commit", "compact", "reopen"]))))
    return steps


def apply(steps):
    """An index after the steps, and the documents it must hold."""
    index, content = index_of([]), {}
    for new, gone, then in steps:
        gone = [id for id in gone if id in content]
        index.delete(gone)
        index.add(new.values(), replace=True)
        content = {id: document for id, document in content.items() if id not in gone} | new
        if then == "compact":
            index.compact()
        else:
            index.commit()
        if then == "reopen":
            index = type(index).open(index.folder)
    return index, content


@pytest.mark.parametrize("most", [1, 2, 12])
@examples(40)
@given(steps=changes())
def test_any_history_equals_a_rebuild(monkeypatch_module, most, steps):
    monkeypatch_module.setattr(commits, "MAX_SEGMENTS", most)
    index, content = apply(steps)
    rebuilt = index_of(list(content.values()))
    assert len(index) == len(content)
    assert index.passages == rebuilt.passages
    plain = PlainCollection(list(content.values()), ANALYZER)
    terms = [*sorted(plain.occurrences), "en:absent", "fr:pump", "en:seal"]
    mine, theirs = index._snapshot.statistics(terms), rebuilt._snapshot.statistics(terms)
    for name in type(mine).__slots__:
        assert str(getattr(mine, name)) == str(getattr(theirs, name)), name
    for part in ("", "abstract", "claims"):
        found, expected = (i._snapshot.part_statistics(terms, part) for i in (index, rebuilt))
        assert [array.tolist() for array in found] == [array.tolist() for array in expected]
    for model in MODELS:
        assert index.search(QUERY, model=model, k=100).names() == rebuilt.search(QUERY, model=model, k=100).names()
    for id in IDS:
        number = index._snapshot.find_document(id)
        assert (number >= 0) == (id in content)
        if number >= 0:
            segment, local = index._snapshot.locate(number)
            assert segment.text(local) == content[id].text


@examples(40)
@given(steps=changes())
def test_deleted_text_is_gone_after_compacting(steps):
    index, content = apply(steps)
    index.compact()
    assert len(index._snapshot.segments) == (1 if content else 0)
    assert all(segment.tombstones is None for segment in index._snapshot.segments)
    known = {path.name for path in index.folder.iterdir()}
    assert len(known) == 2 + len(index._snapshot.segments)
    for segment in index._snapshot.segments:
        texts = {segment.text(document) for document in range(segment.documents)}
        assert texts == {document.text for document in content.values()}


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch
