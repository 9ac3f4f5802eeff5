"""Functions that format numbers and clean texts, for all formats of the report."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping

from perikope.evaluation.experiment.outcome import ComparisonSettings

DECIMALS = 4


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


def change_text(change: float) -> str:
    """Format a change in percent, as papers print it.

    >>> change_text(27.84), change_text(-3.0), change_text(0.01)
    ('+27.8%', '-3.0%', '0.0%')
    """
    text = f"{change:.1f}"
    if float(text) == 0:
        return "0.0%"
    return f"{text}%" if text.startswith("-") else f"+{text}%"


def value_text(value: object) -> str:
    """A short text for the value of a parameter.

    >>> value_text(0.30000000000000004), value_text(1000), value_text(("a", 0.5)), value_text(True)
    ('0.3', '1000', 'a, 0.5', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {value_text(one)}" for key, one in value.items())
    return ", ".join(map(value_text, value)) if isinstance(value, (tuple, list)) else str(value)


def ordered(value: object) -> tuple[int, float, str]:
    """A key that sorts numbers by size, then texts."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return (0, float(value), "")
    return (1, 0.0, value_text(value))


TESTS = {
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "mannwhitney": "Mann–Whitney U test",
    "randomisation": "randomisation test",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini and Hochberg"}


def described_test(settings: ComparisonSettings, compared: str) -> str:
    """The test of a comparison in words. `compared` names what the correction counts, such as `pairs`."""
    correction = CORRECTIONS.get(settings.correction)
    corrected = (
        f"corrected for the number of {compared} after {correction}" if correction else f"not corrected for the number of {compared}"
    )
    return f"{TESTS.get(settings.test, settings.test)}, two-tailed, p ≤ {settings.alpha:g}, {corrected}"


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
