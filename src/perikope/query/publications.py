"""Find documents by their ids, and by publication numbers in common spellings.

Every option and command that takes the id of a document finds the document here. Examples of publication numbers are
`EP1000000A1`, `EP-1000000-A1`, `EP 1 000 000 A1`, `US 6,530,116 B2` and `WO 78/00001`. A number without a kind code
(`EP1000000`) names the latest publication of the patent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from perikope.core.errors import NotFound, UsageError
from perikope.index.joined_texts import JoinedTexts, joined_ids
from perikope.index.reader import Snapshot

if TYPE_CHECKING:
    from perikope.patents.numbers import PatentNumber

_WRITTEN = re.compile(r"([A-Z]{2})((?:[A-Z]{1,2})?[0-9]{1,15})([A-Z][0-9]{0,2})?")
_SEPARATORS = re.compile(r"[\s\-‐-―./,'’_()]+")
_ERAS = "MTSHR"
"""Letters before the year in Japanese numbers, one per era: the year is counted from the start of the era."""
_KINDS = (
    "A", "A0", "A1", "A2", "A3", "A4", "A5", "A6", "A8", "A9", "B", "B1", "B2", "B3", "B4", "B5", "B6", "B8", "B9", "C", "C0", "C1", "C2",
    "C3", "C8", "C9", "D0", "E", "E1", "E2", "F1", "H", "H1", "P", "P1", "P2", "P3", "P4", "P9", "S", "S1", "T", "T1", "T2", "T3", "T4",
    "T5", "T8", "T9", "U", "U0", "U1", "U2", "U3", "U4", "U8", "U9", "W", "Y", "Y1", "Y2", "Y3",
)  # fmt: skip
"""Kind codes of all offices, approximately in the order in which the publications of a patent appear."""
_COMPARED = 2000
"""Maximum number of names per segment that are compared with an unknown number."""
_SUGGESTED = 3
"""Maximum number of names that an error suggests."""
MOST_WRITTEN = 300
"""Maximum number of characters of a publication number as users write it; longer texts are none."""
_LONGEST = 500
"""Maximum number of characters of a name that similar names are looked for."""


def parse_publication(text: str) -> PatentNumber | None:
    """Parse a publication number. Returns None if the text is not one.

    >>> [parse_publication(text).id for text in ("EP 1 000 000 A1", "ep-0680812", "US 6,530,116 B2", "US D435,854 S1")]
    ['EP-1000000-A1', 'EP-680812', 'US-6530116-B2', 'US-D435854-S1']
    >>> [parse_publication(text).id for text in ("WO 78/00001 A1", "WO 03/004567", "JP H10-000001 A")]
    ['WO-1978000001-A1', 'WO-2003004567', 'JP-10000001-A']
    >>> parse_publication("US 2001/0000044 A1").id
    'US-20010000044-A1'
    """
    # Imported only here, since it imports lxml, which a search for words does not need.
    from perikope.patents.numbers import patent_number

    match = _WRITTEN.fullmatch(_SEPARATORS.sub("", text.upper())) if len(text) <= MOST_WRITTEN else None
    if match is None:
        return None
    country, number, kind = match[1], match[2], match[3] or ""
    if country == "JP" and number[0] in _ERAS:
        number = number[1:]
    if country == "WO" and len(number) == 8:
        number = ("19" if number[:2] >= "78" else "20") + number
    return patent_number(country, number, kind)


def documents_named(snapshot: Snapshot, text: str) -> list[int]:
    """The numbers, in the index, of the documents that a text names.

    A document that has the text as its id takes precedence, then the documents with this publication number, then those
    whose id differs only in upper and lower case. A number without a kind code names all publications of the patent.
    """
    for id in dict.fromkeys((text, text.strip(), unquote(text))):
        if (document := snapshot.find_document(id)) >= 0:
            return [document]
    wanted = parse_publication(text)
    documents = [] if wanted is None else _exact(snapshot, wanted) or ([] if wanted.kind else _of_patent(snapshot, wanted))
    return documents or _by_folded_id(snapshot, text.strip())


def find_publication(snapshot: Snapshot, text: str, *, or_file: bool = False) -> int:
    """The number, in the index, of the document with this id or publication number; see `documents_named`.

    A number without a kind code names the latest publication. Raises `UsageError` if there is no document, or if
    several ids differ only in case; the message suggests names. `or_file` says that the text could have been a file.
    """
    documents = documents_named(snapshot, text)
    wanted = parse_publication(text)
    if len(documents) == 1:
        return documents[0]
    if documents and wanted is not None:
        return max(documents, key=lambda document: _recency(snapshot, document))
    if documents:
        raise _several(snapshot, text, documents)
    if or_file and wanted is None:
        what = f"{text!r} is neither a file, nor a document in {snapshot.folder}, nor a publication number such as EP1000000A1"
        raise NotFound(what + similar_names(snapshot, text))
    if wanted is not None and (other := _of_patent(snapshot, wanted)):
        ids = ", ".join(sorted(snapshot.document_id(document) for document in other))
        raise NotFound(
            f"there is no {wanted.written} in {snapshot.folder}, but these publications of {wanted.patent}: {ids}; give one of them"
        )
    named = wanted.written if or_file and wanted is not None else f"document {text!r}"
    raise NotFound(f"there is no {named} in {snapshot.folder}{similar_names(snapshot, text)}")


def id_named(snapshot: Snapshot, text: str) -> str:
    """The id of the only document that a text names; raises `UsageError` if there is none or if there are several."""
    documents = documents_named(snapshot, text)
    if len(documents) > 1:
        raise _several(snapshot, text, documents)
    return snapshot.document_id(find_publication(snapshot, text))


def _several(snapshot: Snapshot, text: str, documents: Iterable[int]) -> UsageError:
    ids = ", ".join(map(repr, sorted(map(snapshot.document_id, documents))))
    return UsageError(f"{text!r} names several documents in {snapshot.folder}: {ids}; give the id of one of them")


def _by_folded_id(snapshot: Snapshot, text: str) -> list[int]:
    """The numbers of the documents whose id is this text if upper and lower case do not count."""
    folded = text.casefold().encode("utf-8", "surrogatepass")
    numbers = []
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        texts: JoinedTexts = segment.remember(joined_ids, False)
        found = texts.containing(folded, before=False, after=False)
        numbers += [base + number for number in found[segment.alive[found]].tolist()]
    return numbers


def _exact(snapshot: Snapshot, wanted: PatentNumber) -> list[int]:
    """The numbers of the documents of this publication.

    If there are none, this is the document of the whole patent, into which all its publications were merged.
    """
    merged = wanted._replace(kind="")
    documents = _by_id(snapshot, wanted) or documents_with(snapshot, "publication", wanted.written)
    return documents or _by_id(snapshot, merged)


def _of_patent(snapshot: Snapshot, wanted: PatentNumber) -> list[int]:
    """The numbers of all publications of the same patent, with any kind code."""
    documents = documents_with(snapshot, "patent", wanted.patent)
    return documents or [document for kind in _KINDS for document in _by_id(snapshot, wanted._replace(kind=kind))]


def _by_id(snapshot: Snapshot, number: PatentNumber) -> list[int]:
    spelled = dict.fromkeys((number.id, number.id.replace("-", ""), number.written, number.id.replace("-", " ")))
    return [document for document in map(snapshot.find_document, spelled) if document >= 0]


def documents_with(snapshot: Snapshot, field: str, value: str) -> list[int]:
    """The numbers of the documents that have this value in a metadata field; deleted documents are left out."""
    numbers = []
    wanted = value.encode("utf-8", "surrogatepass")
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        for key in segment.facets.find(segment.facets.keys(field), wanted):
            documents = segment.facets.documents(np.array([key]))
            numbers += [base + number for number in documents[segment.alive[documents]].tolist()]
    return numbers


def _recency(snapshot: Snapshot, document: int) -> tuple[str, int, str]:
    segment, local = snapshot.locate(document)
    id, date = segment.document_id(local), segment.metadata(local).get("date")
    number = parse_publication(id)
    stage = _KINDS.index(number.kind) if number and number.kind in _KINDS else -1
    return date if isinstance(date, str) else "", stage, id


def similar_names(snapshot: Snapshot, text: str) -> str:
    """The names of documents that are most similar to a text, as the end of a message; empty if there are none."""
    number = parse_publication(text)
    wanted = number.written if number else text.strip()
    if len(wanted) > _LONGEST:
        return ""  # no name is similar, and to find this out would take long
    near = difflib.get_close_matches(wanted, set(_alike(snapshot, wanted, number is not None)), _SUGGESTED, 0.5)
    return f"; similar names: {', '.join(near)}" if near else ""


def _alike(snapshot: Snapshot, wanted: str, is_number: bool) -> Iterator[str]:
    """Yield names that may be similar to a text.

    These are the publication numbers with the longest common prefix. For a text that is no number, and in segments
    without publication numbers, they are also the first ids.
    """
    for segment in snapshot.segments:
        keys = segment.facets.keys("publication")
        if not keys or not is_number:
            yield from (segment.document_id(number) for number in range(min(segment.documents, _COMPARED)) if segment.alive[number])
        if not keys:
            continue
        for length in range(len(wanted), -1, -1):
            alike = segment.facets.beginning(keys, wanted[:length].encode("utf-8", "surrogatepass"))
            if len(alike) >= _SUGGESTED or not length:
                yield from (segment.facets.values.text(key) for key in islice(alike, _COMPARED))
                break
