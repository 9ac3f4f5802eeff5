"""A topic: a query in words or by a patent, with its own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Topic:
    """One query with its id and options, as read from a file of topics.

    In place of a query, or beside it, there may be a `patent` to search with: a file, or a number that the index knows.
    `claims` names the claims that are meant by number, id or path, all of them where it is empty, or holds their text.
    `family` lists the documents that are the same invention. `options` are those options of a search that belong to
    this query, such as `part` or `browse_query`. They take precedence over the options given for all topics, except
    that `filter` and `ids` restrict in addition to them.
    """

    qid: str
    query: str = ""
    patent: str = ""
    claims: str | tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
