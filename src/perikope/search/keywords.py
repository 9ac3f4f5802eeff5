"""The keyword arguments of a search, typed for editors and type checkers.

Generated from `SearchOptions` by `python scripts/make_options.py`; edit the declaration in `search/options.py`, not this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from perikope.browse.models import Model
    from perikope.fetch.filters import Filter
    from perikope.patents.translation import Translator


class PatentKeywords(TypedDict, total=False):
    """How a patent becomes a query."""

    language: str
    """Search in this language only, not in every language of the index."""
    code_level: Literal["full", "group", "subclass", "class"]
    """How much of two classification codes must be equal."""
    fetch_words: int
    """With a patent: the number of its words that fetch documents, chosen by tf-idf."""
    fetch_from: str | Sequence[str]
    """With a patent: the parts these words come from: title, abstract, description, claims."""
    browse_words: int
    """With a patent: the number of its words that score passages, chosen by tf-idf."""
    browse_from: str | Sequence[str]
    """With a patent: the parts those words come from."""
    weighted: bool
    """With a patent: weight each word by its frequency in the patent. Otherwise each word counts once."""
    code_filter: bool
    """With a patent: only documents that share a classification code with it."""
    date_limit: bool
    """With a patent: only documents published before its priority date."""
    family_filter: bool
    """With a patent: leave out the other publications of its family."""
    translator: str | Translator | None
    """
    With a patent in a language that is not searched: the LibreTranslate server that translates it, and so receives
    its text.
    """


class SearchKeywords(PatentKeywords, total=False):
    """All options of a search."""

    model: str | Model
    """Model that scores passages; see `perikope models`."""
    browse_query: str
    """Score passages with this query; the main query then only fetches documents."""
    syntax: Literal["words", "boolean", "automatic"]
    """
    How queries are read. boolean: AND, OR, NOT, NEAR/5, ADJ/2, SAME, parentheses, "phrases", pump*, +word and
    -word; adjacent words are joined by AND. automatic: keywords, phrases, +word and -word become a Boolean query.
    """
    browse_expand: str
    """Add words of the best passages to the query that scores passages, and score again: bo1 or rm3."""
    fetch: str
    """Model that ranks documents: bm25, pl2, dph, lm or sim."""
    documents: int | Literal["all"]
    """Number of documents whose passages are scored."""
    fetch_parts: Mapping[str, float] | None
    """Rank documents by these parts only (title: the document's own title). A weight multiplies frequencies and lengths."""
    expand: str
    """Add words of the best documents to the query and fetch again: bo1 or rm3."""
    also_nearest: str
    """
    Also score the passages of as many documents that are nearest to the query by the vectors of this store; see
    `perikope encode`.
    """
    rescore: str | Model
    """Mix the fetch score of each document with the score that this model gives to the document as a whole."""
    rescore_weight: float
    """Weight of the rescore model in that mixture."""
    candidates: Mapping[str, float] | None
    """Documents with their scores to look into in place of fetching; ids that the index does not hold are ignored."""
    filter: str | Filter | Sequence[str | Filter]
    """
    Only documents whose metadata satisfy this condition: ipc=G06F, date<2013-04-01, year=2010..2012, by=a|b,
    name=The*, kind!=A1, id=d1|d2, codes~G06. A value "in quotes" is taken literally. Several conditions must all
    hold.
    """
    ids: str | Sequence[str] | None
    """Only documents with these ids; none at all where the list is empty."""
    shares_codes_with: str
    """Only documents that share a classification code with this document; the document itself is left out."""
    part: str | Sequence[str]
    """Only passages in this part of a document, such as claims. Several parts add up."""
    tag: str | Sequence[str]
    """Only passages with this tag. Several tags add up."""
    must_match: bool
    """Only passages that satisfy the query: all of its words where it is not Boolean."""
    across_passages: bool
    """Like must-match, but phrases, NEAR and AND may span several passages."""
    k: int
    """Number of passages to return."""
    elements: bool | str | Sequence[str]
    """Rank elements in place of passages: sections, lists, passages and whole documents, or only elements with these tags."""
    no_overlap: bool
    """Leave out results that overlap a better one."""
    drop_unmatched: bool
    """With no-overlap: leave out documents in which nothing scores. Otherwise such a document is one result."""
    group_by_document: bool | Literal["", "fetch", "score"]
    """Group the results of each document. Documents are in fetch order, or with score in the order of their best results."""
    one_per: str
    """Of documents with the same value in this metadata field, such as family, only the best one has results."""
