"""What a text in a search box means in an index: words, a Boolean query, a patent, claims, or the name of a passage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from perikope.core.errors import UnreadableQuery, UsageError
from perikope.core.names import passage_name, running_number, split_name
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.query.publications import documents_named, find_publication, parse_publication
from perikope.query.recognition import is_boolean, is_claim, split_citation
from perikope.search.asking import read_query
from perikope.search.explaining import find_span
from perikope.search.options import SearchOptions

KindOfQuery = Literal["words", "boolean", "patent", "claims", "passage"]
MOST_NAMED = 300
"""The most characters of a text that may name a passage."""
_FEWEST_DIGITS = 5
"""A shorter number that no document has, such as KX200, is a word."""


@dataclass(frozen=True, slots=True)
class QueryProblemFound:
    """Why a Boolean query cannot be read."""

    detail: str
    """What is wrong, and what to do."""
    start: int
    """The first character that is wrong; the length of the text if something is missing at its end."""
    end: int
    """The end of the characters that are wrong (exclusive)."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What a text in a search box means."""

    kind: KindOfQuery
    """`words`, `boolean`, `patent` (a number), `claims` (a pasted claim), or `passage` (a name or citation)."""
    options: dict[str, Any]
    """The options of a search for the text, such as `query` and `syntax`, or `patent`, or `claims`."""
    document: str = ""
    """The id of the document that the text names, also as a part of the name of a passage; empty if it names none."""
    passage: str = ""
    """The name (document#passage) of the passage that the text names; empty if it names none."""
    missing: str = ""
    """The publication number that the text is, if the index does not have this patent; else empty."""
    problem: QueryProblemFound | None = field(default=None)
    """Why the Boolean query cannot be read; null if it can, or if the text is none."""


def interpret(snapshot: Snapshot, text: str, language: str = "") -> Interpretation:
    """What a text means. Plain words are the rule; anything else needs signs that plain words rarely have."""
    words = Interpretation("words", {"query": text})
    if not text.strip():
        return words
    if len(text) <= MOST_NAMED and (named := _named(snapshot, text.strip())) is not None:
        return named
    if is_claim(text):
        return Interpretation("claims", {"claims": text})
    if is_boolean(text):
        return Interpretation("boolean", {"query": text, "syntax": "boolean"}, problem=_problem(snapshot, text, language))
    number = parse_publication(text)
    has_patents = any(segment.facets.keys("publication") for segment in snapshot.segments)
    if number is not None and has_patents and sum(map(str.isdecimal, text)) >= _FEWEST_DIGITS:
        return Interpretation("words", {"query": text}, missing=number.written)
    return words


def _named(snapshot: Snapshot, text: str) -> Interpretation | None:
    """The passage or the patent of the index that a text names; None if it names none."""
    if "#" in text and (passage := _passage(snapshot, *split_name(text))) is not None:
        return passage
    document, citation = split_citation(text)
    if citation and documents_named(snapshot, document):
        return _cited(snapshot, document, citation)
    if parse_publication(text) is not None and documents_named(snapshot, text):
        id = snapshot.document_id(find_publication(snapshot, text))
        return Interpretation("patent", {"patent": id}, document=id)
    return None


def _passage(snapshot: Snapshot, document: str, passage: str) -> Interpretation | None:
    try:
        segment, local, _ = find_span(snapshot, document, passage)
    except UsageError:
        return None
    id = segment.document_id(local)
    name = passage_name(id, passage)
    return Interpretation("passage", {"query": name}, document=id, passage=name)


def _cited(snapshot: Snapshot, document: str, citation: str) -> Interpretation | None:
    """The passage with a citation, compared without regard to zeros, spaces and case: `[42]` is `[0042]`."""
    segment, local = snapshot.locate(find_publication(snapshot, document))
    wanted, stored = _plain(citation), stored_document(segment, local)
    passages = list(stored.of_kind(Kind.PASSAGE))
    number_of = {span: number for number, span in enumerate(passages) if _plain(stored.citations.get(span, "")) == wanted}
    if not number_of:
        return None
    # Claims may be there in several languages.
    own = [span for span in number_of if stored.labels[stored.spans.language[span]] == stored.language]
    span = next(iter(own or number_of))
    return _passage(snapshot, stored.id, stored.span_ids.get(span, "") or running_number(number_of[span]))


def _plain(citation: str) -> str:
    digits = "".join(character if character.isdecimal() else " " for character in citation).split()
    letters = "".join(character for character in citation.casefold() if character.isalpha())
    return " ".join([letters, *(number.lstrip("0") for number in digits)])


def _problem(snapshot: Snapshot, text: str, language: str) -> QueryProblemFound | None:
    try:
        read_query(snapshot, text, SearchOptions.of({"language": language, "syntax": "boolean"}))
    except UnreadableQuery as error:
        return QueryProblemFound(str(error), error.start, error.end)
    except UsageError as error:  # such as a query of stop words only, which has no single place
        return QueryProblemFound(str(error), 0, len(text))
    return None
