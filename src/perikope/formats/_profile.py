"""Profiles: TOML files that say what the tags of an XML schema mean. `ProfileKeys` declares their keys.

A profile lists the tags of each role (section, passage, title …). A tag is written alone (`p`), or with the tags around
it: `table-wrap/caption` is a caption directly inside a table-wrap, and `front/*` is any element directly inside a
front. If several entries match an element, the longest entry is used; of two with the same length, the one without the
star. A tag without a role is transparent: its text belongs to the text around it.

Values (id, title, language, cites, metadata) are XPaths, or tables with `path`, `join`, `between` and `form`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from lxml import etree

from perikope.core.composed_values import TEXTS, FilledText
from perikope.core.configuration import Location, Table, free_table, parse_toml, read_text, table
from perikope.core.errors import UsageError
from perikope.core.options import option
from perikope.core.parameters import Range
from perikope.core.scanner import excerpt
from perikope.core.values import Notation, Switch, Text, Whole
from perikope.formats._contexts import Contexts, Rules
from perikope.formats._patent_keys import PatentKeys
from perikope.formats._source import language_or_nothing
from perikope.formats._xpaths import FIELD, FIELDS, XPATH, Element, Field, Pattern, attribute_name, is_true

WHAT = "a profile"
"""The name of this kind of file in error messages."""


class Role(Enum):
    """The role of a tag: what an XML element with this tag becomes in the document."""

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
"""The keys of a profile that are lists of tags, with the role of these tags."""
# Tuples, because the hash of an enumeration member is slow.
BLOCKS = (Role.PASSAGE, Role.ROW, Role.TITLE, Role.SECTION, Role.ELEMENT, Role.HEADING)
LIFTED = (Role.SECTION, Role.ELEMENT, Role.HEADING)
_TAG = re.compile(r"[^\W\d][\w.-]*")
_GAP = re.compile(r"\{([\w:.-]+?)(:d)?\}")
"""A placeholder for an attribute in a citation: `{num}`, or `{num:d}` for a number without leading zeros."""


class CitationText(FilledText):
    """A text with placeholders for attributes. A brace that belongs to no placeholder is an error."""

    def check(self, name: str, value: Any) -> str:
        """Return the text unchanged."""
        text = super().check(name, value)
        if not {*"{}"}.isdisjoint(_GAP.sub("", text)):
            raise UsageError(f"{name} has a brace without a name and its other brace: {excerpt(text)}; write {{num}} or {{num:d}}")
        return text


@dataclass(frozen=True, kw_only=True)
class ProfileKeys(Table):
    """The keys of a profile."""

    name: str = option("", Text(), "Name of the profile; by default the name of its file.")
    format: str = option("", Text(), "Name of the format, by default the name of the profile. Several profiles may belong to one format.")
    summary: str = option("", Text(), "Summary in one line, for `perikope formats`.")
    walk: str = option(
        "general",
        Notation(parser="perikope.formats.walks:walk_named", required=True),
        "Name of the walk that reads the documents: general, patent, or one for a schema.",
    )
    roots: tuple[str, ...] = option((), TEXTS, "Tags of root elements that the profile is for; by default all.")
    when: etree.XPath | None = option(
        None, XPATH, "XPath that must find something in a document of the profile; distinguishes schemas with the same root."
    )
    id: tuple[Field, ...] = option((), FIELDS, "XPaths that find the id of the document; the first one that finds text is used.")
    title: tuple[Field, ...] = option((), FIELDS, "XPaths that find the title of the document; the first one that finds text is used.")
    language: tuple[Field, ...] = option(
        (), FIELDS, "XPaths that find the language of the document; the first one that finds text is used."
    )
    cites: tuple[Field, ...] = option((), FIELDS, "XPaths that find ids of documents that the document cites; all values are used.")
    languages: tuple[str, ...] = option(("xml:lang", "lang"), TEXTS, "Attributes that hold the language of an XML element.")
    ids: tuple[str, ...] = option(("id", "xml:id"), TEXTS, "Attributes that hold the id of an XML element.")
    semantic: str = option(
        "", Text(), "Name of an attribute. An XML element that has it becomes a mark, or an element if it holds blocks, whatever its tag."
    )
    others: bool = option(
        False,
        Switch(),
        "Whether a tag that no other key names becomes a mark, or an element if it holds blocks.",
    )
    sections: tuple[str, ...] = option((), TEXTS, "Tags of sections, which can have a title.")
    elements: tuple[str, ...] = option(
        (), TEXTS, "Tags of other blocks that hold blocks and can be results, such as lists, tables and figures."
    )
    titles: tuple[str, ...] = option(
        (), TEXTS, "Tags that hold the title of the section around them; `section/@title` if an attribute of the section holds it."
    )
    leading_titles: dict[str, str] = free_table(
        FilledText(), "Tags of titles that stand directly before their section, with the tag of the section."
    )
    labels: tuple[str, ...] = option(
        (), TEXTS, "Tags that hold the number of the next block, which goes before its text; `head/@n` if an attribute of a title holds it."
    )
    names: tuple[str, ...] = option(
        (), TEXTS, "Tags that hold the name of the element around them, such as `Figure 2`. Its passages are cited by the name."
    )
    headings: dict[str, int] = free_table(
        Whole(Range(1, 9)), "Tags that begin a section, with its level; the section ends at the next heading of the same level or above."
    )
    passages: tuple[str, ...] = option((), TEXTS, "Tags of passages. Inside another passage such a tag begins a new line.")
    whole: tuple[str, ...] = option(
        (), TEXTS, "Tags of passages that keep sections and elements inside them as lines; otherwise these follow the passage."
    )
    preformatted: tuple[str, ...] = option((), TEXTS, "Tags of passages whose white space is kept.")
    code: tuple[str, ...] = option(
        (),
        TEXTS,
        "Tags of passages of program code, which get the tag `code`. White space is kept, and long code is cut into several passages. "
        "`listing/@language` if an attribute holds the programming language.",
    )
    rows: tuple[str, ...] = option((), TEXTS, "Tags of table rows: each row is a passage, with a bar between its cells.")
    cells: tuple[str, ...] = option((), TEXTS, "Tags of the cells of table rows.")
    header_cells: tuple[str, ...] = option(
        (),
        TEXTS,
        "Tags of cells that name a column. The first rows of a table, if they have no other cells, become the title of the table.",
    )
    notices: dict[str, re.Pattern[str]] = free_table(
        Pattern(), "Tags of passages, with a regular expression; a passage is skipped if the expression matches its whole text."
    )
    marks: dict[str, str] = free_table(FilledText(), "Inline tags, with the tag of the mark that they become.")
    references: dict[str, str] = free_table(FilledText(), "Inline tags, with the attribute that holds the ids that they refer to.")
    filled: tuple[str, ...] = option(
        (), TEXTS, "Tags listed under references. An element without text gets the title of its target as text, or the target's id."
    )
    skipped: tuple[str, ...] = option((), TEXTS, "Tags that are skipped, with everything inside them.")
    breaks: tuple[str, ...] = option((), TEXTS, "Tags that begin a new line; in a table row they become a space.")
    parts: dict[str, str] = free_table(FilledText(), "Tags of XML elements that are a part of the document, with the name of the part.")
    citations: dict[str, str] = free_table(
        CitationText(),
        "Tags of passages, with the text by which people cite such a passage. `{num}` stands for its attribute `num`, "
        "and `{num:d}` for this attribute without leading zeros.",
    )
    tags: dict[str, str] = free_table(FilledText(), "Tags, with the tag that their spans get instead.")
    metadata: dict[str, Field] = free_table(
        FIELD, "Names of metadata fields, with the XPath that finds the value in the document; several values become a list."
    )
    patent: PatentKeys = table(PatentKeys, "Where a patent has its bibliographic data, description and claims.")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a tag, or a path of tags such as `list/p`, means."""

    role: Role | None = None
    mark: str = ""
    refers_by: str = ""
    """The attribute that holds the ids of the targets of a reference."""
    level: int = 0
    part: str = ""
    citation: str = ""
    titled_by: str = ""
    """The attribute that holds the title of a section."""
    labelled_by: str = ""
    """The attribute that holds the number of a title."""
    leads: str = ""
    """The tag of the section that a title stands before and belongs to."""
    notice: re.Pattern[str] | None = None
    filled: bool = False
    whole: bool = False
    preformatted: bool = False
    code: bool = False
    code_language_by: str = ""
    """The attribute that holds the programming language of code."""
    names_column: bool = False
    """Whether a cell names a column."""

    def citation_of(self, element: Element) -> str:
        """The text by which people cite the passage of an element: `citation` with the attributes filled in.

        It is empty if an attribute is missing or empty, or is not a number where `citation` needs one.
        """
        values = [(element.get(name) or "", number) for name, number in _GAP.findall(self.citation)]
        if not all(value.isdecimal() if number else value for value, number in values):
            return ""
        texts = iter(str(int(value)) if number else value for value, number in values)
        return _GAP.sub(lambda _: next(texts), self.citation)


NOTHING = Rule()
SEMANTIC = Rule(Role.SEMANTIC)


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
    others: bool
    rules: Rules
    """By tag: pairs of the tags around it, innermost first, and the rule that then applies. `*` stands for other tags.

    The first pair that matches is used; longer paths come first.
    """
    tags: Mapping[str, str]
    metadata: Mapping[str, Field]
    patent: PatentKeys
    has_headers: bool
    """Whether some cells name columns."""
    contexts: Contexts = field(repr=False, compare=False)
    """`rules`, prepared for the reading of documents."""

    def fits(self, root: Element) -> bool:
        """Whether the profile describes the document with this root, by `roots` and `when`."""
        return (not self.roots or root.tag in self.roots) and (self.when is None or is_true(self.when, root))

    def rule(self, element: Element) -> Rule:
        """The rule for an element; an empty rule if no entry of the profile matches."""
        if self.semantic and element.get(self.semantic) is not None:
            return SEMANTIC
        return self.contexts.inside(element.getparent())[element.tag][0]

    def found(self, key: str, root: Element) -> list[str]:
        """The values that the fields of a key find in the document with this root.

        `key` is `id`, `title`, `language` or `cites`. For `cites`, all fields are used. For the other keys, only the
        first field that finds a value is used.
        """
        values: list[str] = []
        for place in self.paths[key]:
            values += place.values(root)
            if values and key != "cites":
                break
        return values

    def language_of(self, element: Element) -> str:
        """The code of the language in the attributes of an element; empty if they have no known language."""
        # Most elements have no attributes, or few: one list of their names is faster than asking for each.
        if names := element.keys():
            for attribute in self.languages:
                if attribute in names and (code := language_or_nothing(element.get(attribute) or "")):
                    return code
        return ""

    def id_of(self, element: Element) -> str:
        """The id in the attributes of an element; empty if it has none."""
        if names := element.keys():
            for attribute in self.ids:
                if attribute in names and (id := element.get(attribute)):
                    return id
        return ""

    def tag_of(self, element: Element) -> str:
        """The tag of an element's span: as `tags` says, else the tag of the element."""
        return self.tags.get(element.tag) or str(element.tag)


def load(path: Path) -> Profile:
    """Read a profile from its file; an error names the file and the key."""
    return parse(parse_toml(read_text(path, WHAT), path), path.stem, path)


def parse(content: Mapping[str, Any], name: str, path: object = None) -> Profile:
    """Make a profile from the parsed content of its file.

    `name` is used if the content has no name. `path` is the file's path for error messages.
    """
    keys = ProfileKeys.read(content, Location(path, WHAT))
    if not (keys.passages or keys.rows or keys.preformatted or keys.code):
        raise keys.wrong("passages", "must list at least one tag, unless rows, preformatted or code does")
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
        others=keys.others,
        rules=rules,
        tags=keys.tags,
        metadata=keys.metadata,
        patent=keys.patent,
        has_headers=bool(keys.header_cells),
        contexts=Contexts(rules, SEMANTIC if keys.others else NOTHING),
    )


def _rules(keys: ProfileKeys) -> Rules:
    """The rule of each tag, gathered from all keys of the profile that name the tag."""
    properties = _Properties(keys)
    _add_roles(keys, properties)
    _add_inline(keys, properties)
    _add_details(keys, properties)
    return _by_tag(keys, properties.of)


class _Properties:
    """Gathers the properties of each tag, or path of tags, from the keys of a profile."""

    def __init__(self, keys: ProfileKeys) -> None:
        self.keys = keys
        self.of: dict[str, dict[str, Any]] = {}
        self._key_of_role: dict[str, str] = {}

    def add(self, key: str, path: str, **values: Any) -> None:
        """Add properties, which `key` gives to a path of tags; a second, different role is an error."""
        properties = self.of.setdefault(path, {})
        if "role" in values and properties.get("role", values["role"]) is not values["role"]:
            raise self.keys.wrong(
                key, f"names {path!r}, which {self._key_of_role[path]} names too; a tag has one role, so remove one of the two entries"
            )
        if "role" in values:
            self._key_of_role.setdefault(path, key)
        properties.update(values)

    def has(self, path: str, **values: Any) -> bool:
        """Whether a path of tags has all of these properties."""
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
    for path in keys.code:
        tag, _, attribute = path.partition("/@")
        language_by = attribute_name(attribute) if attribute else ""
        properties.add("code", tag, role=Role.PASSAGE, preformatted=True, code=True, code_language_by=language_by)
    for path in keys.header_cells:
        properties.add("header_cells", path, role=Role.CELL, names_column=True)


def _add_inline(keys: ProfileKeys, properties: _Properties) -> None:
    for path, mark in keys.marks.items():
        properties.add("marks", path, role=Role.MARK, mark=mark)
    for path, attribute in keys.references.items():
        if "role" not in properties.of.get(path, {}):
            properties.add("references", path, role=Role.MARK, mark="link")
        properties.add("references", path, refers_by=attribute_name(attribute))
    for path in keys.filled:
        if path not in keys.references:
            raise keys.wrong("filled", f"names {path!r}, which is not listed under references; add it there")
        properties.add("filled", path, filled=True)


def _add_details(keys: ProfileKeys, properties: _Properties) -> None:
    for path in keys.whole:
        if not properties.has(path, role=Role.PASSAGE):
            raise keys.wrong("whole", f"names {path!r}, which is not listed under passages; add it there")
        properties.add("whole", path, whole=True)
    for path, notice in keys.notices.items():
        if not properties.has(path, role=Role.PASSAGE):
            raise keys.wrong("notices", f"names {path!r}, which is not listed under passages; add it there")
        properties.add("notices", path, notice=notice)
    for path, part in keys.parts.items():
        properties.add("parts", path, part=part)
    for path, citation in keys.citations.items():
        properties.add("citations", path, citation=citation)


def _by_tag(keys: ProfileKeys, properties: Mapping[str, Mapping[str, Any]]) -> Rules:
    """The rules by the innermost tag of their paths, longest path first; see `Profile.rules`."""
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
        raise keys.wrong("titles", f"takes the title of {path!r} from an attribute, but {path!r} is not listed under sections; add it")
    if "labelled_by" in values and values.get("role") is not Role.TITLE:
        raise keys.wrong("labels", f"takes the number of {path!r} from an attribute, but {path!r} is not listed under titles; add it")


def _check_patent(keys: PatentKeys, rules: Rules) -> None:
    """Check that the tags of description and claims have the roles that the patent walk relies on."""
    roles = {"description": Role.SECTION, "claim_sets": Role.SECTION, "claims": Role.PASSAGE, "paragraphs": Role.PASSAGE}
    for key in keys.given & roles.keys():
        for tag in getattr(keys, key):
            if not any(rule.role is roles[key] for _, rule in rules.get(tag, ())):
                raise keys.wrong(key, f"names {tag!r}, which is not listed under {roles[key].name.lower()}s; add it there")
