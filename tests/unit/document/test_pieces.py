"""Pieces of code: natural places, the longest length, and nothing lost."""

from __future__ import annotations

import random

import pytest

from perikope.document.pieces import LONGEST, natural_pieces
from perikope.document.tree import Kind, TreeBuilder
from tests.support.growth import is_linear
from tests.support.trees import check_tree, passages


def cut(text: str, longest: int) -> list[str]:
    return [text[start:end] for start, end in natural_pieces(text, longest)]


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("a\nb", 3, ["a\nb"]),
        ("f {\n  a\n\n  b\n}\n\ng {\n  c\n}", 20, ["f {\n  a\n\n  b\n}", "g {\n  c\n}"]),
        ("f {\n  a\n\n  b\n  c\n}", 16, ["f {\n  a", "  b\n  c\n}"]),
        ("f {\n  a\n\n}\nbb bb bb bb", 14, ["f {\n  a\n\n}", "bb bb bb bb"]),
        ("one line\nanother line\nthird", 21, ["one line\nanother line", "third"]),
        ("  f\n  g\n\n  h\n    i", 12, ["  f\n  g", "  h\n    i"]),
        ("a" * 7 + ";" + "b" * 7, 10, ["a" * 7 + ";", "b" * 7]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("\n\n\na\n" + "\n" * 9 + "b", 4, ["\n\n\na", "b"]),
    ],
)  # fmt: skip
def test_code_is_cut_at_the_best_place_that_fits(text: str, longest: int, expected: list[str]) -> None:
    assert cut(text, longest) == expected


def test_no_piece_is_too_long_and_only_white_space_is_between_pieces() -> None:
    chance = random.Random(3)
    for _ in range(2_000):
        text = "".join(chance.choices("ab \n};x", k=chance.randrange(1, 200)))
        longest, last = chance.randrange(1, 60), 0
        for start, end in natural_pieces(text, longest):
            assert last <= start < end
            assert end - start <= longest
            assert not text[last:start].strip()
            last = end
        assert not text[last:].strip()


@pytest.mark.parametrize("text", ["x", " ", "x\n", "\n"])
def test_hostile_text_takes_linear_time(text: str) -> None:
    assert is_linear(lambda times: natural_pieces(f"a{text * times}b"), 500_000)


def test_a_divided_text_keeps_every_character_and_divides_its_marks() -> None:
    text = "first\n\n\n  second\nthird"
    builder = TreeBuilder("d")
    builder.passage("before")
    numbers = builder.divided(text, [(0, 5), (8, 22)], "code", holder="pre", id="x", marks=[("b", 3, 16)], refs=["y"])
    builder.passage("after")
    document = builder.build()
    check_tree(document)
    assert document.text == f"before\n{text}\nafter"
    assert passages(document) == ["before", "first", "  second\nthird", "after"]
    assert [Kind(document.spans.kind[number]) for number in numbers] == [Kind.ELEMENT, Kind.PASSAGE, Kind.PASSAGE]
    assert [document.text_of(mark) for mark in document.of_kind(Kind.MARK)] == ["st", "  second"]
    assert (document.span_ids, document.references) == ({numbers[0]: "x"}, ((numbers[0], "y"),))


def test_one_piece_is_a_passage_alone() -> None:
    builder = TreeBuilder("d")
    [number] = builder.divided("a", natural_pieces("a"), "code", holder="pre", id="x")
    document = builder.build()
    assert (document.spans.kind[number], document.span_ids[number]) == (Kind.PASSAGE, "x")
    assert LONGEST == 1500
