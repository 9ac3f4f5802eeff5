"""Pages of the site for source files: a link such as `../src/perikope/index/reader.py` leads to the file, highlighted.

A link to a folder leads to a list of its files. Reports in HTML are copied as they are. So every link of the
documentation works in the site as in a checkout, without a server that hosts the repository.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from posixpath import normpath, relpath
from typing import TYPE_CHECKING, Any

from docutils import nodes
from markdown_it import MarkdownIt
from pygments.lexers import guess_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DATA = frozenset({".json", ".jsonl", ".csv"})
"""Suffixes of files of a linked folder that are only listed: nobody reads them, and they would be most of the site."""
LINKED = "linked_files"
"""Key of a page's metadata: the files and folders that it links to, as paths in the repository."""


class LinksToFiles(SphinxTransform):
    """Replace links to files that are no pages by links to the pages that show them."""

    default_priority = 5

    def apply(self, **_: Any) -> None:
        """Replace the links of one page."""
        root, page = Path(self.env.srcdir), self.env.current_document.docname
        linked = self.env.metadata[page].setdefault(LINKED, [])
        for node in list(self.document.findall(lambda one: isinstance(one, addnodes.download_reference | addnodes.pending_xref))):
            if node.get("refdomain") is not None:
                continue
            path = normpath(f"{page}/../{node['reftarget'].partition('#')[0]}")
            if not (root / path).exists():
                continue  # Sphinx says that nothing is there
            linked.append(path)
            uri = relpath(target_of(root, path), f"{page}/..")
            node.replace_self(nodes.reference("", "", *(child.deepcopy() for child in node.children), refuri=uri, internal=True))


def target_of(root: Path, path: str) -> str:
    """The address in the site of a file or folder of the repository."""
    if _is_report(path):
        return path
    return f"source/{path}/index.html" if (root / path).is_dir() else f"source/{path}.html"


def pages_of_files(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield one page for each linked file, for each linked folder and for the files in it."""
    root = Path(app.srcdir)
    linked = {path for page in app.env.all_docs for path in app.env.metadata[page].get(LINKED, ())}
    folders = {path for path in linked if (root / path).is_dir()}
    shown = linked - folders
    for folder in sorted(folders):
        files = files_in(root / folder)
        readable = {path.name for path in files if path.suffix not in DATA}
        shown |= {f"{folder}/{name}" for name in readable}
        yield f"source/{folder}/index", _context(folder, _list(files, readable)), "page.html"
    for path in sorted(shown):
        if _is_report(path):
            (Path(app.outdir) / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, Path(app.outdir) / path)
        else:
            text = (root / path).read_text("utf-8")
            highlight = app.builder.highlighter.highlight_block  # type: ignore[attr-defined]
            shown = _notebook(text, highlight) if path.endswith(".ipynb") else highlight(text, _language(path, text), force=True)
            yield f"source/{path}", _context(path, shown), "page.html"


def files_in(folder: Path) -> list[Path]:
    """The files in a folder that can be shown as text."""
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".") and _is_text(path))


def _is_text(path: Path) -> bool:
    try:
        path.read_text("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _notebook(text: str, highlight: Callable[..., str]) -> str:
    """The cells of a notebook: prose as HTML, programs highlighted."""
    prose = MarkdownIt()
    cells = ((cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"])
    return "".join(prose.render(source) if kind == "markdown" else highlight(source, "python") for kind, source in cells)


def _list(files: list[Path], shown: set[str]) -> str:
    names = (escape(path.name) for path in files)
    items = (f'<a href="{name}.html">{name}</a>' if name in shown else name for name in names)
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _is_report(path: str) -> bool:
    """Whether a file is a report of an experiment, which is a page of its own."""
    return path.startswith("docs/") and path.endswith(".html")


def _context(path: str, body: str) -> dict[str, Any]:
    return {"title": path, "body": f"<h1><code>{escape(path)}</code></h1>{body}", "parents": []}


def _language(path: str, text: str) -> str:
    try:
        return guess_lexer_for_filename(path, text).aliases[0]
    except ClassNotFound:
        return "text"


def _redirect(app: Sphinx, problem: Exception | None) -> None:
    """Let the address of the folder lead to the first page."""
    if problem is None:
        first = f"{app.config.root_doc}.html"
        text = f'<!doctype html><title>perikope</title><meta http-equiv="refresh" content="0; url={first}"><a href="{first}">perikope</a>\n'
        (Path(app.outdir) / "index.html").write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_transform(LinksToFiles)
    app.connect("html-collect-pages", pages_of_files)
    app.connect("build-finished", _redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
