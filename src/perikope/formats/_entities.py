"""Table of named characters, such as `&alpha;`: the names of HTML 5 and those of the ISO entity sets.

XML files use names that their DTDs define. DTDs are never read; this table replaces them.
"""

from __future__ import annotations

from functools import cache
from html.entities import html5

PREDEFINED = frozenset(("amp", "lt", "gt", "quot", "apos"))
"""The names that XML itself defines, so that the parser resolves them."""

_GREEK = dict(zip(
    ["agr", "bgr", "ggr", "dgr", "egr", "zgr", "eegr", "thgr", "igr", "kgr", "lgr", "mgr", "ngr", "xgr",
     "ogr", "pgr", "rgr", "sgr", "tgr", "ugr", "phgr", "khgr", "psgr", "ohgr"],
    "αβγδεζηθικλμνξοπρστυφχψω", strict=True,
))  # fmt: skip
_ACCENTED_GREEK = dict(zip(
    ["aacgr", "eacgr", "eeacgr", "iacgr", "oacgr", "uacgr", "ohacgr", "idigr", "udigr", "idiagr", "udiagr"], "άέήίόύώϊϋΐΰ", strict=True,
))  # fmt: skip
_OTHERS = dict(zip(
    ["ang90", "epsis", "thetas", "phis", "darr2", "larr2", "rarr2", "uarr2", "lrarr2", "rlarr2", "rlhar2", "lrhar2", "drarr", "dlarr",
     "lpargt", "jnodot", "sbsol", "vprime", "cupre", "gsdot", "ldot", "samalg"],
    "∟ϵθϕ⇊⇇⇉⇈⇆⇄⇌⇋↘↙⦠ȷ﹨′≼⋗⋖∐", strict=True,
))  # fmt: skip
"""Names of the ISO sets tech, grk3, amsa, amsc, amso and amsr that HTML 5 lacks."""


@cache
def characters() -> dict[str, str]:
    """The characters by name, without `&` and `;`.

    >>> characters()["alpha"], characters()["agr"], characters()["Agr"], characters()["OHgr"], characters()["b.beta"]
    ('α', 'α', 'Α', 'Ω', 'β')
    """
    named = {name.removesuffix(";"): value for name, value in html5.items() if name.endswith(";")}
    for name, letter in (_GREEK | _ACCENTED_GREEK).items():
        named.setdefault(name, letter)
        # If two letters of a name stand for one Greek letter, both are upper case for the capital: THgr, EEgr.
        stem = name.removesuffix("gr")
        base = stem.removesuffix("ac").removesuffix("dia").removesuffix("di")
        named.setdefault(base.upper() + stem[len(base) :] + "gr", letter.upper())
    named.setdefault("sfgr", "ς")
    for name, letter in _OTHERS.items():
        named.setdefault(name, letter)
    # ISOgrk4 calls bold letters b.alpha, b.Gamma. They become plain letters, as a search needs.
    for name, letter in list(named.items()):
        if len(letter) == 1 and "GREEK" in _unicode_name(letter):
            named.setdefault(f"b.{name}", letter)
    return named


def _unicode_name(letter: str) -> str:
    import unicodedata

    return unicodedata.name(letter, "")
