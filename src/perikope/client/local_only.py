"""What only an index on this machine has, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping

_COMMITTED = "a change is committed before the server answers"
_INFO = "see info()"
LOCAL_INDEX: Mapping[str, str] = {
    "create": "make the index where the server is",
    "open": "use perikope.connect",
    "folder": "the server knows it",
    "memory": "the server sets it",
    "wait": "the server sets it",
    "snapshot": "it stays on the server",
    "languages": _INFO,
    "settings": "they stay on the server",
    "passages": _INFO,
    "fingerprint": _INFO,
    "documents": "a server gives single documents: view",
    "sync": "serve a folder of documents: perikope serve FOLDER",
    "commit": _COMMITTED,
    "rollback": _COMMITTED,
    "pending_commit": _COMMITTED,
    "compact": "run perikope compact where the server is",
    "ask_answering": "the server says which shards its answers lack",
    "refresh": "every request sees the last commit",
    "asearch": "use perikope.connect_async",
    "asearch_many": "use perikope.connect_async",
    "patent_query": "search with a topic that has a patent",
    "place": "a hit has its place",
    "check_query": "a search checks its query",
}
"""Attributes of `perikope.Index` that an index on a server does not have, each with the reason."""

_ROWS = "rows of the matches stay on the server"
LOCAL_RESULTS: Mapping[str, str] = {
    "matches": "they are too large to send",
    "score": _ROWS,
    "ranking": _ROWS,
    "ranked_names": "use names()",
    "eligible": _ROWS,
    "has_all_candidates": _ROWS,
    "names_of": _ROWS,
    "places_of": f"{_ROWS}; a hit has its own place",
    "rows_of": _ROWS,
    "signals": "an explanation has the signals of a hit: explain",
    "of_several_languages": "info() of the index lists its languages",
}
"""Attributes of `perikope.Results` that results of a server do not have, each with the reason."""


def missing_attribute(name: str, owner: object, reasons: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that only an index on this machine has, or that does not exist."""
    kind = type(owner).__name__
    if name not in reasons:
        return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=owner)
    return AttributeError(f"{kind!r} object has no attribute {name!r}: {reasons[name]}", name=name, obj=owner)
