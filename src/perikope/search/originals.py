"""Originals: the markup and text of a passage in the file it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import cast

from lxml import etree

from perikope.core.errors import InputError, UsageError
from perikope.core.names import split_name
from perikope.document.tree import Place
from perikope.formats import sources
from perikope.formats._traversal import front_of
from perikope.formats._xml import XmlDocument, trees, whole_text
from perikope.formats.xml import walk_for
from perikope.query.publications import find_publication
from perikope.search.facade import Index


@dataclass(frozen=True, slots=True)
class Original:
    """A passage in the file it was read from."""

    file: str
    """The path of the file."""
    line: int
    """The number of the line in which the element begins, from 1."""
    place: Place
    """The location of the passage: the XPath of its element, and its characters in the text of the file."""
    xml: str
    """The element that contains the passage, as XML."""
    text: str
    """The text of the file from `place.start` to `place.end`, with its white space."""


def open_original(index: Index, passage: str, path: str | PathLike[str], *, format: str = "auto") -> Original:
    """Find the original of a passage, given by its name (`document#passage`).

    `path` is the file, archive or folder that was indexed, and `format` the format that it was indexed as.
    """
    document, name = split_name(passage)
    if not name:
        raise UsageError(f"{passage!r} names no passage; write the name as document#passage")
    document = index.snapshot.document_id(find_publication(index.snapshot, document))
    source, place = index.place(document, name)
    if place is None or not place.path:
        raise UsageError(f"{passage} has no recorded location in its file; only passages of XML files have one")
    files = 0
    # Problems with other files of the folder do not matter here.
    for candidate in sources(path, format=format, hashes=False, on_problem=lambda _: None, select=lambda entry, _: entry.id == source):
        files += 1
        for tree in trees(candidate):
            if front_of(walk_for(tree, candidate), tree, candidate).id == document and (original := _at(tree, candidate.path, place)):
                return original
    if not files:
        raise InputError(f"does not contain {source!r}, the file of document {document}; give the path that was indexed", path=path)
    raise InputError(f"the file {source!r} no longer contains document {document}, or this passage of it; index the file again", path=path)


def _at(tree: XmlDocument, path: str, place: Place) -> Original | None:
    """The `Original` at `place` in the file `path`; None if the XPath of `place` does not find exactly one element."""
    elements = cast(list[etree._Element], tree.root.getroottree().xpath(place.path))
    if len(elements) != 1:
        return None
    [element] = elements
    line = tree.first_line - 1 + (cast(int | None, element.sourceline) or 1)
    xml = etree.tostring(element, encoding="unicode", with_tail=False)
    return Original(path, line, place, xml, whole_text(tree.root)[place.start : place.end])
