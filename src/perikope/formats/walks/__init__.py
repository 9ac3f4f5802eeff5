"""Walks: the decisions about a document that tags alone do not settle. A profile names its walk.

The traversal (`formats/_traversal.py`) goes through a document and asks the walk at each step. A walk answers and keeps
nothing: each method depends on its arguments, the profile and the document's tree only, so that the order of the
questions does not matter.

A walk is one class in a file of this folder:

    @walk("patent")
    class PatentWalk(Walk): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from perikope.core.registry import Registry
from perikope.document.tree import Place
from perikope.formats._inline import Run
from perikope.formats._profile import Profile, Rule
from perikope.formats._xpaths import Element


class Front(NamedTuple):
    """What is known about a document before its text is read."""

    id: str
    """Empty where the document has none by itself."""
    title: str
    language: str
    """As the file writes it; empty where it does not."""
    metadata: Mapping[str, object]
    cites: Sequence[str]
    """Ids of the documents that this one cites."""


class Block(NamedTuple):
    """An element that becomes a section, a heading or a passage."""

    element: Element
    rule: Rule
    within: str
    """Tag of the outermost section around it; empty directly below the root."""
    text: str = ""
    """Text of a heading or passage; empty for a section, which is not read yet."""
    outline: int = 1
    """`Heading.outline` of the heading before; 1 where there is none."""


class Heading(NamedTuple):
    """The answer to whether a block is a heading."""

    level: int
    outline: int
    """The level that headings of unknown level after this one are counted from."""


class Added(NamedTuple):
    """A heading or passage that was added to the document."""

    span: int
    element: Element
    text: str
    name: str
    """The id that the walk gave it; another block may have had it first."""
    id: str
    """The id that it has in the document; empty where it has none."""
    within: str
    """Tag of the outermost section around it; empty directly below the root."""
    is_heading: bool


class Piece(NamedTuple):
    """A passage that a walk makes by itself."""

    tag: str
    run: Run
    place: Place
    id: str = ""
    part: str = ""
    language: str = ""
    citation: str = ""
    is_title: bool = False
    """Whether it is the title of the document, which is there already: only its place is noted."""


class Replacement(NamedTuple):
    """What an element becomes in place of what its rule says."""

    pieces: Sequence[Piece]
    section: str = ""
    """Tag and part of a section around the pieces; empty for none."""


class Links(NamedTuple):
    """What a document refers to."""

    references: Sequence[tuple[int, str]]
    """Span, and id of what it refers to inside the document; added to those that marks make."""
    cites: Sequence[str]
    """Ids of the documents that it cites."""


RunOf = Callable[[Element, str, int], Run]
"""Gives the text and marks of an element, from the element, its XPath and its offset in the file's text."""


class Walk:
    """The general walk: a profile alone says what a document is."""

    replaced: frozenset[str] = frozenset()
    """Tags of the elements that `replacement` is asked about."""

    def __init__(self, profile: Profile, root: Element) -> None:
        self.profile, self.root = profile, root

    def front(self) -> Front:
        """What is known about the document before its text is read."""
        profile, root = self.profile, self.root
        metadata: dict[str, object] = {}
        for key, field in profile.metadata.items():
            values = list(dict.fromkeys(field.values(root)))
            if values:
                metadata[key] = values[0] if len(values) == 1 else values
        id, title, language = (next(iter(profile.found(key, root)), "") for key in ("id", "title", "language"))
        return Front(id, title, language, metadata, list(dict.fromkeys(profile.found("cites", root))))

    def replacement(self, element: Element, path: str, offset: int, run_of: RunOf) -> Replacement | None:
        """What an element becomes in place of what its rule says; None where the rule counts.

        `path` is the XPath of the element and `offset` the number of characters before it in the file's text.
        """
        return None

    def heading(self, block: Block) -> Heading | None:
        """The level of the heading that a block is; None where it is a passage."""
        return Heading(block.rule.level, block.rule.level) if block.rule.level else None

    def id_of(self, block: Block) -> str:
        """The id that a block should have; empty for none. The first block with an id gets it."""
        return self.profile.id_of(block.element)

    def citation(self, block: Block) -> str:
        """How people cite a passage inside the document; empty where only names of elements around it count."""
        return block.rule.citation_of(block.element) if block.rule.citation else ""

    def links(self, front: Front, blocks: Sequence[Added]) -> Links:
        """What the document refers to, once all blocks are known; `front.id` is the id that the document has."""
        return Links((), front.cites)


WalkClass = TypeVar("WalkClass", bound=type[Walk])
WALKS: Registry[type[Walk]] = Registry("walk", "perikope.formats.walks")
WALKS.add("general", Walk)


def walk(name: str) -> Callable[[WalkClass], WalkClass]:
    """Register a class as the walk that profiles name with `walk = "…"`."""

    def register(walk_class: WalkClass) -> WalkClass:
        WALKS.add(name, walk_class)
        return walk_class

    return register


def walk_named(name: str) -> type[Walk]:
    """The walk with a name; an unknown one is an error that lists the valid ones."""
    return WALKS[name]
