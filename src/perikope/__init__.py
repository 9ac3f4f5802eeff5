"""perikope finds the passage, and scores it in the context it was cut from.

>>> import perikope as pk
>>> with pk.Index.create("idx") as index:                                   # doctest: +SKIP
...     index.add(pk.read("docs/"))
>>> index = pk.Index.open("idx")                                            # doctest: +SKIP
>>> for hit in index.search("pump with a magnetic coupling", k=10):         # doctest: +SKIP
...     print(hit.score, hit.document, hit.path, hit.text)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from perikope.browse.models import model
    from perikope.build.splitting import split
    from perikope.client.async_index import AsyncRemoteIndex
    from perikope.client.connecting import connect, connect_async
    from perikope.client.index import RemoteIndex
    from perikope.client.results import AsyncRemoteResults, RemoteResults
    from perikope.core.errors import PerikopeError
    from perikope.document.chunks import Chunk
    from perikope.document.tree import Document, Kind, TreeBuilder
    from perikope.evaluation.io.judgements import read_judgements
    from perikope.evaluation.io.topics import read_topics
    from perikope.evaluation.measures import evaluate
    from perikope.formats import read
    from perikope.query.topic import Topic
    from perikope.search.facade import Index
    from perikope.search.hits import Hit
    from perikope.search.options import SearchOptions
    from perikope.search.results import Results

__all__ = [
    "AsyncRemoteIndex", "AsyncRemoteResults", "Chunk", "Document", "Hit", "Index", "Kind", "PerikopeError", "RemoteIndex", "RemoteResults",
    "Results", "SearchOptions", "Topic", "TreeBuilder", "connect", "connect_async", "evaluate", "model", "read", "read_judgements",
    "read_topics", "split",
]  # fmt: skip

_HOMES = {
    "AsyncRemoteIndex": "perikope.client.async_index",
    "AsyncRemoteResults": "perikope.client.results",
    "Chunk": "perikope.document.chunks",
    "Document": "perikope.document.tree",
    "Hit": "perikope.search.hits",
    "Index": "perikope.search.facade",
    "Kind": "perikope.document.tree",
    "PerikopeError": "perikope.core.errors",
    "RemoteIndex": "perikope.client.index",
    "RemoteResults": "perikope.client.results",
    "Results": "perikope.search.results",
    "SearchOptions": "perikope.search.options",
    "Topic": "perikope.query.topic",
    "TreeBuilder": "perikope.document.tree",
    "connect": "perikope.client.connecting",
    "connect_async": "perikope.client.connecting",
    "evaluate": "perikope.evaluation.measures",
    "model": "perikope.browse.models",
    "read": "perikope.formats",
    "read_judgements": "perikope.evaluation.io.judgements",
    "read_topics": "perikope.evaluation.io.topics",
    "split": "perikope.build.splitting",
}


def __getattr__(name: str) -> object:
    # Loaded on first use: numpy and numba cost most of a second, and `perikope --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module 'perikope' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
