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
    labels = ["label"]                 number of what follows, written before it
    names = ["fig/label"]              what people call the element around it, `Figure 2`: not text, but how its passages are cited
    headings = {h1 = 1}                begins a section that ends at the next heading of its level
    passages = ["p"]                   what is found; in another passage it begins a new line
    whole = ["p"]                      passages that keep the lists and tables in them as lines; from others they are taken out, and follow
    preformatted = ["code"]            passages whose white space is kept
    rows = ["tr"]                      a passage whose cells are joined
    cells = ["td"]
    marks = {bold = "b"}               inline, with the name that the mark gets
    references = {xref = "rid"}        inline, with the attribute that names what it refers to
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import Any

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
_NAMES = ("roots", "languages", "ids", "whole", "preformatted")
_TEXTS = ("name", "format", "summary", "when", "semantic")
_BLOCKS = frozenset((Role.SECTION, Role.ELEMENT, Role.TITLE, Role.HEADING, Role.PASSAGE, Role.ROW))
_LIFTED = frozenset((Role.SECTION, Role.ELEMENT, Role.HEADING))
_TAG = re.compile(r"[^\W\d][\w.-]*")
_NAMESPACES = {"xml": "http://www.w3.org/XML/1998/namespace", "xlink": "http://www.w3.org/1999/xlink"}
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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
    for path, part in content.get("parts", {}).items():
        note(path, part=_text(part, f"parts.{path}"))
    for path, citation in content.get("citations", {}).items():
        note(path, citation=_text(citation, f"citations.{path}"))
    rules: dict[str, list[tuple[tuple[str, ...], Rule]]] = {"*": []}
    for path, values in properties.items():
        if "titled_by" in values and not (values.get("role") is Role.SECTION or ("part" in values and "role" not in values)):
            raise UsageError(f"titles: {path!r} has a title in an attribute, but is not named under sections")
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
    return f"{{{_NAMESPACES[prefix]}}}{local}" if prefix in _NAMESPACES else name


def _xpath(path: str, key: str) -> etree.XPath:
    try:
        compiled = etree.XPath(path, namespaces={"xlink": _NAMESPACES["xlink"]}, smart_strings=False)
        # Names of functions and prefixes are looked up only where it is used.
        compiled(etree.Element("nothing"))
    except etree.XPathError as error:
        raise UsageError(f"{key}: {path!r} is not an XPath ({error})") from None
    return compiled


def iso_date(text: str) -> str:
    """A date as 2001-03-15, or as much of it as is there; nothing where it is none.

    >>> iso_date("20010315"), iso_date("2004 7 1"), iso_date("19420300"), iso_date("2008-09-25T02:04:44Z"), iso_date("May")
    ('2001-03-15', '2004-07-01', '1942-03', '2008-09-25', '')
    """
    digits = re.findall(r"[0-9]+", re.sub(r"(?<=-[0-9]{2})T.*", "", text))
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
        self._label, self._label_place = "", Place("", 0, 0)
        self._lifted: list[tuple[Element, str, int]] = []
        self._rules: dict[str, dict[str, Rule]] = {}
        self._keeps_blocks = self._keeps_space = self._in_cell = False
        self._lifted_here: list[tuple[Element, int]] = []
        self._held: list[str] = []
        self._with_blocks = _around_blocks(profile, tree.root) if profile.semantic else set()
        self._around: list[_Container] = []

    # What a schema may do in its own way.

    def document_id(self) -> str:
        """The id that the document has by itself, if any."""
        return next(iter(self.found("id")), "")

    def metadata(self) -> dict[str, object]:
        """The metadata that the profile names."""
        found: dict[str, object] = {}
        for key, where in self.profile.metadata.items():
            values = list(dict.fromkeys(where.values(self.root)))
            if values:
                found[key] = values[0] if len(values) == 1 else values
        return found

    def heading_level(self, element: Element, rule: Rule, run: Run) -> int:
        """The level of the heading that an element is; 0 where it is a passage."""
        return rule.level

    def tag_of(self, element: Element) -> str:
        """The tag that a section, heading or passage gets: that of its element."""
        return str(element.tag)

    def part_of(self, element: Element, rule: Rule) -> str:
        """The part of the document that begins with an element, if any."""
        return rule.part

    def citation_of(self, element: Element, rule: Rule, run: Run) -> str:
        """How people cite a passage, after the document's own name."""
        return _filled(rule.citation, element) if rule.citation else ""

    def id_of(self, element: Element) -> str:
        """The id that an element has by itself, if any."""
        return next((id for attribute in self.profile.ids if (id := element.get(attribute))), "")

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
        self._leave_label()
        self.builder.close_headings()
        self._place(0, path, 0)
        self.finish()
        return self.source.finish(self.builder)

    def found(self, key: str) -> list[str]:
        """What the paths of the profile under a key find; those of the first that finds anything, except for citations: all."""
        everything: list[str] = []
        for where in self.profile.paths[key]:
            everything += where.values(self.root)
            if everything and key != "cites":
                break
        return everything

    def _blocks(self, element: Element, path: str) -> None:
        """The content of an element that may hold blocks."""
        self._loose(element.text)
        counts: dict[str, int] = {}
        rules = self._rules_inside(element)
        for child in element:
            tag = child.tag
            counts[tag] = number = counts.get(tag, 0) + 1
            self._block(child, f"{path}/{tag}[{number}]", rules.get(tag) or self._rule(child, rules))
            self._loose(child.tail)

    def _rules_inside(self, element: Element) -> dict[str, Rule]:
        """What tags mean right inside an element, as far as it was seen."""
        return self._rules.setdefault(element.tag, {})

    def _rule(self, element: Element, rules: dict[str, Rule]) -> Rule:
        """What an element means, noted for the next one of its kind where its tag and its parent's are all that matters."""
        rule, is_general = self.profile.rule_of(element)
        if is_general:
            rules[element.tag] = rule
        return rule

    def _block(self, element: Element, path: str, rule: Rule) -> None:
        match rule.role:
            case Role.PASSAGE | Role.ROW | Role.HEADING:
                self._passage(element, path, rule)
            case Role.SECTION | Role.ELEMENT:
                self._container(element, path, rule)
            case Role.TITLE:
                self._title(element, path)
            case Role.LABEL | Role.NAME:
                self._flush()
                self._leave_label()
                start = self._offset
                text = self._gathered(element, path).text
                if rule.role is Role.NAME:
                    self._around[-1].name = text
                else:
                    self._label, self._label_place = text, Place(path, start, self._offset)
                self._release()
            case Role.SKIPPED:
                self._offset += _length(element)
            case Role.MARK | Role.BREAK | Role.CELL:
                self._run(element, path, rule)
            case Role.SEMANTIC if element in self._with_blocks:
                self._container(element, path, rule)
            case Role.SEMANTIC:
                self._run(element, path, rule)
            case None if rule.part:
                self._container(element, path, rule)
            case None:
                self._blocks(element, path)

    def _container(self, element: Element, path: str, rule: Rule) -> None:
        self._flush()
        start = self._offset
        kind = Kind.ELEMENT if rule.role in (Role.ELEMENT, Role.SEMANTIC) else Kind.SECTION
        number = self.builder.open(
            kind, self.tag_of(element), id=self._new_id(element), part=self.part_of(element, rule), language=self._language_of(element)
        )
        around = _Container(number, str(element.tag), path, kind is Kind.ELEMENT, name=self._around[-1].name)
        self._around.append(around)
        if rule.titled_by and (title := " ".join((element.get(rule.titled_by) or "").split())):
            self.builder.title(title)
            around.has_title = True
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
        run = self._gathered(element, path)
        text = self._labelled(run).text
        around = self._around[-1]
        if text and around.has_title:
            self._place(self.builder.passage(text, self.tag_of(element), id=self._new_id(element)), path, start)
        elif text:
            self._place(self.builder.title(text), path, start)
            for target in run.refs:
                self.builder.refer(target)
            around.has_title = True
        self._release()

    def _passage(self, element: Element, path: str, rule: Rule) -> None:
        self._flush()
        start = self._offset
        self._keeps_blocks, self._keeps_space = rule.whole, rule.preformatted
        run = self._gathered(element, path)
        self._keeps_blocks = self._keeps_space = False
        level = self.heading_level(element, rule, run)
        if level and run.text:
            number = self.builder.heading(level, self._labelled(run).text, self.tag_of(element), id=self._new_id(element))
            self._place(number, path, start)
        elif run.text.strip(" |"):
            citation = self.citation_of(element, rule, run) or self._around[-1].name
            run = self._labelled(run)
            part, language, id = self.part_of(element, rule), self._language_of(element), self._new_id(element)
            number = self.builder.passage(
                run.text, self.tag_of(element), id=id, part=part, language=language, marks=run.marks, refs=run.refs
            )
            self._place(number, path, start)
            if citation:
                self.builder.citations[number] = citation
            self._around[-1].has_title = True
            for held in self._held:
                self.builder.hold(held, number)
            self.passage_added(number, element, run)
        self._held.clear()
        self._release()

    def _gathered(self, element: Element, path: str) -> Run:
        """The text of an element that becomes one block, with its marks."""
        self._gather(element)
        self._settle_lifted(element, path)
        return self._inline.take(keep=self._keeps_space)

    def _settle_lifted(self, element: Element, path: str) -> None:
        """Give the blocks that were met inside an element their paths: they are few, so that paths are not kept on the way to them."""
        if self._lifted_here:
            paths = _paths_inside(element, path)
            self._lifted += [(block, paths[block], offset) for block, offset in self._lifted_here]
            self._lifted_here = []

    def _release(self) -> None:
        """Blocks that stood inside a passage follow it: a passage holds none."""
        if not self._lifted:
            return
        lifted, self._lifted = self._lifted, []
        after = self._offset
        for element, path, offset in lifted:
            self._offset = offset
            self._block(element, path, self.profile.rule(element))
            self._flush()
        self._offset = after

    def _loose(self, text: str | None) -> None:
        """Text that stands directly inside an element that holds blocks."""
        if text:
            around = self._around[-1]
            if not around.loose_from:
                if text.isspace():
                    self._offset += len(text)
                    return
                around.loose_from = self._offset + 1
            self._inline.text(text)
            self._offset += len(text)

    def _run(self, element: Element, path: str, rule: Rule) -> None:
        """An inline element among blocks."""
        around = self._around[-1]
        around.loose_from = around.loose_from or self._offset + 1
        self._inside(element, rule)
        self._settle_lifted(element, path)

    def _flush(self) -> None:
        """Make a passage of the loose text so far."""
        around = self._around[-1]
        if not around.loose_from:
            return
        run = self._inline.take()
        start, around.loose_from = around.loose_from - 1, 0
        if run.text:
            run = self._labelled(run)
            number = self.builder.passage(run.text, around.tag, marks=run.marks, refs=run.refs)
            self._place(number, around.path, start)
            if around.name:
                self.builder.citations[number] = around.name
            around.has_title = True
        self._release()

    def _gather(self, element: Element) -> None:
        """The text of an element that holds no blocks, with its marks."""
        inline, text, keep = self._inline, element.text, self._keeps_space
        if text:
            inline.text(text, keep=keep)
            self._offset += len(text)
        if len(element) == 0:
            return
        rules = self._rules_inside(element)
        for child in element:
            self._inside(child, rules.get(child.tag) or self._rule(child, rules))
            tail = child.tail
            if tail:
                inline.text(tail, keep=keep)
                self._offset += len(tail)

    def _inside(self, element: Element, rule: Rule) -> None:
        """An element inside a passage."""
        inline, role = self._inline, rule.role
        if role is None:
            self._gather(element)
        elif role is Role.CELL:
            # Only cells with text are set off from each other: the empty ones say where the columns are, not what they hold.
            if _has_text(element):
                inline.separate()
            around, self._in_cell = self._in_cell, True
            self._gather(element)
            self._in_cell = around
        elif role is Role.MARK:
            inline.open(rule.mark)
            if rule.refers_by:
                self._refer(element, rule)
            self._gather(element)
            inline.close()
        elif role is Role.SEMANTIC:
            inline.open(str(element.tag))
            self._gather(element)
            inline.close()
        elif role is Role.BREAK:
            self._gap()
            self._gather(element)
        elif role is Role.SKIPPED:
            self._offset += _length(element)
        elif role in _LIFTED and not self._keeps_blocks:
            self._lifted_here.append((element, self._offset))
            self._offset += _length(element)
            inline.text(" ")
        elif role in _BLOCKS:
            if self._keeps_blocks and (id := self._new_id(element)):
                self._held.append(id)
            self._gap()
            self._gather(element)
            self._gap()
        else:  # a label or a name
            self._gather(element)
            inline.text(" ")

    def _gap(self) -> None:
        """A new line, except in a row, which is one."""
        if self._in_cell:
            self._inline.text(" ")
        else:
            self._inline.line()

    def _refer(self, element: Element, rule: Rule) -> None:
        for target in (element.get(rule.refers_by) or "").split():
            self._inline.refer(target.removeprefix("#"))

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
            self.builder.places[self.builder.passage(self._label, "label")] = self._label_place
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
    name: str = ""
    """What people call it."""


def _length(element: Element) -> int:
    return len(whole_text(element))


def _has_text(element: Element) -> bool:
    text = element.text
    return bool(text and not text.isspace()) or (len(element) > 0 and any(not text.isspace() for text in element.itertext()))


def _paths_inside(element: Element, path: str) -> dict[Element, str]:
    """The path of every element inside one."""
    paths = {element: path}
    counts: dict[tuple[Element, str], int] = {}
    for inner in element.iterdescendants():
        parent, tag = inner.getparent(), str(inner.tag)
        assert parent is not None
        counts[parent, tag] = number = counts.get((parent, tag), 0) + 1
        paths[inner] = f"{paths[parent]}/{tag}[{number}]"
    return paths


def _around_blocks(profile: Profile, root: Element) -> set[Element]:
    """The elements that hold blocks."""
    found: set[Element] = set()
    for element in root.iter():
        if profile.rule(element).role in _BLOCKS:
            for around in element.iterancestors():
                if around in found:
                    break
                found.add(around)
    return found


_GAP = re.compile(r"\{([\w:.-]+?)(:d)?\}")


def _filled(form: str, element: Element) -> str:
    """A form with its gaps filled from the attributes of an element; nothing where one is missing."""
    values: Sequence[tuple[str, str]] = [(element.get(name) or "", number) for name, number in _GAP.findall(form)]
    if not all(value.isdecimal() if number else value for value, number in values):
        return ""
    filled = iter(str(int(value)) if number else value for value, number in values)
    return _GAP.sub(lambda _: next(filled), form)
