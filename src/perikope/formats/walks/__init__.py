"""Walks: classes for decisions that tags alone do not settle, such as whether a paragraph is a heading.

A profile names its walk. The traversal (`formats/_traversal.py`) visits the elements of a document and calls methods of
the walk. A walk has no state: the result of each method depends only on its arguments, the profile and the
document's tree, so that the order of the calls does not matter.

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
    """The data of a document that are known before its text is read."""

    id: str
    """The id in the document; empty if the document has none."""
    title: str
    language: str
    """The language as the file writes it; empty if the file does not give it."""
    metadata: Mapping[str, object]
    cites: Sequence[str]
    """Ids of the documents that this one cites."""


class Block(NamedTuple):
    """An element that becomes a section, a heading or a passage."""

    element: Element
    rule: Rule
    within: str
    """Tag of the outermost section around the element; empty directly below the root."""
    text: str = ""
    """Text of a heading or passage; empty for a section, which is not read yet."""
    outline: int = 1
    """`Heading.outline` of the last heading before; 1 if there is none."""


class Heading(NamedTuple):
    """The level of a heading, and the level to which later headings are relative."""

    level: int
    outline: int
    """Headings of unknown level after this heading are one level below this level."""


class Added(NamedTuple):
    """A heading or passage that was added to the document."""

    span: int
    element: Element
    text: str
    name: str
    """The id that the walk gave the block, even if another block already had it."""
    id: str
    """The id of the block in the document; empty if it has none."""
    within: str
    """Tag of the outermost section around the block; empty directly below the root."""
    is_heading: bool


class Piece(NamedTuple):
    """A passage that a walk makes, as part of a `Replacement`."""

    tag: str
    run: Run
    place: Place
    id: str = ""
    part: str = ""
    language: str = ""
    citation: str = ""
    is_title: bool = False
    """Whether the piece is the title of the document. The title exists already, so only its place is recorded."""


class Replacement(NamedTuple):
    """The passages that replace an element; its rule is then not used."""

    pieces: Sequence[Piece]
    section: str = ""
    """Tag and part of a section around the pieces; empty if they get no section."""


class Links(NamedTuple):
    """The references of a document, and the documents that it cites."""

    references: Sequence[tuple[int, str]]
    """Pairs of a span and the id in the document that it refers to; references from marks are not listed here."""
    cites: Sequence[str]
    """Ids of the cited documents."""


RunOf = Callable[[Element, str, int], Run]
"""Function from an element, its XPath and its offset in the document's text nodes, to the element's text and marks."""


class Walk:
    """The general walk: the profile alone determines the document. Other walks override its methods."""

    replaced: frozenset[str] = frozenset()
    """Tags of the elements for which `replacement` is called."""

    def __init__(self, profile: Profile, root: Element) -> None:
        self.profile, self.root = profile, root

    def front(self) -> Front:
        """Read id, title, language, metadata and citations, before the text is read."""
        profile, root = self.profile, self.root
        metadata: dict[str, object] = {}
        for key, field in profile.metadata.items():
            values = list(dict.fromkeys(field.values(root)))
            if values:
                metadata[key] = values[0] if len(values) == 1 else values
        id, title, language = (next(iter(profile.found(key, root)), "") for key in ("id", "title", "language"))
        return Front(id, title, language, metadata, list(dict.fromkeys(profile.found("cites", root))))

    def replacement(self, element: Element, path: str, offset: int, run_of: RunOf) -> Replacement | None:
        """The passages that replace an element; None if the element is read as its rule says.

        `path` is the XPath of the element. `offset` is its offset in the document's text nodes, in characters. `run_of`
        returns the text and marks of an element.
        """
        return None

    def heading(self, block: Block) -> Heading | None:
        """The level of a block that is a heading; None if the block is a passage."""
        return Heading(block.rule.level, block.rule.level) if block.rule.level else None

    def id_of(self, block: Block) -> str:
        """The id for a block; empty for none. If several blocks get the same id, only the first keeps it."""
        return self.profile.id_of(block.element)

    def citation(self, block: Block) -> str:
        """The text by which people cite a passage; if it is empty, the name of the element around it is used."""
        return block.rule.citation_of(block.element) if block.rule.citation else ""

    def links(self, front: Front, blocks: Sequence[Added]) -> Links:
        """References and cited documents, when all blocks are known; `front.id` is the final id of the document."""
        return Links((), front.cites)


WalkClass = TypeVar("WalkClass", bound=type[Walk])
WALKS: Registry[type[Walk]] = Registry("walk", "perikope.formats.walks")
WALKS.add("general", Walk)


def walk(name: str) -> Callable[[WalkClass], WalkClass]:
    """Decorator that registers a class as a walk; a profile selects it with `walk = "NAME"`."""

    def register(walk_class: WalkClass) -> WalkClass:
        WALKS.add(name, walk_class)
        return walk_class

    return register


def walk_named(name: str) -> type[Walk]:
    """The walk with a name; an unknown name raises an error that lists the valid names."""
    return WALKS[name]
