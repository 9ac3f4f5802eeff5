"""The traversal of an XML tree: visits each element once, asks the profile and the walk, and builds the document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perikope.document.pieces import CODE, natural_pieces
from perikope.document.tree import Document, Kind, Place, TreeBuilder
from perikope.formats._code import CODE_LANGUAGE, LONGEST_HEADER
from perikope.formats._inline import Inline, Run
from perikope.formats._profile import BLOCKS, LIFTED, Profile, Role, Rule
from perikope.formats._source import Source, is_running_number, language_or_nothing
from perikope.formats._xml import XmlDocument, whole_text
from perikope.formats._xpaths import Element, text_of
from perikope.formats.walks import Added, Block, Front, Heading, Replacement, Walk


def read_document(walk: Walk, tree: XmlDocument, source: Source) -> Document:
    """Build the document of an XML tree, with the decisions of a walk."""
    return _Traversal(walk, front_of(walk, tree, source), source).document()


def front_of(walk: Walk, tree: XmlDocument, source: Source) -> Front:
    """The result of `walk.front()`, with an id in any case.

    Without an id of its own, the first document of a file gets the source's id, and each other document gets the
    source's id, a colon and the number of its first line.
    """
    front = walk.front()
    return front if front.id else front._replace(id=source.id if tree.is_alone else f"{source.id}:{tree.first_line}")


class _Traversal:
    """The state of the traversal of one document."""

    def __init__(self, walk: Walk, front: Front, source: Source) -> None:
        self._walk, self._front, self._source = walk, front, source
        self._profile, self._root = walk.profile, walk.root
        self._builder = TreeBuilder(
            front.id,
            title=front.title,
            tag=str(self._root.tag),
            language=language_or_nothing(front.language) or source.language,
            metadata=front.metadata,
        )
        self._inline = Inline()
        self._offset = 0
        self._ids: set[str] = set()
        self._added: list[Added] = []
        self._outline = 1
        self._label, self._label_place = "", Place("", 0, 0)
        self._lifted: list[tuple[Element, str, int]] = []
        self._rules: dict[str, dict[str, Rule]] = {}
        self._keeps_blocks = self._keeps_space = self._in_cell = False
        self._lifted_here: list[tuple[Element, int]] = []
        self._held: list[str] = []
        self._with_blocks = _around_blocks(self._profile, self._root) if self._profile.semantic or self._profile.others else set()
        self._around: list[_Container] = []
        self._code_languages: dict[str, None] = {}
        self._titles: dict[str, str] | None = None
        """Titles of elements by the ids of the elements; None until the first title is needed."""

    def document(self) -> Document:
        """Visit all elements, then add references and citations, and return the document."""
        root = self._root
        path = f"/{root.tag}[1]"
        self._around.append(_Container(0, str(root.tag), path, bool(self._front.title)))
        self._place(0, path, 0)
        self._blocks(root, path)
        self._flush()
        self._leave_label()
        self._builder.close_headings()
        self._place(0, path, 0)
        links = self._walk.links(self._front, self._added)
        for span, target in links.references:
            self._builder.refer(target, span)
        self._builder.cites = list(links.cites)
        if self._code_languages:
            self._builder.metadata.setdefault(CODE_LANGUAGE, list(self._code_languages))
        document = self._source.finish(self._builder)
        known = set(document.span_ids.values())
        inside = tuple(reference for reference in document.references if reference[1] in known)
        return document if len(inside) == len(document.references) else replace(document, references=inside)

    def _blocks(self, element: Element, path: str) -> None:
        """Read the content of an element that may hold blocks."""
        self._loose(element.text)
        counts: dict[str, int] = {}
        rules = self._rules_inside(element)
        leading: _LeadingTitle | None = None
        for child in element:
            tag = child.tag
            counts[tag] = number = counts.get(tag, 0) + 1
            child_path, rule = f"{path}/{tag}[{number}]", rules.get(tag) or self._rule(child, rules)
            if rule.leads and self._leads(child, rule):
                # The title is added when the section that follows is opened.
                leading = _LeadingTitle(child, child_path, self._offset)
                self._offset += _length(child)
            else:
                self._block(child, child_path, rule, leading)
                leading = None
            self._loose(child.tail)

    def _rules_inside(self, element: Element) -> dict[str, Rule]:
        """The cached rules, by tag, for children of elements with the same tag as `element`."""
        return self._rules.setdefault(element.tag, {})

    def _rule(self, element: Element, rules: dict[str, Rule]) -> Rule:
        """The rule of an element; cached in `rules` if it depends only on the tags of the element and its parent."""
        rule, is_general = self._profile.rule_of(element)
        if is_general:
            rules[element.tag] = rule
        return rule

    def _block(self, element: Element, path: str, rule: Rule, leading: _LeadingTitle | None = None) -> None:
        """Read an element that stands among blocks; `leading` is the title directly before it that belongs to it."""
        if element.tag in self._walk.replaced and (replacement := self._walk.replacement(element, path, self._offset, self._run_at)):
            self._replace(element, path, replacement)
            return
        match rule.role:
            case Role.PASSAGE if rule.notice and rule.notice.fullmatch(text_of(element)):
                self._offset += _length(element)
            case Role.PASSAGE | Role.ROW | Role.HEADING:
                self._passage(element, path, rule)
            case Role.SECTION | Role.ELEMENT:
                self._container(element, path, rule, leading)
            case Role.TITLE if rule.leads:
                self._passage(element, path, rule)
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

    def _container(self, element: Element, path: str, rule: Rule, leading: _LeadingTitle | None = None) -> None:
        self._flush()
        start = self._offset
        is_section = rule.role not in (Role.ELEMENT, Role.SEMANTIC)
        if is_section and self._is_hollow(element, rule):
            # A reference list without text, for example. An empty section can be neither a result nor a target.
            self._offset += _length(element)
            return
        header = self._header_rows(element) if self._profile.has_headers and rule.role is Role.ELEMENT else []
        number = self._builder.open(
            Kind.SECTION if is_section or header else Kind.ELEMENT,
            self._profile.tag_of(element),
            id=self._new_id(Block(element, rule, self._within()))[1],
            part=rule.part,
            language=self._profile.language_of(element),
        )
        around = _Container(number, str(element.tag), path, not is_section, name=self._around[-1].name, header=header)
        self._around.append(around)
        if rule.titled_by and (title := " ".join((element.get(rule.titled_by) or "").split())):
            self._builder.title(title)
            around.has_title = True
        if leading:
            inside, self._offset = self._offset, leading.offset
            self._title(leading.element, leading.path)
            self._offset = inside
        self._blocks(element, path)
        self._flush()
        self._leave_label()
        self._builder.close_headings(since=number)
        self._around.pop()
        self._builder.close()
        self._place(number, path, start)

    def _leads(self, title: Element, rule: Rule) -> bool:
        """Whether the next element is the section that the title belongs to, and has content."""
        section = title.getnext()
        return section is not None and section.tag == rule.leads and not self._is_hollow(section, self._profile.rule(section))

    def _title(self, element: Element, path: str) -> None:
        self._flush()
        start = self._offset
        run = self._gathered(element, path)
        text = self._labelled(run).text
        around = self._around[-1]
        if text and around.has_title:
            id = self._new_id(Block(element, self._profile.rule(element), self._within(), text))[1]
            self._place(self._builder.passage(text, self._profile.tag_of(element), id=id), path, start)
        elif text:
            self._place(self._builder.title(text), path, start)
            for target in run.refs:
                self._builder.refer(target)
            around.has_title = True
        self._release()

    def _passage(self, element: Element, path: str, rule: Rule) -> None:
        self._flush()
        start = self._offset
        self._keeps_blocks, self._keeps_space = rule.whole, rule.preformatted
        run = self._gathered(element, path)
        self._keeps_blocks = self._keeps_space = False
        block = Block(element, rule, self._within(), run.text, self._outline)
        if element in self._around[-1].header:
            self._take_header(block, run, path, start)
            self._release()
            return
        heading = self._walk.heading(block) if run.text else None
        if heading:
            self._add_heading(block, heading, self._labelled(run).text, path, start)
        elif run.text.strip(" |"):
            self._add_passage(block, run, path, start)
        self._held.clear()
        self._release()

    def _header_rows(self, table: Element) -> list[Element]:
        """The rows at the top of a table all of whose cells name columns.

        Empty if no row with text follows them, or if they are too long for the names of columns.
        """
        header: list[Element] = []
        for row in filter(_has_text, self._inside_of(table, Role.ROW)):
            cells = list(filter(_has_text, self._inside_of(row, Role.CELL)))
            if not cells or not all(self._profile.rule(cell).names_column for cell in cells):
                return header if sum(len(text_of(row)) for row in header) <= LONGEST_HEADER else []
            header.append(row)
        return []

    def _inside_of(self, element: Element, role: Role) -> Iterator[Element]:
        """Yield the elements with a role inside an element, except those inside other elements with a role."""
        for child in element:
            rule = self._profile.rule(child)
            if rule.role is role:
                yield child
            elif rule.role is None:
                yield from self._inside_of(child, role)

    def _take_header(self, block: Block, run: Run, path: str, start: int) -> None:
        """Read a header row of a table. The last one adds the title of the table."""
        around = self._around[-1]
        around.header.remove(block.element)
        if not around.title:
            around.title_from = start
        around.title.append(run.text)
        if id := self._new_id(block)[1]:
            self._builder.hold(id, around.number)
        for target in run.refs:
            self._builder.refer(target, around.number)
        if not around.header:
            is_one_row = len(around.title) == 1
            self._place(self._builder.title("\n".join(around.title)), path if is_one_row else around.path, around.title_from)

    def _add_heading(self, block: Block, heading: Heading, text: str, path: str, start: int) -> None:
        element = block.element
        name, id = self._new_id(block)
        span = self._builder.heading(heading.level, text, self._profile.tag_of(element), id=id)
        self._outline = heading.outline
        self._place(span, path, start)
        self._added.append(Added(span, element, text, name, id, block.within, True))

    def _add_passage(self, block: Block, run: Run, path: str, start: int) -> None:
        element, around, profile = block.element, self._around[-1], self._profile
        citation = self._walk.citation(block) or around.name
        run = self._labelled(run)
        name, id = self._new_id(block)
        is_code = block.rule.code
        tag = profile.tag_of(element)
        spans = self._builder.divided(
            run.text,
            natural_pieces(run.text) if is_code else [(0, len(run.text))],
            CODE if is_code else tag,
            holder=tag,
            id=id,
            part=block.rule.part,
            language=profile.language_of(element),
            marks=run.marks,
            refs=run.refs,
        )
        span = spans[0]
        for each in spans:
            self._place(each, path, start)
            if citation:
                self._builder.citations[each] = citation
        if block.rule.code_language_by and (language := (element.get(block.rule.code_language_by) or "").strip().lower()):
            self._code_languages[language] = None
        around.has_title = True
        for held in self._held:
            self._builder.hold(held, span)
        self._added.append(Added(span, element, run.text, name, id, block.within, False))

    def _replace(self, element: Element, path: str, replacement: Replacement) -> None:
        """Add the passages that the walk returned in place of an element."""
        self._flush()
        start = self._offset
        section = self._builder.open(Kind.SECTION, replacement.section, part=replacement.section) if replacement.section else 0
        within = replacement.section or self._within()
        for piece in replacement.pieces:
            if piece.is_title:
                # The title of the document is the first span after the document itself.
                self._builder.places[1] = piece.place
                continue
            id = self._free_id(piece.id)
            span = self._builder.passage(
                piece.run.text,
                piece.tag,
                id=id,
                part=piece.part,
                language=piece.language,
                marks=piece.run.marks,
                refs=piece.run.refs,
            )
            self._builder.places[span] = piece.place
            if piece.citation:
                self._builder.citations[span] = piece.citation
            self._added.append(Added(span, element, piece.run.text, piece.id, id, within, False))
        self._offset = start + _length(element)
        if section:
            self._builder.close()
            self._place(section, path, start)
        self._release()

    def _run_at(self, element: Element, path: str, offset: int) -> Run:
        """The text and marks of an element that begins at `offset`; the current offset does not change. See `RunOf`."""
        after, self._offset = self._offset, offset
        run = self._gathered(element, path)
        self._offset = after
        return run

    def _gathered(self, element: Element, path: str) -> Run:
        """Read an element that becomes one block, and return its text and marks."""
        self._gather(element)
        self._settle_lifted(element, path)
        return self._inline.take(keep=self._keeps_space)

    def _settle_lifted(self, element: Element, path: str) -> None:
        """Move the blocks of `_lifted_here` to `_lifted`, with their XPaths; `_release` later adds them.

        These blocks were found inside `element`, whose XPath is `path`. XPaths are computed only here, because such
        blocks are rare.
        """
        if self._lifted_here:
            paths = _paths_inside(element, path)
            self._lifted += [(block, paths[block], offset) for block, offset in self._lifted_here]
            self._lifted_here = []

    def _release(self) -> None:
        """Add the blocks that were found inside a passage, title or label after it, because it cannot hold blocks."""
        if not self._lifted:
            return
        lifted, self._lifted = self._lifted, []
        after = self._offset
        for element, path, offset in lifted:
            self._offset = offset
            self._block(element, path, self._profile.rule(element))
            self._flush()
        self._offset = after

    def _loose(self, text: str | None) -> None:
        """Collect text that stands directly inside an element that holds blocks."""
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
        """Collect an inline element that stands among blocks; it belongs to the loose text there."""
        around = self._around[-1]
        around.loose_from = around.loose_from or self._offset + 1
        self._inside(element, rule)
        self._settle_lifted(element, path)

    def _flush(self) -> None:
        """Make a passage of the collected loose text, if there is any."""
        around = self._around[-1]
        if not around.loose_from:
            return
        run = self._inline.take()
        start, around.loose_from = around.loose_from - 1, 0
        if run.text:
            run = self._labelled(run)
            number = self._builder.passage(run.text, around.tag, marks=run.marks, refs=run.refs)
            self._place(number, around.path, start)
            if around.name:
                self._builder.citations[number] = around.name
            around.has_title = True
        self._release()

    def _gather(self, element: Element) -> None:
        """Collect the text and marks inside an element: its text, its children and their tails."""
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
        """Collect the text and marks of an element inside a passage, as its rule says."""
        inline, role = self._inline, rule.role
        if role is None:
            self._gather(element)
        elif role is Role.CELL:
            # A bar is written only before cells with text: an empty cell has nothing to find.
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
            if self._keeps_blocks and (id := self._new_id(Block(element, rule, self._within()))[1]):
                self._held.append(id)
            self._gap()
            self._gather(element)
            self._gap()
        else:  # a label or a name
            self._gather(element)
            inline.text(" ")

    def _gap(self) -> None:
        """Begin a new line; inside a table cell write a space, because a row is one line."""
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
        """The text of an empty reference to an id: the title of the element with this id, else the id."""
        if self._titles is None:
            self._titles = {}
            waiting = [self._root]
            while waiting:
                element = waiting.pop()
                rule = self._profile.rule(element)
                # Skipped elements have no title, so a reference to such an element becomes its id, such as `RFC2119`.
                if rule.role is not Role.SKIPPED:
                    names = filter(None, map(element.get, self._profile.ids))
                    self._titles |= {name: self._title_of(element, rule) for name in names if name not in self._titles}
                    waiting += reversed(element)
        return self._titles.get(id) or id

    def _title_of(self, element: Element, rule: Rule) -> str:
        """The title of an element: an attribute, a child, or a child of a transparent child; empty if it has none."""
        if rule.titled_by and (title := element.get(rule.titled_by)):
            return " ".join(title.split())
        for child in element:
            role = self._profile.rule(child).role
            for title in (child, *(child if role is None else ())):
                if self._profile.rule(title).role is Role.TITLE:
                    return text_of(title)
        return ""

    def _is_hollow(self, element: Element, rule: Rule) -> bool:
        """Whether an element is skipped, or has no text, no id and no title in an attribute.

        The same must hold for all elements inside it. The text of skipped elements does not count.
        """
        if rule.role is Role.SKIPPED:
            return True
        if _is_there(element.text) or rule.titled_by or any(map(element.get, self._profile.ids)):
            return False
        return all(not _is_there(child.tail) and self._is_hollow(child, self._profile.rule(child)) for child in element)

    def _labelled(self, run: Run) -> Run:
        """The run with the pending label in front of its text, if there is a label; the label is then used up."""
        if not self._label:
            return run
        label, self._label = self._label, ""
        if not run.text:
            return Run(label, [], run.refs)
        shift = len(label) + 1
        return Run(f"{label} {run.text}", [(tag, start + shift, end + shift) for tag, start, end in run.marks], run.refs)

    def _leave_label(self) -> None:
        """Make a passage of the pending label, if no block has followed it."""
        if self._label:
            self._builder.places[self._builder.passage(self._label, "label")] = self._label_place
            self._label = ""

    def _new_id(self, block: Block) -> tuple[str, str]:
        """Return the id that the walk gives a block, and the id that the block gets; see `_free_id`."""
        name = self._walk.id_of(block)
        return name, self._free_id(name)

    def _free_id(self, id: str) -> str:
        """Reserve an id and return it; empty if another block has it, or if it looks like the number of a passage."""
        if not id or id in self._ids or is_running_number(id):
            return ""
        self._ids.add(id)
        return id

    def _within(self) -> str:
        """The tag of the outermost open section; empty directly below the root."""
        return self._around[1].tag if len(self._around) > 1 else ""

    def _place(self, number: int, path: str, start: int) -> None:
        self._builder.places[number] = Place(path, start, self._offset)


class _LeadingTitle(NamedTuple):
    """A title that stands directly before the section it belongs to."""

    element: Element
    path: str
    offset: int


@dataclass(slots=True)
class _Container:
    """An XML element that is being read and whose span is open."""

    number: int
    """The number of the span."""
    tag: str
    path: str
    has_title: bool
    """Whether a title or text was added; a further title then becomes a passage."""
    loose_from: int = 0
    """The offset at which pending loose text begins, plus 1; 0 if there is no loose text."""
    name: str = ""
    """The name that people cite it by, such as `Figure 2`; empty if it has no name."""
    header: list[Element] = field(default_factory=list)
    """The header rows of a table that were not read yet."""
    title: list[str] = field(default_factory=list)
    """The texts of the header rows that were read."""
    title_from: int = 0
    """The offset at which the first header row begins."""


def _is_there(text: str | None) -> bool:
    return bool(text and not text.isspace())


def _length(element: Element) -> int:
    return len(whole_text(element))


def _has_text(element: Element) -> bool:
    text = element.text
    return bool(text and not text.isspace()) or (len(element) > 0 and any(not text.isspace() for text in element.itertext()))


def _paths_inside(element: Element, path: str) -> dict[Element, str]:
    """The XPaths of an element, whose XPath is `path`, and of all elements inside it."""
    paths = {element: path}
    counts: dict[tuple[Element, str], int] = {}
    for inner in element.iterdescendants():
        parent, tag = inner.getparent(), str(inner.tag)
        assert parent is not None
        counts[parent, tag] = number = counts.get((parent, tag), 0) + 1
        paths[inner] = f"{paths[parent]}/{tag}[{number}]"
    return paths


def _around_blocks(profile: Profile, root: Element) -> set[Element]:
    """The elements below `root`, `root` included, that hold blocks."""
    holders: set[Element] = set()
    for element in root.iter():
        if profile.rule(element).role in BLOCKS:
            for around in element.iterancestors():
                if around in holders:
                    break
                holders.add(around)
    return holders
