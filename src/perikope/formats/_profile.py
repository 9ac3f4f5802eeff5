"""Profiles: what the tags of an XML schema mean, written in TOML, and the walk that makes documents of it.

A profile names, for each role, the tags that play it. A tag stands for itself wherever it is, or with the tags around it:
`table-wrap/caption` is a caption right inside a table-wrap, and of two that fit the longer one counts.

    name = "jats"                      what it is called: `--format jats`
    format = "jats"                    the format that it belongs to, where that has several schemas; else as its name
    summary = "…"                      one line for `perikope formats`
    roots = ["article"]                root elements that it is for
    when = "front or body"             XPath that tells it from others with the same root
    id = ["…"]                         XPaths of the document's id, its title and its language; the first that finds text counts
    title = ["…"]
    language = ["@xml:lang"]
    cites = ["…"]                      XPaths of ids of documents that it cites
    languages = ["lang"]               attributes that say the language of an element
    semantic = "wordnetid"             elements with this attribute are marks, whatever their tag

    sections = ["sec"]                 a titled part of the document
    elements = ["list"]                another block that holds blocks, and can be a result
    titles = ["title"]                 title of the section around it
    labels = ["label"]                 number of what follows, written before it
    headings = {h1 = 1}                begins a section that ends at the next heading of its level
    passages = ["p"]                   what is found; in another passage it begins a new line
    rows = ["tr"]                      a passage whose cells are joined
    cells = ["td"]
    marks = {bold = "b"}               inline, with the name that the mark gets
    references = {xref = "rid"}        inline, with the attribute that names what it refers to
    skipped = ["tex-math"]             not text
    breaks = ["br"]                    a gap between words
    parts = {abstract = "abstract"}    the part of the document that begins here
    citations = {p = "[{num}]"}        how people cite it, of its attributes; {num:d} without zeros in front

    [metadata]                         XPaths of values; or a table: path, and of what in each the value is put together
    journal = "front//journal-title"
    author = {path = "front//contrib/name", join = ["given-names", "surname"]}
    date = {path = "front//pub-date[1]", join = ["year", "month", "day"], form = "date"}

A tag without a role is passed through: its text belongs to the text around it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, ClassVar

from lxml import etree

from perikope.document import Document, Kind, Place, TreeBuilder
from perikope.errors import InputError, UsageError
from perikope.formats._inline import Inline, Run
from perikope.formats._source import Source, is_running_number, language_or_nothing
from perikope.formats._xml import Tree, whole_text

Element = etree._Element


class Role(Enum):
    """What a tag means."""

    SECTION = auto()
    ELEMENT = auto()
    TITLE = auto()
    LABEL = auto()
    HEADING = auto()
    PASSAGE = auto()
    ROW = auto()
    CELL = auto()
    MARK = auto()
    SKIPPED = auto()
    BREAK = auto()


_LISTS = {
    "sections": Role.SECTION, "elements": Role.ELEMENT, "titles": Role.TITLE, "labels": Role.LABEL, "passages": Role.PASSAGE,
    "rows": Role.ROW, "cells": Role.CELL, "skipped": Role.SKIPPED, "breaks": Role.BREAK,
}  # fmt: skip
_TABLES = ("headings", "marks", "references", "parts", "citations", "metadata")
_PATHS = ("id", "title", "language", "cites")
_TEXTS = ("name", "format", "summary", "when", "semantic")
_BLOCKS = frozenset((Role.SECTION, Role.ELEMENT, Role.TITLE, Role.HEADING, Role.PASSAGE, Role.ROW))
_LIFTED = frozenset((Role.SECTION, Role.ELEMENT, Role.HEADING))
_XML = "{http://www.w3.org/XML/1998/namespace}"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one tag, perhaps inside others, means."""

    role: Role | None = None
    mark: str = ""
    refers_by: str = ""
    level: int = 0
    part: str = ""
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a value of the metadata stands."""

    path: etree.XPath
    join: tuple[etree.XPath, ...] = ()
    form: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """What the tags of one schema mean."""

    name: str
    format: str
    summary: str
    roots: tuple[str, ...]
    when: etree.XPath | None
    paths: Mapping[str, tuple[etree.XPath, ...]]
    languages: tuple[str, ...]
    semantic: str
    rules: Mapping[str, tuple[tuple[tuple[str, ...], Rule], ...]]
    """By tag: the tags that must stand around it, innermost first, and what it then means; the longest first."""
    metadata: Mapping[str, Field]
    forms: Mapping[str, Callable[[str], str]] = field(default_factory=lambda: {"": str, "date": iso_date})

    def fits(self, root: Element) -> bool:
        """Whether it is meant for a document with this root."""
        return (not self.roots or root.tag in self.roots) and (self.when is None or bool(self.when(root)))

    def rule(self, element: Element) -> Rule:
        """What an element means."""
        found = self.rules.get(element.tag)
        if found is None:
            return NOTHING
        for around, rule in found:
            parent = element.getparent()
            for tag in around:
                if parent is None or parent.tag != tag:
                    break
                parent = parent.getparent()
            else:
                return rule
        return NOTHING


NOTHING = Rule()


def load(path: Path) -> Profile:
    """A profile from its file; what is wrong with it is named."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); check the path", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML ({error})", path=path) from None
    try:
        return parse(content, path.stem)
    except UsageError as error:
        raise InputError(str(error), path=path) from None


def parse(content: Mapping[str, Any], name: str) -> Profile:
    """A profile from the content of its file."""
    known = {*_LISTS, *_TABLES, *_PATHS, *_TEXTS, "roots", "languages"}
    for key in content:
        if key not in known:
            raise UsageError(f"{key!r} is no key of a profile; keys: {', '.join(sorted(known))}")
    for key in (*_LISTS, *_PATHS, "roots", "languages"):
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
        paths={key: tuple(_xpath(path, key) for path in content.get(key, ())) for key in _PATHS},
        languages=tuple(_attribute(attribute) for attribute in content.get("languages", ("xml:lang", "lang"))),
        semantic=content.get("semantic", ""),
        rules=_rules(content),
        metadata={key: _field(key, value) for key, value in content.get("metadata", {}).items()},
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
            note(path, role=role)
    for path, level in content.get("headings", {}).items():
        if not isinstance(level, int) or not 1 <= level <= 9:
            raise UsageError(f"headings.{path} must be a level from 1 to 9")
        note(path, role=Role.HEADING, level=level)
    for path, mark in content.get("marks", {}).items():
        note(path, role=Role.MARK, mark=_text(mark, f"marks.{path}"))
    for path, attribute in content.get("references", {}).items():
        own = {} if "role" in properties.get(path, {}) else {"role": Role.MARK, "mark": "link"}
        note(path, refers_by=_attribute(_text(attribute, f"references.{path}")), **own)
    for path, part in content.get("parts", {}).items():
        note(path, part=_text(part, f"parts.{path}"))
    for path, citation in content.get("citations", {}).items():
        note(path, citation=_text(citation, f"citations.{path}"))
    rules: dict[str, list[tuple[tuple[str, ...], Rule]]] = {}
    for path, values in properties.items():
        *around, tag = path.split("/")
        rules.setdefault(tag, []).append((tuple(reversed(around)), Rule(**values)))
    return {tag: tuple(sorted(found, key=lambda entry: -len(entry[0]))) for tag, found in rules.items()}


def _field(key: str, value: object) -> Field:
    if isinstance(value, str):
        return Field(_xpath(value, f"metadata.{key}"))
    if not isinstance(value, dict) or not isinstance(value.get("path"), str) or not value.keys() <= {"path", "join", "form"}:
        raise UsageError(f"metadata.{key} must be an XPath, or a table of path, join and form")
    if value.get("form", "") not in ("", "date"):
        raise UsageError(f"metadata.{key}.form must be date")
    join = value.get("join", [])
    if not isinstance(join, list) or not all(isinstance(item, str) for item in join):
        raise UsageError(f"metadata.{key}.join must be a list of XPaths")
    paths = tuple(_xpath(item, f"metadata.{key}.join") for item in join)
    return Field(_xpath(value["path"], f"metadata.{key}"), paths, value.get("form", ""))


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{key} must be a text")
    return value


def _attribute(name: str) -> str:
    return name.replace("xml:", _XML, 1) if name.startswith("xml:") else name


def _xpath(path: str, key: str) -> etree.XPath:
    try:
        return etree.XPath(path, namespaces={"xlink": "http://www.w3.org/1999/xlink"}, smart_strings=False)
    except etree.XPathSyntaxError as error:
        raise UsageError(f"{key}: {path!r} is not an XPath ({error})") from None


def iso_date(text: str) -> str:
    """A date as 2001-03-15, or as much of it as is there; nothing where it is none.

    >>> iso_date("20010315"), iso_date("2004 7 1"), iso_date("19420300"), iso_date("May")
    ('2001-03-15', '2004-07-01', '1942-03', '')
    """
    digits = re.findall(r"[0-9]+", text)
    if len(digits) == 1 and len(digits[0]) == 8:
        digits = [digits[0][:4], digits[0][4:6], digits[0][6:]]
    if not digits or len(digits[0]) != 4 or len(digits) > 3:
        return ""
    pieces = [digits[0]]
    for number, largest in zip(digits[1:], (12, 31), strict=False):
        if len(number) > 2 or not 1 <= int(number) <= largest:
            break
        pieces.append(f"{int(number):02d}")
    return "-".join(pieces)


def text_of(element: Element) -> str:
    """The text of an element in one line."""
    return " ".join(whole_text(element).split())


def texts(path: etree.XPath, element: Element) -> list[str]:
    """What an XPath finds, as texts in one line each, without empty ones."""
    found = path(element)
    items: list[object] = list(found) if isinstance(found, list) else [found]
    lines = (text_of(item) if isinstance(item, etree._Element) else " ".join(str(item).split()) for item in items)
    return [line for line in lines if line]


class Walk:
    """Goes through the elements of one document once and builds it; schemas that need more than a profile extend it."""

    breaks_lines: ClassVar[bool] = True

    def __init__(self, profile: Profile, tree: Tree, source: Source) -> None:
        self.profile, self.root, self.source = profile, tree.root, source
        self.language = next(iter(self.found("language")), "")
        self.builder = TreeBuilder(
            self.document_id() or (source.id if tree.is_alone else f"{source.id}:{tree.first_line}"),
            title=next(iter(self.found("title")), ""),
            tag=str(tree.root.tag),
            language=language_or_nothing(self.language) or source.language,
            metadata=self.metadata(),
            cites=list(dict.fromkeys(self.found("cites"))),
        )
        self._inline = Inline()
        self._offset = 0
        self._ids: set[str] = set()
        self._label = ""
        self._lifted: list[tuple[Element, str, int]] = []
        self._around: list[_Container] = []

    # What a schema may do in its own way.

    def document_id(self) -> str:
        """The id that the document has by itself, if any."""
        return next(iter(self.found("id")), "")

    def metadata(self) -> dict[str, object]:
        """The metadata that the profile names."""
        found: dict[str, object] = {}
        for key, where in self.profile.metadata.items():
            form = self.profile.forms[where.form]
            if where.join:
                found_here = where.path(self.root)
                elements = [item for item in found_here if isinstance(item, etree._Element)] if isinstance(found_here, list) else []
                values = [" ".join(piece for path in where.join for piece in texts(path, element)[:1]) for element in elements]
            else:
                values = texts(where.path, self.root)
            values = list(dict.fromkeys(value for value in map(form, values) if value))
            if values:
                found[key] = values[0] if len(values) == 1 else values
        return found

    def heading_level(self, element: Element, rule: Rule, run: Run) -> int:
        """The level of the heading that an element is; 0 where it is a passage."""
        return rule.level

    def part_of(self, element: Element, rule: Rule) -> str:
        """The part of the document that begins with an element, if any."""
        return rule.part

    def citation_of(self, element: Element, rule: Rule, run: Run) -> str:
        """How people cite a passage, after the document's own name."""
        return _filled(rule.citation, element) if rule.citation else ""

    def id_of(self, element: Element) -> str:
        """The id that an element has by itself, if any."""
        return element.get("id") or element.get(f"{_XML}id") or ""

    def passage_added(self, number: int, element: Element, run: Run) -> None:
        """Told of every passage, so that more can be noted of it."""

    def finish(self) -> None:
        """Told when all elements were read."""

    # The walk.

    def document(self) -> Document:
        """The document."""
        root = self.root
        path = f"/{root.tag}[1]"
        self._around.append(_Container(0, str(root.tag), path, bool(self.found("title"))))
        self._place(0, path, 0)
        self._blocks(root, path)
        self._flush()
        self.builder.close_headings()
        self._place(0, path, 0)
        self.finish()
        return self.source.finish(self.builder)

    def found(self, key: str) -> list[str]:
        """What the paths of the profile under a key find; those of the first that finds anything, except for citations: all."""
        everything: list[str] = []
        for path in self.profile.paths[key]:
            everything += texts(path, self.root)
            if everything and key != "cites":
                break
        return everything

    def _blocks(self, element: Element, path: str) -> None:
        """The content of an element that may hold blocks."""
        self._loose(element.text)
        counts: dict[str, int] = {}
        for child in element:
            tag = str(child.tag)
            counts[tag] = counts.get(tag, 0) + 1
            self._block(child, f"{path}/{tag}[{counts[tag]}]")
            self._loose(child.tail)

    def _block(self, element: Element, path: str) -> None:
        rule = self.profile.rule(element)
        match rule.role:
            case Role.SECTION | Role.ELEMENT:
                self._container(element, path, rule)
            case Role.PASSAGE | Role.ROW | Role.HEADING:
                self._passage(element, path, rule)
            case Role.TITLE:
                self._title(element, path)
            case Role.LABEL:
                self._flush()
                self._gather(element, path)
                self._label = self._taken().text
            case Role.SKIPPED:
                self._offset += _length(element)
            case Role.MARK | Role.BREAK | Role.CELL:
                self._run(element, path, rule)
            case None if rule.part:
                self._container(element, path, rule)
            case None if self._is_semantic(element) and not self._holds_blocks(element):
                self._run(element, path, rule)
            case None:
                self._blocks(element, path)

    def _container(self, element: Element, path: str, rule: Rule) -> None:
        self._flush()
        start = self._offset
        kind = Kind.ELEMENT if rule.role is Role.ELEMENT else Kind.SECTION
        number = self.builder.open(
            kind, str(element.tag), id=self._new_id(element), part=self.part_of(element, rule), language=self._language_of(element)
        )
        self._around.append(_Container(number, str(element.tag), path, kind is Kind.ELEMENT))
        self._blocks(element, path)
        self._flush()
        self._leave_label()
        self.builder.close_headings(since=number)
        self._around.pop()
        self.builder.close()
        self._place(number, path, start)

    def _title(self, element: Element, path: str) -> None:
        self._flush()
        start = self._offset
        self._gather(element, path)
        run = self._taken()
        text = self._labelled(run).text
        around = self._around[-1]
        if not text:
            return
        if around.has_title:
            number = self.builder.passage(text, str(element.tag), id=self._new_id(element))
        else:
            number = self.builder.title(text)
            for target in run.refs:
                self.builder.refer(target)
            around.has_title = True
        self._place(number, path, start)
        self._release()

    def _passage(self, element: Element, path: str, rule: Rule) -> None:
        self._flush()
        start = self._offset
        self._gather(element, path)
        run = self._taken()
        level = self.heading_level(element, rule, run)
        if level and run.text:
            number = self.builder.heading(level, self._labelled(run).text, str(element.tag), id=self._new_id(element))
            self._place(number, path, start)
        elif run.text.strip(" |"):
            citation = self.citation_of(element, rule, run)
            run = self._labelled(run)
            part, language, id = self.part_of(element, rule), self._language_of(element), self._new_id(element)
            number = self.builder.passage(
                run.text, str(element.tag), id=id, part=part, language=language, marks=run.marks, refs=run.refs
            )
            self._place(number, path, start)
            if citation:
                self.builder.citations[number] = citation
            self._around[-1].has_title = True
            self.passage_added(number, element, run)
        self._release()

    def _release(self) -> None:
        """Blocks that stood inside a passage follow it: a passage holds none."""
        lifted, self._lifted = self._lifted, []
        after = self._offset
        for element, path, offset in lifted:
            self._offset = offset
            self._block(element, path)
        self._offset = after

    def _loose(self, text: str | None) -> None:
        """Text that stands directly inside an element that holds blocks."""
        if text:
            if not self._around[-1].loose_from and not text.isspace():
                self._around[-1].loose_from = self._offset + 1
            self._inline.text(text)
            self._offset += len(text)

    def _run(self, element: Element, path: str, rule: Rule) -> None:
        """An inline element among blocks."""
        around = self._around[-1]
        around.loose_from = around.loose_from or self._offset + 1
        self._inside(element, path, rule)

    def _flush(self) -> None:
        """Make a passage of the loose text so far."""
        run = self._taken()
        around = self._around[-1]
        if run.text:
            run = self._labelled(run)
            number = self.builder.passage(run.text, around.tag, marks=run.marks, refs=run.refs)
            self._place(number, around.path, max(0, around.loose_from - 1))
            around.has_title = True
        around.loose_from = 0
        self._release()

    def _gather(self, element: Element, path: str) -> None:
        """The text of an element that holds no blocks, with its marks."""
        inline, text = self._inline, element.text
        if text:
            inline.text(text)
            self._offset += len(text)
        counts: dict[str, int] = {}
        for child in element:
            tag = str(child.tag)
            counts[tag] = counts.get(tag, 0) + 1
            self._inside(child, f"{path}/{tag}[{counts[tag]}]", self.profile.rule(child))
            tail = child.tail
            if tail:
                inline.text(tail)
                self._offset += len(tail)

    def _inside(self, element: Element, path: str, rule: Rule) -> None:
        """An element inside a passage."""
        inline, role = self._inline, rule.role
        if role is Role.MARK:
            inline.open(rule.mark)
            self._refer(element, rule)
            self._gather(element, path)
            inline.close()
        elif role is Role.BREAK:
            inline.line()
            self._gather(element, path)
        elif role is Role.SKIPPED:
            self._offset += _length(element)
        elif role is Role.CELL:
            # A cell right after the beginning of its row, or of the passage, has none before it.
            if element.getprevious() is not None:
                inline.text(" | ")
            self._gather(element, path)
        elif role in _LIFTED:
            self._lifted.append((element, path, self._offset))
            self._offset += _length(element)
            inline.text(" ")
        elif role in _BLOCKS:
            inline.line()
            self._gather(element, path)
            inline.line()
        elif self._is_semantic(element):
            inline.open(str(element.tag))
            self._gather(element, path)
            inline.close()
        else:
            self._gather(element, path)

    def _refer(self, element: Element, rule: Rule) -> None:
        if rule.refers_by:
            for target in (element.get(rule.refers_by) or "").split():
                self._inline.refer(target.removeprefix("#"))

    def _taken(self) -> Run:
        return self._inline.take()

    def _labelled(self, run: Run) -> Run:
        """The run with the number that stands before it."""
        if not self._label:
            return run
        label, self._label = self._label, ""
        if not run.text:
            return Run(label, [], run.refs)
        shift = len(label) + 1
        return Run(f"{label} {run.text}", [(tag, start + shift, end + shift) for tag, start, end in run.marks], run.refs)

    def _leave_label(self) -> None:
        """A number that nothing followed is text all the same."""
        if self._label:
            self.builder.passage(self._label, "label")
            self._label = ""

    def _new_id(self, element: Element) -> str:
        id = self.id_of(element)
        if not id or id in self._ids or is_running_number(id):
            return ""
        self._ids.add(id)
        return id

    def _language_of(self, element: Element) -> str:
        for attribute in self.profile.languages:
            if (value := element.get(attribute)) and (code := language_or_nothing(value)):
                return code
        return ""

    def _is_semantic(self, element: Element) -> bool:
        return bool(self.profile.semantic) and element.get(self.profile.semantic) is not None

    def _holds_blocks(self, element: Element) -> bool:
        return any(self.profile.rule(inner).role in _BLOCKS for inner in element.iterdescendants())

    def _place(self, number: int, path: str, start: int) -> None:
        self.builder.places[number] = Place(path, start, self._offset)


@dataclass(slots=True)
class _Container:
    """An element that is open."""

    number: int
    tag: str
    path: str
    has_title: bool
    """Or text, after which a title is no longer the title of all of it."""
    loose_from: int = 0
    """Where the loose text begins that was not yet made a passage, plus 1; 0 where there is none."""


def _length(element: Element) -> int:
    return len(whole_text(element))


_GAP = re.compile(r"\{([\w:.-]+?)(:d)?\}")


def _filled(form: str, element: Element) -> str:
    """A form with its gaps filled from the attributes of an element; nothing where one is missing."""
    values: Sequence[tuple[str, str]] = [(element.get(name) or "", number) for name, number in _GAP.findall(form)]
    if not all(value.isdecimal() if number else value for value, number in values):
        return ""
    filled = iter(str(int(value)) if number else value for value, number in values)
    return _GAP.sub(lambda _: next(filled), form)
