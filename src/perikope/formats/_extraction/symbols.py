"""The characters of the font Symbol, which have codes of their own."""

from __future__ import annotations

_CODES = (*range(0x41, 0x5B), *range(0x61, 0x7B), 0xA3, 0xA5, 0xAE, 0xB0, 0xB1, 0xB3, 0xB4, 0xB7, 0xB8, 0xB9, 0xBB, 0xD7)
_SYMBOLS = dict(zip(_CODES, "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤∞→°±≥×•÷≠≈⋅", strict=True))


def symbol(code: int, font: str) -> str:
    """The character of a code in a font of symbols; a bullet for a picture of a font of pictures.

    >>> symbol(0xF061, "Symbol"), symbol(0x61, "Wingdings"), symbol(0x2192, "Arial")
    ('α', '•', '→')
    """
    if 0xF000 <= code <= 0xF0FF or code < 0x100:
        low = code & 0xFF
        return _SYMBOLS.get(low, chr(low) if 0x20 <= low < 0x7F else "•") if font == "Symbol" else "•"
    return chr(code) if not 0xD800 <= code <= 0xF8FF else "•"
