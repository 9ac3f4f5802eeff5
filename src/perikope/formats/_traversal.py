"""The traversal of an XML tree: visits each element once, asks the profile and the walk, and builds the document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perikope.core.rows import of_rows
from perikope.document.pieces import CODE, natural_pieces
from perikope.document.tree import Document, Kind, Place, TreeBuilder
from perikope.formats._code import CODE_LANGUAGE, LONGEST_HEADER
from perikope.formats._contexts import TagContext
from perikope.formats._gathering import (
    CELL,
    ELEMENT,
    HEADING,
    LABEL,
    NAME,
    PASSAGE,
    ROW,
    SECTION,
    SEMANTIC_ROLE,
    SKIPPED,
    TITLE,
    Gathering,
    has_text,
    is_there,
    length_of,
)  # fmt: skip
from perikope.formats._inline import Run
from perikope.formats._profile import BLOCKS, SEMANTIC, Profile, Role, Rule
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


class _Traversal(Gathering):
    """The state of the traversal of one document."""

    def __init__(self, walk: Walk, front: Front, source: Source) -> None:
        super().__init__(walk.profile, walk.root)
        self._walk, self._front, self._source = walk, front, source
        self._builder = TreeBuilder(
            front.id,
            title=front.title,
            tag=str(self._root.tag),
            language=language_or_nothing(front.language) or source.language,
            metadata=front.metadata,
        )
        self._ids: set[str] = set()
        self._added: list[tuple[object, ...]] = []
        """The headings and passages that were added, as rows; they become instances of `Added` together at the end."""
        self._outline = 1
        self._label, self._label_place = "", Place("", 0, 0)
        self._with_blocks = _around_blocks(self._profile, self._root) if self._profile.semantic or self._profile.others else set()
        self._around: list[_Container] = []
        self._within = ""
        """The tag of the outermost open section; empty directly below the root."""
        self._code_languages: dict[str, None] = {}

    def document(self) -> Document:
        """Visit all elements, then add references and citations, and return the document."""
        root = self._root
        path = f"/{root.tag}[1]"
        self._around.append(_Container(0, str(root.tag), path, bool(self._front.title)))
        self._place(0, path, 0)
        self._blocks(root, path, self._profile.contexts.inside(root))
        self._flush()
        self._leave_label()
        self._builder.close_headings()
        self._place(0, path, 0)
        links = self._walk.links(self._front, list(of_rows(Added, self._added)))
        for span, target in links.references:
            self._builder.refer(target, span)
        self._builder.cites = list(links.cites)
        if self._code_languages:
            self._builder.metadata.setdefault(CODE_LANGUAGE, list(self._code_languages))
        document = self._source.finish(self._builder)
        known = set(document.span_ids.values())
        inside = tuple(reference for reference in document.references if reference[1] in known)
        return document if len(inside) == len(document.references) else replace(document, references=inside)

    def _blocks(self, element: Element, path: str, context: TagContext) -> None:
        """Read the content of an element that may hold blocks; `context` has the rules of its children."""
        self._loose(element.text)
        counts: dict[str, int] = {}
        semantic = self._profile.semantic
        leading: _LeadingTitle | None = None
        for child in element:
            tag = child.tag
            counts[tag] = number = counts.get(tag, 0) + 1
            child_path = f"{path}/{tag}[{number}]"
            rule, inside = context[tag]
            if semantic and child.get(semantic) is not None:
                rule = SEMANTIC
            if rule.leads and self._leads(child, rule):
                # The title is added when the section that follows is opened.
                leading = _LeadingTitle(child, child_path, self._offset, inside)
                self._offset += length_of(child)
            else:
                self._block(child, child_path, rule, inside, leading)
                leading = None
            if tail := child.tail:
                self._loose(tail)

    def _block(self, element: Element, path: str, rule: Rule, inside: TagContext, leading: _LeadingTitle | None = None) -> None:
        """Read an element that stands among blocks; `leading` is the title directly before it that belongs to it."""
        if element.tag in self._walk.replaced and (replacement := self._walk.replacement(element, path, self._offset, self._run_at)):
            self._replace(element, path, replacement)
            return
        role = rule.role
        if role is PASSAGE or role is ROW or role is HEADING:
            if rule.notice and role is PASSAGE and rule.notice.fullmatch(text_of(element)):
                self._offset += length_of(element)
            else:
                self._passage(element, path, rule, inside)
        elif role is SECTION or role is ELEMENT:
            self._container(element, path, rule, inside, leading)
        elif role is SKIPPED:
            self._offset += length_of(element)
        elif role is None:
            if rule.part:
                self._container(element, path, rule, inside)
            else:
                self._blocks(element, path, inside)
        elif role is TITLE:
            self._title_block(element, path, rule, inside)
        elif role is LABEL or role is NAME:
            self._label_block(element, path, rule, inside)
        elif role is SEMANTIC_ROLE and element in self._with_blocks:
            self._container(element, path, rule, inside)
        else:  # a mark, a semantic element without blocks, a break or a cell
            self._run(element, path, rule, inside)

    def _title_block(self, element: Element, path: str, rule: Rule, inside: TagContext) -> None:
        if rule.leads:
            self._passage(element, path, rule, inside)
            return
        if rule.labelled_by and (label := element.get(rule.labelled_by)) and not whole_text(element).lstrip().startswith(label):
            self._flush()
            self._leave_label()
            self._label, self._label_place = label, Place(path, self._offset, self._offset)
        self._title(element, path, inside)

    def _label_block(self, element: Element, path: str, rule: Rule, inside: TagContext) -> None:
        self._flush()
        self._leave_label()
        start = self._offset
        text = self._gathered(element, path, inside).text
        if rule.role is NAME:
            self._around[-1].name = text
        else:
            self._label, self._label_place = text, Place(path, start, self._offset)
        self._release()

    def _container(self, element: Element, path: str, rule: Rule, inside: TagContext, leading: _LeadingTitle | None = None) -> None:
        self._flush()
        start = self._offset
        is_section = rule.role not in (ELEMENT, SEMANTIC_ROLE)
        if is_section and self._is_hollow(element, rule, inside):
            # A reference list without text, for example. An empty section can be neither a result nor a target.
            self._offset += length_of(element)
            return
        header = self._header_rows(element, inside) if self._profile.has_headers and rule.role is ELEMENT else []
        number = self._builder.open(
            Kind.SECTION if is_section or header else Kind.ELEMENT,
            self._profile.tag_of(element),
            id=self._new_id(Block(element, rule, self._within))[1],
            part=rule.part,
            language=self._profile.language_of(element),
        )
        around = _Container(number, str(element.tag), path, not is_section, name=self._around[-1].name, header=header)
        self._around.append(around)
        if len(self._around) == 2:
            self._within = around.tag
        if rule.titled_by and (title := " ".join((element.get(rule.titled_by) or "").split())):
            self._builder.title(title)
            around.has_title = True
        if leading:
            after, self._offset = self._offset, leading.offset
            self._title(leading.element, leading.path, leading.inside)
            self._offset = after
        self._blocks(element, path, inside)
        self._flush()
        self._leave_label()
        self._builder.close_headings(since=number)
        self._around.pop()
        if len(self._around) == 1:
            self._within = ""
        self._builder.close()
        self._place(number, path, start)

    def _leads(self, title: Element, rule: Rule) -> bool:
        """Whether the next element is the section that the title belongs to, and has content."""
        section = title.getnext()
        if section is None or section.tag != rule.leads:
            return False
        return not self._is_hollow(section, self._profile.rule(section), self._profile.contexts.inside(section))

    def _title(self, element: Element, path: str, inside: TagContext) -> None:
        self._flush()
        start = self._offset
        run = self._gathered(element, path, inside)
        text = self._labelled(run).text
        around = self._around[-1]
        if text and around.has_title:
            id = self._new_id(Block(element, self._profile.rule(element), self._within, text))[1]
            self._place(self._builder.passage(text, self._profile.tag_of(element), id=id), path, start)
        elif text:
            self._place(self._builder.title(text), path, start)
            for target in run.refs:
                self._builder.refer(target)
            around.has_title = True
        self._release()

    def _passage(self, element: Element, path: str, rule: Rule, inside: TagContext) -> None:
        around = self._around[-1]
        if around.loose_from:
            self._flush()
        start = self._offset
        self._keeps_blocks, self._keeps_space = rule.whole, rule.preformatted
        run = self._gathered(element, path, inside)
        self._keeps_blocks = self._keeps_space = False
        block = Block(element, rule, self._within, run.text, self._outline)
        if around.header and element in around.header:
            self._take_header(block, run, path, start)
            self._release()
            return
        heading = self._walk.heading(block) if run.text else None
        if heading:
            self._add_heading(block, heading, self._labelled(run).text, path, start)
        elif run.text.strip(" |"):
            self._add_passage(block, run, path, start)
        if self._held:
            self._held.clear()
        if self._lifted:
            self._release()

    def _header_rows(self, table: Element, context: TagContext) -> list[Element]:
        """The rows at the top of a table all of whose cells name columns.

        Empty if no row with text follows them, or if they are too long for the names of columns.
        """
        header: list[Element] = []
        for row, _, inside in self._inside_of(table, context, ROW):
            if not has_text(row):
                continue
            cells = [rule for cell, rule, _ in self._inside_of(row, inside, CELL) if has_text(cell)]
            if not cells or not all(rule.names_column for rule in cells):
                return header if sum(len(text_of(row)) for row in header) <= LONGEST_HEADER else []
            header.append(row)
        return []

    def _inside_of(self, element: Element, context: TagContext, role: Role) -> Iterator[tuple[Element, Rule, TagContext]]:
        """Yield the elements with a role inside an element, except those inside other elements with a role."""
        semantic = self._profile.semantic
        for child in element:
            rule, inside = context[child.tag]
            if semantic and child.get(semantic) is not None:
                rule = SEMANTIC
            if rule.role is role:
                yield child, rule, inside
            elif rule.role is None:
                yield from self._inside_of(child, inside, role)

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
        self._added.append((span, element, text, name, id, block.within, True))

    def _add_passage(self, block: Block, run: Run, path: str, start: int) -> None:
        element, rule, around, builder = block.element, block.rule, self._around[-1], self._builder
        citation = self._walk.citation(block) or around.name
        if self._label:
            run = self._labelled(run)
        name, id = self._new_id(block)
        tag, language = self._profile.tag_of(element), self._profile.language_of(element)
        if rule.code:
            spans = builder.divided(
                run.text,
                natural_pieces(run.text),
                CODE,
                holder=tag,
                id=id,
                part=rule.part,
                language=language,
                marks=run.marks,
                refs=run.refs,
            )
            if rule.code_language_by and (programming := (element.get(rule.code_language_by) or "").strip().lower()):
                self._code_languages[programming] = None
        else:
            spans = [builder.passage(run.text, tag, id=id, part=rule.part, language=language, marks=run.marks, refs=run.refs)]
        span = spans[0]
        for each in spans:
            builder.places[each] = Place(path, start, self._offset)
            if citation:
                builder.citations[each] = citation
        around.has_title = True
        if self._held:
            for held in self._held:
                builder.hold(held, span)
        self._added.append((span, element, run.text, name, id, block.within, False))

    def _replace(self, element: Element, path: str, replacement: Replacement) -> None:
        """Add the passages that the walk returned in place of an element."""
        self._flush()
        start = self._offset
        section = self._builder.open(Kind.SECTION, replacement.section, part=replacement.section) if replacement.section else 0
        within = replacement.section or self._within
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
            self._added.append((span, element, piece.run.text, piece.id, id, within, False))
        self._offset = start + length_of(element)
        if section:
            self._builder.close()
            self._place(section, path, start)
        self._release()

    def _run_at(self, element: Element, path: str, offset: int) -> Run:
        """The text and marks of an element that begins at `offset`; the current offset does not change. See `RunOf`."""
        after, self._offset = self._offset, offset
        run = self._gathered(element, path, self._profile.contexts.inside(element))
        self._offset = after
        return run

    def _release(self) -> None:
        """Add the blocks that were found inside a passage, title or label after it, because it cannot hold blocks."""
        if not self._lifted:
            return
        lifted, self._lifted = self._lifted, []
        after = self._offset
        for element, path, offset in lifted:
            self._offset = offset
            self._block(element, path, self._profile.rule(element), self._profile.contexts.inside(element))
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

    def _run(self, element: Element, path: str, rule: Rule, inside: TagContext) -> None:
        """Collect an inline element that stands among blocks; it belongs to the loose text there."""
        around = self._around[-1]
        around.loose_from = around.loose_from or self._offset + 1
        self._inside(element, rule, inside)
        if self._lifted_here:
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

    def _is_hollow(self, element: Element, rule: Rule, inside: TagContext) -> bool:
        """Whether an element is skipped, or has no text, no id and no title in an attribute.

        The same must hold for all elements inside it. The text of skipped elements does not count. `inside` has the
        rules of its children.
        """
        if rule.role is SKIPPED:
            return True
        if is_there(element.text) or rule.titled_by or self._profile.id_of(element):
            return False
        semantic = self._profile.semantic
        for child in element:
            rule, within = inside[child.tag]
            if semantic and child.get(semantic) is not None:
                rule = SEMANTIC
            if is_there(child.tail) or not self._is_hollow(child, rule, within):
                return False
        return True

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

    def held_id(self, element: Element, rule: Rule) -> str:
        """See `Gathering.held_id`."""
        return self._new_id(Block(element, rule, self._within))[1]

    def _new_id(self, block: Block) -> tuple[str, str]:
        """Return the id that the walk gives a block, and the id that the block gets; see `_free_id`."""
        name = self._walk.id_of(block)
        return name, self._free_id(name)

    def _free_id(self, id: str) -> str:
        """Reserve an id and return it; empty if another block has it, or if it looks like the number of a passage."""
        if not id or id in self._ids or (id[0] == "@" and is_running_number(id)):
            return ""
        self._ids.add(id)
        return id

    def _place(self, number: int, path: str, start: int) -> None:
        self._builder.places[number] = Place(path, start, self._offset)


class _LeadingTitle(NamedTuple):
    """A title that stands directly before the section it belongs to."""

    element: Element
    path: str
    offset: int
    inside: TagContext


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
