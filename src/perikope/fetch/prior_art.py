"""The documents that could anticipate a patent: published before its priority date, with a shared classification code.

The patent itself and its family are not results. Each condition can be left out, and a condition for which the patent
lacks the data does not apply. Conditions do not change scores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perikope.core.errors import UsageError
from perikope.document.tree import Document
from perikope.fetch.conditions import Between, Equal, is_date
from perikope.fetch.filters import CODE_FIELDS, Filter, Negated, SharedCodes, Where, Without, codes_of, known_fields
from perikope.index.facets import metadata_pairs
from perikope.index.reader import Snapshot
from perikope.query.patent import Claims, Forms, Patent, Setting, load_patent, pasted, queries
from perikope.query.publications import documents_with
from perikope.query.terms import Query
from perikope.text.analysis import language_code

if TYPE_CHECKING:
    from perikope.patents.translation import Translator

PUBLISHED = "date"
DATES = ("priority_date", "application_date", "date")
"""Dates of the query patent that limit results, the first that is known: prior art is published before it."""
FAMILY = ("family", "priorities")
"""Fields whose shared value makes two documents one family; a family in one file may be a priority in another."""
PATENT = "patent"


@dataclass(frozen=True, slots=True)
class Restriction:
    """The conditions that apply."""

    code_filter: bool = True
    date_limit: bool = True
    family_filter: bool = True
    code_level: str = "full"


@dataclass(frozen=True, slots=True)
class PatentQuery:
    """A patent as a query: what fetches documents, what scores passages, and filters.

    `Index.search` accepts it as a query.
    """

    patent: Patent
    fetch: Query
    browse: Query
    filters: tuple[Filter, ...]
    notes: tuple[str, ...]
    """What could not be done as requested, in sentences for the user."""

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
    """The query of a patent; `family` names documents of its family that its metadata do not list.

    `claims` are the query claims: some of the patent's claims, or a text. Without a patent they are the whole query.
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
    languages = [language_code(language)] if language else snapshot.languages
    # Where documents of the family may be results, they count in the statistics like any others.
    left_out = [*itself, *members] if restriction.family_filter else itself
    setting = Setting(snapshot, languages, members, left_out, translator)
    fetch, browse = queries(query_patent, forms, setting, notes.append)
    filters = tuple(_filters(snapshot, query_patent, restriction, family, notes.append))
    return PatentQuery(query_patent, fetch, browse, filters, tuple(notes))


def _filters(
    snapshot: Snapshot, patent: Patent, restriction: Restriction, family: Iterable[str], on_note: Callable[[str], None]
) -> Iterable[Filter]:
    known = frozenset(known_fields(snapshot))
    if patent.id:
        # Also where its family may be found.
        yield Without(frozenset([patent.id]))
    elif restriction.code_filter or restriction.date_limit:
        on_note("claims alone have neither codes nor dates: nothing is filtered")
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
            on_note(f"{patent.name} has no classification codes: not filtered by them")
        elif known.isdisjoint(CODE_FIELDS):
            on_note("the documents of the index have no classification codes: not filtered by them")
        else:
            yield SharedCodes(CODE_FIELDS, codes, restriction.code_level)
    if restriction.date_limit:
        field, date = _limit(patent.metadata)
        if not date:
            on_note(f"{patent.name} has no date: documents are not limited to those published before it")
        elif PUBLISHED not in known:
            on_note("the documents of the index have no date: not limited to those published before the patent")
        else:
            if field != DATES[0]:
                on_note(f"{patent.name} has no priority date: results must be published before its {field.replace('_', ' ')}, {date}")
            yield Where(PUBLISHED, (Between(high=date, high_open=True),))


def _limit(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """The date before which prior art was published, and its field; both empty where no date can be read."""
    for field in DATES:
        dates = [value for name, value in metadata_pairs(metadata) if name == field and is_date(value)]
        if dates:
            return field, min(dates)
    return "", ""


def _family_values(metadata: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The fields that identify family members, with the values that members have there."""
    pairs = list(metadata_pairs(metadata))
    shared = tuple(sorted({value for name, value in pairs if name in FAMILY}))
    patents = tuple(sorted({value for name, value in pairs if name == PATENT}))
    return {PATENT: patents, **dict.fromkeys(FAMILY, shared)}


def _family(snapshot: Snapshot, patent: Patent, named: Iterable[str]) -> tuple[list[int], list[int]]:
    """Documents of the index that are the patent itself, and others of its family ordered by id."""
    itself = snapshot.find_document(patent.id) if patent.id else -1
    members = {number for id in named if (number := snapshot.find_document(id)) >= 0}
    for field, values in _family_values(patent.metadata).items():
        members.update(number for value in values for number in documents_with(snapshot, field, value))
    return [itself] if itself >= 0 else [], sorted(members - {itself}, key=snapshot.document_id)
