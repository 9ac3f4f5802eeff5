"""Options of commands stay whole where a line wraps: a browser breaks `--part` after its first hyphen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_COMMANDS = re.compile(r'<div class="highlight-sh .*?</pre>', re.S)
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def keep_options_whole(body: str) -> str:
    """The HTML of a page with every option of its commands in an element that does not wrap."""
    return _COMMANDS.sub(lambda block: _OPTION.sub(r'<span class="option">\g<0></span>', block[0]), body)


def _change(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    if "body" in context:
        context["body"] = keep_options_whole(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("html-page-context", _change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
