"""Profiles: TOML files that say what the tags of an XML schema mean. `ProfileKeys` declares their keys.

For each role a profile lists the tags that have it. A tag is written alone (`p`), or with the tags around it:
`table-wrap/caption` is a caption directly inside a table-wrap, and `front/*` is any element directly inside a front. If
several entries fit, the longest one counts; of two with the same length, the one without the star.

Values (id, title, language, cites, metadata) are XPaths, or tables of `path`, `join`, `between` and `form`. A tag
without a role is transparent: its text belongs to the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from lxml import etree

from perikope.core.composed_values import TEXTS, FilledText
from perikope.core.configuration import Location, Table, free_table, parse_toml, read_text, table
from perikope.core.options import option
from perikope.core.parameters import Range
from perikope.core.values import Notation, Text, Whole
from perikope.formats._patent_keys import PatentKeys
from perikope.formats._source import language_or_nothing
from perikope.formats._xpaths import FIELD, FIELDS, XPATH, Element, Field, Pattern, attribute_name

WHAT = "a profile"
"""What errors call the file."""


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
"""The keys that list tags of one role."""
BLOCKS = frozenset((Role.SECTION, Role.ELEMENT, Role.TITLE, Role.HEADING, Role.PASSAGE, Role.ROW))
LIFTED = frozenset((Role.SECTION, Role.ELEMENT, Role.HEADING))
_TAG = re.compile(r"[^\W\d][\w.-]*")
_GAP = re.compile(r"\{([\w:.-]+?)(:d)?\}")
"""An attribute in a form: `{num}`, or `{num:d}` for a number without zeros in front."""


@dataclass(frozen=True, kw_only=True)
class ProfileKeys(Table):
    """The keys of a profile's file."""

    name: str = option("", Text(), "Name of the profile; by default the name of its file.")
    format: str = option("", Text(), "Name of the format; several profiles may belong to one format. By default the name of the profile.")
    summary: str = option("", Text(), "Summary in one line, for `perikope formats`.")
    walk: str = option("general", Notation(parser="perikope.formats.walks:walk_named", required=True), "Walk that reads the schema.")
    roots: tuple[str, ...] = option((), TEXTS, "Root elements of the schema; by default any.")
    when: etree.XPath | None = option(None, XPATH, "XPath that must find something, to tell schemas with the same root apart.")
    id: tuple[Field, ...] = option((), FIELDS, "Id of the document; the first value that has text is used.")
    title: tuple[Field, ...] = option((), FIELDS, "Title of the document; the first value that has text is used.")
    language: tuple[Field, ...] = option((), FIELDS, "Language of the document; the first value that has text is used.")
    cites: tuple[Field, ...] = option((), FIELDS, "Ids of the documents that this one cites; all values are used.")
    languages: tuple[str, ...] = option(("xml:lang", "lang"), TEXTS, "Attributes with the language of an element.")
    ids: tuple[str, ...] = option(("id", "xml:id"), TEXTS, "Attributes with the id of an element.")
    semantic: str = option(
        "", Text(), "Attribute: elements that have it are marks, or elements if they hold blocks, whatever their tags are."
    )
    sections: tuple[str, ...] = option((), TEXTS, "Parts of the document that can have a title.")
    elements: tuple[str, ...] = option((), TEXTS, "Other blocks that hold blocks and can be results: lists, tables, figures.")
    titles: tuple[str, ...] = option((), TEXTS, "Title of the section around it; `section/@title` if an attribute holds it.")
    leading_titles: dict[str, str] = free_table(FilledText(), "Titles directly before their section, with the tag of that section.")
    labels: tuple[str, ...] = option(
        (), TEXTS, "Number of the block that follows, written before its text; `head/@n` if an attribute of a title holds it."
    )
    names: tuple[str, ...] = option(
        (), TEXTS, "Name of the element around it, such as `Figure 2`: no text, but its passages are cited by it."
    )
    headings: dict[str, int] = free_table(
        Whole(Range(1, 9)), "Tags that begin a section, with its level; it ends at the next heading of its level or above."
    )
    passages: tuple[str, ...] = option((), TEXTS, "Passages. Inside another passage such a tag begins a new line.")
    whole: tuple[str, ...] = option(
        (), TEXTS, "Passages that keep sections and elements inside them as lines; else these follow the passage."
    )
    preformatted: tuple[str, ...] = option((), TEXTS, "Passages whose white space is kept.")
    rows: tuple[str, ...] = option((), TEXTS, "Passages whose cells are joined with a bar.")
    cells: tuple[str, ...] = option((), TEXTS, "Cells of rows.")
    notices: dict[str, re.Pattern[str]] = free_table(
        Pattern(), "Passages that are skipped if a regular expression matches their whole text."
    )
    marks: dict[str, str] = free_table(FilledText(), "Inline tags, with the name of their mark.")
    references: dict[str, str] = free_table(FilledText(), "Inline tags, with the attribute that holds the ids that they refer to.")
    filled: tuple[str, ...] = option((), TEXTS, "References that, if empty, read as the title of their target, else as its id.")
    skipped: tuple[str, ...] = option((), TEXTS, "Tags that are skipped, with everything inside them.")
    breaks: tuple[str, ...] = option((), TEXTS, "A new line; in a row, a space.")
    parts: dict[str, str] = free_table(FilledText(), "Tags that begin a part of the document, with its name.")
    citations: dict[str, str] = free_table(FilledText(), "Tags, with the text that people cite them by; `{num}` is an attribute.")
    tags: dict[str, str] = free_table(FilledText(), "Tags, with another tag that their spans get.")
    metadata: dict[str, Field] = free_table(FIELD, "Metadata of the document; several values become a list.")
    patent: PatentKeys = table(PatentKeys, "Where a patent has its bibliographic data, its description and its claims.")


@dataclass(frozen=True, slots=True)
class Rule:
    """What one tag, perhaps inside others, means."""

    role: Role | None = None
    mark: str = ""
    refers_by: str = ""
    """The attribute that holds the ids that it refers to."""
    level: int = 0
    part: str = ""
    citation: str = ""
    titled_by: str = ""
    """The attribute that holds the title of a section."""
    labelled_by: str = ""
    """The attribute that holds the number of a title."""
    leads: str = ""
    """The tag of the section that follows a title and has it."""
    notice: re.Pattern[str] | None = None
    filled: bool = False
    whole: bool = False
    preformatted: bool = False

    def citation_of(self, element: Element) -> str:
        """How people cite an element: the form with its attributes; empty where one of them is missing."""
        values = [(element.get(name) or "", number) for name, number in _GAP.findall(self.citation)]
        if not all(value.isdecimal() if number else value for value, number in values):
            return ""
        texts = iter(str(int(value)) if number else value for value, number in values)
        return _GAP.sub(lambda _: next(texts), self.citation)


NOTHING = Rule()
SEMANTIC = Rule(Role.SEMANTIC)
Rules = Mapping[str, tuple[tuple[tuple[str, ...], Rule], ...]]


@dataclass(frozen=True, slots=True)
class Profile:
    """What the tags of one schema mean."""

    name: str
    format: str
    summary: str
    walk: str
    roots: tuple[str, ...]
    when: etree.XPath | None
    paths: Mapping[str, tuple[Field, ...]]
    """The fields of `id`, `title`, `language` and `cites`."""
    languages: tuple[str, ...]
    ids: tuple[str, ...]
    semantic: str
    rules: Rules
    """By tag: the tags around it, innermost first, and what it then means; the longest first. `*` is any other tag."""
    tags: Mapping[str, str]
    metadata: Mapping[str, Field]
    patent: PatentKeys

    def fits(self, root: Element) -> bool:
        """Whether the profile describes documents with this root."""
        return (not self.roots or root.tag in self.roots) and (self.when is None or bool(self.when(root)))

    def rule(self, element: Element) -> Rule:
        """What an element means."""
        return self.rule_of(element)[0]

    def rule_of(self, element: Element) -> tuple[Rule, bool]:
        """What an element means, and whether every element with its tag and its parent's tag means the same."""
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

    def found(self, key: str, root: Element) -> list[str]:
        """The values of `id`, `title` or `language`: those of the first field that has any; of `cites` all."""
        values: list[str] = []
        for field in self.paths[key]:
            values += field.values(root)
            if values and key != "cites":
                break
        return values

    def language_of(self, element: Element) -> str:
        """The code of the language that the attributes of an element name; empty where they name none."""
        for attribute in self.languages:
            if (value := element.get(attribute)) and (code := language_or_nothing(value)):
                return code
        return ""

    def id_of(self, element: Element) -> str:
        """The id that the attributes of an element give it; empty where it has none."""
        return next((id for attribute in self.ids if (id := element.get(attribute))), "")

    def tag_of(self, element: Element) -> str:
        """The tag that the span of an element gets."""
        return self.tags.get(element.tag) or str(element.tag)


def load(path: Path) -> Profile:
    """Read a profile from its file; an error names the file and the key."""
    return parse(parse_toml(read_text(path, WHAT), path), path.stem, path)


def parse(content: Mapping[str, Any], name: str, path: object = None) -> Profile:
    """Make a profile of the content of its file; `name` is used where the content has none."""
    keys = ProfileKeys.read(content, Location(path, WHAT))
    if not keys.passages and not keys.rows and not keys.preformatted:
        raise keys.wrong("passages", "must list at least one tag")
    if "patent" in keys.given and keys.walk == "general":
        raise keys.wrong("walk", 'must name a walk that reads [patent]: write walk = "patent"')
    name, rules = keys.name or name, _rules(keys)
    _check_patent(keys.patent, rules)
    return Profile(
        name=name,
        format=keys.format or name,
        summary=keys.summary,
        walk=keys.walk,
        roots=keys.roots,
        when=keys.when,
        paths={"id": keys.id, "title": keys.title, "language": keys.language, "cites": keys.cites},
        languages=tuple(map(attribute_name, keys.languages)),
        ids=tuple(map(attribute_name, keys.ids)),
        semantic=keys.semantic,
        rules=rules,
        tags=keys.tags,
        metadata=keys.metadata,
        patent=keys.patent,
    )


def _rules(keys: ProfileKeys) -> Rules:
    """What each tag means, from all keys that name it."""
    properties = _Properties(keys)
    _add_roles(keys, properties)
    _add_inline(keys, properties)
    _add_details(keys, properties)
    return _by_tag(keys, properties.of)


class _Properties:
    """What the keys of a profile say about each tag, or path of tags, gathered key by key."""

    def __init__(self, keys: ProfileKeys) -> None:
        self.keys = keys
        self.of: dict[str, dict[str, Any]] = {}
        self._key_of_role: dict[str, str] = {}

    def add(self, key: str, path: str, **values: Any) -> None:
        """Add properties of a path; a second role is an error."""
        properties = self.of.setdefault(path, {})
        if "role" in values and properties.get("role", values["role"]) is not values["role"]:
            raise self.keys.wrong(key, f"names {path!r}, which {self._key_of_role[path]} names too; a tag has one role")
        if "role" in values:
            self._key_of_role.setdefault(path, key)
        properties.update(values)

    def has(self, path: str, **values: Any) -> bool:
        """Whether a path has these properties."""
        return values.items() <= self.of.get(path, {}).items()


def _add_roles(keys: ProfileKeys, properties: _Properties) -> None:
    for key, role in _LISTS.items():
        for path in getattr(keys, key):
            tag, _, attribute = path.partition("/@")
            if attribute and role is Role.TITLE:
                properties.add(key, tag, titled_by=attribute_name(attribute))
            elif attribute and role is Role.LABEL:
                properties.add(key, tag, labelled_by=attribute_name(attribute))
            else:
                properties.add(key, path, role=role)
    for path, level in keys.headings.items():
        properties.add("headings", path, role=Role.HEADING, level=level)
    for path, section in keys.leading_titles.items():
        properties.add("leading_titles", path, role=Role.TITLE, leads=section)
    for path in keys.preformatted:
        properties.add("preformatted", path, role=Role.PASSAGE, preformatted=True)


def _add_inline(keys: ProfileKeys, properties: _Properties) -> None:
    for path, mark in keys.marks.items():
        properties.add("marks", path, role=Role.MARK, mark=mark)
    for path, attribute in keys.references.items():
        if "role" not in properties.of.get(path, {}):
            properties.add("references", path, role=Role.MARK, mark="link")
        properties.add("references", path, refers_by=attribute_name(attribute))
    for path in keys.filled:
        if path not in keys.references:
            raise keys.wrong("filled", f"names {path!r}, which is not listed under references")
        properties.add("filled", path, filled=True)


def _add_details(keys: ProfileKeys, properties: _Properties) -> None:
    for path in keys.whole:
        if not properties.has(path, role=Role.PASSAGE):
            raise keys.wrong("whole", f"names {path!r}, which is not listed under passages")
        properties.add("whole", path, whole=True)
    for path, notice in keys.notices.items():
        if not properties.has(path, role=Role.PASSAGE):
            raise keys.wrong("notices", f"names {path!r}, which is not listed under passages")
        properties.add("notices", path, notice=notice)
    for path, part in keys.parts.items():
        properties.add("parts", path, part=part)
    for path, citation in keys.citations.items():
        properties.add("citations", path, citation=citation)


def _by_tag(keys: ProfileKeys, properties: Mapping[str, Mapping[str, Any]]) -> Rules:
    """The rules by the innermost tag, the longest path first."""
    rules: dict[str, list[tuple[tuple[str, ...], Rule]]] = {"*": []}
    for path, values in properties.items():
        _check_attributes(keys, path, values)
        *around, tag = path.split("/")
        if not all(_TAG.fullmatch(step) for step in around) or not (tag == "*" or _TAG.fullmatch(tag)):
            raise keys.location.error(f"{path!r} is no tag; write `p`, `list/p` for a p directly inside a list, or `front/*`")
        rules.setdefault(tag, []).append((tuple(reversed(around)), Rule(**values)))
    of_any = rules["*"]
    length: Callable[[tuple[tuple[str, ...], Rule]], int] = lambda entry: -len(entry[0])  # noqa: E731
    # The sort is stable: of two paths with the same length, the one with the tag comes before the one with the star.
    return {tag: tuple(sorted(entries if tag == "*" else [*entries, *of_any], key=length)) for tag, entries in rules.items()}


def _check_attributes(keys: ProfileKeys, path: str, values: Mapping[str, Any]) -> None:
    if "titled_by" in values and not (values.get("role") is Role.SECTION or ("part" in values and "role" not in values)):
        raise keys.wrong("titles", f"takes the title of {path!r} from an attribute, but {path!r} is not listed under sections")
    if "labelled_by" in values and values.get("role") is not Role.TITLE:
        raise keys.wrong("labels", f"takes the number of {path!r} from an attribute, but {path!r} is not listed under titles")


def _check_patent(keys: PatentKeys, rules: Rules) -> None:
    """Check that the tags of description and claims have the roles that the patent walk relies on."""
    roles = {"description": Role.SECTION, "claim_sets": Role.SECTION, "claims": Role.PASSAGE, "paragraphs": Role.PASSAGE}
    for key in keys.given & roles.keys():
        for tag in getattr(keys, key):
            if not any(rule.role is roles[key] for _, rule in rules.get(tag, ())):
                raise keys.wrong(key, f"names {tag!r}, which is not listed under {roles[key].name.lower()}s")
