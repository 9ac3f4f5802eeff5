"""A topic: a query in words or by a patent, with its own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Topic:
    """One query with its id and options, as read from a file of topics.

    A topic has a `query`, a `patent` or both.
    """

    qid: str
    """The id of the topic."""
    query: str = ""
    """The query in words."""
    patent: str = ""
    """A patent to search with: a file, or the publication number or id of a document in the index."""
    claims: str | tuple[str, ...] = ()
    """The query claims: a text, or claims of the patent by number, id or path. If empty, all its claims are used."""
    family: tuple[str, ...] = ()
    """Ids of further documents of the patent's family."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the search for this topic only, such as `part` or `browse_query`.

    They take precedence over the options for all topics, but `filter` and `ids` apply in addition to those.
    """
