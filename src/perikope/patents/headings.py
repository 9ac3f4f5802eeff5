"""Recognises headings in patent descriptions that are tagged as paragraphs; see Albarede et al. (2021), section 4.1.

A short paragraph that another element follows is a heading if one of these conditions holds:

- it consists of words typical of headings (`BRIEF DESCRIPTION OF THE DRAWINGS`);
- it is all in capitals;
- it names an example (`Example 2: Glue`);
- it is numbered like a section (`2.1 Rotor`);
- it is all bold or underlined;
- it has no paragraph number, while most other paragraphs have one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lxml import etree

Element = etree._Element

LONGEST = 120
"""The longest heading, in characters."""
DEEPEST = 6
"""The deepest level that `heading_level` derives from the words of a heading."""
DEEPEST_TAGGED = 9
"""The deepest level that an attribute of a heading can give."""

_SAYING = """
field background summary disclosure description drawing drawings figure figures art example examples embodiment embodiments reference
references applicability abstract claims cross-reference statement objects object advantages problem solution effects literature listing
conclusion conclusions experimental results discussion methods materials introduction terminology definitions mode modes priority overview
bibliography title
gebiet hintergrund zusammenfassung beschreibung zeichnung zeichnungen figuren beispiele beispiel technik aufgabe lösung bezugszeichen
bezugszeichenliste figurenbeschreibung ausführungsbeispiel ausführungsbeispiele vorteile anwendbarkeit offenbarung
domaine arrière-plan état résumé exposé dessins exemples antérieur antérieure avantages
"""
_FILLING = """
of the a an to for and in or with this invention present brief detailed technical general preferred related prior carrying out best
industrial several views application applications specific exemplary illustrative further signs list citation patent non-patent sequence
section part federally sponsored research development government rights advantageous technology document documents problems solved solving
means be by used made state statements regarding concerning known information more
der die das des den dem von zu zur und stand technisches kurze kurzbeschreibung detaillierte ausführliche bevorzugte bevorzugten bevorzugter
gewerbliche erfindung
de la le les du des et en d un une l détaillée brève technique préféré préférés l'invention d'exécution réalisation
"""
_SAYING_WORDS = frozenset(_SAYING.split())
_HEADING_WORDS = _SAYING_WORDS | frozenset(_FILLING.split())
"""A text that has only these words, and at least one of `_SAYING_WORDS`, is a main heading."""
_ALONE = """
description background summary examples example references drawings abstract claims introduction experimental results discussion methods
conclusion conclusions title definitions field overview bibliography
beispiele beispiel bezugszeichenliste figuren beschreibung figurenbeschreibung zusammenfassung zeichnungen exemples exemple dessins résumé
"""
_ONE_WORD = frozenset(_ALONE.split())
"""Words that form a main heading by themselves."""

_PARAGRAPH = re.compile(r"\s*\[\s?[0-9]{1,5}\s?\]\s*")
_NUMBERING = re.compile(
    r"(?P<parts>[0-9]{1,2}(?:\.[0-9]{1,2}){0,5})(?P<point>[.)]?)\s*(?=[^\W\d_])"
    r"|(?P<bracket>\((?:[0-9]{1,2}|[a-zA-Z]|[ivx]{1,4})\))\s*"
    r"|(?P<letter>[A-Z](?:-[0-9]{1,2})?|[IVX]{1,4})[.)]\s+"
)
_EXAMPLE = re.compile(
    r"[\[<(]?(?:(?:comparative|reference|working|synthesis|preparation|production|test|formulation|vergleichs|herstellungs)[ -]?)?"
    r"(?:examples?|exemples?|beispiele?|ejemplos?|preparations?|préparations?)\s+(?:no\.?\s*)?(?:[0-9]{1,3}[a-z]?|[a-z]|[ivx]{1,4})(?:\.[0-9]{1,2})*\b"
    r"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AFTER_EXAMPLE = re.compile(r"\s*[\]>):.\u2010-\u2015-]|\s+[A-Z(<\[]")
_NOISE = re.compile(r"<(?:SEP|tb|Desc)|\bEMI[0-9]|[=|]|(?:[0-9]\s*){9}|\bSEQ ID\b")
"""Remains of tables, omitted pictures and biological sequences, which are no headings."""
_SENTENCES = re.compile(r"[^\W\d_]{2}\.\s+[A-Z]")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_MARKS = frozenset(("b", "i", "u", "it", "bold", "italic", "sub", "sup", "o", "smallcaps"))
_VOWELS = frozenset("AEIOUYÄÖÜÉÈÀ")


def heading_level(text: str, outline: int = 1) -> tuple[int, int]:
    """Return the level of a heading, and the value of `outline` for the next heading.

    Main headings have level 1, examples level 2. A heading with a number of n parts has level n + 1. A heading of
    unknown level gets level `outline` + 1 and leaves `outline` unchanged. Every other heading sets `outline` to its
    level.

    >>> heading_level("EXAMPLES"), heading_level("2.1 Rotor", 1), heading_level("Notes", 3)
    ((1, 1), (3, 3), (4, 3))
    """
    text = _without_number(text)
    numbering = _NUMBERING.match(text)
    if _EXAMPLE.match(text):
        level = 2
    elif numbering and numbering["parts"]:
        level = min(DEEPEST, 2 + numbering["parts"].count("."))
    elif numbering and numbering["bracket"]:
        return min(DEEPEST, max(3, outline + 1)), outline
    elif numbering:
        level = 3 if "-" in numbering["letter"] else 2
    elif is_main(text) or is_capitals(text):
        level = 1
    else:
        return min(DEEPEST, outline + 1), outline
    return level, level


class Headings:
    """Recognises headings among the paragraphs of one document; `is_numbered` tells if a paragraph has a number."""

    def __init__(self, is_numbered: Callable[[Element], bool]) -> None:
        self._is_numbered = is_numbered
        self._mostly_numbered: dict[Element, bool] = {}

    def is_heading(self, element: Element, text: str) -> bool:
        """Whether a paragraph of a description, with this text, is a heading."""
        if len(text) > LONGEST and text[0].isalpha() and not text[-1].isspace():
            return False
        text = _without_number(text)
        if not 3 <= len(text) <= LONGEST:
            return False
        following = element.getnext()
        if following is None or any(child.tag not in _MARKS for child in element):
            return False
        if is_main(text):
            return not text.endswith((",", ";"))
        if example := _EXAMPLE.match(text):
            rest = example["rest"]
            return not rest.strip() or (_AFTER_EXAMPLE.match(rest) is not None and not text.endswith((".", ";", ",")))
        # The conditions that take longest come last.
        if text.endswith((".", ";", ",")) or text[0].islower() or _NOISE.search(text):
            return False
        if len(_WORD.findall(text)) > 16 or 2 * sum(map(str.isalpha, text)) < len(text):
            return False
        if is_capitals(text):
            return True
        if text.endswith(":"):
            return False
        if _is_marked(element) or self._stands_out(element, following):
            return True
        return _is_numbered_title(text) and not _SENTENCES.search(text) and _is_text(following) and not _ends_list(element, text)

    def _stands_out(self, element: Element, following: Element) -> bool:
        """Whether a paragraph without a number stands among numbered paragraphs.

        Most paragraphs of its parent must have a number. So must `following`, or the paragraph after it if `following`
        is short.
        """
        parent = element.getparent()
        if parent is None or self._is_numbered(element):
            return False
        if parent not in self._mostly_numbered:
            # "Most" is measured in characters: a short description may have as many headings as paragraphs.
            sizes = {True: 0, False: 0}
            for child in parent.iterchildren(element.tag):
                sizes[self._is_numbered(child)] += len(_text_of(child))
            self._mostly_numbered[parent] = sizes[True] > sizes[False]
        if not self._mostly_numbered[parent]:
            return False
        second = following.getnext()
        return self._is_numbered(following) or (second is not None and not _is_text(following) and self._is_numbered(second))


def is_main(text: str) -> bool:
    """Whether a text is a main heading: it consists only of words that are typical of headings of patents.

    >>> is_main("BRIEF DESCRIPTION OF THE DRAWINGS"), is_main("2. Related Art:"), is_main("The invention is new.")
    (True, True, False)
    """
    if len(text) > LONGEST:
        return False
    text = text.strip().strip("[]<>【】").rstrip(".:- ")
    if numbering := _NUMBERING.match(text):
        text = text[numbering.end() :]
    text = text.lower().replace("\u2019", "'")
    if text in _ONE_WORD:
        return True
    # Most texts begin with another word, so the other words are not looked for.
    first = _WORD.search(text)
    if not first or first[0] not in _HEADING_WORDS:
        return False
    words = _WORD.findall(text)
    return len(words) > 1 and not any(map(str.isdigit, text)) and not _SAYING_WORDS.isdisjoint(words) and _HEADING_WORDS.issuperset(words)


def is_capitals(text: str) -> bool:
    """Whether a text consists of several words in capitals and is no sequence of bases or amino acids.

    >>> [is_capitals(text) for text in ("2. PUMPS WITH A ROTOR", "ATGCC GGTTA", "PVC", "AGL SF-268 CNS")]
    [True, False, False, False]
    """
    if not text.isupper():
        return False
    if numbering := _NUMBERING.match(text):
        text = text[numbering.end() :]
    words = [word for word in _WORD.findall(text) if len(word) > 3 and not _VOWELS.isdisjoint(word) and not set(word) <= set("ACGTU")]
    is_cut_alike = len(words) > 1 and len({len(word) for word in words}) == 1 and len(words[0]) >= 10
    return len(words) > 1 and not is_cut_alike and not any(map(str.isdigit, text))


def _without_number(text: str) -> str:
    """The text without a leading paragraph number such as `[0042]`."""
    number = _PARAGRAPH.match(text)
    return text[number.end() :].strip() if number else text.strip()


def _is_numbered_title(text: str) -> bool:
    """Whether a text begins with a section number and a capital letter, as `2.1 Rotor` and `B. Rotor` do."""
    numbering = _NUMBERING.match(text)
    if not numbering or numbering["bracket"] or not text[numbering.end() : numbering.end() + 1].isupper():
        return False
    return bool(numbering["letter"] or numbering["point"] or "." in numbering["parts"])


def _ends_list(element: Element, text: str) -> bool:
    """Whether a numbered paragraph is the last item of a list.

    It is if the paragraph before it is short and has a number of the same form.
    """
    before = element.getprevious()
    if before is None or _is_text(before):
        return False
    earlier, numbering = _NUMBERING.match(_without_number(_text_of(before))), _NUMBERING.match(text)
    if not earlier or not numbering:
        return False
    return (earlier["parts"] or "").count(".") == (numbering["parts"] or "").count(".") and bool(earlier["parts"]) == bool(
        numbering["parts"]
    )


def _is_marked(element: Element) -> bool:
    """Whether the whole paragraph, except its number, is bold or underlined."""
    if len(element) != 1 or element[0].tag not in ("b", "u", "bold"):
        return False
    return not (element.text or "").strip(" \n[]0123456789") and not (element[0].tail or "").strip()


def _is_text(element: Element) -> bool:
    """Whether an element is too long to be a heading or an item of a list."""
    return len(_text_of(element).strip()) > LONGEST


def _text_of(element: Element) -> str:
    return "".join(map(str, element.itertext())) if len(element) else element.text or ""
