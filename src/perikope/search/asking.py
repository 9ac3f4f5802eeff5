"""The first step of a search: translate the query into terms of the index.

A query is a text, a `Topic` (a text, a patent, or both, with options), or a `PatentQuery`. It becomes a `Prepared`: a
query that fetches documents, a query that scores passages, and conditions on documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from perikope.core.errors import UsageError, unknown
from perikope.fetch.filters import Filter, Ids, SharedCodes, Without, codes_of, known_fields, mask, parse_filter, unknown_fields
from perikope.fetch.prior_art import PatentQuery, Restriction, patent_query
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS
from perikope.query.code_terms import code_fields, codes_in, without_codes
from perikope.query.language import check_language, note_on_language, searched_languages
from perikope.query.patent import Claims, Forms, Patent
from perikope.query.terms import Query
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions

if TYPE_CHECKING:
    from perikope.document.tree import Document
    from perikope.patents.translation import Translator

Asked = str | Topic | PatentQuery
"""The types of queries that a search accepts."""

TRANSLATE_KEY = "PERIKOPE_TRANSLATE_KEY"
"""The name of the environment variable with the API key of the translation server."""


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
    def scoring(self) -> Query:
        """The query that scores passages, before any expansion."""
        return without_codes(self.browse or self.fetch)


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


def read_query(snapshot: Snapshot, text: str, language: str = "", syntax: str = "words") -> Query:
    """Parse a text as a query in the languages that `searched_languages` chooses.

    Raises `UsageError` if no term is left.
    """
    if not isinstance(text, str):
        raise UsageError(f"the query must be text, not {type(text).__name__}")
    check_language(snapshot, language)
    return searched_languages(snapshot, text, language, syntax).read(snapshot, text, syntax)


def read_asked(snapshot: Snapshot, asked: Asked, options: SearchOptions) -> Prepared:
    """Translate a query into terms of the index.

    For a topic, `options` must be the result of `with_options_of`.
    """
    if isinstance(asked, PatentQuery):
        prepared = _of_patent(asked)
    elif isinstance(asked, Topic) and (asked.patent or asked.claims):
        patent = read_patent(snapshot, asked.patent or None, asked.claims, options, asked.family)
        # If a topic has words and a patent, the words fetch documents and the claims of the patent score passages.
        prepared = _of_patent(patent)
        if asked.query:
            fetch = read_query(snapshot, asked.query, options.language, options.syntax)
            prepared = replace(prepared, fetch=fetch, notes=(*prepared.notes, *_notes_on_codes(snapshot, asked.query, options.syntax)))
    else:
        return _of_text(snapshot, asked.query if isinstance(asked, Topic) else asked, options)
    if options.browse_query:
        prepared = replace(prepared, browse=read_query(snapshot, options.browse_query, options.language, options.syntax))
    return prepared


def _of_text(snapshot: Snapshot, text: str, options: SearchOptions) -> Prepared:
    """The query of a text and, with the option `browse_query`, of a second text. Both are searched in one language."""
    if not isinstance(text, str):
        raise UsageError(f"the query must be text, not {type(text).__name__}")
    both = f"{text}\n{options.browse_query}" if options.browse_query else text
    searched = searched_languages(snapshot, both, options.language, options.syntax)
    return Prepared(
        searched.read(snapshot, text, options.syntax),
        searched.read(snapshot, options.browse_query, options.syntax) if options.browse_query else None,
        notes=_notes_on_codes(snapshot, text, options.syntax),
        language=searched.detected,
        language_note=note_on_language(snapshot, both, searched),
    )


def _notes_on_codes(snapshot: Snapshot, text: str, syntax: str) -> tuple[str, ...]:
    """One note per code in a Boolean query that documents of the index have: there, the code is a word of the text."""
    if syntax == "words":
        return ()
    notes = []
    for code in codes_in(text):
        field = next((field for field in code_fields(snapshot) if _has_document(snapshot, parse_filter(f"{field}={code}"))), None)
        if field is not None:
            notes.append(
                f"with syntax {syntax}, {code} is a word of the text, not a classification code; "
                f"use the filter {field}={code} or {field}!={code} (--filter), or plain words (--syntax words)"
            )
    return tuple(notes)


def _has_document(snapshot: Snapshot, condition: Filter) -> bool:
    """Whether a document of the index satisfies a condition."""
    return any(bool((segment.alive & mask(segment, condition)).any()) for segment in snapshot.segments)


def _of_patent(query: PatentQuery) -> Prepared:
    return Prepared(query.fetch, query.browse, query.filters, query.notes, patent=query.patent)


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
    """The conditions on documents that the options set. Raises `UsageError` for a field that no document has."""
    filters: list[Filter] = [parse_filter(given) if isinstance(given, str) else given for given in options.filter]
    if options.ids is not None:
        filters.append(_with_ids(options.ids))
    if options.shares_codes_with:
        filters += _sharing_codes(snapshot, options.shares_codes_with, options.code_level)
    for condition in filters:
        if fields := unknown_fields(snapshot, condition):
            raise unknown("metadata field", fields[0], known_fields(snapshot))
    return tuple(filters)


def _with_ids(ids: Iterable[str]) -> Ids:
    """The condition that a document has one of these ids, which may be percent-encoded."""
    listed = frozenset(ids)
    return Ids(listed | frozenset(map(unquote, listed)))


def _sharing_codes(snapshot: Snapshot, document: str, level: str) -> list[Filter]:
    """The conditions of the option `shares_codes_with`: a shared code, and an id other than that of the document."""
    number = snapshot.find_document(document)
    if number < 0:  # percent-encoded, as in names of passages
        document = unquote(document)
        number = snapshot.find_document(document)
    if number < 0:
        raise UsageError(f"there is no document {document!r} in {snapshot.folder}; shares_codes_with needs the id of an indexed document")
    segment, local = snapshot.locate(number)
    codes = codes_of(segment.metadata(local))
    if not codes:
        raise UsageError(
            f"document {document!r} has no classification codes in the fields {', '.join(CODE_FIELDS)}; leave shares_codes_with out"
        )
    return [SharedCodes(CODE_FIELDS, codes, level), Without(frozenset([document]))]
