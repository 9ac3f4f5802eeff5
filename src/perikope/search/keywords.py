"""The keyword arguments of a search, typed for editors and type checkers.

Generated from `SearchOptions` by `python scripts/make_options.py`. Edit the declaration in `search/options.py` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from perikope.browse.models import Model
    from perikope.fetch.filters import Filter
    from perikope.patents.translation import Translator


class PatentKeywords(TypedDict, total=False):
    """How a patent becomes a query."""

    language: str
    """
    Language to search, such as en, or all for all languages as one collection. Without it, the language of the
    query is searched or, if the query does not show its language, every language of the index.
    """
    code_level: Literal["full", "group", "subclass", "class"]
    """
    Level at which two classification codes must be equal to be shared: full code, group, subclass or class. Codes
    of a patent that fetch documents have the same level.
    """
    fetch_words: int | Literal["all"]
    """With a patent: number of words that fetch documents, or all words. The words with the highest tf-idf are used."""
    fetch_from: str | Sequence[str]
    """
    With a patent: parts whose words fetch documents: title, abstract, description, claims, bibliography (names of
    people), and fields whose classification codes do: ipc, cpc, ecla.
    """
    browse_words: int | Literal["all"]
    """With a patent: number of words that score passages, or all words. The words with the highest tf-idf are used."""
    browse_from: str | Sequence[str]
    """With a patent: parts whose words score passages: title, abstract, description, claims, bibliography."""
    weighted: bool
    """With a patent: weight each word by its frequency in the patent. Without this option, each word has weight 1."""
    code_filter: bool
    """With a patent: return only documents that share a classification code with it."""
    date_limit: bool
    """With a patent: return only documents published before its priority date."""
    family_filter: bool
    """With a patent: leave out other documents of its patent family."""
    translator: str | Translator | None
    """
    With a patent: LibreTranslate server that translates the patent if its language is not searched. The server
    receives the text.
    """


class SearchKeywords(PatentKeywords, total=False):
    """All options of a search."""

    model: str | Model | Callable[..., object]
    """
    Model that scores passages; see `perikope models`. best: the index's own default if it has one, else hybrid if
    the index has vectors of all documents, else coverage.
    """
    browse_query: str
    """Score passages with this query. The main query then only fetches documents."""
    syntax: Literal["words", "boolean", "automatic"]
    """
    How queries are read. words: as plain words. boolean: with AND, OR, NOT, NEAR/5, ADJ/2, SAME, parentheses,
    "phrases", pump*, pumpp~1, +word and -word; adjacent words are joined by AND. automatic: keywords, phrases,
    +word and -word become a Boolean query.
    """
    synonyms: str | Sequence[str]
    """
    Also search for synonyms of the query's words, by the rules in this file: plane, aeroplane or colour => color,
    one rule per line (Solr's format). A word and its synonyms count as one word.
    """
    fuzzy: int
    """
    Number of typing mistakes to allow in words that no document contains. Words of up to four letters may have one.
    """
    browse_expand: str
    """Expand the query that scores passages with words of the best passages, then score again: bo1 or rm3."""
    fetch: str
    """Model that ranks documents before their passages are scored: bm25, pl2, dph, lm or sim."""
    documents: int | Literal["all"]
    """Number of best documents whose passages are scored, or all documents."""
    fetch_parts: Mapping[str, float] | None
    """
    Rank documents by these parts only; the part title is the title of the document, and ipc, cpc and ecla are its
    codes. A weight multiplies the term frequencies and the length of its part.
    """
    expand: str
    """Expand the query with words of the best documents, then fetch again: bo1 or rm3."""
    also_nearest: str
    """
    Also score passages of the documents whose vectors in this store are nearest to the query. Their number is at
    most the value of the option documents; see `perikope encode`.
    """
    rescore: str | Model | Callable[..., object]
    """
    Rank the fetched documents again by a mixture of their fetch score and the score of this model for the whole
    document.
    """
    rescore_weight: float
    """Weight of the rescore model in the mixture with the fetch score; larger values favour the model."""
    candidates: Mapping[str, float] | None
    """
    Score passages of these documents instead of fetched documents. Each id has a score. Ids that are not in the
    index are ignored.
    """
    filter: str | Filter | Sequence[str | Filter]
    """
    Search only documents whose metadata satisfy this condition: ipc=G06F, date<2013-04-01, year=2010..2012, by=a|b,
    name=*pump*, kind!=A1, id=d1|d2, codes~G06. Upper and lower case are the same, except in a value "in quotes",
    which is taken literally. Several conditions must all hold.
    """
    ids: str | Sequence[str] | None
    """Search only documents with these ids. An empty list allows no document."""
    shares_codes_with: str
    """Search only documents that share a classification code with this document. The document itself is left out."""
    part: str | Sequence[str]
    """Return only passages in this part of a document, such as claims, or in any of several parts."""
    tag: str | Sequence[str]
    """Return only passages with this tag, or with any of several tags."""
    without_tag: str | Sequence[str]
    """Leave out passages with this tag, or with any of several tags. The tag code stands for program code."""
    must_match: bool
    """Return only passages that satisfy the Boolean query or, for a query of plain words, contain all of its words."""
    across_passages: bool
    """
    Return only passages that contain part of a match of the query. A match may span several passages of a document.
    """
    k: int
    """Number of results to return."""
    offset: int
    """Number of best results to leave out before the first one that is returned, to turn pages."""
    elements: bool | str | Sequence[str]
    """
    Rank elements instead of passages: sections, lists, passages and whole documents, or only elements with these
    tags. The name of a table that `perikope learn tags` saved stands for its logical tags.
    """
    no_overlap: bool
    """Leave out results that overlap a better result."""
    keep_unmatched: bool
    """
    With prox, prox_h or prox_hw: also return passages with score 0, which do not match the query. With no-overlap,
    a document that matches nowhere is returned as one result.
    """
    group_by_document: bool | Literal["", "fetch", "score"]
    """
    Group results by document. fetch: documents are in the order of their fetch scores. score: documents are in the
    order of their best results.
    """
    one_per: str | Sequence[str]
    """
    document or section: return only the best result of each document or section. A metadata field, such as family:
    for each of its values, return results of the best document only. A field and document can be combined.
    metadata.NAME is always a field.
    """
