"""Text of AsciiDoc as Markdown: what a reader of the rendered page sees, in the order in which AsciiDoc replaces it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

LONGEST_VALUE = 500
"""Characters of the longest attribute that is put into a text: attributes of attributes must not fill the memory."""

_BUILT_IN = {
    "nbsp": " ", "sp": " ", "zwsp": "", "wj": "", "empty": "", "blank": "", "amp": "&", "lt": "<", "gt": ">", "plus": "+",
    "apos": "'", "quot": '"', "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "asterisk": "*", "caret": "^",
    "startsb": "[", "endsb": "]", "vbar": "|", "backtick": "`", "tilde": "~", "backslash": "\\", "deg": "°", "cpp": "C++",
    "pp": "++", "two-colons": "::", "two-semicolons": ";;", "brvbar": "¦",
}  # fmt: skip
"""Attributes that every document has."""

_KEPT = re.compile("\ue000(\\d+)\ue001")
_APART = r"(?<!\\)(?<![^\W_])"
"""The place before a macro: it is no part of a word, and not escaped."""
_CONTENT = r"\[((?:[^\]\\]|\\.){0,2000})\]"
"""What is in the brackets of a macro; a bracket in it is written with a backslash. The limits of length here and below
keep a text of many unfinished macros from taking quadratic time."""
_RAW = re.compile(rf"(?<![\\+])\+\+\+(.{{1,4000}}?)\+\+\+(?!\+)|{_APART}pass:[a-z,]{{0,20}}{_CONTENT}", re.DOTALL)
_LITERAL = re.compile(
    r"(?<![\\+])\+\+(?!\s)(.{1,4000}?)\+\+(?!\+)|(?<![\w\\$])\$\$(.{1,4000}?)\$\$|(?<![\w\\+{`])\+(?![\s+])([^\n]*?[^\s+])\+(?![\w+])"
)
_FORMULA = re.compile(rf"{_APART}(?:stem|latexmath|asciimath):[a-z,]{{0,20}}{_CONTENT}", re.DOTALL)
_ATTRIBUTE = re.compile(r"(?<!\\)\{(\w[\w-]*)\}")
_QUOTED = re.compile(r"(?<!\w)([\"'])`(\S(?:[^`]*\S)?)`\1(?!\w)")
_IMAGE = re.compile(rf"{_APART}(image|icon):(?!:)[^\s\[]{{0,1000}}{_CONTENT}")
_KEYS = re.compile(rf"{_APART}(?:kbd|btn):{_CONTENT}")
_MENU = re.compile(rf"{_APART}menu:(?=[\w&])([^\n\[]{{0,200}}[^\s\[]){_CONTENT}")
_HIDDEN_TERM = re.compile(rf"[ \t]*\(\(\([^()]+\)\)\)|[ \t]*{_APART}indexterm:{_CONTENT}")
_SHOWN_TERM = re.compile(rf"\(\((?!\()([^()]+)\)\)(?!\))|{_APART}indexterm2:{_CONTENT}")
_LINK = re.compile(rf"{_APART}(?:link:)?((?:https?|ftp|irc|file)://[^\s\[\]]{{0,1000}}){_CONTENT}")
_OTHER_LINK = re.compile(rf"{_APART}(?:link|mailto):([^\s\[]{{1,1000}}){_CONTENT}")
_ANCHOR = re.compile(rf"(?<!\[)\[\[[\w:.-]+(?:,[^\]]*)?\]\](?!\])[ \t]*|{_APART}anchor:[^\s\[]{{0,1000}}{_CONTENT}")
_CROSS = re.compile(rf"{_APART}xref:([^\s\[]{{1,1000}}){_CONTENT}")
_REFERENCE = re.compile(r"(?<!\\)<<([\w#/.:{][^,<>]*)(?<!\s)(?:,\s*([^<>]*))?>>")
_NOTE = re.compile(rf"[ \t]*(?<!\\)(footnote|footnoteref):[\w-]{{0,100}}{_CONTENT}", re.DOTALL)
_CODE = re.compile(r"(?<!\\)(``(?!`)(?P<double>.{1,4000}?)``|`(?P<single>[^`]+)`)", re.DOTALL)
_ROLE = re.compile(r"\[[^\[\]\n]+\](?=(?:[*_#]|\ue000))")
_MARKED = re.compile(r"##(?=\S)(.{1,4000}?)##|(?<![\w&;:}#])#(?=[^\s#])([^#]*?[^\s#])#(?![\w#])", re.DOTALL)
_SHIFTED = re.compile(r"(?<![\\~])~([^\s~]+)~(?!~)|(?<!\\)\^([^\s^]+)\^")
_ITALIC = re.compile(r"(?<!\\)__(?=\S)(.{1,4000}?)(?<=\S)__", re.DOTALL)
_BOLD = re.compile(r"(?<![\w*\\])\*(?![\s*])([^*]+?)(?<!\s)\*(?![\w*])")
_SIGNS = re.compile(r"(?<!\\)([<\[\]])")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#~|&])")
_BREAK = re.compile(r"[ \t]+\+$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_POSITIONAL = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^,]*))')
_NAMED = re.compile(r"[\w-]+\s*=")


class InlineText:
    """Rewrites text, with the attributes of a document and the titles that references read as."""

    def __init__(self, attributes: Mapping[str, str], titles: Mapping[str, str]) -> None:
        self._attributes, self._titles = attributes, titles
        self._kept: list[tuple[str, str]] = []

    def markdown(self, text: str) -> str:
        """A text of AsciiDoc as Markdown."""
        self._kept = []
        text = text.replace("\ue000", "").replace("\ue001", "")
        text = _RAW.sub(lambda found: self._plain(_TAG.sub("", _first(found))), text)
        text = _LITERAL.sub(lambda found: self._plain(_first(found)), text)
        text = _FORMULA.sub(lambda found: self._plain(_closed(found[1])), text)
        text = _ATTRIBUTE.sub(self._attribute, text)
        text = _QUOTED.sub(lambda found: f"“{found[2]}”" if found[1] == '"' else f"‘{found[2]}’", text)
        for pattern, replacement in self._macros():
            text = pattern.sub(replacement, text)
        text = _CODE.sub(self._code, text)
        text = _ANCHOR.sub("", text)
        text = _ROLE.sub("", text)
        text = _MARKED.sub(lambda found: _first(found), text)
        text = _SHIFTED.sub(lambda found: _first(found), text)
        text = _ITALIC.sub(r"*\1*", text)
        text = _BOLD.sub(r"**\1**", text)
        # AsciiDoc has no HTML in its text, and brackets are no links.
        text = _SIGNS.sub(r"\\\1", _BREAK.sub("", text))
        return self._restored(text, 1)

    def _macros(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        """The macros in the order of AsciiDoc. A footnote comes last, since it may hold all others."""
        return [
            (_IMAGE, lambda found: alternative(found[2]) if found[1] == "image" else ""),
            (_KEYS, lambda found: self._plain(_closed(found[1]))),
            (_MENU, lambda found: self._plain(_menu(found[1], _closed(found[2])))),
            (_HIDDEN_TERM, lambda found: ""),
            (_SHOWN_TERM, lambda found: _first(found)),
            (_LINK, lambda found: self._link(found[1], _label(found[2]))),
            (_OTHER_LINK, lambda found: _label(found[2]) or found[1]),
            (_CROSS, lambda found: _label(found[2]) or self._title(found[1])),
            (_REFERENCE, lambda found: found[2] or self._title(found[1])),
            (_NOTE, _note),
        ]

    def _keep(self, plain: str, markdown: str) -> str:
        self._kept.append((plain, markdown))
        return f"\ue000{len(self._kept) - 1}\ue001"

    def _plain(self, text: str) -> str:
        """A text without markup."""
        return self._keep(text, _MARKDOWN.sub(r"\\\1", text))

    def _restored(self, text: str, form: int) -> str:
        """A text with what was kept: as it is read (form 0), or as Markdown (form 1)."""
        for _ in range(4):
            # What was kept may hold what was kept before.
            text, count = _KEPT.subn(lambda found: self._kept[int(found[1])][form], text)
            if not count:
                break
        return text

    def _code(self, found: re.Match[str]) -> str:
        text = self._restored(found["double"] or found["single"], 0).replace("\\{", "{")
        if len(text) > 2 and text[0] == text[-1] == "+":
            text = text[1:-1]
        fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
        space = " " if len(fence) > 1 else ""
        return self._keep(text, f"{fence}{space}{text}{space}{fence}")

    def _attribute(self, found: re.Match[str]) -> str:
        name = found[1].lower()
        if name in _BUILT_IN:
            return self._plain(_BUILT_IN[name]) if _BUILT_IN[name].strip() else _BUILT_IN[name]
        return self._attributes.get(name, found[0])

    def _link(self, address: str, label: str) -> str:
        if not label or _KEPT.search(address):
            return label or address
        return self._keep(f"{label} ({address})", f"[{_SIGNS.sub(_escaped, label)}](<{address}>)")

    def _title(self, target: str) -> str:
        title = self._titles.get(target) or self._titles.get(target.lstrip("#"))
        return self._plain(title) if title else target.lstrip("#")


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[1]}"


def _first(found: re.Match[str]) -> str:
    """The first group that has a text."""
    return next((group for group in found.groups() if group), "")


def _closed(content: str) -> str:
    """The content of brackets without the backslashes before brackets."""
    return content.replace("\\]", "]")


def _positional(content: str) -> str:
    """The first of the attributes in brackets if it has no name."""
    found = _POSITIONAL.match(content)
    if found is None or (found[3] is not None and _NAMED.match(found[3])):
        return ""
    return next((group for group in found.groups() if group), "").strip()


def _label(content: str) -> str:
    """The text of a link, without its attributes."""
    content = _closed(content)
    return (_positional(content) if "=" in content else content.strip()).removesuffix("^")


def alternative(content: str) -> str:
    """The text that stands for a picture, from the brackets of its macro.

    >>> alternative('The pump, 100,200'), alternative('alt="a, b",width=3'), alternative('width=3')
    ('The pump', 'a, b', '')
    """
    stated = named(content).get("alt")
    return _closed(_positional(content) if stated is None else stated)


def named(content: str) -> dict[str, str]:
    """The attributes in brackets that have a name.

    >>> named('%header, cols="1,2", format=csv')
    {'cols': '1,2', 'format': 'csv'}
    """
    pairs = re.findall(r"(?:^|[,\s])([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^,]*))", content)
    return {name: next(filter(None, values), "").strip() for name, *values in pairs}


def _menu(menu: str, items: str) -> str:
    """The way through a menu.

    >>> _menu("File", "Save > As"), _menu("View", "Zoom, Reset"), _menu("Help", "")
    ('File > Save > As', 'View > Zoom > Reset', 'Help')
    """
    separator = ">" if ">" in items else ","
    return " > ".join(filter(None, (one.strip() for one in (menu, *items.split(separator)))))


def _note(found: re.Match[str]) -> str:
    text = _closed(found[2])
    text = text.partition(",")[2] if found[1] == "footnoteref" else text
    return f" ({' '.join(text.split())})" if text.strip() else ""
