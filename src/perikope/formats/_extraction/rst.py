"""reStructuredText, read with docutils: its nodes become blocks.

Directives and roles that docutils does not know, such as those of Sphinx, are kept as their text. No file is included,
and nothing is raw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

from perikope.formats._extraction.blocks import Extracted, FileBlock

LONGEST_LINE = 1_000_000
"""Characters of the longest line. docutils refuses a whole file because of one longer line."""

_SETTINGS = {
    "_disable_config": True, "file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5,
    "doctitle_xform": False, "docinfo_xform": False, "syntax_highlight": "none", "smart_quotes": False, "warning_stream": False,
    "line_length_limit": LONGEST_LINE,
}  # fmt: skip
_CODE = frozenset((
    "code", "code-block", "sourcecode", "doctest", "testcode", "testsetup", "testoutput", "ipython", "prompt",
    "console", "productionlist", "graphviz", "digraph", "mermaid", "jupyter-execute",
))  # fmt: skip
_LEFT_OUT = frozenset((
    "toctree", "index", "contents", "sectnum", "highlight", "highlightlang", "currentmodule", "currentclass", "default-domain",
    "default-role", "tabularcolumns", "meta", "include", "literalinclude", "raw", "title", "sectionauthor", "codeauthor",
))  # fmt: skip
_CONDITIONS = frozenset(("only", "ifconfig"))
_DESCRIBED = frozenset((
    "function", "class", "method", "classmethod", "staticmethod", "coroutinefunction", "decorator", "decoratormethod", "attribute",
    "property", "data", "exception", "module", "type", "macro", "member", "struct", "enum", "enumerator", "union", "var", "concept",
    "option", "cmdoption", "program", "envvar", "confval", "setting", "describe", "object", "opcode", "pdbcommand",
))  # fmt: skip
_VERSIONS = {
    "versionadded": "New in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}  # fmt: skip
_TARGET = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
_DIRECTIVE_LINE = re.compile(r"^\s*\.\.(?: \|[^|]*\|)? [\w:+.-]+::[ \t]*|^\s+:[\w -]+:.*$", re.MULTILINE)
_BORDER = re.compile(r"[+|]?[=+-]{3,}[+|]?")
_FACTS = {"author": "author", "authors": "author", "date": "date", "subject": "subject", "keywords": "keywords"}
_SKIPPED = (
    nodes.comment, nodes.target, nodes.substitution_definition, nodes.pending, nodes.raw, nodes.meta, nodes.transition, nodes.title,
    nodes.label,
)  # fmt: skip


def read_rst(data: bytes) -> Extracted:
    """The blocks of a text in UTF-8."""
    _know_all_names()
    reader = _DoctreeReader()
    reader.visit_all(publish_doctree(data.decode(), settings_overrides=_SETTINGS).children)
    return Extracted(reader.blocks, "", reader.language, reader.metadata)


class _AnyOption(dict[str, Any]):
    """The options of a directive. A name that is not known is an option with any value."""

    def __missing__(self, name: str) -> Callable[[str], str]:
        return directives.unchanged  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return True


class _AnyDirective(Directive):  # type: ignore[misc]
    """A directive of another program: its argument and its content are text."""

    has_content, optional_arguments, final_argument_whitespace, option_spec = True, 1, True, _AnyOption()

    def run(self) -> list[Any]:
        name = self.name.lower()
        plain = name.rpartition(":")[2]
        argument = self.arguments[0] if self.arguments else ""
        if plain in _LEFT_OUT:
            return []
        if plain in _CODE:
            return self._code(argument)
        content = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, content)
        if plain in _DESCRIBED:
            return self._described(argument, content)
        if plain in _VERSIONS:
            argument = f"{_VERSIONS[plain]} {argument}"
        if argument.strip() and plain not in _CONDITIONS:
            parsed, messages = self.state.inline_text(argument, self.lineno)
            content.insert(0, [nodes.paragraph("", "", *parsed), *messages])
        return [content]

    def _code(self, language: str) -> list[Any]:
        caption = [nodes.caption("", self.options["caption"])] if self.options.get("caption") else []
        code = nodes.literal_block("", "\n".join(self.content), classes=["code", *language.split()[:1]])
        return [*caption, code] if self.content else caption

    def _described(self, argument: str, content: Any) -> list[Any]:
        """A signature and its description. `class` without either is a style of docutils."""
        if not content.children and "(" not in argument and self.name == "class":
            return []
        term = nodes.term("", " ".join(argument.replace("\\\n", " ").split()))
        item = nodes.definition_list_item("", term, nodes.definition("", *content.children))
        return [nodes.definition_list("", item)]


def _any_role(name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()) -> Any:
    """A role of another program: the text without a target; `~a.b` is `b`."""
    text = text.replace("\0", "\\") if name in ("samp", "file", "command") else text.replace("\0", "")
    if found := _TARGET.fullmatch(text):
        text = found[1]
    text = text.rpartition(".")[2] if text.startswith("~") else text.removeprefix("!")
    return [nodes.inline(rawtext, text)], []


def _know_all_names() -> None:
    """Make docutils take every directive and role. This process reads nothing else with docutils at the same time."""
    if getattr(directives.directive, "takes_all", False):
        return
    known_directive, known_role = directives.directive, roles.role

    def directive(name: str, language: Any, document: Any) -> Any:
        plain = name.lower().rpartition(":")[2]
        found, _ = (None, []) if plain in _CODE | _LEFT_OUT | _DESCRIBED else known_directive(name, language, document)
        if found is None:
            return _AnyDirective, []
        if not found.option_spec:
            return found, []
        return type(found.__name__, (found,), {"option_spec": _AnyOption(found.option_spec)}), []

    def role(name: str, language: Any, lineno: int, reporter: Any) -> Any:
        found, messages = known_role(name, language, lineno, reporter)
        return (found, messages) if found is not None and name != "raw" else (_any_role, [])

    directive.takes_all = True  # type: ignore[attr-defined]
    directives.directive, roles.role = directive, role


class _DoctreeReader:
    """Turns the nodes of a document into blocks."""

    def __init__(self) -> None:
        self.blocks: list[FileBlock] = []
        self.language = ""
        self.metadata: dict[str, Any] = {}
        self._level = 0

    def visit_all(self, children: Iterable[Any], kind: str = "p") -> None:
        for child in children:
            self.visit(child, kind)

    def visit(self, node: Any, kind: str) -> None:
        """Add the blocks of a node; `kind` is that of paragraphs, which the lists and quotations around decide."""
        if isinstance(node, _SKIPPED):
            return
        if isinstance(node, nodes.section):
            self._section(node)
        elif isinstance(node, nodes.system_message):
            self._error(node)
        elif isinstance(node, nodes.table):
            self._table(node)
        elif isinstance(node, nodes.FixedTextElement) and not isinstance(node, nodes.address):
            self._code(node)
        elif isinstance(node, nodes.field_list):
            self._fields(node)
        elif isinstance(node, (nodes.definition_list_item, nodes.option_list_item)):
            self._described(node)
        elif isinstance(node, (nodes.footnote, nodes.citation)):
            label = " ".join(child.astext() for child in node.children if isinstance(child, nodes.label))
            self._labelled(f"[{label}]", node.children, kind)
        elif isinstance(node, nodes.line_block):
            self._add(kind, " ".join(node.astext().split("\n")))
        elif isinstance(node, (nodes.TextElement, nodes.image)):
            self._add("caption" if isinstance(node, nodes.caption) else kind, node.astext())
        else:
            self._holder(node, kind)

    def _holder(self, node: Any, kind: str) -> None:
        if isinstance(node, (nodes.Admonition, nodes.topic, nodes.sidebar)):
            self.visit_all((nodes.paragraph("", child.astext()) for child in node.children if isinstance(child, nodes.title)), kind)
        inner = "li" if isinstance(node, nodes.list_item) else "blockquote" if isinstance(node, nodes.block_quote) else kind
        self.visit_all(node.children, inner)

    def _add(self, kind: str, text: str, note: str = "") -> None:
        if text := " ".join(text.split()):
            self.blocks.append(FileBlock(kind, text, note=note))

    def _section(self, section: Any) -> None:
        self._level += 1
        title = next((" ".join(child.astext().split()) for child in section.children if isinstance(child, nodes.title)), "")
        if title:
            self.blocks.append(FileBlock("heading", title, self._level))
        self.visit_all(section.children)
        self._level -= 1

    def _error(self, message: Any) -> None:
        """What docutils could not read, as text."""
        if message.get("level", 0) < 3:
            return
        for child in message.children:
            if isinstance(child, nodes.literal_block):
                for paragraph in re.split(r"\n\s*\n", _DIRECTIVE_LINE.sub("", child.astext())):
                    self._add("p", _BORDER.sub(" ", paragraph))

    def _code(self, node: Any) -> None:
        if isinstance(node, nodes.math_block):
            self._add("p", node.astext())
            return
        names = [name for name in node.get("classes", ()) if name != "code"]
        if (text := node.astext().strip("\n")).strip():
            language = "python" if isinstance(node, nodes.doctest_block) else names[0] if names else ""
            self.blocks.append(FileBlock("code", text, note="" if language in ("none", "text", "default") else language))

    def _fields(self, fields: Any) -> None:
        of_file = not any(block.kind != "heading" for block in self.blocks) and len(self.blocks) <= 1
        for field in fields.children:
            name, body = (" ".join(child.astext().split()) for child in field.children)
            known = name.lower()
            if of_file and known in _FACTS and body:
                values = [one.strip() for one in re.split(r"[;,]", body) if one.strip()]
                self.metadata[_FACTS[known]] = body if known == "date" else values
            elif of_file and known in ("language", "lang"):
                self.language = body
            elif body and not (of_file and known == "tocdepth"):
                self._labelled(f"{name}:", field.children[1].children, "li")

    def _labelled(self, label: str, children: Iterable[Any], kind: str) -> None:
        """A label before the text of the first paragraph."""
        first = len(self.blocks)
        self.visit_all(children, kind)
        if len(self.blocks) > first and self.blocks[first].kind == kind:
            self.blocks[first] = FileBlock(kind, f"{label} {self.blocks[first].text}")
        else:
            self.blocks.insert(first, FileBlock(kind, label))

    def _described(self, item: Any) -> None:
        *terms, body = item.children
        is_body = isinstance(body, (nodes.definition, nodes.description))
        self._add("dt", " : ".join(term.astext() for term in (terms if is_body else item.children)))
        if is_body:
            self.visit_all(body.children, "dd")

    def _table(self, table: Any) -> None:
        for title in table.children:
            if isinstance(title, nodes.title):
                self._add("caption", title.astext())
        for group in table.findall(nodes.tgroup):
            header = [_row(row) for head in group.children if isinstance(head, nodes.thead) for row in head.children]
            rows = [_row(row) for body in group.children if isinstance(body, nodes.tbody) for row in body.children]
            self.blocks.append(FileBlock("table", "\n".join(filter(None, header)) if rows else ""))
            for text in rows or header:
                self._add("tr", text)


def _row(row: Any) -> str:
    cells = [" ".join(cell.astext().split()) for cell in row.children]
    return " | ".join(cells) if any(cells) else ""
