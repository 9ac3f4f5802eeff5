"""Sentence boundaries by rules, in text of any script.

Rules are used, and not a trained model, because the same text must give the same passages on every machine and in every
version. An occasional wrong boundary does little harm to retrieval.

A sentence ends at a blank line and after a full-width mark such as `。`. It also ends after `. ! ? …` and similar marks
if white space and a character that can begin a sentence follow. A full stop that belongs to an abbreviation, an initial
or the number of a list item does not end a sentence.
"""

from __future__ import annotations

import re
import unicodedata

_CLOSERS = re.escape("\"'“”‘’»›)]}）】」』〉》")
# The look-behind lets a match begin only at the first mark of a run, so that a hostile "....…" takes linear time.
_SPACED_END = rf"(?P<spaced>(?<![.!?…؟۔।॥])[.!?…؟۔।॥]++)(?P<closers>[{_CLOSERS}]*+)(?=\s)"
_FULL_WIDTH_END = rf"[。！？｡]++[{_CLOSERS}]*+"
_PARAGRAPH_END = r"\n[^\S\n]*\n|\u2029"
_END = re.compile(f"{_SPACED_END}|{_FULL_WIDTH_END}|{_PARAGRAPH_END}")

_SPACE = re.compile(r"\s*")
_LAST_WORD = re.compile(r"[^\s(\[{\"'“„«‘/]*$")
_INITIALS = re.compile(r"[^\W\d_](\.[^\W\d_])+|[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]")
_HOUR = re.compile(r"(?:^|[\W\d])[ap]\.m$|\d\s?[AP]\.M$")
_CAPITALISED = re.compile(r"[^\W\d_]\w*")
_ITEM_NUMBER = re.compile(r"[(\[]?(\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})")

_LONGEST_ABBREVIATION = 16
_NEVER_LAST = """
    Ms St abb abs al approx bspw bzgl bzw ca cf chap co corp dept dgl dipl dr eq eqs esp evtl ex fig figs ggf incl inkl jr mlle mme
    mr mrs nr núm p p.ex pág págs pat ph.d pp prof ref refs resp sect sog spp univ usu vgl viz vs zzgl
"""
"""Abbreviations that hardly ever end a sentence, even if an upper-case letter follows.

Capitalised entries match only as written: "Ms." is a title, but "ms." (milliseconds) can end a sentence.
"""

_BEFORE_NUMBERS = """
    apr art arts aug avr ch dec dez ed feb févr jan janv juil jul jun mar max min no nos nov oct okt par para pos s sec sep
    sept ser tab vol vols
"""
"""Abbreviations that are also words, or often end a sentence: recognised only before a number, as in "No. 5"."""

_AFTER_HOURS = """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    January February March April May June July August September October November December
    Atlantic Central Eastern Greenwich Mountain Pacific
"""
"""Capitalised words that continue a sentence after "5 p.m.": days, months and first words of time zones."""

_ABBREVIATIONS = frozenset(_NEVER_LAST.split())
_ABBREVIATIONS_BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
_CAPITALISED_AFTER_HOURS = frozenset(_AFTER_HOURS.split())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end (exclusive) of each sentence, in characters, without the white space around it.

    >>> text = "See Fig. 3 of U.S. Pat. No. 5. It runs at 3.5 bar! (Why?) Nobody knows."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['See Fig. 3 of U.S. Pat. No. 5.', 'It runs at 3.5 bar!', '(Why?)', 'Nobody knows.']
    """
    spans = []
    start = _after_space(text, 0)
    for end in _END.finditer(text):
        # Skip a blank line at or before `start`: it follows a sentence that has already ended.
        if end.end() > start and (end["spaced"] is None or _ends_sentence(text, start, end)):
            spans.append((start, start + len(text[start : end.end()].rstrip())))
            start = _after_space(text, end.end())
    if start < len(text):
        spans.append((start, start + len(text[start:].rstrip())))
    return spans


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether the matched mark, which white space follows, ends the sentence that began at `start`."""
    at = _after_space(text, end.end())
    if at == len(text) or not _can_begin(text[at]):
        return False
    return end["spaced"] != "." or bool(end["closers"]) or not _abbreviates(text, start, end.start(), at)


def _can_begin(character: str) -> bool:
    """Whether a sentence can begin with a character: capital or caseless letter, digit, opening bracket or quote."""
    # Lo: letters of scripts without case; Ps, Pi: opening brackets and quotes.
    return unicodedata.category(character) in _BEGINNINGS or character in "\"'¿¡"


_BEGINNINGS = frozenset(["Lu", "Lt", "Lo", "Nd", "Nl", "No", "Ps", "Pi"])


def _abbreviates(text: str, start: int, stop: int, at: int) -> bool:
    """Whether the full stop at `stop` belongs to an abbreviation, an initial or an item number.

    The sentence began at `start`; `at` is the position of the next word, which then continues the sentence.
    """
    if stop - start <= 5 and _ITEM_NUMBER.fullmatch(text, start, stop):
        return True
    before = text[max(start, stop - _LONGEST_ABBREVIATION) : stop]
    if _HOUR.search(before):
        return not _begins_anew(text, at)
    match = _LAST_WORD.search(before)
    word = match.group() if match else ""
    return bool(
        _INITIALS.fullmatch(word)
        or word in _ABBREVIATIONS
        or word.lower() in _ABBREVIATIONS
        or (word.lower() in _ABBREVIATIONS_BEFORE_NUMBERS and unicodedata.category(text[at])[0] == "N")
    )


def _begins_anew(text: str, at: int) -> bool:
    """Whether the word at `at`, which follows a time such as "5 p.m.", begins a sentence.

    It does if it is capitalised and is no day, month or time zone.
    """
    match = _CAPITALISED.match(text, at, at + _LONGEST_ABBREVIATION)
    word = match.group() if match else ""
    return word[:1].isupper() and (len(word) == 1 or not word.isupper()) and word not in _CAPITALISED_AFTER_HOURS


def _after_space(text: str, at: int) -> int:
    """The position of the first character at or after `at` that is not white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
