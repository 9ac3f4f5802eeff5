"""Cells and tables that all formats of the report share, and functions that format numbers and clean texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of a table."""

    mean: float
    text: str
    """The printed form of the mean."""
    is_best: bool
    """Whether no other cell of the column is printed as a higher number."""
    beats: str = ""
    """The letters of the systems that the system of the row beats significantly."""


@dataclass(frozen=True, slots=True)
class ExtraTable:
    """A table that is reported after the tables of the sweeps, such as a table over seeds."""

    title: str
    how: str
    """A text that explains how to read the table."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    """The letter, the name and the cells of each row."""
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Values by name of a system, which are drawn as box plots. Empty if there are no box plots."""
    measure: str = ""
    """The measure of the values in `spread`."""


def figure(value: float) -> str:
    """Format a mean with four decimals, as tables print it.

    >>> figure(0.12345), figure(-0.00001)
    ('0.1235', '0.0000')
    """
    text = f"{value:.{DECIMALS}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the singular or plural.

    >>> counted(1, "topic"), counted(1200, "topic")
    ('1 topic', '1,200 topics')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranges(letters: str) -> str:
    """Shorten letters of systems: three or more consecutive letters become a range.

    >>> ranges("abcdf"), ranges("ab"), ranges("xyzABD"), ranges("Z(53)(54)")
    ('a–df', 'ab', 'x–BD', 'Z–(54)')
    """
    labels = re.findall(r"\(\d+\)|.", letters)
    numbers = [_number(text) for text in labels]
    parts, first = [], 0
    for last in range(len(labels)):
        if last + 1 < len(labels) and numbers[last + 1] == numbers[last] + 1:
            continue
        parts.append(f"{labels[first]}–{labels[last]}" if last - first > 1 else "".join(labels[first : last + 1]))
        first = last + 1
    return "".join(parts)


def _number(letter: str) -> int:
    if letter.startswith("("):
        return int(letter[1:-1]) - 1
    return ord(letter) - ord("a") if letter.islower() else ord(letter) - ord("A") + 26


_UNSEEN = {"Cc", "Cs", "Co", "Cn"}
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def clean(text: str) -> str:
    """A text in one line. Control characters, lone surrogates and marks of the writing direction become U+FFFD.

    >>> clean("a\\n b\\x00\\ud800")
    'a b\\ufffd\\ufffd'
    """
    joined = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(one) in _UNSEEN or _TURNING.match(one) else one for one in joined)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a description, separated by blank lines, each as one line."""
    return [cleaned for part in re.split(r"\n\s*\n", text) if (cleaned := clean(part))]
