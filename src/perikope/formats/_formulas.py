"""Formulas as one line of text: `x^2`, `(a+b)/c`, `√x`. Word's formulas and MathML are written by the same rules.

MathML is read as a page shows it: what is inside `annotation` and `mphantom` is left out. A word such as `sin`, and the
terms of a sum, stand apart from their neighbours, so that `i sin θ` has three words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Element = Any
"""An element of lxml, which has no types."""

_SKIPPED = frozenset(("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none", "mprescripts", ""))
_INVISIBLE = re.compile("[\u2061-\u2064\u200b]")
_LARGE = frozenset("∑∏∐∫∬∭∮∯∰⋂⋃⋀⋁⨀⨁⨂")
_ACCENTS = frozenset("^ˆ~˜¯ˉ‾_→⃗⃑˙.¨´`ˇ˘")
_SCRIPTS = frozenset(("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts"))


def closed(text: str) -> str:
    """A part of a formula in brackets, unless it is one word or number.

    >>> closed("a+b"), closed("12")
    ('(a+b)', '12')
    """
    return text if text.isalnum() or len(text) < 2 else f"({text})"


def fraction(above: str, below: str) -> str:
    """A fraction.

    >>> fraction("a+b", "2")
    '(a+b)/2'
    """
    return f"{closed(above)}/{closed(below)}"


def scripted(base: str, below: str = "", above: str = "") -> str:
    """A base with an index below and an exponent above; either may be empty.

    >>> scripted("x", "i", "n+1")
    'x_i^(n+1)'
    """
    return closed(base) + (f"_{closed(below)}" if below else "") + (f"^{closed(above)}" if above else "")


def root(base: str, degree: str = "") -> str:
    """A root; a degree of 2 is not written.

    >>> root("a+b"), root("x", "3")
    ('√(a+b)', '3√x')
    """
    return f"{degree}√{closed(base)}"


def fenced(texts: Sequence[str], opening: str = "(", closing: str = ")", separator: str = ",") -> str:
    """Texts between brackets."""
    return f"{opening}{separator.join(texts)}{closing}"


def matrix(rows: Iterable[Sequence[str]]) -> str:
    """The rows of a matrix.

    >>> matrix([["1", "0"], ["0", "1"]])
    '1 0; 0 1'
    """
    return "; ".join(" ".join(row) for row in rows)


def mathml_text(element: Element) -> str:
    """The text of a `math` element, in any namespace or none; without content, the text that stands for it."""
    return " ".join(_text(element).split()) or " ".join((element.get("alttext") or "").split())


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2].rpartition(":")[2].lower() if isinstance(element.tag, str) else ""


def _parts(element: Element) -> list[Element]:
    return [child for child in element if _name(child) not in _SKIPPED]


def _text(element: Element) -> str:
    name = _name(element)
    if name in _WRITTEN:
        return _WRITTEN[name](element)
    return _leaf(element, name) if name in ("mi", "mn", "mo", "mtext", "ms") or not len(element) else _row(_parts(element))


def _leaf(element: Element, name: str) -> str:
    text = _INVISIBLE.sub("", "".join(element.itertext()))
    return text if name == "mtext" else " ".join(text.split())


def _row(parts: Sequence[Element]) -> str:
    """The texts of neighbours: words and large operators stand apart from letters and digits beside them."""
    line = ""
    before = None
    for part in parts:
        text = _text(part)
        if before is not None and text and line[-1:].isalnum() and (_is_large(before) or (text[0].isalnum() and _apart(before, part))):
            line += " "
        line += text
        before = part if text else before
    return line


def _apart(first: Element, second: Element) -> bool:
    """Whether the last sign of one element or the first of another is a word, such as `sin` or the square of `sin`."""
    return _is_word(first, -1) or _is_word(second, 0)


def _is_word(element: Element, edge: int) -> bool:
    name, parts = _name(element), _parts(element)
    if name in ("mi", "mtext"):
        return sum(map(str.isalpha, "".join(element.itertext()))) > 1
    if not parts or (name in _WRITTEN and name not in _SCRIPTS):
        return False
    return _is_word(parts[0 if name in _SCRIPTS else edge], edge)


def _is_large(element: Element) -> bool:
    """Whether an element is a sign such as that of a sum, with its limits."""
    parts = _parts(element)
    return _name(element) in _SCRIPTS and bool(parts) and "".join(parts[0].itertext()).strip() in _LARGE


def _fraction(element: Element) -> str:
    texts = [_text(part) for part in _parts(element)]
    return fraction(*texts) if len(texts) == 2 else " ".join(texts)


def _scripts(element: Element) -> str:
    name, texts = _name(element), [_text(part) for part in _parts(element)]
    if len(texts) == 2 and name in ("msub", "munder"):
        return scripted(texts[0], below=texts[1])
    if len(texts) == 2:
        # An accent is a sign over a letter, and no exponent.
        return texts[0] if name == "mover" and texts[1] in _ACCENTS else scripted(texts[0], above=texts[1])
    return scripted(*texts) if len(texts) == 3 else " ".join(texts)


def _scripts_on_all_sides(element: Element) -> str:
    """A base with pairs of scripts after it, then with those before it."""
    names = [_name(child) for child in element]
    texts = [_text(child) if name not in _SKIPPED else "" for child, name in zip(element, names, strict=True)]
    middle = names.index("mprescripts") if "mprescripts" in names else len(texts)
    after, before = texts[1:middle], texts[middle + 1 :]
    return f"{_pairs(before)}{closed(''.join(texts[:1]))}{_pairs(after)}"


def _pairs(texts: Sequence[str]) -> str:
    return "".join(scripted("", *texts[number : number + 2]) for number in range(0, len(texts), 2))


def _root(element: Element) -> str:
    parts = _parts(element)
    if _name(element) == "mroot" and len(parts) == 2:
        return root(_text(parts[0]), _text(parts[1]))
    return root(_row(parts))


def _fenced(element: Element) -> str:
    given = element.attrib
    separator = (given.get("separators", ",").strip() or " ")[0].strip()
    return fenced([_text(part) for part in _parts(element)], given.get("open", "("), given.get("close", ")"), separator)


def _table(element: Element) -> str:
    return matrix([_text(cell) for cell in _parts(row)] for row in _parts(element))


def _stack(element: Element) -> str:
    """The lines of an elementary calculation, such as a long division."""
    return " ".join(filter(None, map(_text, _parts(element))))


def _first(element: Element) -> str:
    return next((_text(part) for part in _parts(element)), "")


_WRITTEN: dict[str, Callable[[Element], str]] = {
    "mfrac": _fraction,
    **dict.fromkeys(_SCRIPTS, _scripts),
    "mmultiscripts": _scripts_on_all_sides,
    "msqrt": _root,
    "mroot": _root,
    "mfenced": _fenced,
    "mtable": _table,
    **dict.fromkeys(("mstack", "mlongdiv", "msgroup"), _stack),
    "semantics": _first,
    "maction": _first,
    "mspace": lambda element: " " if not str(element.get("width", "")).startswith(("-", "0")) else "",
}
"""How an element with a meaning of its own is written; all others are rows of what they hold."""
