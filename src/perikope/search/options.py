"""SearchOptions: the one description of a search.

Every way to ask for a search derives from this declaration: the keyword arguments of `Index.search` (`search/keywords.py` is generated
from it), the options of the command line, the keys of recipes, experiments and topics, and the JSON schema of the HTTP interface. A new
option is declared here and used in one step of `search/steps.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from perikope.core.options import Option, Options, declared, option, schema_of
from perikope.core.parameters import Range
from perikope.core.values import Conditions, Names, NamesOrAll, NamesOrNone, Notation, Numbers, OneOf, Real, Service, Switch, Text, Whole
from perikope.patents.codes import LEVELS

if TYPE_CHECKING:
    from perikope.fetch.filters import Filter
    from perikope.patents.translation import Translator

F = TypeVar("F", bound=Callable[..., Any])

RECIPE, TOPIC = "recipe", "topic"
"""Surfaces besides Python, the command line and HTTP. Recipes and the systems of experiments take the same options."""
BOTH = (RECIPE, TOPIC)

SYNTAXES = ("words", "boolean", "automatic")
FETCH, QUERY, RESTRICTIONS, RESULTS, PATENTS = "Documents to look into", "The query", "Restrictions", "Results", "Patents as queries"
GROUPS = (QUERY, FETCH, RESTRICTIONS, RESULTS, PATENTS)
"""The headings of a list of options, in their order."""

_EXPANSION = Notation("perikope.fetch.expansion:parse_expansion")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(Options):
    """How documents are fetched, which passages may be found, how they are scored, and how results are presented."""

    model: str = option(
        "qsf_v_title", Notation("perikope.browse.models:parse_model", "perikope.browse.models:Model", required=True),
        "Model that scores passages; see `perikope models`.",
        group=QUERY, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    browse_query: str = option(
        "", Text(), "Score passages with this query; the main query then only fetches documents.",
        group=QUERY, metavar="TEXT", surfaces=[TOPIC],
    )  # fmt: skip
    syntax: Literal["words", "boolean", "automatic"] = option(
        "words", OneOf(SYNTAXES),
        'How queries are read. boolean: AND, OR, NOT, NEAR/5, ADJ/2, SAME, parentheses, "phrases", pump*, +word and -word; adjacent words '
        "are joined by AND. automatic: keywords, phrases, +word and -word become a Boolean query.",
        group=QUERY, surfaces=BOTH,
    )  # fmt: skip
    language: str = option(
        "", Notation("perikope.text.analysis:language_code"), "Search in this language only, not in every language of the index.",
        group=QUERY, metavar="CODE", surfaces=BOTH,
    )  # fmt: skip
    browse_expand: str = option(
        "", _EXPANSION, "Add words of the best passages to the query that scores passages, and score again: bo1 or rm3.",
        together=True, group=QUERY, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip

    fetch: str = option(
        "bm25", Notation("perikope.fetch.models:parse_fetch_model", required=True),
        "Model that ranks documents: bm25, pl2, dph, lm or sim.",
        group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    documents: int | Literal["all"] = option(
        1000, Whole(Range(1), ("all",)), "Number of documents whose passages are scored.",
        group=FETCH, metavar="N|all", surfaces=[RECIPE],
    )  # fmt: skip
    fetch_parts: Mapping[str, float] | None = option(
        None, Numbers("perikope.fetch.parts:parse_parts"),
        "Rank documents by these parts only (title: the document's own title). A weight multiplies frequencies and lengths.",
        group=FETCH, metavar="PART[=WEIGHT],…", restricts=True, surfaces=[RECIPE],
    )  # fmt: skip
    expand: str = option(
        "", _EXPANSION, "Add words of the best documents to the query and fetch again: bo1 or rm3.",
        together=True, group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    also_nearest: str = option(
        "", Text(),
        "Also score the passages of as many documents that are nearest to the query by the vectors of this store; see `perikope encode`.",
        together=True, group=FETCH, metavar="STORE", surfaces=[RECIPE],
    )  # fmt: skip
    rescore: str = option(
        "", Notation("perikope.browse.models:parse_model", "perikope.browse.models:Model"),
        "Mix the fetch score of each document with the score that this model gives to the document as a whole.",
        together=True, group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    rescore_weight: float = option(
        0.5, Real(Range(0, 1)), "Weight of the rescore model in that mixture.", group=FETCH, metavar="X", surfaces=[RECIPE]
    )
    candidates: Mapping[str, float] | None = option(
        None, Numbers(what="a mapping of document ids to scores"),
        "Documents with their scores to look into in place of fetching; ids that the index does not hold are ignored.",
        together=True, group=FETCH, metavar="RUN", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip

    filter: tuple[str | Filter, ...] = option(
        (), Conditions(
            parser="perikope.fetch.filters:parse_filter", object_type="perikope.fetch.filters:Filter", marker="unknown_fields",
            example="date<2013-04-01",
        ),
        "Only documents whose metadata satisfy this condition: ipc=G06F, date<2013-04-01, year=2010..2012, by=a|b, name=The*, kind!=A1, "
        'id=d1|d2, codes~G06. A value "in quotes" is taken literally. Several conditions must all hold.',
        group=RESTRICTIONS, metavar="CONDITION", surfaces=BOTH,
    )  # fmt: skip
    ids: tuple[str, ...] | None = option(
        None, NamesOrNone(), "Only documents with these ids; none at all where the list is empty.",
        group=RESTRICTIONS, metavar="FILE", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip
    shares_codes_with: str = option(
        "", Text(), "Only documents that share a classification code with this document; the document itself is left out.",
        group=RESTRICTIONS, metavar="DOCUMENT", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip
    code_level: Literal["full", "group", "subclass", "class"] = option(
        "full", OneOf(LEVELS[::-1], what="level of classification codes"), "How much of two classification codes must be equal.",
        group=RESTRICTIONS, surfaces=BOTH,
    )  # fmt: skip
    part: tuple[str, ...] = option(
        (), Names(), "Only passages in this part of a document, such as claims. Several parts add up.",
        group=RESTRICTIONS, metavar="NAME", restricts=True, surfaces=BOTH,
    )  # fmt: skip
    tag: tuple[str, ...] = option(
        (), Names(), "Only passages with this tag. Several tags add up.",
        group=RESTRICTIONS, metavar="NAME", restricts=True, surfaces=BOTH,
    )  # fmt: skip
    must_match: bool = option(
        False, Switch(), "Only passages that satisfy the query: all of its words where it is not Boolean.",
        group=RESTRICTIONS, surfaces=BOTH,
    )  # fmt: skip
    across_passages: bool = option(
        False, Switch(), "Like must-match, but phrases, NEAR and AND may span several passages.",
        group=RESTRICTIONS, flag="--across", surfaces=BOTH,
    )  # fmt: skip

    k: int = option(10, Whole(Range(1)), "Number of passages to return.", group=RESULTS, flag="-k", metavar="N", surfaces=[RECIPE])
    elements: bool | tuple[str, ...] = option(
        False, NamesOrAll(","),
        "Rank elements in place of passages: sections, lists, passages and whole documents, or only elements with these tags.",
        group=RESULTS, metavar="[TAG,…]", surfaces=[RECIPE],
    )  # fmt: skip
    no_overlap: bool = option(False, Switch(), "Leave out results that overlap a better one.", group=RESULTS, surfaces=[RECIPE])
    drop_unmatched: bool = option(
        False, Switch(), "With no-overlap: leave out documents in which nothing scores. Otherwise such a document is one result.",
        group=RESULTS, surfaces=[RECIPE],
    )  # fmt: skip
    group_by_document: Literal["", "fetch", "score"] = option(
        "", OneOf(("", "fetch", "score"), when_true="fetch", when_false="", what="order of documents"),
        "Group the results of each document. Documents are in fetch order, or with score in the order of their best results.",
        together=True, group=RESULTS, metavar="[fetch|score]", surfaces=[RECIPE],
    )  # fmt: skip
    one_per: str = option(
        "", Text(), "Of documents with the same value in this metadata field, such as family, only the best one has results.",
        together=True, group=RESULTS, metavar="FIELD", restricts=True, surfaces=[RECIPE],
    )  # fmt: skip

    fetch_words: int = option(
        10, Whole(Range(1)), "With a patent: the number of its words that fetch documents, chosen by tf-idf.",
        group=PATENTS, metavar="N", surfaces=BOTH,
    )  # fmt: skip
    fetch_from: tuple[str, ...] = option(
        ("abstract",), Names(","), "With a patent: the parts these words come from: title, abstract, description, claims.",
        group=PATENTS, metavar="PART,…", surfaces=BOTH,
    )  # fmt: skip
    browse_words: int = option(
        100, Whole(Range(1)), "With a patent: the number of its words that score passages, chosen by tf-idf.",
        group=PATENTS, metavar="N", surfaces=BOTH,
    )  # fmt: skip
    browse_from: tuple[str, ...] = option(
        ("claims",), Names(","), "With a patent: the parts those words come from.", group=PATENTS, metavar="PART,…", surfaces=BOTH
    )
    weighted: bool = option(
        False, Switch(), "With a patent: weight each word by its frequency in the patent. Otherwise each word counts once.",
        group=PATENTS, surfaces=BOTH,
    )  # fmt: skip
    code_filter: bool = option(
        True, Switch(), "With a patent: only documents that share a classification code with it.",
        group=PATENTS, help_off="With a patent: also documents that share no classification code with it.", surfaces=BOTH,
    )  # fmt: skip
    date_limit: bool = option(
        True, Switch(), "With a patent: only documents published before its priority date.",
        group=PATENTS, help_off="With a patent: also documents published on or after its priority date.", surfaces=BOTH,
    )  # fmt: skip
    family_filter: bool = option(
        True, Switch(), "With a patent: leave out the other publications of its family.",
        group=PATENTS, help_off="With a patent: also other publications of its family.", surfaces=BOTH,
    )  # fmt: skip
    translator: str | Translator | None = option(
        None, Service("perikope.patents.translation:Translator"),
        "With a patent in a language that is not searched: the LibreTranslate server that translates it, and so receives its text.",
        group=PATENTS, flag="--translate", metavar="URL", local=True, surfaces=[RECIPE],
    )  # fmt: skip


OPTIONS: Mapping[str, Option] = declared(SearchOptions)
SearchOptions.__doc__ = "\n".join([f"{SearchOptions.__doc__}\n", *(f"    {name}: {one.help}" for name, one in OPTIONS.items())])


def options_on(surface: str) -> tuple[str, ...]:
    """The names of the options that a surface takes."""
    return tuple(name for name, one in OPTIONS.items() if surface in one.surfaces)


def json_schema() -> dict[str, Any]:
    """The options of a search as a JSON schema, for the HTTP interface and for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "SearchOptions", **schema_of(SearchOptions)}


def patent_options() -> tuple[str, ...]:
    """The names of the options that say how a patent becomes a query."""
    return tuple(name for name, one in OPTIONS.items() if one.group == PATENTS or name in ("language", "code_level"))


def with_signature(names: Iterable[str] = OPTIONS) -> Callable[[F], F]:
    """Show options in the signature of a function that takes them as `**given`, for `help` and for `inspect.signature`."""

    def decorate(function: F) -> F:
        plain = inspect.signature(function)
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OPTIONS[name].default, annotation=OPTIONS[name].kind.annotation)
            for name in names
        ]
        own = [one for name, one in plain.parameters.items() if name != "given"]
        function.__signature__ = plain.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
        return function

    return decorate
