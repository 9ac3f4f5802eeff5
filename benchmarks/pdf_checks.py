"""Checks of what was read from a PDF, by means that do not depend on the reader: headings, pages and rectangles.

Pages are compared with the text that PDFium reads from one page alone. Rectangles are compared with the text that
PDFium finds inside them.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADINGS = Path(__file__).with_name("headings")
"""Headings that we counted by hand: one file per PDF, with level and text. The level `?` marks what may be missing."""
MARGIN = 1.0
"""Points around a rectangle that still count as inside: letters such as f reach over their box."""
LEAST_LETTERS = 6
"""Letters of the shortest part of a passage on its first page. Fewer letters may be on any page."""
_SECTION_NUMBER = re.compile(
    r"^(?:(?:chapter|appendix|part|kapitel|anhang|annexe|chapitre)\s+(?:[A-Z]|[IVX]+|\d+)[.:]?\s+|(?:[A-Z]\.)?(?:\d+\.)*\d+\.?\s+(?=\D)|[A-Z]\s+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HeadingCount:
    """How the headings that were found compare with those that are there."""

    expected: int
    right: int
    """With the right text and level."""
    other_level: int
    """With the right text and another level."""
    missed: tuple[str, ...]
    besides: tuple[str, ...]
    """What was found and is not expected."""


def counted_by_hand(name: str) -> list[tuple[str, str]]:
    """Level and text of the headings of a PDF by its name without suffix; empty if nobody has counted them."""
    path = HEADINGS / f"{name}.tsv"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(level, text) for level, _, text in (line.partition("\t") for line in lines)]


def listed(data: bytes, outline_of: Callable[[Any], Sequence[Any]]) -> list[tuple[str, str]]:
    """Depth and text of the headings in the outline of a PDF."""
    import pypdfium2

    entries = outline_of(pypdfium2.PdfDocument(data))
    depths = _depths([entry.level for entry in entries])
    return [(str(depth), entry.title) for depth, entry in zip(depths, entries, strict=True)]


def compare_headings(expected: Sequence[tuple[str, str]], found: Sequence[tuple[int, str]]) -> HeadingCount:
    """Align two lists of headings by their letters and digits; numbers of sections are ignored."""
    depths = _depths([level for level, _ in found])
    wanted, there = [[_without_number(text) for _, text in some] for some in (expected, found)]
    matched: list[tuple[int, int]] = []
    missed, besides = list(range(len(wanted))), list(range(len(there)))
    for a, b, size in difflib.SequenceMatcher(None, wanted, there, autojunk=False).get_matching_blocks():
        for one, two in zip(range(a, a + size), range(b, b + size), strict=True):
            missed.remove(one)
            besides.remove(two)
            if expected[one][0] != "?":
                matched.append((int(expected[one][0]), depths[two]))
    # Levels that all differ by the same number are right: a list may begin with the title of the document.
    shift = Counter(there - wanted for wanted, there in matched).most_common(1)[0][0] if matched else 0
    right = sum(there - wanted == shift for wanted, there in matched)
    needed = [number for number in missed if expected[number][0] != "?"]
    return HeadingCount(
        sum(level != "?" for level, _ in expected),
        right,
        len(matched) - right,
        tuple(expected[number][1] for number in needed),
        tuple(found[number][1] for number in besides),
    )


def _without_number(text: str) -> str:
    """The letters of a heading without its number, and without a letter after it: an outline may lack `Appendix A`."""
    return letters(_SECTION_NUMBER.sub("", _SECTION_NUMBER.sub("", text)))


def _depths(levels: Sequence[int]) -> list[int]:
    """The depth of each heading in the tree: a heading is one deeper than the last one of a lower level."""
    depths: list[int] = []
    open_levels: list[int] = []
    for level in levels:
        while open_levels and open_levels[-1] >= level:
            open_levels.pop()
        open_levels.append(level)
        depths.append(len(open_levels))
    return depths


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()


class PageTexts:
    """The text of each page, as PDFium reads it from this page alone."""

    def __init__(self, data: bytes) -> None:
        import pypdfium2

        self.document = pypdfium2.PdfDocument(data)
        self._pages = [page.get_textpage() for page in self.document]
        texts = [page.get_text_range() for page in self._pages]
        self._letters = [letters(text) for text in texts]
        self._words = [_words(text) for text in texts]

    def __len__(self) -> int:
        return len(self._pages)

    def holds(self, text: str, page: int) -> bool:
        """Whether all of a passage is on its page, or begins there and goes on at the next page.

        A part is on a page if the page has the same letters and digits in the same order. Otherwise, as in tables and
        beside raised signs, every word of it must be there, as often as the part has it.
        """
        words = [letters(word) for word in text.split() if letters(word)]
        if self._has(page, words):
            return True
        if page >= len(self):
            return False
        # The part on the first page is the longest one that is there in order. The page may divide one word.
        there = self._letters[page - 1]
        first = max((count for count in range(1, len(words)) if "".join(words[:count]) in there), default=0)
        if first and len("".join(words[:first])) < LEAST_LETTERS:
            return False
        for count in (first, first - 1):
            if 0 < count < len(words) and self._has(page + 1, words[count:]):
                return True
        return first < len(words) and self._divided(page, words, first)

    def _divided(self, page: int, words: Sequence[str], first: int) -> bool:
        word = words[first]
        least = 1 if first else LEAST_LETTERS
        return any(
            self._has(page, [*words[:first], word[:size]]) and self._has(page + 1, [word[size:], *words[first + 1 :]])
            for size in range(least, len(word))
        )

    def _has(self, page: int, words: Sequence[str]) -> bool:
        if not 1 <= page <= len(self):
            return False
        if "".join(words) in self._letters[page - 1]:
            return True
        there = self._words[page - 1]
        return all(there[word] >= count for word, count in Counter(words).items())

    def inside(self, page: int, box: Sequence[float]) -> str:
        """The letters and digits in a rectangle of a page."""
        left, bottom, right, top = box
        return letters(self._pages[page - 1].get_text_bounded(left - MARGIN, bottom - MARGIN, right + MARGIN, top + MARGIN))

    def is_inside(self, text: str, page: int, box: Sequence[float]) -> bool:
        """Whether a rectangle holds the words of a passage, or those of its first page."""
        there = self.inside(page, box)
        words = [letters(word) for word in text.split() if letters(word)]
        if "".join(words) in there:
            return True
        missing = [word for word in words if word not in there]
        if not missing:
            return True
        first = words.index(missing[0])
        # The rest may be on the next page.
        return first > 0 and not self._has(page, words) and self._has(page + 1, words[first + 1 :])


def _words(text: str) -> Counter[str]:
    """The words of a page, and those that a hyphen at the end of a line divides."""
    normal = unicodedata.normalize("NFKC", text)
    words = Counter(word for word in map(letters, normal.split()) if word)
    words.update(map(letters, re.findall(r"\S+[-\u2010\u00ad\x02\ufffe]\s*\n\s*\S+", normal)))
    return words


def check_pages(blocks: Sequence[Any], pages: PageTexts) -> tuple[int, int, int, int]:
    """The number of passages, of those on their page and in their rectangle, and of those that another page has too.

    The last number says how easily the check is passed: it is the number of passages that the page after the next one
    would have to be right for.
    """
    passages = [block for block in blocks if block.kind not in ("heading", "table") and letters(block.text)]
    right = sum(pages.holds(block.text.replace(" | ", " "), block.page) for block in passages)
    boxed = sum(bool(block.box) and pages.is_inside(block.text.replace(" | ", " "), block.page, block.box) for block in passages)
    elsewhere = sum(pages.holds(block.text.replace(" | ", " "), (block.page + 1) % len(pages) + 1) for block in passages)
    return len(passages), right, boxed, elsewhere
