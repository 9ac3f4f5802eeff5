"""Terms are looked up in a cache, whatever it holds and however small it is."""

import numpy as np
import pytest

from perikope.fetch.models import parse_fetch_model
from perikope.fetch.search import _term_factors, collection_statistics
from perikope.index import reader
from perikope.index.reader import TermCache
from tests.support.collections import index_of, plain_document

WORDS = ["pump", "valv", "shaft", "seal", "rotor"]


@pytest.fixture(scope="module")
def snapshot():
    documents = [plain_document(f"d{i}", "", " ".join(word for j, word in enumerate(WORDS) if i % (j + 1) == 0)) for i in range(12)]
    return index_of(documents, [5])._snapshot


@pytest.mark.parametrize("first_room", [1, 2, 256])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_terms_are_found_again_and_after_the_cache_was_emptied(snapshot, most, first_room, monkeypatch):
    monkeypatch.setattr(reader, "_FIRST_ROOM", first_room)
    cache = TermCache(snapshot.segments, most)
    queries = [["en:pump"], ["en:valv", "en:absent"], ["en:seal", "en:pump", "en:seal"], [f"en:{word}" for word in WORDS], ["en:rotor"]]
    earlier = []
    for terms in [*queries, *queries]:
        table, rows = cache.find(terms)
        np.testing.assert_array_equal(table.rows[rows], cache._read(terms))
        earlier.append((terms, table, rows))
    for terms, table, rows in earlier:  # nobody who still uses an older table sees it change
        np.testing.assert_array_equal(table.rows[rows], cache._read(terms))
    assert len(cache._table.row_of_term) <= most


def test_a_cache_of_terms_takes_little_memory_until_it_is_used(snapshot):
    """A server opens a snapshot per commit, so megabytes per cache leave holes in its memory."""
    cache = TermCache(snapshot.segments)
    cache.find(["en:pump", "en:valv"])
    assert cache._table.rows.nbytes < 1 << 18


def test_the_factors_of_terms_are_those_of_a_single_term(snapshot):
    """They are cached term by term, so they must not depend on the terms that are looked up together."""
    for name in ("bm25", 'bm25(idf="robertson")', "pl2", "dph", "lm"):
        model = parse_fetch_model(name)
        for terms in (["en:pump"], ["en:seal", "en:absent", "en:valv"], ["en:pump", "en:rotor", "en:shaft"]):
            table, rows = snapshot.find_terms(terms)
            together = _term_factors(snapshot, table, model, by_language=False)[rows]
            for term, factors in zip(terms, together, strict=True):
                counts = snapshot.look_up([term]).counts
                if counts[0, 0]:
                    alone = model.of_term(collection_statistics(snapshot, [term], counts, by_language=False))
                    assert factors.tolist() == [float(factor[0]) for factor in alone]
