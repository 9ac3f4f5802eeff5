"""What to do about a file that another version of the program has written."""

from __future__ import annotations


def advice_about_version(found: object, known: int, make_again: str) -> str:
    """What to do about a file of the version `found`, if this program knows the versions up to `known`.

    An older file must be made again, as `make_again` says. A newer one is sound, and must not be replaced.

    >>> advice_about_version(2, 3, "build the index again")
    'build the index again'
    """
    is_newer = type(found) is int and found > known
    return "a newer version of perikope has written it; use that version, or restore a backup of this one" if is_newer else make_again
