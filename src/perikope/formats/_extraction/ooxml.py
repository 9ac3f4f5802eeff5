"""Office Open XML: the parts of Word, PowerPoint and Excel files, and what the files say about themselves.

A part names the parts that it uses in a file of relations beside it. Relations to other files are never followed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable
from perikope.formats._extraction.package import Element, Package, TagNames, attribute, described, people

OFFICE = "http://schemas.openxmlformats.org"
STRICT = "http://purl.oclc.org/ooxml"
RELATION = f"{{{OFFICE}/officeDocument/2006/relationships}}"
STRICT_RELATION = f"{{{STRICT}/officeDocument/relationships}}"
SPACES: dict[str, tuple[str, ...]] = {
    "mc": (f"{OFFICE}/markup-compatibility/2006",),
    "cp": (f"{OFFICE}/package/2006/metadata/core-properties",),
    "dc": ("http://purl.org/dc/elements/1.1/",),
    "dcterms": ("http://purl.org/dc/terms/",),
    "a": (f"{OFFICE}/drawingml/2006/main", f"{STRICT}/drawingml/main"),
    "m": (f"{OFFICE}/officeDocument/2006/math", f"{STRICT}/officeDocument/math"),
}
"""The namespaces that all three programs use."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What a part uses: the last word of the type, such as `slide`, and the name of the other part."""

    id: str
    type: str
    part: str


class Parts:
    """The parts of a file."""

    def __init__(self, data: bytes, spaces: Mapping[str, tuple[str, ...]], default: str) -> None:
        """The parts of the bytes of a file; `default` is the main part if the file does not name it."""
        self.package = Package(data)
        self.names = TagNames({**SPACES, **spaces})
        relations = {relation.type: relation.part for relation in reversed(self.relations(""))}
        self.main = relations.get("officeDocument", default)
        self._core = relations.get("core-properties", "docProps/core.xml")

    def root(self, name: str, what: str) -> Element:
        """The root of the main part, which must have this name; `what` is what the file lacks otherwise."""
        root = self.package.xml(self.main)
        if root is None or self.names(root) != name:
            raise Unreadable(f"has no {what}; open it in its program and save it again")
        return root

    def extracted(self, blocks: list[FileBlock]) -> Extracted:
        """Blocks, with what the file says about itself."""
        title, language, metadata = self.properties()
        return Extracted(blocks, title, language, metadata)

    def relations(self, part: str) -> list[Relation]:
        """What a part uses inside the file; the part with an empty name is the whole file."""
        folder, name = posixpath.split(part)
        root = self.package.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        return [
            Relation(attribute(one, "Id"), attribute(one, "Type").rpartition("/")[2], _target(folder, attribute(one, "Target")))
            for one in (root if root is not None else ())
            if attribute(one, "TargetMode") != "External"
        ]

    def related(self, part: str, type: str) -> Element | None:
        """The root of the first part of a type that a part uses, such as `styles`."""
        return next((self.package.xml(one.part) for one in self.relations(part) if one.type == type), None)

    def child(self, element: Element | None, *path: str) -> Element | None:
        """The first child with a name, its first child with the next name, and so on."""
        for name in path:
            if element is None:
                return None
            element = next((child for child in element if self.names(child) == name), None)
        return element

    def inside(self, element: Element | None, *path: str) -> Iterator[Element]:
        """All children with the last name of a path, of the first children with the names before."""
        holder = self.child(element, *path[:-1])
        return (child for child in (holder if holder is not None else ()) if self.names(child) == path[-1])

    def children(self, element: Element) -> Iterator[Element]:
        """The children of an element: of two versions of a drawing, the first one."""
        for child in element:
            name = self.names(child)
            if name == "mc:AlternateContent":
                versions = [version for version in child if self.names(version) in ("mc:Choice", "mc:Fallback")]
                yield from versions[:1]
            elif name:
                yield child

    def properties(self) -> tuple[str, str, dict[str, Any]]:
        """The title, the language and the metadata that the file states."""
        root = self.package.xml(self._core)
        stated: dict[str, str] = {}
        for child in root if root is not None else ():
            stated.setdefault(self.names(child), " ".join((child.text or "").split()))
        keywords = [word for part in re.split(r"[,;]", stated.get("cp:keywords", "")) if (word := part.strip())]
        metadata = described(
            {
                "author": people(stated.get("dc:creator", "")),
                "subject": stated.get("dc:subject"),
                "keywords": keywords,
                "date": stated.get("dcterms:created"),
                "modified": stated.get("dcterms:modified"),
            }
        )
        return stated.get("dc:title", ""), stated.get("dc:language", ""), metadata


def relation_id(element: Element, name: str = "id") -> str:
    """The id of a relation in an attribute such as `r:id`."""
    return str(element.get(RELATION + name) or element.get(STRICT_RELATION + name) or "")


def _target(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
