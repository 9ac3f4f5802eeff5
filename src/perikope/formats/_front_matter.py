"""Front matter: the YAML between two lines `---` at the top of a Markdown file.

Values are read from the events of the YAML parser. No tag creates an object, and an alias counts as everything that it
repeats, so that a small file cannot become a large one.

Plain values follow the core schema of YAML 1.2: only `true` and `false` are Boolean, so that `language: no` stays
Norwegian. A number stays a text if it cannot be written back unchanged (`1.10`, `007`). Dates become texts of ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_VALUES = 10_000
"""The largest number of values in front matter; an alias counts as all values that it repeats."""
MAX_DEPTH = 32
"""The deepest nesting of lists and mappings in front matter."""

_BLOCK = re.compile(r"---[ \t]*\n((?:[ \t]*(?:#.*)?\n)*(?:[\w.-]+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*:(?s:.*?)\n)(?:---|\.\.\.)[ \t]*(?:\n|$)")
_PAIR = re.compile(r"([\w.-]+)[ \t]*:[ \t]+(.*\S)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2})(?::[0-9.]+)?[ \t]*(?:Z|[-+][0-9:]+)?)?")
_LISTS = ("tags", "keywords")
"""Keys whose values are lists; a text is divided at commas."""


class FrontMatter(NamedTuple):
    """The values of front matter, the text after it, and what is wrong with it."""

    values: dict[str, Any]
    text: str
    problem: str = ""
    """Why it is not YAML; empty if it is. Then only its lines of the form `key: value` were read."""
    line: int = 0
    """The number of the line with the problem, from 1."""


def front_matter(text: str) -> FrontMatter:
    r"""Read the front matter of a text.

    >>> front_matter("---\ntitle: Pumps\ntags: a, b\nby: {name: Ada}\ndate: 2013-4-1\n---\nText")[:2]
    ({'title': 'Pumps', 'tags': ['a', 'b'], 'by': {'name': 'Ada'}, 'date': '2013-04-01'}, 'Text')
    >>> front_matter("---\ntitle: Pumps: an overview\n---\nText")[2:]
    ('mapping values are not allowed in this context', 2)
    """
    match = _BLOCK.match(text)
    if match is None:
        return FrontMatter({}, text)
    rest = text[match.end() :]
    try:
        values = _read(match[1])
    except _Broken as error:
        pairs = (_PAIR.fullmatch(line) for line in match[1].split("\n"))
        values = {pair[1]: _unquoted(pair[2]) for pair in pairs if pair}
        return FrontMatter(_usual(values), rest, error.problem, error.line + 2)
    return FrontMatter(_usual(values), rest)


class _Broken(Exception):
    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


def _usual(values: dict[str, Any]) -> dict[str, Any]:
    """The values without empty ones, and with lists for the keys that are lists."""
    for key in _LISTS:
        if isinstance(values.get(key), str):
            values[key] = [item for item in map(str.strip, values[key].split(",")) if item]
    return {key: value for key, value in values.items() if value not in ("", None)}


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _read(text: str) -> dict[str, Any]:
    """The mapping that a YAML text holds; raises `_Broken` if it is not YAML, holds no mapping or is too large."""
    # Imported here, because most files have no front matter.
    import yaml

    builder = _PlainValues()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise _Broken(str(problem).replace("\n", " "), mark.line if mark else 0) from None
    if not isinstance(builder.result, dict):
        raise _Broken("it has no keys", 0)
    return builder.result


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    first: int
    """The number of values that were read before it."""
    key: str | None = None
    """The key of a mapping whose value comes next."""


@dataclass(slots=True)
class _PlainValues:
    """Builds plain values from the events of the YAML parser, without recursion."""

    result: Any = None
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Values with a name, and how many values each of them holds."""
    _count: int = 0

    def take(self, event: Any) -> None:
        """Add one event."""
        match type(event).__name__:
            case "ScalarEvent":
                value = _scalar(event.value) if event.implicit[0] else event.value.rstrip("\n")
                self._named(event.anchor, value, 1)
                self._add(value, 1, event)
            case "AliasEvent":
                # The parser knows no anchors; the name of an unknown one stands for itself.
                self._add(*self._anchors.get(event.anchor, (f"*{event.anchor}", 1)), event)
            case "SequenceStartEvent" | "MappingStartEvent" as name:
                if len(self._open) >= MAX_DEPTH:
                    raise _Broken(f"it is nested deeper than {MAX_DEPTH} levels", event.start_mark.line)
                self._open.append(_Open([] if name.startswith("Seq") else {}, event.anchor, self._count))
            case "SequenceEndEvent" | "MappingEndEvent":
                done = self._open.pop()
                self._named(done.anchor, done.value, self._count - done.first)
                self._add(done.value, 1, event)

    def _named(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)

    def _add(self, value: Any, size: int, event: Any) -> None:
        self._count += size
        if self._count > MAX_VALUES:
            raise _Broken(f"it holds more than {MAX_VALUES:,} values", event.start_mark.line)
        if not self._open:
            self.result = value
            return
        around = self._open[-1]
        if isinstance(around.value, list):
            around.value.append(value)
        elif around.key is None:
            around.key = _key(value)
        else:
            for key, each in _merged(around.key, value):
                around.value[key] = each
            around.key = None


def _merged(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The entries that a pair of key and value adds to a mapping: `<<` adds the entries of another mapping."""
    if key == "<<" and isinstance(value, dict):
        yield from value.items()
    else:
        yield key, value


def _key(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(text: str) -> Any:
    """The value of a plain scalar: None, a Boolean, a number, a date as text, or the text."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    if date := _DATE.fullmatch(text):
        year, month, day, hour, minute = date.groups()
        return f"{year}-{int(month):02d}-{int(day):02d}" + (f"T{int(hour):02d}:{minute}" if hour else "")
    return text
