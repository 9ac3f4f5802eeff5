"""The scanner that all parsers of the package use. It keeps a position in a text and makes errors that name it."""

from __future__ import annotations

import re

from perikope.core.errors import UsageError

WIDTH = 60
"""The number of characters of a text that an error shows."""


def excerpt(text: str, position: int = 0, width: int = WIDTH) -> str:
    """The part of a text around a position, in quotes; `…` marks omitted text.

    >>> excerpt("a query that is much too long for an error", 20, width=16)
    "'… is much too lon…'"
    """
    first = max(0, min(position - width // 2, len(text) - width))
    return repr("…" * (first > 0) + text[first : first + width] + "…" * (first + width < len(text)))


class Scanner:
    """A text that is read from left to right; `at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def space(self) -> None:
        """Skip white space."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self, characters: int = 1) -> str:
        """Return the next characters without moving; fewer are returned at the end of the text."""
        return self.text[self.at : self.at + characters]

    def take(self, mark: str) -> bool:
        """Skip white space, then `mark` if it follows; returns whether it follows."""
        self.space()
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Skip white space, then the text that a pattern matches.

        Returns that text, or None if the pattern does not match.
        """
        self.space()
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def rest(self) -> bool:
        """Skip white space; returns whether any text follows."""
        self.space()
        return self.at < len(self.text)

    def location(self, position: int) -> str:
        """Describe a position in words, for an error."""
        following = self.text[position : position + 12]
        return f"at {following!r} (character {position + 1})" if following else "at the end"

    def error(self, message: str, position: int | None = None, advice: str = "") -> UsageError:
        """Make the error for a position in the text; without `position`, for the next character.

        `advice` says what to write instead.
        """
        return UsageError(self.complaint(message, self.at if position is None else position, advice))

    def complaint(self, message: str, position: int, advice: str = "") -> str:
        """The message of an error, with the text around its position."""
        hint = f"; {advice}" if advice else ""
        return f"cannot read {excerpt(self.text, position)}: {message} {self.location(position)}{hint}"
