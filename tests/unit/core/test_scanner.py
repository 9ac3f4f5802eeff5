"""One scanner for three parsers: what it reads, and how its errors name a position."""

import re

import pytest

from perikope.core.errors import UsageError
from perikope.core.scanner import WIDTH, Scanner, excerpt

WORD = re.compile(r"[a-z]+")


def test_reading():
    scanner = Scanner("  pump ( 7")
    assert (scanner.match(WORD), scanner.take("("), scanner.take("("), scanner.match(WORD)) == ("pump", True, False, None)
    assert (scanner.peek(), scanner.rest()) == ("7", True)
    assert scanner.take("7")
    assert (scanner.peek(), scanner.rest()) == ("", False)


@pytest.mark.parametrize("position", [0, 50, 999, 1000])
def test_an_error_shows_what_is_around_its_position(position):
    text = "".join(f"{i:04d}" for i in range(250))
    error = Scanner(text).error("expected a word", position)
    assert isinstance(error, UsageError)
    assert len(excerpt(text, position)) <= WIDTH + 4
    following = text[position : position + 12]
    assert str(error).endswith(f"expected a word at {following!r} (character {position + 1})" if following else "a word at the end")
    assert following[:1] in excerpt(text, position)


def test_a_short_text_is_shown_as_it_is():
    assert str(Scanner("plm(").error("expected a name")) == "cannot read 'plm(': expected a name at 'plm(' (character 1)"
