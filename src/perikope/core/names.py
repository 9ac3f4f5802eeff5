"""The names of passages in files: `document#passage`, split at the last `#`.

Inside an id, `#`, `%`, white space, control characters and invisible ones are percent-encoded, so that a name can be
copied from a terminal. A passage without an id is named by its number in the document, from 1: `@3`. An element is
named by its path from the document down: `/article[1]/sec[2]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from perikope.core.characters import is_invisible
from perikope.core.errors import UsageError

_UNSAFE = re.compile(r"[#%\s\x00-\x1f\x7f-\x9f]")
_UNSAFE_IN_PATH = re.compile(r"[%/\[\]]")
_STEP = re.compile(r"([^\s/\[\]@]+)(?:\[(0*[1-9][0-9]{0,8})\])?")


def encode(text: str) -> str:
    """Percent-encode `#`, `%`, white space and control characters, which would break a name or a line.

    Invisible characters are encoded, too, since a terminal would drop them, or turn the text after them.

    >>> encode("EP 1#2"), encode("a\\u202eb")
    ('EP%201%232', 'a%E2%80%AEb')
    """
    encoded = _UNSAFE.sub(lambda match: quote(match.group(), safe=""), text)
    return encoded if encoded.isprintable() else "".join(map(_visible, encoded))


def _visible(character: str) -> str:
    return quote(character, safe="") if is_invisible(character) else character


def passage_name(document: str, passage: str) -> str:
    """The name of a passage in files, from the ids of its document and the passage.

    >>> passage_name("report 7", "p3")
    'report%207#p3'
    """
    return f"{encode(document)}#{encode(passage)}"


def split_name(name: str) -> tuple[str, str]:
    """Split a name into document id and passage id. The passage id is empty if the name has no `#`.

    >>> split_name("report%207#p3"), split_name("d1")
    (('report 7', 'p3'), ('d1', ''))
    """
    document, mark, passage = name.rpartition("#")
    return (unquote(document), unquote(passage)) if mark else (unquote(name), "")


def document_name(name: str) -> str:
    """The part of a name before the last `#`, still percent-encoded; the whole name if it has no `#`.

    >>> document_name("report%207#p3")
    'report%207'
    """
    return name.rpartition("#")[0] or name


def running_number(number: int) -> str:
    """The id of a passage that has no id in its source, such as `@3`. `number` counts from 0, the id from 1."""
    return f"@{number + 1}"


def element_path(steps: Iterable[tuple[str, int]]) -> str:
    """The path of an element, from the tags of the document down to the element.

    Each step is a tag and its number, from 1, among the siblings with the same tag.

    >>> element_path([("article", 1), ("sec", 2)])
    '/article[1]/sec[2]'
    """
    return "".join(f"/{_UNSAFE_IN_PATH.sub(lambda match: quote(match.group(), safe=''), tag) or '*'}[{number}]" for tag, number in steps)


def normal_path(path: str) -> str:
    """Normalise the path of an element: a step without a number gets `[1]`, so that equal paths are equal texts.

    >>> normal_path("/patent-document/claims/claim[3]")
    '/patent-document[1]/claims[1]/claim[3]'
    """
    steps = [_STEP.fullmatch(step) for step in path[1:].split("/")]
    if not path.startswith("/") or not all(steps):
        raise UsageError(f"{path[:80]!r} is not the path of an element; write it as /patent-document/claims/claim[3]")
    return "".join(f"/{step[1]}[{int(step[2] or 1)}]" for step in steps if step)


def is_element_path(passage: str) -> bool:
    """Whether the passage part of a name is the path of an element."""
    return passage.startswith("/")
