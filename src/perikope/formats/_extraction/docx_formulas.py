"""Formulas of Word (Office MathML) as one line of text, as Word itself writes them: `x^2`, `(a+b)/c`, `√(x)`."""

from __future__ import annotations

from perikope.formats._extraction.package import Element, TagNames, attribute, closed


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
    scripts = (f"_{closed(below)}" if below else "") + (f"^{closed(above)}" if above else "")
    if name == "m:f":
        return f"{closed(parts.get('m:num', ''))}/{closed(parts.get('m:den', ''))}"
    if name in ("m:sSup", "m:sSub", "m:sSubSup"):
        return f"{closed(base)}{scripts}"
    if name == "m:rad":
        return f"{parts.get('m:deg', '')}√{closed(base)}"
    if name == "m:nary":
        return f"{properties.get('m:chr', '∫')}{scripts} {base}"
    if name == "m:func":
        return f"{parts.get('m:fName', '')} {base}"
    if name == "m:d":
        inner = (properties.get("m:sepChr") or "|").join(arguments)
        return f"{properties.get('m:begChr', '(')}{inner}{properties.get('m:endChr', ')')}"
    if name in ("m:eqArr", "m:mr", "m:m"):
        return ("; " if name == "m:m" else " ").join(arguments)
    if name in ("m:limLow", "m:limUpp"):
        return f"{base}{'_' if name == 'm:limLow' else '^'}{closed(parts.get('m:lim', ''))}"
    return ""
