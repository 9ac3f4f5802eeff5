"""Profiles: what the tags of an XML schema mean, written in TOML, and the walk that makes documents of it.

A profile names, for each role, the tags that play it. A tag stands for itself wherever it is, or with the tags around it:
`table-wrap/caption` is a caption right inside a table-wrap, and `front/*` is whatever stands in a front. Of several that fit, the longest
counts, and of two as long the one without the star.

    name = "jats"                      what it is called: `--format jats`
    format = "jats"                    the format that it belongs to, where that has several schemas; else as its name
    summary = "…"                      one line for `perikope formats`
    roots = ["article"]                root elements that it is for
    when = "front or body"             XPath that tells it from others with the same root
    id = ["…"]                         where the document's id, its title and its language stand; the first that finds text counts
    title = ["…"]
    language = ["@xml:lang"]
    cites = ["…"]                      where ids of documents stand that it cites; all count
    languages = ["lang"]               attributes that say the language of an element; xml:lang and lang where nothing is said
    ids = ["anchor"]                   attributes that name an element; id and xml:id where nothing is said
    semantic = "wordnetid"             elements with this attribute are marks, or elements where they hold blocks, whatever their tag

    sections = ["sec"]                 a titled part of the document
    elements = ["list"]                another block that holds blocks, and can be a result
    titles = ["title"]                 title of the section around it; `section/@title` where an attribute holds it
    labels = ["label"]                 number of what follows, written before it; `head/@n` where an attribute of the title holds it
    names = ["fig/label"]              what people call the element around it, `Figure 2`: not text, but how its passages are cited
    headings = {h1 = 1}                begins a section that ends at the next heading of its level
    passages = ["p"]                   what is found; in another passage it begins a new line
    whole = ["p"]                      passages that keep the lists and tables in them as lines; from others they are taken out, and follow
    preformatted = ["code"]            passages whose white space is kept
    rows = ["tr"]                      a passage whose cells are joined
    cells = ["td"]
    marks = {bold = "b"}               inline, with the name that the mark gets
    references = {xref = "rid"}        inline, with the attribute that names what it refers to
    filled = ["xref"]                  references that without text of their own get the title of what they refer to, else its id
    skipped = ["tex-math"]             not text
    breaks = ["br"]                    a gap between words
    parts = {abstract = "abstract"}    the part of the document that begins here
    citations = {p = "[{num}]"}        how people cite it, of its attributes; {num:d} without zeros in front

    [metadata]
    journal = "front//journal-title"
    author = {path = "front//contrib/name", join = ["given-names", "surname"]}
    date = {path = "front//pub-date[1]", join = ["year", "month", "day"], form = "date"}

Where a value stands (id, title, language, cites, metadata) is an XPath, or a table: its `path`, what in each place is put together (`join`)
and the `form` that it gets: `date`, `stem` (of a path, the name of the file without its suffix) or a text around it, as `PMC{}`.
A tag without a role is passed through: its text belongs to the text around it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import Any

from lxml import etree

from perikope.core.dates import iso_date
from perikope.core.errors import InputError, UsageError
from perikope.formats._xml import whole_text

Element = etree._Element


class Role(Enum):
    """What a tag means."""

    SECTION = auto()
    ELEMENT = auto()
    TITLE = auto()
    LABEL = auto()
    NAME = auto()
    HEADING = auto()
    PASSAGE = auto()
    ROW = auto()
    CELL = auto()
    MARK = auto()
    SKIPPED = auto()
    BREAK = auto()
    SEMANTIC = auto()


_LISTS = {
    "sections": Role.SECTION, "elements": Role.ELEMENT, "titles": Role.TITLE, "labels": Role.LABEL, "names": Role.NAME,
    "passages": Role.PASSAGE, "rows": Role.ROW, "cells": Role.CELL, "skipped": Role.SKIPPED, "breaks": Role.BREAK,
}  # fmt: skip
_TABLES = ("headings", "marks", "references", "parts", "citations", "metadata")
_PATHS = ("id", "title", "language", "cites")
_NAMES = ("roots", "languages", "ids", "whole", "preformatted", "filled")
_TEXTS = ("name", "format", "summary", "when", "semantic")
BLOCKS = frozenset((Role.SECTION, Role.ELEMENT, Role.TITLE, Role.HEADING, Role.PASSAGE, Role.ROW))
LIFTED = frozenset((Role.SECTION, Role.ELEMENT, Role.HEADING))
_TAG = re.compile(r"[^\W\d][\w.-]*")
NAMESPACES = {"xml": "http://www.w3.org/XML/1998/namespace", "xlink": "http://www.w3.org/1999/xlink"}
"""Prefixes that may stand before attributes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one tag, perhaps inside others, means."""

    role: Role | None = None
    mark: str = ""
    refers_by: str = ""
    level: int = 0
    part: str = ""
    citation: str = ""
    titled_by: str = ""
    labelled_by: str = ""
    filled: bool = False
    whole: bool = False
    preformatted: bool = False


NOTHING = Rule()
SEMANTIC = Rule(Role.SEMANTIC)


@dataclass(frozen=True, slots=True)
class Field:
    """Where a value stands, and the form that it gets."""

    path: etree.XPath
    join: tuple[etree.XPath, ...] = ()
    form: Callable[[str], str] = str

    def values(self, root: Element) -> list[str]:
        """The values in a document, without empty ones."""
        if self.join:
            places = self.path(root)
            elements = [item for item in places if isinstance(item, etree._Element)] if isinstance(places, list) else []
            found = [" ".join(piece for path in self.join for piece in texts(path, element)[:1]) for element in elements]
        else:
            found = texts(self.path, root)
        return [value for value in map(self.form, filter(None, found)) if value]


@dataclass(frozen=True, slots=True)
class Profile:
    """What the tags of one schema mean."""

    name: str
    format: str
    summary: str
    roots: tuple[str, ...]
    when: etree.XPath | None
    paths: Mapping[str, tuple[Field, ...]]
    languages: tuple[str, ...]
    ids: tuple[str, ...]
    semantic: str
    rules: Mapping[str, tuple[tuple[tuple[str, ...], Rule], ...]]
    """By tag: the tags that must stand around it, innermost first, and what it then means; the longest first. `*` is any other tag."""
    metadata: Mapping[str, Field]

    def fits(self, root: Element) -> bool:
        """Whether it is meant for a document with this root."""
        return (not self.roots or root.tag in self.roots) and (self.when is None or bool(self.when(root)))

    def rule(self, element: Element) -> Rule:
        """What an element means."""
        return self.rule_of(element)[0]

    def rule_of(self, element: Element) -> tuple[Rule, bool]:
        """What an element means, and whether every element with its tag and its parent's means the same."""
        if self.semantic and element.get(self.semantic) is not None:
            return SEMANTIC, False
        is_general = not self.semantic
        for around, rule in self.rules.get(element.tag) or self.rules["*"]:
            parent = element.getparent()
            for number, tag in enumerate(around):
                if parent is None or parent.tag != tag:
                    is_general = is_general and number == 0
                    break
                parent = parent.getparent()
            else:
                return rule, is_general and len(around) < 2
        return NOTHING, is_general


def load(path: Path) -> Profile:
    """A profile from its file; what is wrong with it is named."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); check the path", path=path) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not TOML ({error})", path=path) from None
    try:
        return parse(content, path.stem)
    except UsageError as error:
        raise InputError(str(error), path=path) from None


def parse(content: Mapping[str, Any], name: str) -> Profile:
    """A profile from the content of its file."""
    known = {*_LISTS, *_TABLES, *_PATHS, *_TEXTS, *_NAMES}
    for key in content:
        if key not in known:
            raise UsageError(f"{key!r} is no key of a profile; keys: {', '.join(sorted(known))}")
    for key in _PATHS:
        if not isinstance(content.get(key, []), list):
            raise UsageError(f"{key} must be a list of XPaths")
    for key in (*_LISTS, *_NAMES):
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise UsageError(f"{key} must be a list of texts")
    for key in _TABLES:
        if not isinstance(content.get(key, {}), dict):
            raise UsageError(f"{key} must be a table")
    for key in _TEXTS:
        if not isinstance(content.get(key, ""), str):
            raise UsageError(f"{key} must be a text")
    if not content.get("passages") and not content.get("rows"):
        raise UsageError("a profile names at least one tag under passages")
    return Profile(
        name=content.get("name", name),
        format=content.get("format", content.get("name", name)),
        summary=content.get("summary", ""),
        roots=tuple(content.get("roots", ())),
        when=_xpath(content["when"], "when") if "when" in content else None,
        paths={key: tuple(_field(key, value) for value in content.get(key, ())) for key in _PATHS},
        languages=tuple(_attribute(attribute) for attribute in content.get("languages", ("xml:lang", "lang"))),
        ids=tuple(_attribute(attribute) for attribute in content.get("ids", ("id", "xml:id"))),
        semantic=content.get("semantic", ""),
        rules=_rules(content),
        metadata={key: _field(f"metadata.{key}", value) for key, value in content.get("metadata", {}).items()},
    )


def _rules(content: Mapping[str, Any]) -> dict[str, tuple[tuple[tuple[str, ...], Rule], ...]]:
    properties: dict[str, dict[str, Any]] = {}

    def note(path: str, **values: Any) -> None:
        own = properties.setdefault(path, {})
        if "role" in values and own.get("role", values["role"]) is not values["role"]:
            raise UsageError(f"{path!r} is given two roles")
        own.update(values)

    for key, role in _LISTS.items():
        for path in content.get(key, ()):
            of, _, attribute = path.partition("/@")
            if attribute and role is Role.TITLE:
                note(of, titled_by=_attribute(attribute))
            elif attribute and role is Role.LABEL:
                note(of, labelled_by=_attribute(attribute))
            else:
                note(path, role=role)
    for path, level in content.get("headings", {}).items():
        if not isinstance(level, int) or isinstance(level, bool) or not 1 <= level <= 9:
            raise UsageError(f"headings.{path} must be a level from 1 to 9")
        note(path, role=Role.HEADING, level=level)
    for path, mark in content.get("marks", {}).items():
        note(path, role=Role.MARK, mark=_text(mark, f"marks.{path}"))
    for path, attribute in content.get("references", {}).items():
        own = {} if "role" in properties.get(path, {}) else {"role": Role.MARK, "mark": "link"}
        note(path, refers_by=_attribute(_text(attribute, f"references.{path}")), **own)
    for path in content.get("preformatted", ()):
        note(path, role=Role.PASSAGE, preformatted=True)
    for path in content.get("whole", ()):
        if properties.get(path, {}).get("role") is not Role.PASSAGE:
            raise UsageError(f"whole: {path!r} is not named under passages")
        note(path, whole=True)
    for path in content.get("filled", ()):
        if not properties.get(path, {}).get("refers_by"):
            raise UsageError(f"filled: {path!r} is not named under references")
        note(path, filled=True)
    for path, part in content.get("parts", {}).items():
        note(path, part=_text(part, f"parts.{path}"))
    for path, citation in content.get("citations", {}).items():
        note(path, citation=_text(citation, f"citations.{path}"))
    rules: dict[str, list[tuple[tuple[str, ...], Rule]]] = {"*": []}
    for path, values in properties.items():
        if "titled_by" in values and not (values.get("role") is Role.SECTION or ("part" in values and "role" not in values)):
            raise UsageError(f"titles: {path!r} has a title in an attribute, but is not named under sections")
        if "labelled_by" in values and values.get("role") is not Role.TITLE:
            raise UsageError(f"labels: {path!r} has its number in an attribute, but is not named under titles")
        *around, tag = path.split("/")
        if not all(_TAG.fullmatch(step) for step in around) or not (tag == "*" or _TAG.fullmatch(tag)):
            raise UsageError(f"{path!r} is no tag; write it as `p`, as `list/p` for one right inside another, or as `front/*`")
        rules.setdefault(tag, []).append((tuple(reversed(around)), Rule(**values)))
    anything = rules["*"]
    # The sort is stable: of two as long the one with the tag comes before the one with the star.
    return {
        tag: tuple(sorted(found if tag == "*" else [*found, *anything], key=lambda entry: -len(entry[0]))) for tag, found in rules.items()
    }


def _field(key: str, value: object) -> Field:
    if isinstance(value, str) and value:
        return Field(_xpath(value, key))
    if not isinstance(value, dict) or not isinstance(value.get("path"), str) or not value.keys() <= {"path", "join", "form"}:
        raise UsageError(f"{key} must be an XPath, or a table of path, join and form")
    join = value.get("join", [])
    if not isinstance(join, list) or not all(isinstance(item, str) for item in join):
        raise UsageError(f"{key}.join must be a list of XPaths")
    return Field(_xpath(value["path"], key), tuple(_xpath(item, f"{key}.join") for item in join), _form(value.get("form", "{}"), key))


def _form(form: object, key: str) -> Callable[[str], str]:
    if form == "date":
        return iso_date
    if form == "stem":
        return lambda text: PurePosixPath(text).stem
    if not isinstance(form, str) or form.count("{}") != 1:
        raise UsageError(f"{key}.form must be date, stem, or a text with {{}} where the value goes")
    return lambda text: form.replace("{}", text)


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{key} must be a text")
    return value


def _attribute(name: str) -> str:
    prefix, _, local = name.rpartition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}" if prefix in NAMESPACES else name


def _xpath(path: str, key: str) -> etree.XPath:
    try:
        compiled = etree.XPath(path, namespaces={"xlink": NAMESPACES["xlink"]}, smart_strings=False)
        # Names of functions and prefixes are looked up only where it is used.
        compiled(etree.Element("nothing"))
    except etree.XPathError as error:
        raise UsageError(f"{key}: {path!r} is not an XPath ({error})") from None
    return compiled


def text_of(element: Element) -> str:
    """The text of an element in one line."""
    return " ".join(whole_text(element).split())


def texts(path: etree.XPath, element: Element) -> list[str]:
    """What an XPath finds, as texts in one line each, without empty ones."""
    found = path(element)
    items: list[object] = list(found) if isinstance(found, list) else [found]
    lines = (text_of(item) if isinstance(item, etree._Element) else " ".join(str(item).split()) for item in items)
    return [line for line in lines if line]
