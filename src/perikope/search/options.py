"""SearchOptions: the declaration of all options of a search.

Every interface derives from this declaration: the keyword arguments of `Index.search` (`search/keywords.py` is
generated), the options of the command line, the keys of recipes, experiments and topics, and the JSON schema of the
HTTP interface.
A new option is declared here and used in one step of `search/steps.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from perikope.core.options import Option, Options, declared, option, schema_of
from perikope.core.parameters import Range
from perikope.core.values import (
    Conditions,
    Lines,
    Names,
    NamesOrAll,
    NamesOrNone,
    Notation,
    Numbers,
    OneOf,
    Real,
    Service,
    Switch,
    Text,
    Whole,
)
from perikope.patents.codes import LEVELS

if TYPE_CHECKING:
    from perikope.fetch.filters import Filter
    from perikope.patents.translation import Translator

F = TypeVar("F", bound=Callable[..., Any])

RECIPE, TOPIC = "recipe", "topic"
"""Kinds of files that can set an option. Every option can also be set in Python, and systems of experiments take the
same options as recipes."""
BOTH = (RECIPE, TOPIC)

BEST, LEXICAL = "best", "coverage"
"""The default of the option `model`, which `perikope.search.best` resolves for an index, and the model that it stands
for in an index without vectors and without a default of its own."""
SYNTAXES = ("words", "boolean", "automatic")
FETCH, QUERY, RESTRICTIONS, RESULTS, PATENTS = "Documents to search", "The query", "Restrictions", "Results", "Patents as queries"
GROUPS = (QUERY, FETCH, RESTRICTIONS, RESULTS, PATENTS)
"""The headings under which options are listed, in order."""

_EXPANSION = Notation("perikope.fetch.expansion:parse_expansion")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(Options):
    """All options of a search: how documents are fetched, how passages are scored, and how results are selected."""

    model: str = option(
        BEST, Notation("perikope.browse.models:parse_model", "perikope.browse.models:Model", required=True, words=(BEST,)),
        "Model that scores passages; see `perikope models`. best: the index's own default if it has one, else hybrid if the index has "
        "vectors of all documents, else coverage.",
        group=QUERY, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    browse_query: str = option(
        "", Text(), "Score passages with this query. The main query then only fetches documents.",
        group=QUERY, metavar="TEXT", surfaces=[TOPIC],
    )  # fmt: skip
    syntax: Literal["words", "boolean", "automatic"] = option(
        "words", OneOf(SYNTAXES),
        'How queries are read. words: as plain words. boolean: with AND, OR, NOT, NEAR/5, ADJ/2, SAME, parentheses, "phrases", pump*, '
        "pumpp~1, +word and -word; adjacent words are joined by AND. automatic: keywords, phrases, +word and -word become a Boolean query.",
        group=QUERY, surfaces=BOTH,
    )  # fmt: skip
    language: str = option(
        "", Notation("perikope.text.analysis:language_code"),
        "Language to search, such as en, or all for all languages as one collection. Without it, the language of the query is "
        "searched or, if the query does not show its language, every language of the index.",
        group=QUERY, metavar="CODE|all", surfaces=BOTH,
    )  # fmt: skip
    synonyms: tuple[str, ...] = option(
        (), Lines("perikope.query.synonyms:read_synonyms", "perikope.query.synonyms:check_synonyms"),
        "Also search for synonyms of the query's words, by the rules in this file: plane, aeroplane or colour => color, one rule per line "
        "(Solr's format). A word and its synonyms count as one word.",
        group=QUERY, metavar="FILE", surfaces=[RECIPE],
    )  # fmt: skip
    fuzzy: int = option(
        0, Whole(Range(0, 2)),
        "Number of typing mistakes to allow in words that no document contains. Words of up to four letters may have one.",
        group=QUERY, metavar="N", surfaces=BOTH,
    )  # fmt: skip
    browse_expand: str = option(
        "", _EXPANSION, "Expand the query that scores passages with words of the best passages, then score again: bo1 or rm3.",
        together=True, group=QUERY, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip

    fetch: str = option(
        "bm25", Notation("perikope.fetch.models:parse_fetch_model", required=True),
        "Model that ranks documents before their passages are scored: bm25, pl2, dph, lm or sim.",
        group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    documents: int | Literal["all"] = option(
        1000, Whole(Range(1), ("all",)), "Number of best documents whose passages are scored, or all documents.",
        group=FETCH, metavar="N|all", surfaces=[RECIPE],
    )  # fmt: skip
    fetch_parts: Mapping[str, float] | None = option(
        None, Numbers("perikope.fetch.parts:parse_parts"),
        "Rank documents by these parts only; the part title is the title of the document, and ipc, cpc and ecla are its codes. "
        "A weight multiplies the term frequencies and the length of its part.",
        group=FETCH, metavar="PART[=WEIGHT],…", restricts=True, surfaces=[RECIPE],
    )  # fmt: skip
    expand: str = option(
        "", _EXPANSION, "Expand the query with words of the best documents, then fetch again: bo1 or rm3.",
        together=True, group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    also_nearest: str = option(
        "", Text(),
        "Also score passages of the documents whose vectors in this store are nearest to the query. Their number is at most "
        "the value of the option documents; see `perikope encode`.",
        together=True, group=FETCH, metavar="STORE", surfaces=[RECIPE],
    )  # fmt: skip
    rescore: str = option(
        "", Notation("perikope.browse.models:parse_model", "perikope.browse.models:Model"),
        "Rank the fetched documents again by a mixture of their fetch score and the score of this model for the whole document.",
        together=True, group=FETCH, metavar="NAME(…)", surfaces=[RECIPE],
    )  # fmt: skip
    rescore_weight: float = option(
        0.5,
        Real(Range(0, 1)),
        "Weight of the rescore model in the mixture with the fetch score; larger values favour the model.",
        group=FETCH,
        metavar="X",
        surfaces=[RECIPE],
    )
    candidates: Mapping[str, float] | None = option(
        None, Numbers(what="a mapping of document ids to scores"),
        "Score passages of these documents instead of fetched documents. Each id has a score. Ids that are not in the index are ignored.",
        together=True, group=FETCH, metavar="RUN", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip

    filter: tuple[str | Filter, ...] = option(
        (), Conditions(
            parser="perikope.fetch.filters:parse_filter", object_type="perikope.fetch.filters:Filter", marker="unknown_fields",
            example="date<2013-04-01",
        ),
        "Search only documents whose metadata satisfy this condition: ipc=G06F, date<2013-04-01, year=2010..2012, by=a|b, name=*pump*, "
        'kind!=A1, id=d1|d2, codes~G06. Upper and lower case are the same, except in a value "in quotes", which is taken literally. '
        "Several conditions must all hold.",
        group=RESTRICTIONS, metavar="CONDITION", surfaces=BOTH,
    )  # fmt: skip
    ids: tuple[str, ...] | None = option(
        None, NamesOrNone(), "Search only documents with these ids. An empty list allows no document.",
        group=RESTRICTIONS, metavar="FILE", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip
    shares_codes_with: str = option(
        "", Text(), "Search only documents that share a classification code with this document. The document itself is left out.",
        group=RESTRICTIONS, metavar="DOCUMENT", restricts=True, surfaces=[TOPIC],
    )  # fmt: skip
    code_level: Literal["full", "group", "subclass", "class"] = option(
        "full", OneOf(LEVELS[::-1], what="level of classification codes"),
        "Level at which two classification codes must be equal to be shared: full code, group, subclass or class. "
        "Codes of a patent that fetch documents have the same level.",
        group=RESTRICTIONS, surfaces=BOTH,
    )  # fmt: skip
    part: tuple[str, ...] = option(
        (), Names(), "Return only passages in this part of a document, such as claims, or in any of several parts.",
        group=RESTRICTIONS, metavar="NAME", restricts=True, surfaces=BOTH,
    )  # fmt: skip
    tag: tuple[str, ...] = option(
        (), Names(), "Return only passages with this tag, or with any of several tags.",
        group=RESTRICTIONS, metavar="NAME", restricts=True, surfaces=BOTH,
    )  # fmt: skip
    without_tag: tuple[str, ...] = option(
        (), Names(), "Leave out passages with this tag, or with any of several tags. The tag code stands for program code.",
        group=RESTRICTIONS, metavar="NAME", restricts=True, surfaces=BOTH,
    )  # fmt: skip
    must_match: bool = option(
        False, Switch(), "Return only passages that satisfy the Boolean query or, for a query of plain words, contain all of its words.",
        group=RESTRICTIONS, surfaces=BOTH,
    )  # fmt: skip
    across_passages: bool = option(
        False, Switch(), "Return only passages that contain part of a match of the query. A match may span several passages of a document.",
        group=RESTRICTIONS, flag="--across", surfaces=BOTH,
    )  # fmt: skip

    k: int = option(10, Whole(Range(1)), "Number of results to return.", group=RESULTS, flag="-k", metavar="N", surfaces=[RECIPE])
    offset: int = option(
        0, Whole(Range(0)), "Number of best results to leave out before the first one that is returned, to turn pages.",
        group=RESULTS, metavar="N",
    )  # fmt: skip
    elements: bool | tuple[str, ...] = option(
        False, NamesOrAll(","),
        "Rank elements instead of passages: sections, lists, passages and whole documents, or only elements with these tags. "
        "The name of a table that `perikope learn tags` saved stands for its logical tags.",
        group=RESULTS, metavar="[TAG,…]", surfaces=[RECIPE],
    )  # fmt: skip
    no_overlap: bool = option(False, Switch(), "Leave out results that overlap a better result.", group=RESULTS, surfaces=[RECIPE])
    keep_unmatched: bool = option(
        False, Switch(),
        "With prox, prox_h or prox_hw: also return passages with score 0, which do not match the query. With no-overlap, a document that "
        "matches nowhere is returned as one result.",
        group=RESULTS, surfaces=[RECIPE],
    )  # fmt: skip
    group_by_document: Literal["", "fetch", "score"] = option(
        "", OneOf(("", "fetch", "score"), when_true="fetch", when_false="", what="order of documents"),
        "Group results by document. fetch: documents are in the order of their fetch scores. "
        "score: documents are in the order of their best results.",
        together=True, group=RESULTS, metavar="[fetch|score]", surfaces=[RECIPE],
    )  # fmt: skip
    one_per: tuple[str, ...] = option(
        (), Names(),
        "document or section: return only the best result of each document or section. A metadata field, such as family: for each of its "
        "values, return results of the best document only. A field and document can be combined. metadata.NAME is always a field.",
        together=True, group=RESULTS, metavar="document|section|FIELD", restricts=True, surfaces=[RECIPE],
    )  # fmt: skip

    fetch_words: int | Literal["all"] = option(
        10, Whole(Range(1), ("all",)),
        "With a patent: number of words that fetch documents, or all words. The words with the highest tf-idf are used.",
        group=PATENTS, metavar="N|all", surfaces=BOTH,
    )  # fmt: skip
    fetch_from: tuple[str, ...] = option(
        ("abstract",), Names(","),
        "With a patent: parts whose words fetch documents: title, abstract, description, claims, bibliography (names of people), "
        "and fields whose classification codes do: ipc, cpc, ecla.",
        group=PATENTS, metavar="PART,…", surfaces=BOTH,
    )  # fmt: skip
    browse_words: int | Literal["all"] = option(
        100, Whole(Range(1), ("all",)),
        "With a patent: number of words that score passages, or all words. The words with the highest tf-idf are used.",
        group=PATENTS, metavar="N|all", surfaces=BOTH,
    )  # fmt: skip
    browse_from: tuple[str, ...] = option(
        ("claims",), Names(","),
        "With a patent: parts whose words score passages: title, abstract, description, claims, bibliography.",
        group=PATENTS, metavar="PART,…", surfaces=BOTH,
    )  # fmt: skip
    weighted: bool = option(
        False, Switch(),
        "With a patent: weight each word by its frequency in the patent. Without this option, each word has weight 1.",
        group=PATENTS, surfaces=BOTH,
    )  # fmt: skip
    code_filter: bool = option(
        True, Switch(), "With a patent: return only documents that share a classification code with it.",
        group=PATENTS, help_off="With a patent: also return documents that share no classification code with it.", surfaces=BOTH,
    )  # fmt: skip
    date_limit: bool = option(
        True, Switch(), "With a patent: return only documents published before its priority date.",
        group=PATENTS, help_off="With a patent: also return documents published on or after its priority date.", surfaces=BOTH,
    )  # fmt: skip
    family_filter: bool = option(
        True, Switch(), "With a patent: leave out other documents of its patent family.",
        group=PATENTS, help_off="With a patent: also return other documents of its patent family.", surfaces=BOTH,
    )  # fmt: skip
    translator: str | Translator | None = option(
        None, Service("perikope.patents.translation:Translator"),
        "With a patent: LibreTranslate server that translates the patent if its language is not searched. The server receives the text.",
        group=PATENTS, flag="--translate", metavar="URL", local=True, surfaces=[RECIPE],
    )  # fmt: skip


OPTIONS: Mapping[str, Option] = declared(SearchOptions)
SearchOptions.__doc__ = "\n".join([f"{SearchOptions.__doc__}\n", *(f"    {name}: {entry.help}" for name, entry in OPTIONS.items())])


def options_on(surface: str) -> tuple[str, ...]:
    """The names of the options that can be set in a kind of file (`RECIPE` or `TOPIC`)."""
    return tuple(name for name, entry in OPTIONS.items() if surface in entry.surfaces)


def json_schema() -> dict[str, Any]:
    """The options of a search as a JSON schema, for the HTTP interface and for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "SearchOptions", **schema_of(SearchOptions)}


def patent_options() -> tuple[str, ...]:
    """The names of the options that control how a patent becomes a query."""
    return tuple(name for name, entry in OPTIONS.items() if entry.group == PATENTS or name in ("language", "code_level"))


def with_signature(names: Iterable[str] = OPTIONS) -> Callable[[F], F]:
    """A decorator that adds options to the signature of a function with `**given`.

    `help` and `inspect.signature` then show them.
    """

    def decorate(function: F) -> F:
        plain = inspect.signature(function)
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OPTIONS[name].default, annotation=OPTIONS[name].kind.annotation)
            for name in names
        ]
        others = [parameter for name, parameter in plain.parameters.items() if name != "given"]
        function.__signature__ = plain.replace(parameters=[*others, *named])  # type: ignore[attr-defined]
        return function

    return decorate
