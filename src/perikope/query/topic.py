"""Topic: what is asked for, in words or by a patent, with the options that it brings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """One query; `browse` is its second form where passages are scored with another one.

    Instead of a query there may be a `patent` to search with: a file, or a number that the index knows. `claims` are the paths of the
    claims that are meant, all of them where it is empty, and `family` the documents that are the same invention.
    `filter` and `shares_codes_with` say which documents may be found for this topic, as the options of a search do for all.
    """

    qid: str
    query: str = ""
    browse: str = ""
    patent: str = ""
    filter: tuple[str, ...] = ()
    shares_codes_with: str = ""
    claims: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
