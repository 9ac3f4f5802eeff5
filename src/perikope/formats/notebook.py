"""Jupyter notebooks: Markdown cells are read as Markdown, code cells are code. Outputs are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import Source, markdown, reader


@reader("notebook", suffixes=(".ipynb",), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """Jupyter notebooks; text cells are Markdown, code cells are code."""
    try:
        notebook = orjson.loads(source.data())
        cells = notebook["cells"] if "cells" in notebook else [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
        text = "\n\n".join(filter(None, (_cell(cell, _language(notebook)) for cell in cells)))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UnreadableFile("is no Jupyter notebook; open it in Jupyter and save it again", path=source.path) from None
    yield from markdown.read(replace(source, content=text.encode()))


def _language(notebook: Mapping[str, Any]) -> str:
    stated = notebook.get("metadata", {})
    language = stated.get("kernelspec", {}).get("language") or stated.get("language_info", {}).get("name") or ""
    return re.sub(r"[^\w+#-]", "", str(language))


def _cell(cell: Mapping[str, Any], language: str) -> str:
    """A cell as Markdown."""
    content = cell.get("source", cell.get("input", ""))
    text = ("".join(content) if isinstance(content, list) else str(content)).replace("\0", "")
    if cell["cell_type"] == "heading":
        return f"{'#' * int(cell.get('level', 1))} {text}"
    if cell["cell_type"] != "code":
        return text
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
