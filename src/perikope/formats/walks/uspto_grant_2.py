"""The walk for US grants of 2001 to 2004 (`PATDOC`), which tag most headings as paragraphs of level 7."""

from __future__ import annotations

from perikope.formats._xpaths import Element
from perikope.formats.walks import walk
from perikope.formats.walks.patent import PatentWalk
from perikope.patents.headings import LONGEST, is_capitals, is_main

_ENDS = (".", ",", ";", ":")


@walk("uspto-grant-2")
class UsptoGrant2Walk(PatentWalk):
    """The walk for documents with the root `PATDOC`."""

    def is_heading(self, element: Element, text: str) -> bool:
        """Whether a paragraph is a heading.

        Headings are main headings, lines in capitals, and short centred lines (`LVL` 7) that do not look like a part of
        a sentence.
        """
        is_line = element.get("LVL") == "7" and len(text) <= LONGEST and not text.endswith(_ENDS) and not text[:1].islower()
        return is_line or is_main(text) or is_capitals(text)
