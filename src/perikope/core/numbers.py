"""How numbers are printed for people, and which ones are accepted from them."""

from __future__ import annotations

from perikope.core.errors import UsageError


def check_whole(name: str, value: object, least: int) -> None:
    """Raise `UsageError` unless a value is a whole number of at least `least`; `name` says in the message what it is.

    >>> check_whole("k", 3, 1)
    >>> check_whole("k", 0, 1)
    Traceback (most recent call last):
    perikope.core.errors.UsageError: k must be a whole number of at least 1, not 0
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")


def number_in_print(value: float) -> str:
    """A number with four decimals, or with four significant digits if four decimals would hide or overload it.

    A number other than 0 is never printed as 0.

    >>> [number_in_print(value) for value in (12.5, 0.00002, -3.25, 0.0, 2e7)]
    ['12.5000', '2e-05', '-3.2500', '0.0000', '2e+07']
    """
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"
