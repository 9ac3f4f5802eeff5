"""The first step of a search: translate the query into terms of the index.

A query is a text, a `Topic` (a text, a patent, or both, with options), or a `PatentQuery`. It becomes a `Prepared`: a
query that fetches documents, a query that scores passages, and conditions on documents.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from perikope.core.errors import UnreadableQuery, UsageError, abridged, unknown
from perikope.fetch.filters import (
    Filter,
    Ids,
    SharedCodes,
    Without,
    codes_of,
    known_fields,
    mask,
    numbers_of,
    parse_filter,
    unknown_fields,
)
from perikope.fetch.nearest_values import check_comparable, notes_on_filter
from perikope.fetch.prior_art import PatentQuery, Restriction, patent_query
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS
from perikope.query.code_terms import code_fields, codes_in, with_codes, without_codes
from perikope.query.language import Searched, check_language, contains_any, note_on_language, searched_languages
from perikope.query.patent import Claims, Forms, Patent
from perikope.query.publications import documents_named, find_publication, similar_names
from perikope.query.recognition import operator_between_words
from perikope.query.spelling import near_terms
from perikope.query.synonyms import Synonyms
from perikope.query.syntax import automatic
from perikope.query.terms import Query, parse_boolean, parse_query
from perikope.query.topic import Topic
from perikope.query.variants import Variants
from perikope.search.options import OPTIONS, PATENTS, SearchOptions
from perikope.text.analysis import language_code

if TYPE_CHECKING:
    from perikope.document.tree import Document
    from perikope.patents.translation import Translator

Asked = str | Topic | PatentQuery
"""The types of queries that a search accepts."""

TRANSLATE_KEY = "PERIKOPE_TRANSLATE_KEY"
"""The name of the environment variable with the API key of the translation server."""

_LISTED = 3
"""The largest number of unknown ids that a note names."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query, translated into terms of the index."""

    fetch: Query
    """The query that fetches documents."""
    browse: Query | None
    """The query that scores passages; None if passages are scored by `fetch`, after its expansion."""
    filters: tuple[Filter, ...] = ()
    """Conditions on documents that come from the query, such as the date limit of a patent."""
    notes: tuple[str, ...] = ()
    """Sentences for the user about what could not be done as requested."""
    language: str = ""
    """The language that was detected and is searched; empty if it was given, or if all languages are searched."""
    language_note: str = ""
    """A sentence that names `language`, and how to search the others; empty if there is nothing to say."""
    patent: Patent | None = None
    """The patent that the query was made from; None if there is no patent."""

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, with that on the language."""
        return (*self.notes, self.language_note) if self.language_note else self.notes

    @property
    def queries(self) -> tuple[Query, ...]:
        """The query that fetches documents and, if it is another one, the query that scores passages."""
        return (self.fetch,) if self.browse is None else (self.fetch, self.browse)

    @property
    def scoring(self) -> Query:
        """The query that scores passages, before any expansion."""
        return without_codes(self.browse or self.fetch)


def check_about_patents(query: Asked, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` if an option for patents is given with a text or a finished patent query.

    The option would have no effect.
    """
    about_patents = [name for name in given if name in OPTIONS and OPTIONS[name].group == PATENTS]
    if about_patents and isinstance(query, (str, PatentQuery)):
        raise UsageError(
            f"{about_patents[0]} applies to patents only; search with a topic that has a patent, or pass the option to patent_query"
        )


def with_options_of(topic: Topic, options: SearchOptions) -> SearchOptions:
    """The options of a search for one topic, from the topic's own options and the options for all topics.

    The topic's own options take precedence. Its `filter` and `ids` apply in addition to those for all topics.
    """
    if not topic.options:
        return options
    combined = options.updated(topic.options)
    added = combined.filter if "filter" in topic.options else ()
    if "ids" in topic.options and options.ids is not None:
        added = (*added, _with_ids(options.ids))
    return combined.updated({"filter": (*options.filter, *added)}) if added else combined


def read_query(snapshot: Snapshot, text: str, options: SearchOptions) -> Query:
    """Parse a text as a query in the languages that `searched_languages` chooses.

    Raises `UsageError` if no term is left, or if the index has no text in the language of the options.
    """
    if not isinstance(text, str):
        raise UsageError(f"the query must be text, not {type(text).__name__}")
    check_language(snapshot, options.language)
    return _read_in(snapshot, text, searched_languages(snapshot, text, options.language, options.syntax), options)


def _read_in(snapshot: Snapshot, text: str, searched: Searched, options: SearchOptions) -> Query:
    """Parse a text as a query in the given languages."""
    variants = variants_of(snapshot, searched, options)
    if options.syntax == "words":
        query = with_codes(parse_query(text, snapshot.analyzer, searched.languages, variants), snapshot)
    else:
        written = automatic(text) if options.syntax == "automatic" else text
        query = parse_boolean(written, snapshot.analyzer, searched.languages, snapshot.terms_with_prefix, variants)
    return replace(query, text=text, languages=searched.languages if searched.by_language else ())


def variants_of(snapshot: Snapshot, searched: Searched, options: SearchOptions) -> Variants:
    """What may stand for the words of a query: synonyms, near terms, and terms in other languages."""
    codes = [language_code(language) for language in searched.languages]
    return Variants(
        Synonyms(options.synonyms, snapshot.analyzer, codes) if options.synonyms else None,
        options.fuzzy,
        partial(near_terms, snapshot),
        partial(contains_any, snapshot),
        searched.fallback,
    )


def read_asked(snapshot: Snapshot, asked: Asked, options: SearchOptions) -> Prepared:
    """Translate a query into terms of the index.

    For a topic, `options` must be the result of `with_options_of`.
    """
    if isinstance(asked, PatentQuery):
        prepared = _of_patent(asked, options)
    elif isinstance(asked, Topic) and (asked.patent or asked.claims):
        patent = read_patent(snapshot, asked.patent or None, asked.claims, options, asked.family)
        # If a topic has words and a patent, the words fetch documents and the claims of the patent score passages.
        prepared = _of_patent(patent, options)
        if asked.query:
            fetch = read_query(snapshot, asked.query, options)
            prepared = replace(prepared, fetch=fetch, notes=(*prepared.notes, *_notes_on_syntax(snapshot, asked.query, options.syntax)))
    else:
        return _of_text(snapshot, asked.query if isinstance(asked, Topic) else asked, options)
    if options.browse_query:
        with _of_browse_query():
            prepared = replace(prepared, browse=read_query(snapshot, options.browse_query, options))
    return prepared


def _of_text(snapshot: Snapshot, text: str, options: SearchOptions) -> Prepared:
    """The query of a text and, with the option `browse_query`, of a second text. Both are searched in one language."""
    if not isinstance(text, str):
        raise UsageError(f"the query must be text, not {type(text).__name__}")
    both = f"{text}\n{options.browse_query}" if options.browse_query else text
    searched = searched_languages(snapshot, both, options.language, options.syntax)
    fetch = _read_in(snapshot, text, searched, options)
    with _of_browse_query():
        browse = _read_in(snapshot, options.browse_query, searched, options) if options.browse_query else None
    return Prepared(
        fetch,
        browse,
        notes=_notes_on_syntax(snapshot, text, options.syntax),
        language=searched.detected,
        language_note=note_on_language(snapshot, both, searched),
    )


@contextlib.contextmanager
def _of_browse_query() -> Iterator[None]:
    """Errors in this block are about `browse_query`. Their place is not one of the query itself."""
    try:
        yield
    except UnreadableQuery as error:
        raise UsageError(f"browse_query: {error}") from None


def _notes_on_syntax(snapshot: Snapshot, text: str, syntax: str) -> tuple[str, ...]:
    """Notes on words that mean something in the other syntax: codes in a Boolean query, operators in plain words.

    Only codes that documents of the index have are noted. In a Boolean query they are words of the text.
    """
    if syntax == "words":
        found = operator_between_words(text)
        return (f"{found} is read as a plain word; syntax='boolean' reads it as an operator",) if found else ()
    notes = []
    for code in codes_in(text):
        field = next((field for field in code_fields(snapshot) if _has_document(snapshot, parse_filter(f"{field}={code}"))), None)
        if field is not None:
            notes.append(
                f"with syntax {syntax}, {code} is a word of the text, not a classification code; "
                f"use filter='{field}={code}' or filter='{field}!={code}', or plain words with syntax='words'"
            )
    return tuple(notes)


def _has_document(snapshot: Snapshot, condition: Filter) -> bool:
    """Whether a document of the index satisfies a condition."""
    return True in snapshot.ask_all(_satisfied, condition)


def _satisfied(snapshot: Snapshot, condition: Filter) -> list[bool]:
    """Whether a document of each segment satisfies a condition."""
    return [bool((segment.alive & mask(segment, condition)).any()) for segment in snapshot.segments]


def _of_patent(query: PatentQuery, options: SearchOptions) -> Prepared:
    unused = [name for name in ("synonyms", "fuzzy") if getattr(options, name)]
    notes = [f"the option {name} applies to queries in words; the words of the patent are searched as they are" for name in unused]
    return Prepared(query.fetch, query.browse, query.filters, (*query.notes, *notes), patent=query.patent)


def read_patent(
    snapshot: Snapshot,
    patent: str | os.PathLike[str] | Document | None,
    claims: Claims,
    options: SearchOptions,
    family: Iterable[str] = (),
) -> PatentQuery:
    """Make the query of a patent, with the options for patents. `family` adds ids to the patent's family."""
    return patent_query(
        snapshot,
        patent,
        claims,
        forms=Forms(
            options.fetch_words, options.fetch_from, options.browse_words, options.browse_from, options.weighted, options.code_level
        ),
        restriction=Restriction(options.code_filter, options.date_limit, options.family_filter, options.code_level),
        family=frozenset(family),
        language=options.language,
        translator=_translator(options.translator),
    )


def _translator(given: str | Translator | None) -> Translator | None:
    if not isinstance(given, str):
        return given
    # Imported only here, since it imports an HTTP client, which takes time.
    from perikope.patents.translation import libre_translate

    return libre_translate(given, os.environ.get(TRANSLATE_KEY, "")) if given else None


def conditions_of(snapshot: Snapshot, options: SearchOptions) -> tuple[Filter, ...]:
    """The conditions on documents that the options set. Raises `UsageError` for a field that no document has,
    and for a bound that cannot be compared with the values of its field.

    Ids of documents may be publication numbers in any spelling; see `documents_named`.
    """
    filters: list[Filter] = [_with_known_ids(snapshot, condition) for condition in _given_conditions(options)]
    if options.shares_codes_with:
        filters += _sharing_codes(snapshot, options.shares_codes_with, options.code_level)
    for condition in filters:
        if fields := unknown_fields(snapshot, condition):
            raise unknown("metadata field", fields[0], known_fields(snapshot))
        check_comparable(snapshot, condition)
    return tuple(filters)


def notes_on_conditions(snapshot: Snapshot, options: SearchOptions, conditions: Iterable[Filter]) -> tuple[str, ...]:
    """Notes on values and ids that the options ask for and no document has. `conditions` are those of the options."""
    notes = [note for condition in conditions for note in notes_on_filter(snapshot, condition)]
    for condition in _given_conditions(options):
        if isinstance(condition, (Ids, Without)):
            notes += _notes_on_ids(snapshot, condition)
    return tuple(map(abridged, dict.fromkeys(notes)))


def _given_conditions(options: SearchOptions) -> list[Filter]:
    """The conditions of the options `filter` and `ids`, as given."""
    filters: list[Filter] = [parse_filter(given) if isinstance(given, str) else given for given in options.filter]
    return filters if options.ids is None else [*filters, _with_ids(options.ids)]


def _with_ids(ids: Iterable[str]) -> Ids:
    """The condition that a document has one of these ids, which may be percent-encoded."""
    return Ids(frozenset(ids))


def _unknown_ids(snapshot: Snapshot, condition: Ids | Without) -> list[str]:
    """The ids of a condition that no document has exactly, sorted."""
    return sorted(condition.ids - snapshot.ask_all(_known_ids, condition.ids))


def _known_ids(snapshot: Snapshot, ids: frozenset[str]) -> list[str]:
    return [segment.document_id(number) for segment in snapshot.segments for number in numbers_of(segment, ids)]


def _with_known_ids(snapshot: Snapshot, condition: Filter) -> Filter:
    """The condition with the ids of the documents that its ids name; other conditions are returned unchanged."""
    if not isinstance(condition, (Ids, Without)) or not (missing := _unknown_ids(snapshot, condition)):
        return condition
    named = {snapshot.document_id(number) for text in missing for number in documents_named(snapshot, text)}
    return replace(condition, ids=condition.ids | named) if named else condition


def _notes_on_ids(snapshot: Snapshot, condition: Ids | Without) -> list[str]:
    """A note on the ids of a condition that name no document, if there are any."""
    missing = [text for text in _unknown_ids(snapshot, condition) if not documents_named(snapshot, text)]
    if missing and len(condition.ids) > _LISTED:
        listed = ", ".join(map(repr, missing[:_LISTED])) + " …" * (len(missing) > _LISTED)
        return [f"{len(missing)} of {len(condition.ids)} ids are not in {snapshot.folder}: {listed}"]
    return [f"no document has the id {text!r}{similar_names(snapshot, text)}" for text in missing]


def _sharing_codes(snapshot: Snapshot, document: str, level: str) -> list[Filter]:
    """The conditions of the option `shares_codes_with`: a shared code, and an id other than that of the document."""
    segment, local = snapshot.locate(find_publication(snapshot, document))
    id, codes = segment.document_id(local), codes_of(segment.metadata(local))
    if not codes:
        raise UsageError(f"document {id!r} has no classification codes in the fields {', '.join(CODE_FIELDS)}; leave shares_codes_with out")
    return [SharedCodes(CODE_FIELDS, codes, level), Without(frozenset([id]))]
