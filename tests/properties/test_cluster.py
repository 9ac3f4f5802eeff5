"""A cluster answers as a single index does, to the last bit, however many shards it has."""

import shutil
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import perikope
from perikope.core.errors import PerikopeError
from perikope.index.shards import shard_of
from perikope.search.facade import Index
from tests.support.cluster import coordinator, divide
from tests.support.collections import WORDS, collections, index_of, plain_document, structured_document
from tests.support.examples import scaled
from tests.support.models import READY
from tests.support.patents import families

pytestmark = pytest.mark.filterwarnings("ignore::perikope.core.errors.ModelWarning")

queries = (
    st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=5).filter(lambda words: set(words) - {"the", "of"}).map(" ".join)
)
boolean = st.sampled_from([
    "pump -valve", '"pump rotor" OR seal', "(magnet NEAR/3 shaft) OR pump*", "rotor AND NOT seal", "pum* valve", "été OR absent",
])  # fmt: skip
OPTIONS = [
    {},
    {"documents": 2},
    {"documents": "all", "model": "bm25"},
    {"fetch": "lm"},
    {"fetch": "pl2"},
    {"fetch": "dph"},
    {"fetch": "sim"},
    {"fetch_parts": {"abstract": 0.3, "claims": 0.7, "": 0.1}},
    {"fetch_parts": {"claims": 2.0}, "expand": "bo1"},
    {"expand": "bo1"},
    {"expand": "rm3(documents=2,terms=5)"},
    {"browse_expand": "rm3"},
    {"rescore": "qsf_v", "documents": 3},
    {"filter": "year>=2002"},
    {"filter": ("kind=a", "year<2004")},
    {"one_per": "kind"},
    {"one_per": ("section",)},
    {"group_by_document": "max"},
    {"elements": True},
    {"elements": True, "no_overlap": True},
    {"part": "claims"},
    {"must_match": True},
    {"language": "all"},
    {"language": "fr"},
    {"keep_unmatched": True},
    {"ids": ("d0", "d2", "d3")},
    {"k": 3, "offset": 2},
    {"synonyms": "pump, valve"},
]
"""Options that change which documents are fetched, which rows may be results, or how rows are scored."""


@st.composite
def described(draw):
    """Documents with metadata, so that filters and groups have something to read."""
    documents = draw(collections(min_size=1, max_size=9))
    years, kinds = st.integers(2000, 2005), st.sampled_from(["a", "b", ""])
    return [
        replace(document, metadata={"year": draw(years), **({"kind": kind} if (kind := draw(kinds)) else {})}) for document in documents
    ]


def outcome(index: Index, query, options: dict, *, explains: bool = False) -> bytes:
    """Names and scores with all their digits, the first hits as dictionaries, and explanations; or the error."""
    try:
        results = index.search(query, **{"k": 100, **options})
    except PerikopeError as error:
        return str(error).replace(str(index.folder), "FOLDER").encode()
    explained = [index.explain(query, name, **options) for name, _ in results.names()[:2]] if explains else []
    return repr((results.names(), [hit.to_dict() for hit in results[:4]], explained)).encode()


# An example takes a second, so a failing one is not made smaller.
some = settings(max_examples=max(4, scaled(40) // 3), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


class Both:
    """The same documents as an index, as a cluster on this machine, and as a cluster that is asked by messages."""

    def __init__(self, documents, shards, cuts=()):
        self.whole = index_of(documents)
        self.folder = divide(documents, shards, cuts=[cut for cut in sorted(cuts) if cut < len(documents)])
        self.clusters = {"on this machine": Index.open(self.folder), "by messages": coordinator(self.folder)}

    def check(self, query, options, **more):
        expected = outcome(self.whole, query, options, **more)
        for how, cluster in self.clusters.items():
            assert outcome(cluster, query, options, **more) == expected, (how, query, options)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for cluster in self.clusters.values():
            cluster.close()
        shutil.rmtree(self.folder)


@some
@given(described(), st.integers(1, 7), st.lists(st.integers(1, 5), max_size=1), queries)
def test_every_model_ranks_alike(documents, shards, cuts, query):
    with Both(documents, shards, cuts) as both:
        for model in READY:
            both.check(query, {"model": model}, explains=True)


@some
@given(described(), st.integers(1, 7), queries, boolean)
def test_every_option_has_the_same_effect(documents, shards, query, boolean):
    with Both(documents, shards) as both:
        for options in OPTIONS:
            both.check(query, options)
        for model in ("best", "bm25", "psg_doc"):
            both.check(boolean, {"model": model, "syntax": "boolean"})


@some
@given(described(), st.integers(2, 7), st.integers(0, 6), queries)
def test_a_partial_answer_is_that_of_an_index_of_the_documents_that_remain(documents, shards, missing, query):
    missing %= shards
    left = [document for document in documents if shard_of(document.id, shards) != missing]
    folder = divide(documents, shards)
    try:
        cluster = coordinator(folder, partial=True)
        cluster.shards.down = {missing}
        for model in READY:
            expected = outcome(index_of(left), query, {"model": model})
            assert outcome(cluster, query, {"model": model}) == expected, (model, missing)
    finally:
        shutil.rmtree(folder)


def test_patent_queries_find_the_same_prior_art(tmp_path):
    some = families()[:4]
    for family in some:
        for patent in family.everything:
            (tmp_path / f"{patent.id}.xml").write_text(patent.xml, "utf-8")
    with Both(list(perikope.read(tmp_path)), 3) as both:
        for family in some:
            for given in ({}, {"code_filter": False, "date_limit": False}, {"weighted": True, "fetch_words": 30}):
                asked = [index.patent_query(family.members[0].id, **given) for index in (both.whole, *both.clusters.values())]
                assert asked[1:] == asked[:1] * 2
                indexes = (both.whole, *both.clusters.values())
                expected, *others = [outcome(index, query, {}) for index, query in zip(indexes, asked, strict=True)]
                assert others == [expected] * 2


def test_everything_else_that_reads_documents_reads_them_from_their_shards():
    documents = [
        structured_document(),
        *(plain_document(f"e{i}", f"Seal {i}", "A rotor turns.", "The seal holds the rotor.") for i in range(9)),
    ]
    with Both(documents, 4) as both:
        asked = {
            "view": lambda index: index.view("d1", query="rotor"),
            "passage": lambda index: index.passage("d1#@2"),
            "outline": lambda index: index.outline("d1"),
            "landscape": lambda index: index.landscape("rotor seal", "d1"),
            "suggest": lambda index: index.suggest("rot"),
            "count": lambda index: index.count(),
            "documents": lambda index: sorted(index.documents(), key=lambda document: document.id),
            "get": lambda index: index.get("e3"),
            "contains": lambda index: ["e3" in index, "e99" in index, len(index), index.passages, index.languages],
            "context": lambda index: str(index.search("seal").context(200)),
            "corrected": lambda index: index.search("rotr seal").notes,
            "document ranking": lambda index: index.search("seal rotor").document_ranking("maxp"),
        }
        for what, ask in asked.items():
            expected = repr(ask(both.whole))
            for how, cluster in both.clusters.items():
                assert repr(ask(cluster)) == expected, (what, how)
