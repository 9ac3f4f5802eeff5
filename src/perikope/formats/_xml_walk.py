"""The walk through an XML document: goes through its elements once, asks the profile what each means, and builds the document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perikope.document.tree import Document, Kind, Place, TreeBuilder
from perikope.formats._inline import Inline, Run
from perikope.formats._profile import BLOCKS, LIFTED, Element, Profile, Role, Rule, text_of
from perikope.formats._source import Source, is_running_number, language_or_nothing
from perikope.formats._xml import XmlDocument, whole_text


class Walk:
    """Goes through the elements of one document once and builds it; schemas that need more than a profile extend it."""

    def __init__(self, profile: Profile, tree: XmlDocument, source: Source) -> None:
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
        self._titles: dict[str, str] | None = None
        """Titles by the ids of what has them, once they are asked for."""

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
        document = self.source.finish(self.builder)
        known = set(document.span_ids.values())
        inside = tuple(reference for reference in document.references if reference[1] in known)
        return document if len(inside) == len(document.references) else replace(document, references=inside)

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
                if rule.labelled_by and (label := element.get(rule.labelled_by)) and not whole_text(element).lstrip().startswith(label):
                    self._flush()
                    self._leave_label()
                    self._label, self._label_place = label, Place(path, self._offset, self._offset)
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
        if kind is Kind.SECTION and self._is_hollow(element, rule):
            # A reference list, say, of which nothing is text: a section without anything cannot be found, nor referred to.
            self._offset += _length(element)
            return
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
        elif role in LIFTED and not self._keeps_blocks:
            self._lifted_here.append((element, self._offset))
            self._offset += _length(element)
            inline.text(" ")
        elif role in BLOCKS:
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
        targets = [target.removeprefix("#") for target in (element.get(rule.refers_by) or "").split()]
        for target in targets:
            self._inline.refer(target)
        if rule.filled and targets and not _has_text(element):
            self._inline.text(", ".join(map(self._name_of, targets)))

    def _name_of(self, id: str) -> str:
        """The title of what has an id, else the id: so do readers, and style sheets, call it."""
        if self._titles is None:
            self._titles = {}
            waiting = [self.root]
            while waiting:
                element = waiting.pop()
                rule = self.profile.rule(element)
                # What is not text has no title here: a reference goes by the name of its list, `RFC2119`.
                if rule.role is not Role.SKIPPED:
                    names = filter(None, map(element.get, self.profile.ids))
                    self._titles |= {name: self._title_of(element, rule) for name in names if name not in self._titles}
                    waiting += reversed(element)
        return self._titles.get(id) or id

    def _title_of(self, element: Element, rule: Rule) -> str:
        """The title of an element, which stands right inside it or in what is said about it."""
        if rule.titled_by and (title := element.get(rule.titled_by)):
            return " ".join(title.split())
        for child in element:
            role = self.profile.rule(child).role
            for title in (child, *(child if role is None else ())):
                if self.profile.rule(title).role is Role.TITLE:
                    return text_of(title)
        return ""

    def _is_hollow(self, element: Element, rule: Rule) -> bool:
        """Whether nothing in an element is text, or can be referred to."""
        if rule.role is Role.SKIPPED:
            return True
        if _is_there(element.text) or rule.titled_by or any(map(element.get, self.profile.ids)):
            return False
        return all(not _is_there(child.tail) and self._is_hollow(child, self.profile.rule(child)) for child in element)

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


def _is_there(text: str | None) -> bool:
    return bool(text and not text.isspace())


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
        if profile.rule(element).role in BLOCKS:
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
