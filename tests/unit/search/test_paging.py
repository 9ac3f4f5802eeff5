"""Pages of results (`offset`), and one result per document, section or value of a field (`one_per`)."""

import json

import pytest

import perikope as pk
from perikope.core.errors import UsageError
from perikope.search.facade import Index

WORDS = "rotor seal"


def document(number):
    sections = [
        {"title": "Rotor", "passages": ["The rotor turns.", "The rotor turns.", "A seal of the rotor."]},
        {"title": "Seal", "passages": ["The rotor turns.", "Seals wear."]},
    ]
    metadata = {"family": f"f{number // 2}", "document": f"v{number // 3}"}
    return {"id": f"d{number}", "title": "Pumps", "metadata": metadata, "sections": sections}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Documents that are all alike, so that most scores are equal, in three segments."""
    folder = tmp_path_factory.mktemp("paging")
    index = Index.create(folder / "idx")
    for first in (8, 0, 4):
        path = folder / f"{first}.jsonl"
        path.write_text("".join(json.dumps(document(number)) + "\n" for number in range(first, first + 4)))
        index.add(pk.read(path))
        index.commit()
    return index


@pytest.mark.parametrize(
    "options",
    [
        {}, {"model": "bm25"}, {"model": "bm25", "documents": "all"}, {"one_per": "document"}, {"one_per": "section"},
        {"one_per": ["family", "document"]}, {"group_by_document": "score"}, {"elements": True, "no_overlap": True},
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7])
def test_pages_make_the_whole_ranking(index, options, size):
    whole = index.search(WORDS, k=1000, **options)
    pages = [index.search(WORDS, k=size, offset=first, **options) for first in range(0, len(whole) + size, size)]
    assert [hit for page in pages for hit in page.names()] == whole.names()
    assert [hit.rank for page in pages for hit in page] == list(range(1, len(whole) + 1))
    assert len(pages[-1]) == 0


def test_ranks_count_from_the_offset_everywhere(index):
    page = index.search(WORDS, k=3, offset=4)
    assert page.signals()["rank"].tolist() == [5, 6, 7]
    assert {rank for piece in page.context(1000).pieces for rank in piece.ranks} == {5, 6, 7}


def test_pages_of_documents(index):
    results = index.search(WORDS, k=1)
    whole = results.document_ranking("sump", 12)
    assert results.document_ranking("sump", 5, offset=5) == whole[5:10]
    per_family = index.search(WORDS, k=1, one_per="family")
    assert per_family.document_ranking("sump", 2, offset=3) == per_family.document_ranking("sump", 6)[3:5]


def best_of(hits, key):
    first = {}
    for hit in hits:
        first.setdefault(key(hit), hit.name)
    return list(first.values())


@pytest.mark.parametrize(
    ("one_per", "key"), [("document", lambda hit: hit.document), ("section", lambda hit: (hit.document, hit.path))]
)  # fmt: skip
@pytest.mark.parametrize("model", ["qsf_v_title", "bm25"])
def test_one_result_per_unit_is_its_best_one(index, one_per, key, model):
    everything = index.search(WORDS, k=1000, model=model)
    assert [hit.name for hit in index.search(WORDS, k=1000, model=model, one_per=one_per)] == best_of(everything, key)


def test_a_field_keeps_all_results_of_the_best_document(index):
    hits = index.search(WORDS, k=1000, one_per="family")
    assert len({hit.document for hit in hits}) == 6
    assert len(hits) > 6
    both = index.search(WORDS, k=1000, one_per=["document", "family"])
    assert [hit.document for hit in both] == list(dict.fromkeys(hit.document for hit in hits))


def test_document_is_the_unit_and_metadata_document_the_field(index):
    assert len(index.search(WORDS, k=1000, one_per="document")) == 12
    assert len({hit.document for hit in index.search(WORDS, k=1000, one_per="metadata.document")}) == 4


def test_mistakes(index):
    with pytest.raises(UsageError, match="unknown metadata field 'famly'; did you mean 'family'"):
        index.search(WORDS, one_per="famly")
    with pytest.raises(UsageError, match="unknown metadata field 'docment'; did you mean 'document'"):
        index.search(WORDS, one_per="docment")
    with pytest.raises(UsageError, match="one_per takes one metadata field, not family and document"):
        index.search(WORDS, one_per=["family", "metadata.document"])
    with pytest.raises(UsageError, match="offset must be a whole number of at least 0, not -1"):
        index.search(WORDS, offset=-1)
