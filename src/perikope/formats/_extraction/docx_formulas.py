"""Formulas of Word (Office MathML) as one line of text, as Word itself writes them: `x^2`, `(a+b)/c`, `√(x)`."""

from __future__ import annotations

from perikope.formats._extraction.package import Element, TagNames, attribute
from perikope.formats._formulas import closed, fenced, fraction, matrix, root, scripted


def formula_text(element: Element, names: TagNames) -> str:
    """The text of a formula. What is deleted is left out."""
    parts: dict[str, str] = {}
    texts: list[str] = []
    arguments: list[str] = []
    properties: dict[str, str] = {}
    for child in element:
        name = names(child)
        if name in ("w:del", "w:moveFrom", "w:rPr", "m:rPr", "m:ctrlPr", ""):
            continue
        if name in ("m:t", "w:t"):
            texts.append(child.text or "")
        elif name.endswith("Pr"):
            properties = {names(one): attribute(one, "val") for one in child}
        else:
            text = formula_text(child, names)
            parts[name] = text
            texts.append(text)
            if name in ("m:e", "m:mr"):
                arguments.append(text)
    return _joined(names(element), parts, properties, arguments) or "".join(texts)


def _joined(name: str, parts: dict[str, str], properties: dict[str, str], arguments: list[str]) -> str:
    """The text of one construct from the texts of its parts; empty if the parts just follow one another."""
    base, below, above = parts.get("m:e", ""), parts.get("m:sub", ""), parts.get("m:sup", "")
    if name == "m:f":
        return fraction(parts.get("m:num", ""), parts.get("m:den", ""))
    if name in ("m:sSup", "m:sSub", "m:sSubSup"):
        return scripted(base, below, above)
    if name == "m:sPre":
        return scripted("", below, above) + closed(base)
    if name == "m:rad":
        return root(base, parts.get("m:deg", ""))
    if name == "m:nary":
        return f"{scripted(properties.get('m:chr', '∫'), below, above)} {base}"
    if name == "m:func":
        return f"{parts.get('m:fName', '')} {base}"
    if name == "m:d":
        separator = properties.get("m:sepChr") or "|"
        return fenced(arguments, properties.get("m:begChr", "("), properties.get("m:endChr", ")"), separator)
    if name == "m:m":
        return matrix([row] for row in arguments)
    if name in ("m:eqArr", "m:mr"):
        return " ".join(arguments)
    if name in ("m:limLow", "m:limUpp"):
        limit = parts.get("m:lim", "")
        return scripted(base, below=limit) if name == "m:limLow" else scripted(base, above=limit)
    return ""
