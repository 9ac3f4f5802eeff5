"""The walk for patents of the collections CLEF-IP and MAREC, which number paragraphs in several ways."""

from __future__ import annotations

import re
from functools import cached_property

from perikope.formats._xpaths import Element
from perikope.formats.walks import walk
from perikope.formats.walks.patent import NO_NUMBER, ParagraphNumber, PatentWalk

_COUNTED = re.compile(r"([pP]-?)([0-9]{1,5})")
"""The number that MAREC gives a paragraph: `p0042`, `P-42`."""
_PRINTED = ("EP", "US")
"""Countries whose publications are printed with these numbers. International applications (WO) are not."""


@walk("clef-ip")
class ClefIpWalk(PatentWalk):
    """The walk for documents with the root `patent-document`."""

    @cached_property
    def country(self) -> str:
        """The country of the publication; empty if it is unknown."""
        return self.bibliography.publication.country if self.bibliography.publication else ""

    @cached_property
    def numbers_in_abstract(self) -> list[str]:
        """The numbers of the paragraphs of the abstract, as the file writes them."""
        return [paragraph.get("num") or "" for paragraph in self.root.iterfind("abstract//p")]

    def paragraph_number(self, element: Element) -> ParagraphNumber:
        """The number of a paragraph, from the number that MAREC gives it.

        In US files MAREC also counts the paragraphs of the abstract, but the printed numbers do not. So the number of
        these paragraphs is subtracted.
        """
        written = element.get("num")
        match = _COUNTED.fullmatch(written) if written else None
        if not match:
            return super().paragraph_number(element)
        number = int(match[2])
        if self.country == "US":
            number -= sum(other.startswith(match[1]) for other in self.numbers_in_abstract)
        return ParagraphNumber(f"{number:04d}", self.country in _PRINTED) if number > 0 else NO_NUMBER
