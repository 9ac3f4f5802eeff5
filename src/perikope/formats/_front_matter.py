"""Front matter: YAML between two lines `---`, or TOML between two lines `+++`, at the top of a Markdown file.

Values of YAML are read from the events of the YAML parser. No tag creates an object, and an alias counts as everything
that it repeats, so that a small file cannot become a large one.

Plain values of YAML follow the core schema of YAML 1.2: only `true` and `false` are Boolean, so that `language: no`
stays Norwegian. A number stays a text if it cannot be written back unchanged (`1.10`, `007`). Dates of YAML and TOML
become texts of ISO 8601.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_VALUES = 10_000
"""The largest number of values in front matter; an alias counts as all values that it repeats."""
MAX_DEPTH = 32
"""The deepest nesting of lists and mappings in front matter."""

_BLOCK = re.compile(r"---[ \t]*\n((?:[ \t]*(?:#.*)?\n)*(?:[\w.-]+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*:(?s:.*?)\n)(?:---|\.\.\.)[ \t]*(?:\n|$)")
_TOML_BLOCK = re.compile(
    r"\+\+\+[ \t]*\n((?:[ \t]*(?:#.*)?\n)*[ \t]*(?:(?:[\w.-]+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*=|\[[^\n]*\][ \t]*(?=[\n#]))(?s:.*?)\n)"
    r"\+\+\+[ \t]*(?:\n|$)"
)
_TOML_PAIR = re.compile(r"([\w-]+)[ \t]*=[ \t]*(.*\S)")
_TOML_PLACE = re.compile(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")
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
    """What is wrong, and what is read instead; empty if all is well."""
    line: int = 0
    """The number of the line with the problem, from 1."""


def front_matter(text: str) -> FrontMatter:
    r"""Read the front matter of a text.

    >>> front_matter("---\ntitle: Pumps\ntags: a, b\nby: {name: Ada}\ndate: 2013-4-1\n---\nText")[:2]
    ({'title': 'Pumps', 'tags': ['a', 'b'], 'by': {'name': 'Ada'}, 'date': '2013-04-01'}, 'Text')
    >>> front_matter("+++\ntitle = 'Pumps'\ndate = 2013-04-01\n+++\nText")[:2]
    ({'title': 'Pumps', 'date': '2013-04-01'}, 'Text')
    >>> print(front_matter("---\ntitle: Pumps: an overview\n---\nText").problem)
    not valid YAML (mapping values are not allowed in this context); only its lines of the form `key: value` are used
    """
    for block, syntax, read, read_lines, form in (
        (_BLOCK, "YAML", _read, _lines, "key: value"),
        (_TOML_BLOCK, "TOML", _read_toml, _toml_lines, "key = value"),
    ):
        if match := block.match(text):
            rest = text[match.end() :]
            try:
                return FrontMatter(_usual(read(match[1])), rest)
            except _Broken as error:
                problem = f"not valid {syntax} ({error.problem}); only its lines of the form `{form}` are used"
                return FrontMatter(_usual(read_lines(match[1])), rest, problem, error.line + 2)
    return FrontMatter({}, text)


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


def _lines(text: str) -> dict[str, Any]:
    """The values of the lines `key: value` of broken YAML."""
    pairs = (_PAIR.fullmatch(line) for line in text.split("\n"))
    return {pair[1]: _unquoted(pair[2]) for pair in pairs if pair}


def _toml_lines(text: str) -> dict[str, Any]:
    """The values of the lines `key = value` of broken TOML, up to the first table."""
    values: dict[str, Any] = {}
    for line in text.split("\n"):
        if line.startswith("["):
            break
        if pair := _TOML_PAIR.fullmatch(line):
            try:
                values |= _read_toml(line)
            except _Broken:
                # The first line of a list, a table or a longer text is no value.
                if not pair[2].startswith(("[", "{", '"""', "'''")):
                    values[pair[1]] = _unquoted(pair[2])
    return values


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


def _read_toml(text: str) -> dict[str, Any]:
    """The mapping that a TOML text holds; raises `_Broken` if it is not TOML or is too large."""
    # Imported here, because most files have no front matter.
    import tomllib

    try:
        values = tomllib.loads(text)
        if _size(values) > MAX_VALUES:
            raise _Broken(f"it holds more than {MAX_VALUES:,} values", 0)
        return {key: _plain(value) for key, value in values.items()}
    except ValueError as error:  # also a number with thousands of digits
        place = _TOML_PLACE.search(str(error))
        problem = _TOML_PLACE.sub("", str(error))
        # An error at the end is an error of the last line.
        raise _Broken(problem, int(place[1]) - 1 if place and place[1] else text.rstrip("\n").count("\n")) from None
    except RecursionError:
        raise _Broken(f"it is nested deeper than {MAX_DEPTH} levels", 0) from None


def _size(values: dict[str, Any]) -> int:
    """The number of values in a mapping of TOML; raises `_Broken` if it is nested too deeply."""
    level: list[Any] = [values]
    count = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _Broken(f"it is nested deeper than {MAX_DEPTH} levels", 0)
        inside = [each for value in level for each in (value.values() if isinstance(value, dict) else value)]
        count += len(inside)
        level = [value for value in inside if isinstance(value, (dict, list))]
    return count


def _plain(value: Any) -> Any:
    """A value of TOML as YAML would give it."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case datetime.datetime():
            return value.replace(tzinfo=None).isoformat(timespec="minutes")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bool():
            return value
        case int() if not _WHOLE.fullmatch(str(value)):
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
    return value


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
