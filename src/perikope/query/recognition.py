"""Recognise what a text in a search box is: words, a Boolean query, a claim, or a citation. No index is needed.

Plain words are the rule. A text is something else only if it has signs that plain words rarely have.
"""

from __future__ import annotations

import re

_NAME = r"AND|OR|NOT|SAME|(?:NEAR|ADJ)/[0-9]+"
_BETWEEN = re.compile(rf"\S\s+({_NAME})\s+\S")
"""An operator of Boolean queries between two words."""
_BOOLEAN = re.compile(
    rf"""(?<!\S)\(*(?:{_NAME}|(?:NEAR|ADJ)(?:/\S*)?)(?!\S)  # an operator, also one that lacks a word or its distance
    | (?<![^\s(+-])["“”„](?=\S)                             # a phrase; a sign of inches is none
    | \w\w\*(?!\w)                                          # a wildcard
    | (?<!\S)\w{{3,}}~[0-9]?(?![^\s)])                      # a fuzzy word
    | (?<!\S)[+-](?=[^\W\d]|["“(])                          # a sign before a word; a negative number is none
    | \{{[^{{}}]*\}}                                        # terms of the index
    """,
    re.VERBOSE,
)
_LONGEST_IN_CAPITALS = 3
"""The most words of a query in capitals whose AND is an operator. Titles of patents are often written in capitals."""
_SHORTEST_CLAIM = 12
"""The fewest words of a claim. Shorter texts are queries, even if they have a word of claims."""
_NUMBERED = re.compile(r"\s*(?:claim\s+|anspruch\s+|revendication\s+)?[0-9]{1,3}\s*[.):]\s+\w", re.IGNORECASE)
_OF_CLAIMS = re.compile(
    r"""\b(?:
      compris(?:ing|es|ed)|consisting\s+(?:essentially\s+)?of|wherein|whereby
    | characteri[sz]ed\s+(?:in\s+that|by)
    | (?:according\s+to|as\s+claimed\s+in|of|as\s+in|in)\s+(?:any\s+(?:one\s+)?of\s+)?(?:the\s+)?(?:preceding\s+)?claims?
    | said|thereof
    | dadurch\s+gekennzeichnet|umfassend|umfasst|aufweisend|enthaltend|wobei|worin|nach\s+(?:einem\s+der\s+)?anspr(?:uch|üche[n]?)
    | caract[ée]ris[ée]e?s?\s+(?:en\s+ce|par)|comprenant|comportant|dans\s+la?(?:quel|quelle|squels|squelles)|(?:du|le|la)dite?
    | selon\s+(?:l['’]une\s+des\s+)?(?:la\s+)?revendications?
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CITATION = re.compile(r"\s*(?P<document>\S.*?)[\s,]*(?P<citation>\[[0-9]{1,6}\]|(?:claim|col\.|page)\s*[0-9].*)\s*", re.IGNORECASE)


def operator_between_words(text: str) -> str:
    """The first operator of Boolean queries that stands between two words; empty if there is none.

    >>> operator_between_words("pump NEAR/3 shaft"), operator_between_words("pump and shaft")
    ('NEAR/3', '')
    """
    found = _BETWEEN.search(text)
    return found[1] if found else ""


def is_boolean(text: str) -> bool:
    """Whether a text has an operator, a phrase in quotes, a wildcard, a fuzzy word or a sign of Boolean queries.

    >>> [is_boolean(text) for text in ('"magnetic coupling" pump', "pump*", "pump AND", "pump -seal", "(pump OR")]
    [True, True, True, True, True]
    >>> [is_boolean(text) for text in ("PUMP AND SHAFT", "MIXING VALVE AND METHOD OF ASSEMBLY THEREOF")]
    [True, False]
    >>> [is_boolean(text) for text in ("pump and shaft", "at -20 °C", "pump (magnetic)", "a rotor?", 'a 5" pipe')]
    [False, False, False, False, False]
    """
    signs = {found.group().lstrip("(") for found in _BOOLEAN.finditer(text)}
    if signs <= {"AND", "OR", "NOT"} and text.isupper() and len(text.split()) > _LONGEST_IN_CAPITALS and "(" not in text:
        return False  # a title in capitals
    return bool(signs)


def is_claim(text: str) -> bool:
    """Whether a text is written like a claim of a patent, in English, German or French.

    >>> is_claim("1. A pump comprising a housing, a rotor and a coupling, wherein the coupling drives the rotor.")
    True
    >>> is_claim("which pump comprises a magnetic coupling")
    False
    """
    if len(text.split()) < _SHORTEST_CLAIM:
        return False
    return len(_OF_CLAIMS.findall(text)) >= (1 if _NUMBERED.match(text) or len(text.split()) >= 2 * _SHORTEST_CLAIM else 2)


def split_citation(text: str) -> tuple[str, str]:
    """The document and the place of a citation. Both are empty if the text is none.

    >>> split_citation("EP1130000B1 [0042]"), split_citation("EP 1 130 000 B1, claim 3"), split_citation("pump")
    (('EP1130000B1', '[0042]'), ('EP 1 130 000 B1', 'claim 3'), ('', ''))
    """
    found = _CITATION.fullmatch(text)
    return (found["document"], found["citation"]) if found else ("", "")
