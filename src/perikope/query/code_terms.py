"""Classification codes as terms of a query, such as `ipc=F04D25/06`.

A code term occurs in the documents whose metadata field has the code or a subdivision of it: `ipc=F04D` occurs twice in
a document with the codes F04D25/06 and F04D29/00. So every level of a code is a term. Codes come from the metadata of
documents, not from their text. They rank documents. Passages, lengths and statistics of words do not depend on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from perikope.index.facets import metadata_pairs
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS, parse_code
from perikope.query.terms import Query

_IN_TEXT = re.compile(r"(?<![\w/])[A-HYa-hy][0-9]{2}[A-Za-z](?:[0-9]{10}|\s{0,9}[0-9]{1,4}(?:/[0-9]{2,6})?)?(?![\w/])")
"""A code from subclass to full in a text, also padded to fixed width (`F04D  25/06`, `F04D0025060000`).

A class, such as F04, is too similar to other words, such as B12.
"""


def code_term(field: str, code: str) -> str:
    """The term of a code in normal form, in a metadata field."""
    return f"{field}={code}"


def split_code_term(term: str) -> tuple[str, str] | None:
    """The field and the code of a code term; None for a term of a text (`en:pump`).

    >>> split_code_term("ipc=F04D25/06"), split_code_term("en:pump")
    (('ipc', 'F04D25/06'), None)
    """
    field, separator, code = term.partition("=")
    return (field, code) if separator and field in CODE_FIELDS else None


def code_fields(snapshot: Snapshot) -> list[str]:
    """The metadata fields of the index that contain classification codes."""
    known = snapshot.ask_all(_fields_of_shard)
    return [field for field in CODE_FIELDS if field in known]


def _fields_of_shard(snapshot: Snapshot) -> list[str]:
    return [field for segment in snapshot.segments for field in segment.facets.fields]


def codes_in(text: str) -> Counter[str]:
    """The codes that a text mentions, in normal form, each with its frequency.

    >>> dict(codes_in("pump F04D 25/06, f04d or B12"))
    {'F04D25/06': 1, 'F04D': 1}
    """
    found = (parse_code(match[0]) for match in _IN_TEXT.finditer(text))
    return Counter(str(code) for code in found if code is not None)


def with_codes(query: Query, snapshot: Snapshot) -> Query:
    """A query of plain words, with the codes among its words as code terms. The words remain."""
    codes = codes_in(query.text)
    fields = code_fields(snapshot) if codes else ()
    return with_terms(query, {code_term(field, code): float(count) for field in fields for code, count in codes.items()})


def code_weights(metadata: Mapping[str, Any], fields: Iterable[str], level: str) -> dict[str, float]:
    """The code terms of a document's metadata at a level, each with its frequency.

    >>> code_weights({"ipc": ["F04D 25/06", "F04D 29/00"]}, ["ipc"], "subclass")
    {'ipc=F04D': 2.0}
    """
    wanted = frozenset(fields)
    weights: Counter[str] = Counter()
    for field, value in dict.fromkeys(metadata_pairs(metadata)):
        if field in wanted and (code := parse_code(value)):
            weights[code_term(field, code.at(level))] += 1
    return {term: float(weights[term]) for term in sorted(weights)}


def with_terms(query: Query, weights: Mapping[str, float]) -> Query:
    """A query with further terms. Terms that it already has keep their weights."""
    combined = {**weights, **dict(zip(query.terms, query.weights, strict=True))}
    terms = (*query.terms, *(term for term in weights if term not in query.terms))
    return replace(query, terms=terms, weights=tuple(combined[term] for term in terms)) if weights else query


def without_codes(query: Query) -> Query:
    """A query without its code terms, for passages: no passage contains a code."""
    kept = [(term, weight) for term, weight in zip(query.terms, query.weights, strict=True) if split_code_term(term) is None]
    if len(kept) == len(query.terms):
        return query
    return replace(query, terms=tuple(term for term, _ in kept), weights=tuple(weight for _, weight in kept))
