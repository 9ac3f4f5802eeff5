"""Gathering: reads the XML element of one block (passage, title or label): its text, marks and references."""

from __future__ import annotations

from perikope.formats._contexts import TagContext
from perikope.formats._inline import Inline, Run
from perikope.formats._profile import BLOCKS, LIFTED, SEMANTIC, Profile, Role, Rule
from perikope.formats._xml import whole_text
from perikope.formats._xpaths import Element, text_of

# Looking up a member in its enumeration takes six times as long as a plain name, and every element needs some.
BREAK, CELL, ELEMENT, HEADING, LABEL, MARK, NAME = Role.BREAK, Role.CELL, Role.ELEMENT, Role.HEADING, Role.LABEL, Role.MARK, Role.NAME
PASSAGE, ROW, SECTION, SEMANTIC_ROLE, SKIPPED, TITLE = Role.PASSAGE, Role.ROW, Role.SECTION, Role.SEMANTIC, Role.SKIPPED, Role.TITLE


class Gathering:
    """The state of the gathering of one document's blocks, one after the other."""

    def __init__(self, profile: Profile, root: Element) -> None:
        self._profile, self._root = profile, root
        self._inline = Inline()
        self._offset = 0
        """The number of characters in the text nodes that were read."""
        self._keeps_blocks = self._keeps_space = self._in_cell = False
        self._lifted: list[tuple[Element, str, int]] = []
        """Blocks that were found inside passages, titles and labels, with their XPaths and offsets."""
        self._lifted_here: list[tuple[Element, int]] = []
        """The blocks of the element that is being gathered, without their XPaths."""
        self._held: list[str] = []
        """Ids of the blocks that are kept as lines of the passage around them."""
        self._titles: dict[str, str] | None = None
        """Titles of elements by the ids of the elements; None until the first title is needed."""

    def held_id(self, element: Element, rule: Rule) -> str:
        """Reserve the id of a block that is kept as a line of the passage around it; empty if it has none."""
        raise NotImplementedError

    def _gathered(self, element: Element, path: str, inside: TagContext) -> Run:
        """Read an element that becomes one block, and return its text and marks.

        `path` is its XPath, and `inside` has the rules of its children.
        """
        if len(element) == 0 and not self._keeps_space:
            text = element.text or ""
            self._offset += len(text)
            return self._inline.alone(text)
        self._gather(element, inside)
        if self._lifted_here:
            self._settle_lifted(element, path)
        return self._inline.take(keep=self._keeps_space)

    def _settle_lifted(self, element: Element, path: str) -> None:
        """Move the blocks of `_lifted_here` to `_lifted`, with their XPaths.

        These blocks were found inside `element`, whose XPath is `path`. XPaths are computed only here, because such
        blocks are rare.
        """
        paths = _paths_inside(element, path)
        self._lifted += [(block, paths[block], offset) for block, offset in self._lifted_here]
        self._lifted_here = []

    def _gather(self, element: Element, context: TagContext) -> None:
        """Collect the text and marks inside an element: its text, its children and their tails."""
        inline, text, keep = self._inline, element.text, self._keeps_space
        if text:
            inline.text(text, keep)
            self._offset += len(text)
        semantic = self._profile.semantic
        for child in element:
            rule, inside = context[child.tag]
            if semantic and child.get(semantic) is not None:
                rule = SEMANTIC
            role = rule.role
            if (role is None or role is MARK) and len(child) == 0 and not rule.refers_by:
                # Most marks are leaves, and so are most elements without a role.
                if text := child.text:
                    if role is None:
                        inline.text(text, keep)
                    else:
                        inline.marked(rule.mark, text, keep)
                    self._offset += len(text)
            elif role is None:
                self._gather(child, inside)
            else:
                self._inside(child, rule, inside)
            if tail := child.tail:
                inline.text(tail, keep)
                self._offset += len(tail)

    def _inside(self, element: Element, rule: Rule, inside: TagContext) -> None:
        """Collect the text and marks of an element inside a passage, as its rule says."""
        inline, role = self._inline, rule.role
        if role is CELL:
            # A bar is written only before cells with text: an empty cell has nothing to find.
            if has_text(element):
                inline.separate()
            if len(element):
                around, self._in_cell = self._in_cell, True
                self._gather(element, inside)
                self._in_cell = around
            elif text := element.text:
                inline.text(text, self._keeps_space)
                self._offset += len(text)
        elif role is MARK or role is SEMANTIC_ROLE:
            if rule.refers_by and whole_text(element).lstrip()[:1].isdigit():
                inline.apart(after=2)  # the number of a note or a source, but not that in `Fig. S<xref>1</xref>`
            inline.open(rule.mark if role is MARK else str(element.tag))
            if rule.refers_by:
                self._refer(element, rule)
            self._gather(element, inside)
            inline.close()
        elif role is BREAK:
            self._gap()
            self._gather(element, inside)
        elif role is SKIPPED:
            self._offset += length_of(element)
        elif role in LIFTED and not self._keeps_blocks:
            self._lifted_here.append((element, self._offset))
            self._offset += length_of(element)
            inline.text(" ")
        elif role in BLOCKS:
            if self._keeps_blocks and (id := self.held_id(element, rule)):
                self._held.append(id)
            self._gap()
            self._gather(element, inside)
            self._gap()
        else:
            self._gather(element, inside)
            if role is not None:  # a label or a name
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
        if rule.filled and targets and not has_text(element):
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
                if rule.role is not SKIPPED:
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
                if self._profile.rule(title).role is TITLE:
                    return text_of(title)
        return ""


def is_there(text: str | None) -> bool:
    """Whether a text has more than white space."""
    return bool(text and not text.isspace())


def length_of(element: Element) -> int:
    """The number of characters in the text nodes of an element."""
    return len(whole_text(element))


def has_text(element: Element) -> bool:
    """Whether an element has more than white space in it."""
    text = element.text
    return bool(text and not text.isspace()) or (len(element) > 0 and is_there(whole_text(element)))


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
