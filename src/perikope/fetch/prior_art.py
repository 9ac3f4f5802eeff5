"""The query of a patent for prior art: its words, and conditions on documents.

Documents must be published before the priority date of the patent, and share a classification code with it. The patent
itself and its family are not results. Each condition except that on the patent itself can be switched off. A condition
does not apply if the patent or the index lacks the data for it. Conditions do not change scores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perikope.core.errors import UsageError
from perikope.document.tree import Document
from perikope.fetch.conditions import Between, Equal, is_date
from perikope.fetch.filters import Filter, Negated, SharedCodes, Where, Without, codes_of, known_fields
from perikope.index.facets import metadata_pairs
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS
from perikope.query.language import ALL, check_language, has_several_languages, with_unstated
from perikope.query.patent import Claims, Forms, Patent, Setting, load_patent, pasted, queries
from perikope.query.publications import documents_with
from perikope.query.terms import Query
from perikope.text.analysis import language_code

if TYPE_CHECKING:
    from perikope.patents.translation import Translator

PUBLISHED = "date"
"""The metadata field with the publication date of a document."""
DATES = ("priority_date", "application_date", "date")
"""Metadata fields of the query patent with its date. Results must be published before the first date that is known."""
FAMILY = ("family", "priorities")
"""Metadata fields that identify the family of a patent: documents with a common value are in one family.

Values of both fields are compared with each other, because a family number in one file may be a priority in another.
"""
PATENT = "patent"
"""The metadata field with the number of the patent, which all its publications share."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """The conditions on documents that are switched on, and the level at which codes are compared."""

    code_filter: bool = True
    date_limit: bool = True
    family_filter: bool = True
    code_level: str = "full"


@dataclass(frozen=True, slots=True)
class PatentQuery:
    """A query made from a patent, which `Index.search` accepts."""

    patent: Patent
    fetch: Query
    """The query that fetches documents."""
    browse: Query
    """The query that scores passages."""
    filters: tuple[Filter, ...]
    """Conditions that documents must satisfy."""
    notes: tuple[str, ...]
    """Sentences for the user about what could not be done as requested."""

    @property
    def shares_codes(self) -> bool:
        """Whether documents must share a classification code with the patent."""
        return any(isinstance(filter, SharedCodes) for filter in self.filters)

    def __str__(self) -> str:
        return self.fetch.text


def patent_query(
    snapshot: Snapshot,
    patent: str | os.PathLike[str] | Document | None,
    claims: Claims = (),
    *,
    forms: Forms,
    restriction: Restriction,
    family: Iterable[str] = (),
    language: str = "",
    translator: Translator | None = None,
) -> PatentQuery:
    """Make the query of a patent.

    `claims` are the query claims: some of the patent's claims, or a text. Without a patent, they are the whole query
    and must be a text. `family` adds ids of documents to the patent's family.

    Prior art in every language counts. So without a `language`, the words are looked up in every language of the index.
    """
    if patent is None:
        if not isinstance(claims, str) or not claims:
            raise UsageError("give a patent (a file or a publication number), or the text of claims")
        query_patent = pasted(claims)
    else:
        query_patent = load_patent(snapshot, patent)
        query_patent = query_patent.with_claims(claims) if claims else query_patent
    notes: list[str] = []
    itself, members = _family(snapshot, query_patent, family)
    check_language(snapshot, language)
    languages = snapshot.languages if language in ("", ALL) else with_unstated(snapshot, language_code(language))
    # If documents of the family may be results, they are included in the statistics, as all other documents are.
    left_out = [*itself, *members] if restriction.family_filter else itself
    by_language = language != ALL and has_several_languages(snapshot)
    setting = Setting(snapshot, languages, members, left_out, translator, by_language)
    fetch, browse = queries(query_patent, forms, setting, notes.append)
    filters = tuple(_filters(snapshot, query_patent, restriction, family, notes.append))
    return PatentQuery(query_patent, fetch, browse, filters, tuple(notes))


def _filters(
    snapshot: Snapshot, patent: Patent, restriction: Restriction, family: Iterable[str], on_note: Callable[[str], None]
) -> Iterable[Filter]:
    known = frozenset(known_fields(snapshot))
    if patent.id:
        # The patent itself is left out even if its family is not.
        yield Without(frozenset([patent.id]))
    elif restriction.code_filter or restriction.date_limit:
        on_note("claims without a patent have no codes and no dates: documents are not filtered by them")
        return
    if restriction.family_filter:
        if family := frozenset(family):
            yield Without(family)
        for field, values in _family_values(patent.metadata).items():
            if field in known and values:
                yield Negated(Where(field, tuple(map(Equal, values))))
    if restriction.code_filter:
        codes = codes_of(patent.metadata)
        if not codes:
            on_note(f"{patent.name} has no classification codes: documents are not filtered by codes")
        elif known.isdisjoint(CODE_FIELDS):
            on_note("the documents of the index have no classification codes: they are not filtered by codes")
        else:
            yield SharedCodes(CODE_FIELDS, codes, restriction.code_level)
    if restriction.date_limit:
        field, date = _limit(patent.metadata)
        if not date:
            on_note(f"{patent.name} has no date: documents are not filtered by date")
        elif PUBLISHED not in known:
            on_note("the documents of the index have no date: they are not filtered by date")
        else:
            if field != DATES[0]:
                on_note(f"{patent.name} has no priority date: results must be published before its {field.replace('_', ' ')}, {date}")
            yield Where(PUBLISHED, (Between(high=date, high_open=True),))


def _limit(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """The metadata field that limits the publication date, and its earliest date; both empty if there is no date."""
    for field in DATES:
        dates = [value for name, value in metadata_pairs(metadata) if name == field and is_date(value)]
        if dates:
            return field, min(dates)
    return "", ""


def _family_values(metadata: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The metadata fields that identify members of a family, each with the values that members have."""
    pairs = list(metadata_pairs(metadata))
    shared = tuple(sorted({value for name, value in pairs if name in FAMILY}))
    patents = tuple(sorted({value for name, value in pairs if name == PATENT}))
    return {PATENT: patents, **dict.fromkeys(FAMILY, shared)}


def _family(snapshot: Snapshot, patent: Patent, named: Iterable[str]) -> tuple[list[int], list[int]]:
    """The number of the patent in the index, and the numbers of the other documents of its family, ordered by id.

    The first list is empty if the patent is not in the index.
    """
    itself = snapshot.find_document(patent.id) if patent.id else -1
    members = {number for id in named if (number := snapshot.find_document(id)) >= 0}
    for field, values in _family_values(patent.metadata).items():
        members.update(number for value in values for number in documents_with(snapshot, field, value))
    return [itself] if itself >= 0 else [], sorted(members - {itself}, key=snapshot.document_id)
