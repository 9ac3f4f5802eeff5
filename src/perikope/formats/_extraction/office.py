"""Slides, workbooks and markup of other programs, read with kreuzberg: its nodes become blocks."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable

_OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES = {
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "rtf": "application/rtf",
    "org": "text/x-org",
}
"""The MIME type of each kind of file. The type is always given, since the library may fetch parsers for other types."""

_FIELDS = {"authors": "author", "subject": "subject", "keywords": "keywords", "created_at": "date", "modified_at": "modified"}


def read_office(kind: str, data: bytes) -> Extracted:
    """The blocks of a file of one of the kinds in `TYPES`."""
    import kreuzberg

    try:
        config = kreuzberg.ExtractionConfig(include_document_structure=True, use_cache=False, output_format="markdown")
        result = kreuzberg.extract_bytes_sync(data, TYPES[kind], config=config)
    except kreuzberg.KreuzbergError as error:
        raise Unreadable(_reason(str(error))) from None
    metadata = dict(result.metadata)
    nodes: list[Mapping[str, Any]] = list(result.document["nodes"]) if result.document else []
    blocks = _NodeReader(kind, nodes).blocks
    if kind == "pptx" and sum(block.kind == "heading" for block in blocks) != _slides(data):
        # A slide without text has no heading, so that the numbers of later slides are not known.
        blocks = [replace(block, page=0, note="") for block in blocks]
    if kind == "rtf":
        blocks = _without_page_headers(nodes, blocks)
        blocks = _with_bold_headings(nodes, blocks)
    title = " ".join(str(metadata.get("title") or "").split())
    return Extracted(blocks, title, str(metadata.get("language") or ""), _metadata(metadata))


def _slides(data: bytes) -> int:
    """The number of slides of a presentation."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(re.fullmatch(r"ppt/slides/slide\d+\.xml", name) is not None for name in archive.namelist())


def _reason(message: str) -> str:
    text = " ".join(message.split())
    if re.search(r"password|encrypt", text, re.IGNORECASE):
        return "is encrypted; save it without a password"
    return f"is damaged ({text[:100]}); open it in its program and save it again"


def _metadata(stated: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for key, name in _FIELDS.items():
        value = stated.get(key)
        if isinstance(value, list):
            value = [str(one) for one in value if str(one).strip()]
        if value and name not in metadata:
            metadata[name] = value if isinstance(value, list) else str(value)[:10] if name in ("date", "modified") else str(value)
    return metadata


class _NodeReader:
    """Turns the flat list of nodes into blocks."""

    def __init__(self, kind: str, nodes: Sequence[Mapping[str, Any]]) -> None:
        self.blocks: list[FileBlock] = []
        self._kind, self._nodes = kind, nodes
        self._page = 0
        for node in nodes:
            self._add(node)

    def _add(self, node: Mapping[str, Any]) -> None:
        content = node["content"]
        type = content["node_type"]
        if node.get("content_layer") in ("header", "footer"):
            return
        text = str(content.get("text") or "").strip()
        if type == "heading":
            if self._kind == "pptx":
                self._page += 1
            self._block("heading", text, int(content.get("level") or 1))
        elif type == "table":
            self._table(content["grid"])
        elif type == "code":
            self._block("code", str(content.get("text") or "").strip("\n"), note=str(content.get("language") or ""))
        elif type == "admonition":
            self._block("p", text or str(content.get("kind") or "").partition("::")[2].strip())
        elif type == "slide":
            self._page = int(content.get("number") or self._page + 1)
        elif type in ("paragraph", "list_item", "quote", "footnote", "definition_term", "definition_description", "citation", "formula"):
            kind = {"list_item": "li", "quote": "blockquote"}.get(type, "p")
            if kind == "p" and re.match(r"(?:Table|Figure) \d+[.:]", text):
                kind = "caption"
            self._block(kind, text)

    def _block(self, kind: str, text: str, level: int = 0, note: str = "") -> None:
        if text.strip():
            page = self._page if self._kind == "pptx" else 0
            self.blocks.append(FileBlock(kind, text, level, page, None, note or ("slide" if page else "")))

    def _table(self, grid: Mapping[str, Any]) -> None:
        rows: list[list[str]] = [[""] * int(grid["cols"]) for _ in range(int(grid["rows"]))]
        for cell in grid["cells"]:
            rows[int(cell["row"])][int(cell["col"])] = " ".join(str(cell["content"]).split())
        texts = [" | ".join(row).strip(" |") and " | ".join(row) for row in rows]
        texts = [text for text in texts if text]
        if not texts:
            return
        header = texts.pop(0) if len(texts) > 1 and all(cell for cell in rows[0]) else ""
        page = self._page if self._kind == "pptx" else 0
        self.blocks.append(FileBlock("table", header, 0, page, None, "slide" if page else ""))
        for text in texts:
            self._block("tr", text)


def _without_page_headers(nodes: Sequence[Mapping[str, Any]], blocks: Sequence[FileBlock]) -> list[FileBlock]:
    """RTF: the library reports headers and footers of pages a second time, as the first paragraphs of the text."""
    layers = {
        "".join(str(node["content"].get("text") or "").split()) for node in nodes if node.get("content_layer") in ("header", "footer")
    }
    first = next((number for number, block in enumerate(blocks) if "".join(block.text.split()) not in layers), len(blocks))
    return list(blocks[first:])


def _with_bold_headings(nodes: Sequence[Mapping[str, Any]], blocks: Sequence[FileBlock]) -> list[FileBlock]:
    """RTF: a short paragraph that is bold as a whole is a heading, since the library does not report styles."""
    bold = set()
    for node in nodes:
        text = str(node["content"].get("text") or "").strip()
        kinds = [one.get("kind", {}) for one in node.get("annotations") or ()]
        is_bold = any((kind.get("annotation_type") if isinstance(kind, dict) else kind) == "bold" for kind in kinds)
        if is_bold and 0 < len(text) <= 120 and not text.endswith((".", ":", ",")):
            bold.add(text)
    return [FileBlock("heading", block.text, 1) if block.kind == "p" and block.text in bold else block for block in blocks]
