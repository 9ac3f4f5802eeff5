"""Characters that control a terminal, or that nobody sees."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"
"""Zero-width joiner and non-joiner, which some scripts need."""


def is_control(character: str) -> bool:
    """Whether a character controls a terminal or ends a line, or is a lone surrogate, which is no character."""
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def is_invisible(character: str) -> bool:
    """Whether nobody sees a character, such as U+202E, which turns the text after it. Joiners do not count."""
    return unicodedata.category(character) == "Cf" and character not in _JOINERS
