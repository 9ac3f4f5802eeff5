"""Inline content: white space, marks that outlive a passage, and where links lead."""

from __future__ import annotations

import pytest

from perikope.formats._inline import Inline, link_target


def test_open_marks_go_on_in_the_next_run() -> None:
    inline = Inline()
    inline.open("link", "x")
    inline.text(" one ")
    assert inline.take() == ("one", [("link", 0, 3)], ["x"])
    assert inline.take() == ("", [], [])
    inline.text("two")
    inline.close()
    inline.text(" three")
    assert inline.take() == ("two three", [("link", 0, 3)], ["x"])


def test_marks_without_words_leave_no_trace() -> None:
    inline = Inline()
    inline.text("a")
    inline.open("b", "x")
    inline.close()
    inline.open("b")
    inline.text(" ")
    inline.close()
    assert inline.take() == ("a", [], [])


def test_kept_white_space_moves_marks_with_it() -> None:
    inline = Inline()
    inline.text("\n\n  a ", keep=True)
    inline.open("b")
    inline.text("b \n", keep=True)
    inline.close()
    assert inline.take(keep=True) == ("  a b", [("b", 4, 5)], [])


def test_a_new_line_takes_the_place_of_a_space() -> None:
    inline = Inline()
    inline.text("a ")
    inline.open("b")
    inline.line()
    inline.line()
    inline.text(" b")
    inline.close()
    assert inline.take() == ("a\nb", [("b", 2, 3)], [])


def test_cells_are_set_off_within_their_line() -> None:
    inline = Inline()
    for text in ("a", "b ", ""):
        inline.separate()
        inline.text(text)
    inline.line()
    inline.separate()
    inline.text("c")
    assert inline.take().text == "a | b |\nc"


@pytest.mark.parametrize("text", ["a  b", "a\nb", "a\tb", "a\xa0b", "a \u2028 b", "a\r\n b"])
def test_white_space_is_collapsed(text: str) -> None:
    inline = Inline()
    inline.text(text)
    assert inline.take().text == "a b"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("", ("", "")),
        ("#", ("", "")),
        ("  #a%20b ", ("a b", "")),
        ("?q=1", ("", "")),
        ("b.md", ("", "a/b.md")),
        ("./b.md?q", ("", "a/b.md?q")),
        ("../../x.md", ("", "../x.md")),
        ("/x.md#y", ("", "/x.md")),
        ("page.md#y", ("y", "")),
        ("page.md", ("", "")),
        ("HTTPS://Example.org/A#b", ("", "https://Example.org/A")),
        ("http:x", ("", "")),
        ("file:///etc/passwd", ("", "")),
        ("http://[", ("", "")),
    ],
)
def test_link_targets(href: str, expected: tuple[str, str]) -> None:
    assert link_target(href, "a/page.md") == expected
