"""The navigation of the site: the sections and links of docs/index.md, which declares it.

Sphinx takes navigation from directives that a reader of the Markdown file would see as code. This extension derives
them: each `## Section` of the page that has links to pages becomes a part of the navigation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SECTION = re.compile(r"^## (?P<title>.+)$(?P<body>(?:\n(?!## ).*)*)", re.M)
_ENTRY = re.compile(r"^[-|] \[(?P<title>[^]]+)]\((?P<page>[^)#:]+)\.md\)", re.M)


def sections_of(text: str) -> dict[str, list[tuple[str, str]]]:
    """The titles and pages below each heading: those of links that begin an item of a list or a row of a table."""
    found = {}
    for section in _SECTION.finditer(text):
        if entries := [(entry["title"], entry["page"]) for entry in _ENTRY.finditer(section["body"])]:
            found[section["title"]] = entries
    return found


def directives(sections: dict[str, list[tuple[str, str]]]) -> str:
    """The navigation as hidden tables of contents."""
    blocks = []
    for title, entries in sections.items():
        lines = "\n".join(f"{name} <{page}>" for name, page in entries)
        blocks.append(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
    return "".join(blocks)


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        source[0] += directives(sections_of(source[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
