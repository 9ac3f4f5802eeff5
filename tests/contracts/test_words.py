"""No reader loses words, repeats them or changes their order: each file beside the words of an independent program."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.words import compared, words_in, words_of

from perikope.formats import FORMATS
from tests.support.trees import GOLDEN

WORDS = sorted((GOLDEN / "words").iterdir())
NOT_FROM_OTHER_PROGRAMS = {"markdown", "html", "text", "jsonl", "xml"}
"""Formats with suffixes of their own that are not files of other programs; XML formats have golden trees."""
DECLARED: dict[str, tuple[str, str]] = {
    # By file: words of the other program that we leave out, and words that it leaves out.
    # LibreOffice writes hidden words and the sign of a note, but neither the note nor the title in the properties.
    "files.codes.rtf": ("text1 hidden words", "pump codes text the note below"),
    "files.guide.adoc": ("etc passwd table 1", ""),  # the name of an included file, and a number of a caption
    "files.guide.rst": ("author ann cook note", "the the pump from left"),  # metadata, the title of a note, a substitution
    "files.guide.tex": ("1 1", "pump how to care for a seals cook"),  # numbers of references, and the title
    "files.groups.pptx": ("", "3 4"),  # the values of a chart
    "files.notes.org": ("todo a work", ""),  # state, priority and tag of a heading
    # pdftotext joins the letters of two columns.
    "pdf.latex.pdf": ("1 evapcold orates conand denses", "and cold evaporates condenses"),
}
ORDER = {"pdf.latex.pdf": 0.7}
"""The share of words in order, where the other program has another order: pdftotext reads lines across columns."""


@pytest.mark.parametrize("expected", WORDS, ids=lambda path: path.stem)
def test_words_are_those_of_another_program(expected: Path) -> None:
    theirs = expected.read_text("utf-8").split()
    assert len(theirs) >= 5
    found = compared(theirs, words_of(GOLDEN / "sources" / expected.stem))
    missing, besides = (Counter(words_in(text)) for text in DECLARED.get(expected.stem, ("", "")))
    assert found.missing == missing
    assert found.besides == besides
    assert found.order >= ORDER.get(expected.stem, 0.9)


def test_every_format_of_other_programs_is_compared() -> None:
    suffixes = {path.stem[path.stem.rindex(".") :] for path in WORDS}
    formats = {name: format.suffixes for name, format in FORMATS.items() if format.suffixes and name not in NOT_FROM_OTHER_PROGRAMS}
    assert [name for name, known in formats.items() if suffixes.isdisjoint(known)] == []


def test_a_lost_a_repeated_and_a_moved_word_are_noticed() -> None:
    theirs = ["one", "two", "three", "four"]
    found = compared(theirs, ["one", "four", "two", "two"])
    assert (found.missing, found.besides) == (Counter(["three"]), Counter(["two"]))
    assert compared(theirs, ["four", "one", "two", "three"]).order == 0.75
