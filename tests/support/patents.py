"""Patents written for the tests, in the XML of MAREC: ten families, with what a search with a member must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Patent:
    """One publication: its document's id, and its file."""

    id: str
    xml: str
    date: str
    """Of publication, as 2001-03-15."""


@dataclass(frozen=True)
class Family:
    """The publications of one invention, and others that a search with one of them meets.

    All texts are about the same subject in the same words, so that only family, dates and codes differ. A search with a
    member under the defaults (shared code, published before the priority date, own family left out) must find `earlier`
    and none of the others.

    With the date limit off it must also find `later`; with the code filter off, also `other_codes`; with family filter
    and date limit off, also `later` and the other members (all were published after their priority, so the date limit
    alone excludes them too). With all three off, the best results of all sixty publications are those of `everything`
    without the query.
    """

    name: str
    priority_date: str
    codes: tuple[str, ...]
    """In normal form, of all members; at least one is shared by all of them, by `earlier` and by `later`."""
    members: tuple[Patent, ...]
    """A1 and B1 of the EPO and the US application, with one family-id or, where `family_id` is empty, one priority."""
    earlier: Patent
    """Prior art: published before the priority date, with a shared code."""
    later: Patent
    """Published after the priority date, with a shared code: no prior art."""
    other_codes: Patent
    """Published before the priority date, without a shared code."""
    family_id: str = ""

    @property
    def everything(self) -> tuple[Patent, ...]:
        """All publications, as they would be indexed."""
        return (*self.members, self.earlier, self.later, self.other_codes)


@dataclass(frozen=True)
class _Theme:
    name: str
    thing: str
    purpose: str
    parts: tuple[str, ...]
    codes: tuple[str, ...]
    other_code: str
    german: str


_THEMES = (
    _Theme(
        "pump", "submersible pump", "lifting brine from a flooded shaft",
        ("impeller", "volute", "strainer", "gasket"), ("F04D 13/08", "F04D 29/42"), "A01K 63/04", "Tauchpumpe",
    ),
    _Theme(
        "brake", "bicycle brake", "slowing a wheel in the rain",
        ("caliper", "brake shoe", "cable", "lever"), ("B62L 1/14", "F16D 65/09"), "B60B 1/00", "Fahrradbremse",
    ),
    _Theme(
        "kiln", "tunnel kiln", "firing roof tiles without cracks",
        ("burner", "kiln car", "muffle", "flue"), ("F27B 9/26", "F27D 3/12"), "C04B 33/32", "Tunnelofen",
    ),
    _Theme(
        "lock", "door lock", "keeping a latch shut in a storm",
        ("cylinder", "latch", "strike plate", "tumbler"), ("E05B 63/14", "E05B 15/02"), "E06B 3/70", "Türschloss",
    ),
    _Theme(
        "hive", "beehive frame", "harvesting honey without harming bees",
        ("comb", "queen excluder", "spacer", "wax foundation"), ("A01K 47/04", "A01K 59/00"), "B27M 3/00", "Bienenrahmen",
    ),
    _Theme(
        "violin", "violin bridge", "carrying the vibration of strings to a belly",
        ("bridge foot", "string notch", "soundpost", "tailpiece"), ("G10D 3/04", "G10D 1/02"), "B27M 3/22", "Geigensteg",
    ),
    _Theme(
        "filter", "coffee filter", "brewing coffee without grounds in the cup",
        ("paper cone", "drip spout", "rim", "mesh"), ("A47J 31/06", "A47J 31/08"), "B01D 29/07", "Kaffeefilter",
    ),
    _Theme(
        "loom", "weaving loom", "weaving carpets with a raised pile",
        ("heddle", "reed", "shuttle", "warp beam"), ("D03D 39/00", "D03D 49/60"), "D04H 11/00", "Webstuhl",
    ),
    _Theme(
        "kite", "traction kite", "pulling a cargo ship by the wind",
        ("bridle", "tow line", "winch", "canopy"), ("B63H 9/06", "B64C 31/06"), "D07B 1/02", "Zugdrachen",
    ),
    _Theme(
        "tooth", "dental implant", "anchoring a crown in a thin jaw",
        ("abutment", "fixture thread", "healing cap", "crown"), ("A61C 8/00", "A61C 13/00"), "A61L 27/06", "Zahnimplantat",
    ),
)  # fmt: skip


@cache
def families() -> list[Family]:
    """Ten families, with what a search must and must not find beside them; see `Family`.

    The last three have no family-id: only the priority joins their members. The fourth to the sixth have a German
    description and claims in German and English; the others are English, with claims in three languages in the B1.

    >>> [family.name for family in families()][:3], [patent.id for patent in families()[0].members]
    (['pump', 'brake', 'kiln'], ['EP-900100-A1', 'EP-900100-B1', 'US-20020010000-A1'])
    """
    return [_family(number, theme) for number, theme in enumerate(_THEMES)]


def _family(number: int, theme: _Theme) -> Family:
    has_id, is_german = number < 7, number in (3, 4, 5)
    family_id = f"8100{number:04d}" if has_id else ""
    priority = ("DE" if is_german else "GB", f"20000{number:03d}", "A", f"2000-0{1 + number % 9}-11")
    shared = {"family_id": family_id, "priorities": [priority], "theme": theme}
    language = "DE" if is_german else "EN"
    member = [
        _patent(
            "EP",
            f"0{900100 + number}",
            "A1",
            "2001-08-22",
            codes=theme.codes,
            language=language,
            claims=[language],
            abstract=True,
            **shared,
        ),
        _patent("EP", f"0{900100 + number}", "B1", "2003-05-14", codes=theme.codes, language=language, claims=["DE", "EN", "FR"], **shared),
        _patent(
            "US", f"2002001{number:04d}", "A1", "2002-02-07", codes=theme.codes[:1], language="EN", claims=["EN"], abstract=True, **shared
        ),
    ]
    alone = {"theme": theme, "language": "EN", "claims": ["EN"], "abstract": True}
    earlier_from = ("FR", f"9600{number:03d}", "A", "1996-03-01")
    later_from = ("JP", f"20003{number:03d}", "A", "2000-12-20")
    other_from = ("US", f"95{number:04d}", "A", "1995-09-30")
    earlier = _patent(
        "EP",
        f"0{800200 + number}",
        "A1",
        "1997-10-08",
        codes=theme.codes[:1],
        priorities=[earlier_from],
        family_id=f"8200{number:04d}",
        **alone,
    )
    later = _patent(
        "WO",
        f"2002{40300 + number:06d}",
        "A2",
        "2002-06-27",
        codes=theme.codes,
        priorities=[later_from],
        family_id=f"8300{number:04d}",
        **alone,
    )
    other = _patent(
        "US",
        f"{5600400 + number}",
        "A",
        "1997-02-11",
        codes=[theme.other_code],
        priorities=[other_from],
        family_id=f"8400{number:04d}",
        **alone,
    )
    codes = tuple(code.replace(" ", "") for code in theme.codes)
    return Family(theme.name, priority[3], codes, tuple(member), earlier, later, other, family_id)


def _patent(
    country: str,
    number: str,
    kind: str,
    date: str,
    *,
    theme: _Theme,
    codes: Sequence[str],
    priorities: Sequence[tuple[str, str, str, str]],
    family_id: str,
    language: str,
    claims: Sequence[str],
    abstract: bool = False,
) -> Patent:
    xml = patent_xml(
        country,
        number,
        kind,
        date,
        family_id=family_id,
        language=language,
        titles={"EN": theme.thing.capitalize(), "DE": theme.german},
        codes=codes,
        priorities=priorities,
        abstract=f"A {theme.thing} for {theme.purpose} has {_listed(theme.parts)}." if abstract else "",
        description=_description(theme, language),
        claims={code: _claims(theme, code) for code in claims},
    )
    return Patent(f"{country}-{number.lstrip('0')}-{kind}", xml, date)


def _description(theme: _Theme, language: str) -> list[str]:
    first, second, third, fourth = theme.parts
    if language == "DE":
        return [
            f"Die Erfindung betrifft eine Vorrichtung namens {theme.german} ({theme.thing}).",
            f"Bekannt sind Vorrichtungen mit {first} und {second}, die rasch verschleissen.",
            f"Erfindungsgemäss umschliesst das Teil {third} das Teil {fourth} nach Anspruch 1.",
        ]
    return [
        f"The invention relates to a {theme.thing} for {theme.purpose}.",
        f"In a known {theme.thing} the {first} wears out because the {second} rubs against it.",
        f"According to the invention the {third} surrounds the {fourth}, which spares the {first}.",
        f"FIG. 1 is a side view of the {theme.thing}.",
        f"As FIG. 1 shows, the {second} of claim 2 is held by the {third} during {theme.purpose}.",
    ]


def _claims(theme: _Theme, language: str) -> list[str]:
    first, second, third, fourth = theme.parts
    if language == "DE":
        return [
            f"{theme.german} mit {first} und {second}, dadurch gekennzeichnet, dass {third} vorgesehen ist.",
            f"{theme.german} nach Anspruch 1 mit {fourth}.",
        ]
    if language == "FR":
        return [
            f"Dispositif ({theme.thing}) comprenant {first} et {second}, caractérisé par {third}.",
            f"Dispositif selon la revendication 1, comprenant {fourth}.",
        ]
    return [
        f"A {theme.thing} for {theme.purpose}, comprising a {first} and a {second}, characterised by a {third}.",
        f"The {theme.thing} of claim 1, further comprising a {fourth} beside the {first}.",
    ]


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"a {word}" for word in words[:-1]) + f" and a {words[-1]}"


def patent_xml(
    country: str,
    number: str,
    kind: str,
    date: str,
    *,
    titles: Mapping[str, str],
    description: Sequence[str] = (),
    claims: Mapping[str, Sequence[str]] | None = None,
    abstract: str = "",
    language: str = "EN",
    codes: Sequence[str] = (),
    priorities: Sequence[tuple[str, str, str, str]] = (),
    family_id: str = "",
    cites: Sequence[str] = (),
) -> str:
    """One MAREC file; dates are ISO, priorities are country, number, kind and date, `cites` are document ids."""
    day = date.replace("-", "")
    family = f' family-id="{family_id}"' if family_id else ""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    named = f'ucid="{country}-{number}-{kind}" country="{country}" doc-number="{number}" kind="{kind}"'
    lines.append(f'<patent-document {named} lang="{language}"{family} date="{day}">')
    lines.append("<bibliographic-data>")
    lines.append(f"<publication-reference><document-id>{_document_id(country, number, kind, date)}</document-id></publication-reference>")
    lines.append("<priority-claims>")
    lines += [
        f'<priority-claim><document-id format="epo">{_document_id(*priority)}</document-id></priority-claim>' for priority in priorities
    ]
    lines.append("</priority-claims>")
    lines.append("<technical-data><classifications-ipcr>")
    lines += [f"<classification-ipcr>{_fixed_width(code)}</classification-ipcr>" for code in codes]
    lines.append("</classifications-ipcr>")
    lines += [f'<invention-title lang="{code}">{escape(title)}</invention-title>' for code, title in titles.items()]
    if cites:
        cited = "".join(f"<patcit><document-id>{_document_id(*id.split('-'), '')}</document-id></patcit>" for id in cites)
        lines.append(f"<citations><patent-citations>{cited}</patent-citations></citations>")
    lines.append("</technical-data></bibliographic-data>")
    if abstract:
        lines.append(f'<abstract lang="{language}"><p>{escape(abstract)}</p></abstract>')
    if description:
        lines.append(f'<description lang="{language}">')
        lines += [f'<p num="{place:04d}">{escape(text)}</p>' for place, text in enumerate(description, 1)]
        lines.append("</description>")
    for code, texts in (claims or {}).items():
        lines.append(f'<claims lang="{code}">')
        lines += [f'<claim num="{place:04d}"><claim-text>{escape(text)}</claim-text></claim>' for place, text in enumerate(texts, 1)]
        lines.append("</claims>")
    lines.append("</patent-document>")
    return "\n".join(lines) + "\n"


def _document_id(country: str, number: str, kind: str, date: str) -> str:
    day = f"<date>{date.replace('-', '')}</date>" if date else ""
    return f"<country>{country}</country><doc-number>{number}</doc-number><kind>{kind}</kind>{day}"


def _fixed_width(code: str) -> str:
    """`F04D 13/08` as IPCR writes it: four places of group, and the edition after 19 characters."""
    symbol, _, group = code.partition(" ")
    main, _, sub = group.partition("/")
    return f"{symbol}{main:>4}/{sub}".ljust(19) + "20060101A I20051008RMEP        "
