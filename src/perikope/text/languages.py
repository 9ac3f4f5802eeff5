"""Codes of languages. This module is small and imports nothing large, since readers of files need it alone."""

from __future__ import annotations

import re
from functools import lru_cache

from perikope.core.errors import UsageError

_ISO_639_1 = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff
    fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku
    kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu
    rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo
    wa wo xh yi yo za zh zu
"""

_ISO_639_2 = """
    ace ach ada ady afh ain akk ale alt ang anp arc arn arp arw ast awa bal ban bas bej bem bho bik bin bla bra bua bug byn cad car ceb
    chb chg chk chm chn cho chp chr chy cnr cop crh csb dak dar del den dgr din doi dsb dua dum dyu efi egy eka elx enm ewo fan fat fil
    fon frm fro frr frs fur gaa gay gba gez gil gmh goh gon gor got grb grc gsw gwi hai haw hil hit hmn hsb hup iba ilo inh jbo jpr jrb
    kaa kab kac kam kaw kbd kha kho kmb kok kos kpe krc krl kru kum kut lad lah lam lez lol loz lua lui lun luo lus mad mag mai mak man
    mas mdf mdr men mga mic min mis mnc mni moh mos mul mus mwl mwr myv nap nds new nia niu nog non nqo nso nwc nym nyn nyo nzi osa ota
    pag pal pam pap pau peo phn pon pro raj rap rar rom rup sad sah sam sas sat scn sco sel sga shn sid sma smj smn sms snk sog srn srr
    suk sus sux syc syr tem ter tet tig tiv tkl tlh tli tmh tog tpi tsi tum tvl tyv udm uga umb und vai vot wal war was xal yao yap zap
    zbl zen zgh zun zxx zza
"""
"""Three-letter codes of languages that have no two-letter code. "eng" is not listed, because English has "en"."""

_OTHERS_IN_USE = """
    sh arz azb bar bcl bjn ckb cmn ext glk hak lij lmo ltg lzh mzn nan pfl pms pnb rue szl vec vep vro wuu yue
"""
"""ISO 639-3 codes and withdrawn codes that web pages use: languages with a Wikipedia of some size."""

_LANGUAGES = frozenset(f"{_ISO_639_1} {_ISO_639_2} {_OTHERS_IN_USE}".split())


@lru_cache(maxsize=256)
def language_code(language: str) -> str:
    """The two- or three-letter code of a language tag; `und` (undetermined) for an empty tag.

    Only the form is checked; see `is_language`. Raises `UsageError` if the tag does not begin with such a code.

    >>> language_code("EN-us"), language_code("")
    ('en', 'und')
    """
    code = re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]
    code = {"nb": "no", "nn": "no"}.get(code, code)
    if code and not re.fullmatch(r"[a-z]{2,3}", code):
        raise UsageError(f"{language!r} is not a language code; use one such as en, fr or de")
    return code or "und"


def is_language(code: str) -> bool:
    """Whether a code is a known ISO 639 code. A language with a two-letter code is known by that code only.

    >>> is_language("de"), is_language("nds"), is_language("zz"), is_language("eng")
    (True, True, False, False)
    """
    return code in _LANGUAGES
