"""How a passage is written in files: `document#passage`, split at the last `#`.

Everywhere else a passage is two columns. Inside an id, `#`, `%` and white space are percent-encoded; a passage without an id of its
own is `@3`, its running number in the document, counted from 1.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_UNSAFE = re.compile(r"[#%\s\x00-\x1f\x7f]")


def encode(text: str) -> str:
    """Percent-encode what would break a name or a line.

    >>> encode("EP 1#2")
    'EP%201%232'
    """
    return _UNSAFE.sub(lambda match: quote(match.group(), safe=""), text)


def passage_name(document: str, passage: str) -> str:
    """The name of a passage in files.

    >>> passage_name("report 7", "p3")
    'report%207#p3'
    """
    return f"{encode(document)}#{encode(passage)}"


def split_name(name: str) -> tuple[str, str]:
    """Document id and passage id of a name; the passage is empty for the name of a document.

    >>> split_name("report%207#p3"), split_name("d1")
    (('report 7', 'p3'), ('d1', ''))
    """
    document, mark, passage = name.rpartition("#")
    return (unquote(document), unquote(passage)) if mark else (unquote(name), "")


def document_name(name: str) -> str:
    """The document's half of a name, still encoded.

    >>> document_name("report%207#p3")
    'report%207'
    """
    return name.rpartition("#")[0] or name


def running_number(number: int) -> str:
    """The id of the passage with this number (from 0) where the source gives none."""
    return f"@{number + 1}"
