"""Explain the score of a passage or element, whether it is among the results or not."""

from __future__ import annotations

import difflib
from dataclasses import replace

from perikope.browse.languages import in_searched_languages, languages_of_rows
from perikope.browse.matches import Matches
from perikope.browse.signals import Column, Node
from perikope.browse.structure import DocumentOutline
from perikope.core.errors import NotFound, UsageError
from perikope.core.names import is_element_path, running_number, split_name
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.query.publications import find_publication
from perikope.search.asking import Asked, Prepared
from perikope.search.options import SearchOptions
from perikope.search.steps import Search, search_for

_LISTED = 5
"""The largest number of ids that an error message lists, before the last one."""


def find_document(snapshot: Snapshot, document: str) -> tuple[int, Segment, int]:
    """The number of a document in the index, its segment, and its number in the segment.

    The document is given by its id or publication number; see `find_publication`.
    """
    number = find_publication(snapshot, document)
    return number, *snapshot.locate(number)


def find_span(snapshot: Snapshot, document: str, passage: str) -> tuple[Segment, int, int]:
    """The segment of a passage or element, the number of its document in the segment, and its span in the document."""
    _, segment, local = find_document(snapshot, document)
    ids = _passage_ids(segment, local)
    if passage in ids:
        first = int(segment["document.first_span"][local])
        return segment, local, segment.span_of("passage.span", local, segment.passages_of(local).start + ids.index(passage)) - first
    if is_element_path(passage):
        span = DocumentOutline(segment, local).find(passage)
        if span < 0:
            raise NotFound(f"document {segment.document_id(local)!r} has no element {passage!r}; check the path")
        return segment, local, span
    raise _no_passage(segment.document_id(local), passage, ids)


def explain(snapshot: Snapshot, asked: Asked, passage: str, options: SearchOptions) -> Node:
    """Explain the score of a passage or element, given by its name (`document#passage`)."""
    document, id = split_name(passage)
    if not id:
        raise UsageError(f"{passage!r} names no passage; write it as document#passage, as search prints it")
    search = search_for(snapshot, asked, options)
    options, prepared = search.options, search.prepare(asked)
    number, segment, local = find_document(snapshot, document)
    document = segment.document_id(local)
    ids = _passage_ids(segment, local)
    if is_element_path(id) and (options.elements or id not in ids):
        of_elements = Search(snapshot, options.updated({"elements": options.elements or True}))
        return _explain_element(of_elements, prepared, number, id)
    if id not in ids:
        raise _no_passage(document, id, ids)
    matches = _matches_with(search, prepared, document)
    candidate = (matches.number_of_document == number).nonzero()[0]
    if not candidate.size:
        raise UsageError(
            f"document {document!r} was not fetched for this query: it contains no query word, does not satisfy a condition, "
            "or is not among the best documents; for the last case, set documents (--documents) to a larger number"
        )
    row = int((matches.document_of_passage == candidate[0]).nonzero()[0][0]) + ids.index(id)
    return _explain_row(search, matches, row)


def _matches_with(search: Search, prepared: Prepared, document: str) -> Matches:
    """The matches in which a document is scored.

    If all documents are searched in batches, scores do not depend on other documents, and only this one is matched.
    """
    if search.streams:
        search = Search(search.snapshot, search.options.updated({"candidates": {document: 0.0}}))
    return search.matches(search.candidates(prepared))


def _explain_element(search: Search, prepared: Prepared, document: int, path: str) -> Node:
    segment, local = search.snapshot.locate(document)
    outline = DocumentOutline(segment, local)
    matches = _matches_with(search, prepared, segment.document_id(local))
    in_document = matches.number_of_document[matches.document_of_passage] == document
    rows = (in_document & (matches.span_of_passage == outline.find(path))).nonzero()[0]
    if not rows.size:
        known = [outline.path(span) for span in matches.span_of_passage[in_document].tolist()]
        why = f"its elements are {_some(known)}" if known else "the document was not fetched for this query"
        raise UsageError(f"document {segment.document_id(local)!r} has no element {path!r} that can be a result; {why}")
    return _explain_row(search, matches, int(rows[0]))


def _explain_row(search: Search, matches: Matches, row: int) -> Node:
    """The explanation of the score of a row. If the row is in a language that is not searched, the label says so."""
    node, is_searched = _score(search, matches).explain(row), in_searched_languages(matches)
    if is_searched is None or is_searched[row]:
        return node
    code = search.snapshot.languages[languages_of_rows(matches)[row]]
    return replace(node, label=f"{node.label}; no result, because it is in {code}, and {matches.query.languages[0]} is searched")


def _score(search: Search, matches: Matches) -> Column:
    """The score by which a search ranks the rows of the matches."""
    return search.results_by(matches, search.model, search.model.score(matches))[0]


def _passage_ids(segment: Segment, local: int) -> list[str]:
    """The ids of the passages of a document, in time proportional to their number."""
    id_of, first = segment.span_namer(local), int(segment["document.first_span"][local])
    spans = (segment.span_of("passage.span", local, passage) - first for passage in segment.passages_of(local))
    ids = (id_of(span) for span in spans)
    return [running_number(number) if id is None else id for number, id in enumerate(ids)]


def _no_passage(document: str, passage: str, ids: list[str]) -> NotFound:
    near = difflib.get_close_matches(passage, ids, n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return NotFound(f"document {document!r} has no passage {passage!r};{hint} its passages are {_some(ids)}")


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:_LISTED]) + (f" … {ids[-1]}" if len(ids) > _LISTED else "") or "none"
