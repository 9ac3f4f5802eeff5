"""XPaths in profiles: evaluates them on a document, and checks them when a profile is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from lxml import etree

from perikope.core.composed_values import ListOf
from perikope.core.dates import iso_date
from perikope.core.errors import UsageError, unknown
from perikope.core.values import Text, ValueKind
from perikope.formats._xml import whole_text
from perikope.patents.uspto_numbers import ipc, us_class

Element = etree._Element

NAMESPACES = {"xml": "http://www.w3.org/XML/1998/namespace", "xlink": "http://www.w3.org/1999/xlink"}
"""Namespaces of the prefixes that attributes may have in a profile."""


class Path(etree.XPath):
    """A compiled XPath.

    The forms `.`, `@name`, `name` and `descendant::name` are evaluated without the XPath machine.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, namespaces={"xlink": NAMESPACES["xlink"]}, smart_strings=False)
        simple = _SIMPLE.fullmatch(path)
        self.is_self = path == "."
        self.attribute, self.child, self.descendant = simple.groups("") if simple else ("", "", "")
        spread = _SPREAD.fullmatch(path)
        self.is_spread = spread is not None
        """Whether whatever it finds in an element it also finds in every element around it."""
        self._is_or_self = spread is not None and "self::" in spread["axis"]
        self._further_steps = len(_FURTHER_STEP.findall(spread["further"])) if spread else 0

    def finders(self, found: Element) -> Iterator[Element]:
        """Yield the elements from which a spread path finds the element `found`, from the innermost outwards."""
        first = found
        for _ in range(self._further_steps):
            first = cast(Element, first.getparent())
        if self._is_or_self:
            yield first
        yield from first.iterancestors()


_NAME = r"[A-Za-z_][\w.-]*"
_CONDITION = rf"(?:@{_NAME}(?:='[^']*')?|self::{_NAME})"
_STEP = rf"(?:{_NAME}|\*)(?:\[{_CONDITION}(?: or {_CONDITION})*\])*"
_SPREAD = re.compile(rf"(?P<axis>\.//|descendant(?:-or-self)?::){_STEP}(?P<further>(?:/{_STEP})*)", re.ASCII)
_FURTHER_STEP = re.compile(f"/{_STEP}", re.ASCII)
_SIMPLE = re.compile(rf"@({_NAME})|({_NAME})|descendant::({_NAME})", re.ASCII)


def text_of(element: Element) -> str:
    """The text of an element as one line, with collapsed white space."""
    return " ".join(whole_text(element).split())


def items(path: etree.XPath, element: Element) -> list[Element | str]:
    """The results of an XPath on an element: elements, or texts if it finds attributes or text, or computes a value."""
    if type(path) is Path:
        if path.attribute:
            value = element.get(path.attribute)
            return [] if value is None else [value]
        if path.child:
            return list(element.iterchildren(path.child))
        if path.is_self:
            return [element]
        if path.descendant:
            # lxml knows all names of a document, so a name that does not occur is not searched.
            return list(element.iterdescendants(path.descendant))
    try:
        result = path(element)
    except etree.XPathError as error:
        raise UsageError(f"the XPath {path.path!r} of a profile cannot be evaluated ({error}); change it") from None
    return [item if isinstance(item, etree._Element) else str(item) for item in (result if isinstance(result, list) else [result])]


def is_true(path: etree.XPath, element: Element) -> bool:
    """Whether an XPath finds anything, or computes a value other than false, 0 and the empty text."""
    if type(path) is Path and path.descendant:
        return next(element.iterdescendants(path.descendant), None) is not None
    return bool(path(element))


def texts(path: etree.XPath, element: Element) -> list[str]:
    """The results of an XPath as texts of one line each, without empty texts."""
    if type(path) is Path and path.attribute:
        line = " ".join((element.get(path.attribute) or "").split())
        return [line] if line else []
    lines = (text_of(item) if isinstance(item, etree._Element) else " ".join(item.split()) for item in items(path, element))
    return [line for line in lines if line]


def elements(path: etree.XPath, element: Element) -> list[Element]:
    """The elements that an XPath finds; results of other types are ignored."""
    return [item for item in items(path, element) if isinstance(item, etree._Element)]


def first_text(paths: tuple[etree.XPath, ...], element: Element) -> str:
    """The first text that the first successful XPath finds; empty if no XPath finds a text."""
    return next((text for path in paths for text in texts(path, element)), "")


def with_all_around(elements: Iterable[Element]) -> set[Element]:
    """Some elements, and all elements around them."""
    found: set[Element] = set()
    for element in elements:
        around: Element | None = element
        while around is not None and around not in found:
            found.add(around)
            around = around.getparent()
    return found


def attribute_name(name: str) -> str:
    """The name of an attribute as lxml writes it: `xml:lang` becomes `{http://www.w3.org/XML/1998/namespace}lang`."""
    prefix, _, local = name.rpartition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}" if prefix in NAMESPACES else name


def compiled(path: str) -> etree.XPath:
    """Compile an XPath; raises `UsageError` for a syntax error, an unknown function or an unknown prefix."""
    try:
        xpath = Path(path)
        # libxml2 looks up functions and prefixes only when the expression is evaluated.
        xpath(etree.Element("nothing"))
    except etree.XPathError as error:
        raise UsageError(f"{path!r} is not an XPath ({error}); correct it") from None
    return xpath


@dataclass(frozen=True, slots=True)
class Field:
    """Where a file has a value, and how the value is converted."""

    path: etree.XPath
    join: tuple[etree.XPath, ...] = ()
    """XPaths inside each element that `path` finds; their first texts are joined. By default the whole text is used."""
    between: str = " "
    """The text between joined texts."""
    form: Callable[[str], str] = str
    """Converts a text to the value; an empty result is left out."""
    is_raw: bool = False
    """Whether `form` gets the text with its white space, as codes in fixed width need; else it is collapsed."""

    def values(self, element: Element) -> list[str]:
        """The values that the field finds, starting from an element; empty values are left out."""
        return [value for value, _ in self.located(element)]

    def located(self, element: Element) -> list[tuple[str, Element | None]]:
        """Pairs of a value that the field finds, starting from `element`, and the element that holds the value.

        Empty values are left out. The second item is None if `path` finds an attribute or a text instead of an element.
        """
        values = []
        for item in items(self.path, element):
            holder = item if isinstance(item, etree._Element) else None
            text = self._text(item)
            if text and (value := self.form(text)):
                values.append((value, holder))
        return values

    def _text(self, item: Element | str) -> str:
        if self.join:
            parts = [text for path in self.join for text in texts(path, item)[:1]] if isinstance(item, etree._Element) else []
            return self.between.join(parts)
        text = whole_text(item) if isinstance(item, etree._Element) else item
        return text if self.is_raw else " ".join(text.split())


def _stem(text: str) -> str:
    return PurePosixPath(text).stem


_FORMS: Mapping[str, Callable[[str], str]] = {"date": iso_date, "stem": _stem, "uspto-class": us_class, "uspto-ipc": ipc}
_RAW = ("uspto-class", "uspto-ipc")
_KEYS = ("path", "join", "between", "form")


def table_of_path(name: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """Check a value that is an XPath or a table with `path` and some of `keys`, and return it as a table.

    `name` is the key of the profile, for errors.
    """
    content = {"path": value} if isinstance(value, str) else value
    if not isinstance(content, Mapping):
        raise UsageError(f"{name} must be an XPath or a table with the keys {', '.join(keys)}")
    for key in content:
        if key not in keys:
            raise UsageError(f"{name} has an {unknown('key', key, keys)}")
    if "path" not in content:
        raise UsageError(f"{name} has no path; add path with the XPath of the value")
    return content


@dataclass(eq=False, repr=False)
class XPathText(ValueKind):
    """The kind of values that are XPaths."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "an XPath"

    def check(self, name: str, value: Any) -> etree.XPath:
        """The compiled XPath."""
        if isinstance(value, etree.XPath):
            return value
        if not isinstance(value, str):
            raise self.refuse(name, value)
        try:
            return compiled(value)
        except UsageError as error:
            raise UsageError(f"{name} is wrong: {error}") from None

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string."""
        return {"type": "string"}


@dataclass(eq=False, repr=False)
class PathList(ListOf):
    """The kind of values that are lists of XPaths, or of tables with the key `path`.

    A single item may be written without a list. Unlike with `ListOf`, the error for a wrong single item is then about
    the item, not about a list.
    """

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """The compiled items of the list, as a tuple."""
        return super().check(name, value) if isinstance(value, list | tuple) else (self.item.check(name, value),)


XPATH = XPathText()
XPATHS = PathList(XPATH, "XPaths")


@dataclass(eq=False, repr=False)
class FieldValue(ValueKind):
    """The kind of values that say where a value is: an XPath, or a table with `path`, `join`, `between` and `form`."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return f"an XPath or a table with the keys {', '.join(_KEYS)}"

    def check(self, name: str, value: Any) -> Field:
        """The field with compiled XPaths."""
        content = table_of_path(name, value, _KEYS)
        join, form = XPATHS.check(f"{name} (join)", content.get("join", ())), content.get("form", "{}")
        between = Text().check(f"{name} (between)", content.get("between", " "))
        return Field(XPATH.check(name, content["path"]), join, between, _form(f"{name} (form)", form), form in _RAW)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string or an object."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "properties": {key: {} for key in _KEYS}, "required": ["path"]}]}


FIELD = FieldValue()
FIELDS = PathList(FIELD, "XPaths or tables with a path")


def _form(name: str, form: object) -> Callable[[str], str]:
    if isinstance(form, str) and form in _FORMS:
        return _FORMS[form]
    if not isinstance(form, str) or form.count("{}") != 1:
        raise UsageError(f"{name} must be {', '.join(_FORMS)} or a text with {{}} once, in place of the value")
    return lambda text: form.replace("{}", text)


@dataclass(eq=False, repr=False)
class Pattern(ValueKind):
    """The kind of values that are regular expressions."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a regular expression"

    def check(self, name: str, value: Any) -> re.Pattern[str]:
        """The compiled expression."""
        if not isinstance(value, str):
            raise self.refuse(name, value)
        try:
            return re.compile(value)
        except (re.error, RecursionError) as error:
            raise UsageError(f"{name} is not a regular expression ({error}); correct it") from None

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string."""
        return {"type": "string"}
