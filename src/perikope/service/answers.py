"""The answers of operations that are not results of the library itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perikope.browse.reasons import ScorePart, ScoreReasons
from perikope.search.context import Excerpt
from perikope.search.hits import Hit, RankedDocument


@dataclass(frozen=True, slots=True)
class CorrectedQuery:
    """Words of a query that no document contains, and words of the index that may be meant."""

    words: dict[str, tuple[str, ...]]
    """For each word of the query that no document contains, the nearest words of the index, nearest first."""
    query: str
    """The query with the nearest word in place of each of these words; empty if there is no correction."""


@dataclass(frozen=True, slots=True)
class CountedValues:
    """The values of a metadata field among the candidate documents of a search."""

    values: dict[str, int]
    """The most frequent values, each with the number of documents that have it, most frequent first."""
    distinct: int
    """The number of different values, also of those that are not in `values`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialAnswer:
    """An answer that can say that it is incomplete. Other answers of a cluster that lack a shard are errors."""

    complete: bool = True
    """Whether all documents were searched; false if shards of a cluster did not answer."""
    missing_shards: tuple[int, ...] = ()
    """The numbers of the shards of a cluster that did not answer, so that their documents are missing."""


@dataclass(frozen=True, slots=True)
class SearchAnswer(PartialAnswer):
    """The results of one search."""

    generation: int
    """The number of the commit that was searched."""
    fingerprint: str
    """A checksum of the content of the index that was searched."""
    model: str
    """The model that ranked, with the parameters that differ from their defaults."""
    hits: tuple[Hit, ...]
    """The best passages, best first. Empty if `document_ranking` is given."""
    documents: tuple[RankedDocument, ...]
    """The best documents, best first, if `document_ranking` is given."""
    facets: dict[str, CountedValues]
    """The values of each requested metadata field among the candidate documents."""
    notes: tuple[str, ...]
    """Sentences for the user about what could not be done as requested."""
    warnings: tuple[str, ...]
    """Sentences about features that the model needs and the index lacks, and about differences from the recipe."""
    suggestions: CorrectedQuery
    reasons: tuple[ScoreReasons, ...] = ()
    """What the score of each hit is made of, in the order of the hits, if `reasons` was requested."""


@dataclass(frozen=True, slots=True)
class BatchItem:
    """The results of one query of a batch, or the reason why there are none."""

    answer: SearchAnswer | None
    """The results; null if the query could not be searched for."""
    problem: str
    """Why the query could not be searched for; empty if it could."""


@dataclass(frozen=True, slots=True)
class BatchAnswer(PartialAnswer):
    """The results of several searches, all of the same commit."""

    generation: int
    """The number of the commit that was searched."""
    answers: tuple[BatchItem, ...]
    """One item per query, in the order of the queries."""


@dataclass(frozen=True, slots=True)
class ContextAnswer(PartialAnswer):
    """The hits of a search as one text for a language model, within a budget of tokens."""

    text: str
    """The whole text, with borders and headings."""
    pieces: tuple[Excerpt, ...]
    """The excerpts, in the order of the text."""
    tokens: int
    """The number of tokens of `text`."""
    left_out: int
    """The number of hits that did not fit."""
    needed: int
    """If no hit fits into the budget, the number of tokens that the best hit alone needs; else 0."""
    model: str
    """The model that ranked."""
    notes: tuple[str, ...]
    """Sentences for the user about what could not be done as requested."""


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node of an explanation: a labelled value, and the operation that computes it from its children."""

    label: str
    value: float
    operation: str
    """`sum`, `product`, `min`, `max`, `affine`, `exp`, or `fact` for a value that is not computed further."""
    slope: float
    """The factor of the operation `affine`, else 1."""
    intercept: float
    """The summand of the operation `affine`, else 0."""
    origins: dict[str, float]
    """The texts that the value comes from, such as `titles`, each with its share; empty if other nodes say it."""
    word: str
    """The word of the query that the value is due to; empty if it is due to several or none."""
    children: tuple[ExplainedNode, ...]


@dataclass(frozen=True, slots=True)
class ReasonsAnswer:
    """What the score of a passage is made of."""

    score: float
    """The score."""
    parts: tuple[ScorePart, ...]
    """The parts that are not 0, largest first; negative ones by their size."""
    tree: ExplainedNode | None
    """The explanation, if it was asked for; else null."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of documents."""

    documents: int
    """The number of documents that satisfy all conditions."""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What an index contains."""

    documents: int
    """The number of documents."""
    passages: int
    """The number of passages in all documents."""
    language: str
    """The main language of the index."""
    languages: dict[str, int]
    """The number of passages in each language."""
    parts: dict[str, int]
    """The number of passages in each part."""
    tags: dict[str, int]
    """The number of passages with each tag."""
    fields: dict[str, int]
    """The number of documents that have each metadata field."""
    file_fields: tuple[str, ...]
    """Further fields of conditions, derived from files: `path` and `folder`; empty if no document has a file."""
    stores: dict[str, str]
    """The stores of vectors, each with its kind."""
    tables: dict[str, str]
    """The learned tables, each with its kind."""
    model: str
    """The model that ranks if a search names none."""
    generation: int
    """The number of the last commit."""
    fingerprint: str
    """A checksum of the content, which changes when the content changes."""
    originals: bool
    """Whether the server shows the files that documents were read from."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a change of an index has done. It is on disk when the answer is sent."""

    added: int
    """The number of documents that were added or replaced."""
    deleted: int
    """The number of documents that were deleted."""
    left_out: tuple[str, ...]
    """Ids of documents that were left out, because the index has a document with the same id."""
    documents: int
    """The number of documents after the change."""
    generation: int
    """The number of the commit that contains the change."""


@dataclass(frozen=True, slots=True)
class ModelParameter:
    """A parameter of a model."""

    name: str
    default: Any
    help: str
    low: float | None
    """The smallest value; null if there is none."""
    low_open: bool
    """Whether `low` itself is not allowed, only larger values."""
    high: float | None
    """The largest value; null if there is none."""
    choices: tuple[Any, ...]
    """The values that are tried by `perikope tune`, or all values of a parameter that has few."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model that scores passages."""

    name: str
    help: str
    parameters: tuple[ModelParameter, ...]
    needs_store: bool
    """Whether the model needs a store of vectors."""


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models that score passages."""

    models: tuple[ModelSummary, ...]
