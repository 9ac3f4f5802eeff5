"""Text of Org mode without its signs: emphasis, links, notes, targets and macros become what a reader sees."""

from __future__ import annotations

import re

_LONGEST = 1000
"""Characters of the longest emphasised text; signs around a longer one are read as text."""

_BEFORE = r"(?:(?<=[\s({'\"*/_+\u201c\u2018\u2013\u2014-])|^)"
_AFTER = r"(?=[\s)}'\".,;:!?\[\]*/_+\u201d\u2019\u2013\u2014-]|$)"
_VERBATIM = re.compile(rf"{_BEFORE}([=~])(\S(?:[^\n]{{0,{_LONGEST}}}?\S)??)\1{_AFTER}")
_EMPHASIS = re.compile(rf"{_BEFORE}([*/_+])(?![\s*/_+])((?:(?!\1)[^\n]|\n(?!\s*\n)){{1,{_LONGEST}}}?)(?<!\s)\1{_AFTER}")
_LINK = re.compile(r"\[\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\[((?:[^\]]|\](?!\]))*)\])?\]")
_NOTE = re.compile(r"[ \t]*\[fn:[\w-]*(?::([^\[\]]*))?\]")
_TARGET = re.compile(r"<<(<?)([^<>\n]+)>>>?")
_EXPORTED = re.compile(r"@@[\w-]+:(?:[^@]|@(?!@))*@@")
_MACRO = re.compile(r"\{\{\{([\w-]+)(?:\(([^{}]*)\))?\}\}\}")
_SOURCE = re.compile(r"(?<!\w)src_[\w+-]+(?:\[[^\]\n]*\])?\{([^{}\n]*)\}")
_CITATION = re.compile(r"\[cite(?:/[\w/-]*)?:([^\[\]]*)\]")
_PLACE = re.compile(r"(?:file|id|attachment|elisp|shell|coderef):|[#*(]")
_KEPT = re.compile("\ue000(\\d+)\ue001")


def plain_text(text: str) -> str:
    """A text of Org mode as people read it.

    >>> plain_text("*Never* open /the/ =a*b*c= valve[fn:1], see [[https://a.org][the *manual*]].")
    'Never open the a*b*c valve, see the manual.'
    >>> plain_text("2 * 3 * 4, a_1_b, [[file:a.png]] <<here>>[fn:: really]")
    '2 * 3 * 4, a_1_b,   (really)'
    """
    kept: list[str] = []

    def keep(content: str) -> str:
        kept.append(content)
        return f"\ue000{len(kept) - 1}\ue001"

    text = text.replace("\ue000", "").replace("\ue001", "")
    text = _EXPORTED.sub("", text)
    text = _SOURCE.sub(lambda found: keep(found[1]), text)
    text = _VERBATIM.sub(lambda found: keep(found[2]), text)
    text = _LINK.sub(_link, text)
    text = _CITATION.sub(lambda found: f"[{found[1]}]", text)
    text = _NOTE.sub(lambda found: f" ({found[1].strip()})" if found[1] else "", text)
    text = _TARGET.sub(lambda found: found[2] if found[1] else "", text)
    text = _MACRO.sub(lambda found: found[2] or "", text)
    for _ in range(3):
        # Emphasis may hold other emphasis.
        text, count = _EMPHASIS.subn(r"\2", text)
        if not count:
            break
    text = re.sub(r"\\\\[ \t]*$", "", text, flags=re.MULTILINE)
    return _KEPT.sub(lambda found: kept[int(found[1])], text)


def _link(found: re.Match[str]) -> str:
    """The description of a link; without one, its address, unless it is that of a file or a place in the text."""
    address, description = found[1], found[2]
    if description:
        return "" if re.fullmatch(r"(?:file:)?\S+\.(?:png|jpe?g|gif|svg|webp|bmp)", description) else description
    return address.lstrip("#*") if address[:1] in "#*" else "" if _PLACE.match(address) else address
