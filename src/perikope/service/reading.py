"""Operations that read an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from perikope.browse.document_ranking import parse_method
from perikope.browse.models import MODELS, ModelDefinition
from perikope.browse.reasons import ScoreReasons, reasons_of
from perikope.browse.signals import Node
from perikope.core.checkpoints import checkpoint
from perikope.core.errors import UsageError
from perikope.core.options import Options, option
from perikope.core.parameters import Parameter, Range
from perikope.core.values import AnyTexts, Names, Notation, OneOf, Real, Switch, Text, Whole
from perikope.fetch.file_fields import file_fields
from perikope.patents.codes import LEVELS
from perikope.query.completion import SuggestedWord
from perikope.query.topic import Topic
from perikope.search.best import best_model
from perikope.search.context import AROUND, BUDGET, no_room
from perikope.search.explaining import explain
from perikope.search.facade import Index
from perikope.search.hits import RankedDocument
from perikope.search.interpreting import Interpretation, interpret
from perikope.search.landscape import BINS, SIGMA, Landscape
from perikope.search.options import SYNTAXES, SearchOptions
from perikope.search.original_files import OriginalLines, original_lines
from perikope.search.outline import DocumentTree
from perikope.search.passage_view import PassageView
from perikope.search.recipes import load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.running import run_search
from perikope.search.steps import count_documents
from perikope.search.viewing import DocumentView, view_document
from perikope.service.answers import (
    BatchAnswer,
    BatchItem,
    ContextAnswer,
    CorrectedQuery,
    Counted,
    CountedValues,
    ExplainedNode,
    IndexSummary,
    ModelList,
    ModelParameter,
    ModelSummary,
    ReasonsAnswer,
    SearchAnswer,
)
from perikope.service.operations import CONDITIONS, RANKING, SCORING, GivenOptions, operation
from perikope.service.originals import folder_of_originals, has_originals

QUERY = "magnetic coupling"
"""The query of the examples."""
DOCUMENT, PASSAGE = "mc8-manual.md", "mc8-manual.md#@11"
"""The document and the passage of the examples, which `perikope demo` writes."""
DOCUMENT_HELP = "The id of the document, or the publication number of a patent in any spelling."
VALUES, MOST_VALUES = 100, 10_000
"""How many values of a field are returned by default and at most."""
VALUES_HELP = "Largest number of counted values per metadata field; the most frequent ones are returned."
PASSAGE_HELP = "The name of the passage: document#passage, as in the hits of a search."


@dataclass(frozen=True, kw_only=True)
class NoOptions(Options):
    """An operation without options."""


@dataclass(frozen=True, kw_only=True)
class AskedOptions(Options):
    """What is searched for."""

    query: str = option("", Text(), "The query in words. With a patent, these words fetch documents, and the patent scores passages.")
    patent: str = option("", Text(), "A patent of the index to search with, by its publication number or id.")
    claims: str = option("", Text(), "A text of claims to search with. With a patent, it replaces the claims of the patent.")
    claim: tuple[str, ...] = option((), Names(), "With a patent: search with these claims only, given by number.")
    family: tuple[str, ...] = option((), Names(), "With a patent: ids of further documents of its family.")
    recipe: str = option("", Text(), "Take options from the recipe with this name. Options of the request take precedence.")

    @property
    def topic(self) -> str | Topic:
        """The query as `Index.search` takes it. Raises `UsageError` if there is none."""
        if not (self.patent or self.claims):
            if self.claim or self.family:
                raise UsageError(f"{'claim' if self.claim else 'family'} needs a patent; give the patent with patent")
            if not self.query.strip():
                raise UsageError("the query is empty; give at least one word, a patent or claims")
            return self.query
        if self.claim and self.claims:
            raise UsageError("give the text of claims (claims) or numbers of claims of the patent (claim), not both")
        return Topic("", self.query, self.patent, self.claims or self.claim, self.family)


@dataclass(frozen=True, kw_only=True)
class SearchRequest(AskedOptions):
    """A search, with what is returned besides the hits."""

    facets: tuple[str, ...] = option((), Names(), "Metadata fields whose values are counted in all candidate documents.")
    values: int = option(VALUES, Whole(Range(1, MOST_VALUES)), VALUES_HELP)
    document_ranking: str = option(
        "", Notation("perikope.browse.document_ranking:parse_method"),
        "Return documents, ranked by the scores of their passages: maxp, sump, firstp or meanp(n=3).",
    )  # fmt: skip
    reasons: bool = option(False, Switch(), "Return what the score of each hit is made of: passage, titles, sections, document and so on.")


@operation("search", SearchRequest, SearchAnswer, searches=RANKING, example={"query": QUERY, "k": 3})
def search(index: Index, given: GivenOptions) -> SearchAnswer:
    """Search for the best passages."""
    return _answer(index, given.own.topic, given.own, given.search)


def _answer(index: Index, topic: str | Topic, asked: SearchRequest, given: Any) -> SearchAnswer:
    options = dict(given)
    if asked.document_ranking:
        parse_method(asked.document_ranking)
        options |= {"k": 1, "offset": 0}
    results, complaints = run_search(index.snapshot, topic, asked.recipe, None, options)
    checkpoint("hits")
    return SearchAnswer(
        generation=index.snapshot.manifest.generation,
        fingerprint=index.fingerprint,
        model=results.model,
        hits=() if asked.document_ranking else _hits(results),
        documents=_documents(results, asked, given) if asked.document_ranking else (),
        facets=_facets(results, asked.facets, asked.values),
        notes=results.notes,
        warnings=tuple(map(str, complaints)),
        suggestions=CorrectedQuery(dict(results.suggestions.words), results.suggestions.query),
        reasons=tuple(_reasons(results)) if asked.reasons and not asked.document_ranking else (),
        complete=results.complete,
        missing_shards=results.missing_shards,
    )


def _reasons(results: Results) -> Iterator[ScoreReasons]:
    for number in range(len(results)):
        checkpoint("reasons")
        yield results.reasons(number)


def _documents(results: Results, asked: SearchRequest, given: Any) -> tuple[RankedDocument, ...]:
    options = resolve_options(load_recipe(asked.recipe) if asked.recipe else None, given, None)
    return tuple(results.documents(asked.document_ranking, options.k, offset=options.offset))


def _hits(results: Results) -> tuple[Any, ...]:
    hits = []
    for hit in results:
        checkpoint("hits")
        hits.append(hit)
    return tuple(hits)


@dataclass(frozen=True, kw_only=True)
class BatchRequest(Options):
    """Several searches with the same options."""

    queries: tuple[str, ...] = option((), AnyTexts(), "The queries in words. The answers are in the same order.")
    recipe: str = option("", Text(), "Take options from the recipe with this name. Options of the request take precedence.")


@operation("search-many", BatchRequest, BatchAnswer, searches=RANKING, example={"queries": [QUERY, "rotor"], "k": 1}, methods=("POST",))
def search_many(index: Index, given: GivenOptions) -> BatchAnswer:
    """Search for several queries with the same options. One that cannot be searched for does not stop the others."""
    asked = SearchRequest.of({"recipe": given.own.recipe})
    items = []
    for query in given.own.queries:
        try:
            items.append(BatchItem(_answer(index, query, asked, given.search), ""))
        except UsageError as error:
            items.append(BatchItem(None, str(error)))
    missing = index.snapshot.missing_shards
    return BatchAnswer(index.snapshot.manifest.generation, tuple(items), complete=not missing, missing_shards=missing)


@dataclass(frozen=True, kw_only=True)
class ContextRequest(AskedOptions):
    """A search whose hits become one text."""

    budget: int = option(BUDGET, Whole(Range(1, 1_000_000)), "The largest number of words of the text.")
    around: int = option(AROUND, Whole(Range(0, 100)), "Number of neighbouring passages on either side of a hit, if they fit.")


@operation("context", ContextRequest, ContextAnswer, searches=RANKING, example={"query": QUERY, "budget": 200})
def context(index: Index, given: GivenOptions) -> ContextAnswer:
    """The best passages as one text for a language model or a reader, within a budget of words."""
    results, _ = run_search(index.snapshot, given.own.topic, given.own.recipe, None, given.search)
    checkpoint("hits")
    text = results.context(given.own.budget, around=given.own.around)
    notes = (*results.notes, *([no_room(given.own.budget, text.needed)] if text.needed else []))
    return ContextAnswer(
        text.text, text.pieces, text.tokens, text.left_out, text.needed, results.model, notes,
        complete=results.complete, missing_shards=results.missing_shards,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(AskedOptions):
    """A passage whose score is explained."""

    passage: str = option("", Text(), PASSAGE_HELP)


@operation("explain", ExplainRequest, ExplainedNode, searches=SCORING, example={"query": QUERY, "passage": PASSAGE})
def explanation(index: Index, given: GivenOptions) -> ExplainedNode:
    """Explain the score of a passage for a query, as a tree of values."""
    return _explained(_explanation(index, given))


def _explanation(index: Index, given: GivenOptions) -> Node:
    chosen = load_recipe(given.own.recipe) if given.own.recipe else None
    return explain(index.snapshot, given.own.topic, given.own.passage, resolve_options(chosen, given.search, None))


def _explained(node: Node) -> ExplainedNode:
    children = tuple(map(_explained, node.children))
    return ExplainedNode(node.label, node.value, node.operation, node.slope, node.intercept, dict(node.origins), node.word, children)


@dataclass(frozen=True, kw_only=True)
class ReasonsRequest(ExplainRequest):
    """A passage whose score is added up."""

    tree: bool = option(False, Switch(), "Return the explanation too, as `explain` does. It is computed once for both.")


@operation("reasons", ReasonsRequest, ReasonsAnswer, searches=SCORING, example={"query": QUERY, "passage": PASSAGE})
def reasons(index: Index, given: GivenOptions) -> ReasonsAnswer:
    """What the score of a passage is made of: the values of its explanation, added up by text and by word."""
    node = _explanation(index, given)
    found = reasons_of(node)
    return ReasonsAnswer(found.score, found.parts, _explained(node) if given.own.tree else None)


@dataclass(frozen=True, kw_only=True)
class DocumentRequest(Options):
    """A document by its id."""

    document: str = option("", Text(), DOCUMENT_HELP)
    query: str = option("", Text(), "Highlight the words that match this query.")
    language: str = option("", Notation("perikope.text.analysis:language_code"), "Language of the query.")


@operation("document", DocumentRequest, DocumentView, example={"document": DOCUMENT}, methods=("GET",))
def document(index: Index, given: GivenOptions) -> DocumentView:
    """A document with its titles and passages in reading order."""
    return view_document(index.snapshot, given.own.document, given.own.query, given.own.language)


@dataclass(frozen=True, kw_only=True)
class OutlineRequest(Options):
    """A document by its id."""

    document: str = option("", Text(), DOCUMENT_HELP)


@operation("outline", OutlineRequest, DocumentTree, example={"document": DOCUMENT}, methods=("GET",))
def outline(index: Index, given: GivenOptions) -> DocumentTree:
    """The sections of a document with their titles, as a flat list of nodes that name their parents."""
    return index.outline(given.own.document)


@dataclass(frozen=True, kw_only=True)
class PassageRequest(Options):
    """A passage by its name."""

    passage: str = option("", Text(), PASSAGE_HELP)
    around: int = option(2, Whole(Range(0, 100)), "Number of neighbouring passages on either side.")


@operation("passage", PassageRequest, PassageView, example={"passage": PASSAGE}, methods=("GET",))
def passage(index: Index, given: GivenOptions) -> PassageView:
    """A passage with its heading path, its source and its neighbours."""
    return index.passage(given.own.passage, around=given.own.around)


@dataclass(frozen=True, kw_only=True)
class OriginalRequest(Options):
    """A passage whose file is read."""

    passage: str = option("", Text(), "The name of the passage: document#passage, as in the hits of a search.")
    pdf: bool = option(False, Switch(), "If the file is a PDF, return its bytes too, in base64.")


@operation("original", OriginalRequest, OriginalLines, example={"passage": PASSAGE}, methods=("GET",))
def original(index: Index, given: GivenOptions) -> OriginalLines:
    """The file that a passage was read from, as text or as a PDF. A server offers it if it serves files."""
    return original_lines(index, given.own.passage, folder_of_originals(), pdf=given.own.pdf)


@dataclass(frozen=True, kw_only=True)
class LandscapeRequest(AskedOptions):
    """A document whose places are compared with a query."""

    document: str = option("", Text(), DOCUMENT_HELP)
    bins: int = option(BINS, Whole(Range(1, 10_000)), "Number of places of equal size that the document is cut into.")
    sigma: float = option(
        SIGMA, Real(Range(0.01, 1_000_000)), "How far the influence of a word reaches, in tokens: the width of a Gaussian."
    )
    language: str = option("", Notation("perikope.text.analysis:language_code"), "Language of the query.")
    syntax: str = option("words", OneOf(SYNTAXES), "How the query is read, as in a search.")


@operation("landscape", LandscapeRequest, Landscape, example={"query": QUERY, "document": DOCUMENT, "bins": 20})
def landscape(index: Index, given: GivenOptions) -> Landscape:
    """The relevance landscape of a document: how near each of its places is to the words of a query, from 0 to 1."""
    asked = given.own
    return index.landscape(
        asked.topic, asked.document, bins=asked.bins, sigma=asked.sigma, language=asked.language, syntax=asked.syntax
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SuggestRequest(Options):
    """What a user has typed so far."""

    prefix: str = option("", Text(), "The text so far. Its last word is completed.")
    k: int = option(10, Whole(Range(1, 100)), "Largest number of words.")
    language: str = option("", Notation("perikope.text.analysis:language_code"), "Language of the text.")


@operation("suggest", SuggestRequest, tuple[SuggestedWord, ...], example={"prefix": "magnetic coup"}, methods=("GET",))
def suggest(index: Index, given: GivenOptions) -> tuple[SuggestedWord, ...]:
    """Words of the index that complete the last word of a text, most frequent first."""
    return index.suggest(given.own.prefix, k=given.own.k, language=given.own.language)


@dataclass(frozen=True, kw_only=True)
class InterpretRequest(Options):
    """A text in a search box."""

    text: str = option("", Text(), "The text that a user has written or pasted.")
    language: str = option("", Notation("perikope.text.analysis:language_code"), "Language of the text.")


@operation("interpret", InterpretRequest, Interpretation, example={"text": "EP9130000B1, claim 1"})
def interpretation(index: Index, given: GivenOptions) -> Interpretation:
    """What a text in a search box means: words, a Boolean query, a patent, a pasted claim, or the name of a passage."""
    return interpret(index.snapshot, given.own.text, given.own.language)


@dataclass(frozen=True, kw_only=True)
class ValuesRequest(Options):
    """A metadata field whose values are listed."""

    field: str = option("", Text(), "The metadata field.")
    prefix: str = option("", Text(), "List only values that begin with this text. Upper and lower case are the same.")
    k: int = option(20, Whole(Range(1, 1000)), "Largest number of values.")


@operation("values", ValuesRequest, dict[str, int], example={"field": "folder"}, methods=("GET",))
def values(index: Index, given: GivenOptions) -> dict[str, int]:
    """The most frequent values of a metadata field, each with its number of documents."""
    return index.values(given.own.field, prefix=given.own.prefix, k=given.own.k)


@dataclass(frozen=True, kw_only=True)
class FacetsRequest(AskedOptions):
    """Metadata fields whose values are counted."""

    fields: tuple[str, ...] = option((), Names(), "The metadata fields.")
    values: int = option(VALUES, Whole(Range(1, MOST_VALUES)), VALUES_HELP)
    level: str = option("full", OneOf(LEVELS), "Level at which classification codes are counted: class, subclass, group or full.")


@operation("facets", FacetsRequest, dict[str, CountedValues], searches=SCORING, example={"query": QUERY, "fields": ["folder"]})
def facets(index: Index, given: GivenOptions) -> dict[str, CountedValues]:
    """For each field, its most frequent values among the candidate documents of a search."""
    results, _ = run_search(index.snapshot, given.own.topic, given.own.recipe, None, {**given.search, "k": 1, "offset": 0})
    return _facets(results, given.own.fields, given.own.values, given.own.level)


def _facets(results: Results, fields: tuple[str, ...], most: int, level: str = "full") -> dict[str, CountedValues]:
    """The `most` most frequent values of each field, with classification codes at a level."""
    counted = {}
    for field in fields:
        checkpoint("facets")
        counts = results.facets(field, level=level)
        counted[field] = CountedValues(dict(islice(counts.items(), most)), len(counts))
    return counted


@operation("count", NoOptions, Counted, searches=CONDITIONS, example={"filter": ["folder=*"]})
def count(index: Index, given: GivenOptions) -> Counted:
    """The number of documents that satisfy the conditions of a search."""
    return Counted(count_documents(index.snapshot, SearchOptions.of(given.search)))


@operation("", NoOptions, IndexSummary, example={}, methods=("GET",))
def summary(index: Index, given: GivenOptions) -> IndexSummary:
    """What the index contains: sizes, languages, parts, metadata fields, stores and tables."""
    info, best = index.info(), best_model(index.snapshot, SearchOptions.of({}))
    assert best is not None
    return IndexSummary(
        documents=info.documents, passages=info.passages, language=info.language, languages=dict(info.languages),
        parts=dict(info.parts), tags=dict(info.tags), fields={field.name: field.documents for field in info.fields},
        file_fields=file_fields(index.snapshot),
        stores={store.name: store.kind for store in info.stores}, tables={table.name: table.kind for table in info.tables},
        model=best.model.short, generation=index.snapshot.manifest.generation, fingerprint=info.fingerprint, originals=has_originals(),
    )  # fmt: skip


@operation("models", NoOptions, ModelList, example={}, methods=("GET",))
def models(index: Index, given: GivenOptions) -> ModelList:
    """The models that score passages, with their parameters."""
    # A request cannot name a folder of the server.
    return ModelList(tuple(_model(definition) for _, definition in MODELS.items() if not definition.needs_folder))


def _model(definition: ModelDefinition) -> ModelSummary:
    parameters = {**definition.shape, **definition.weights}
    return ModelSummary(definition.name, definition.summary, tuple(map(_parameter, parameters.values())), definition.needs_store)


def _parameter(parameter: Parameter) -> ModelParameter:
    limits = parameter.range
    low, high = (limits.low, limits.high) if limits is not None else (None, None)
    return ModelParameter(
        parameter.name, _plain(parameter.default), parameter.help,
        None if low is None else float(low), limits is not None and limits.low_open, None if high is None else float(high),
        tuple(map(_plain, parameter.grid_values())),
    )  # fmt: skip


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
