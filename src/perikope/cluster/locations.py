"""Where a cluster is: in a folder, or in an object store."""

from __future__ import annotations

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
"""The beginnings of addresses of object stores. The tests use S3 only."""


def is_url(location: object) -> bool:
    """Whether a location is the address of an object store, and no folder.

    >>> [is_url(location) for location in ("s3://bucket/manuals", "manuals", "http://localhost:8321")]
    [True, False, False]
    """
    scheme, mark, _ = str(location).partition("://")
    return bool(mark) and scheme in SCHEMES
