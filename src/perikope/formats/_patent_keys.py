"""The table `[patent]` of a profile: where a file has the bibliographic data, the description and the claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from perikope.core.composed_values import TEXTS, FilledText
from perikope.core.configuration import Table, free_table
from perikope.core.options import option
from perikope.core.values import OneOf, Switch, Text, ValueKind
from perikope.formats._xpaths import (
    FIELDS,
    XPATH,
    XPATHS,
    Element,
    Field,
    PathList,
    compiled,
    elements,
    first_text,
    items,
    table_of_path,
    text_of,
)  # fmt: skip
from perikope.patents.mentions import cited_patents

Parts = tuple[str, str, str, str]
"""Country, number, kind and date of a publication or an application, as the file writes them."""
_NUMBER_KEYS = ("path", "country", "number", "kind", "date", "words")


@dataclass(frozen=True, slots=True)
class NumberField:
    """Where a file has numbers of patents: in elements with one child per part, or in running text."""

    path: etree.XPath
    parts: tuple[etree.XPath, etree.XPath, etree.XPath, etree.XPath]
    """XPaths of country, number, kind and date, relative to each element that `path` finds."""
    words: bool = False
    """Whether the numbers stand in running text, such as `EP-A-0 619 947`; `parts` is then ignored."""

    def values(self, root: Element) -> list[Parts]:
        """The parts of each number that is found.

        If an element holds several numbers, the second country, kind and date belong to the second number, and so on.
        """
        return [parts for element in elements(self.path, root) for parts in self.of(element)]

    def of(self, element: Element) -> list[Parts]:
        """The parts of the numbers in an element that `path` finds."""
        if self.words:
            return [(*parts, "") for parts in cited_patents(text_of(element))]
        results = [[text_of(item) if isinstance(item, etree._Element) else item for item in items(path, element)] for path in self.parts]
        country, numbers, kind, date = results
        return [(_at(country, index), number, _at(kind, index), _at(date, index)) for index, number in enumerate(numbers)]


def _at(values: list[str], index: int) -> str:
    """The value that belongs to the number with this index; empty if it is missing.

    A single value belongs to all numbers.
    """
    return values[0] if len(values) == 1 else values[index] if index < len(values) else ""


@dataclass(eq=False, repr=False)
class NumberValue(ValueKind):
    """The kind of values that say where numbers of patents are.

    A value is an XPath, or a table with `path`, `country`, `number`, `kind`, `date` and `words`.
    """

    def describe(self) -> str:
        """The accepted values, in words."""
        return f"an XPath or a table with the keys {', '.join(_NUMBER_KEYS)}"

    def check(self, name: str, value: Any) -> NumberField:
        """The field with compiled XPaths.

        By default the parts of a number are the children `country`, `doc-number`, `kind` and `date`.
        """
        content = table_of_path(name, value, _NUMBER_KEYS)
        country, number, kind, date = (
            XPATH.check(f"{name} ({key})", content.get(key, child))
            for key, child in (("country", "country"), ("number", "doc-number"), ("kind", "kind"), ("date", "date"))
        )
        words = Switch().check(f"{name} (words)", content.get("words", False))
        return NumberField(XPATH.check(name, content["path"]), (country, number, kind, date), words)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string or an object."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "properties": {key: {} for key in _NUMBER_KEYS}, "required": ["path"]}]}


@dataclass(frozen=True, slots=True)
class TitleField:
    """Where a file has titles, and XPaths that find the language of a title."""

    path: etree.XPath
    language: tuple[etree.XPath, ...] = ()

    def values(self, root: Element) -> list[tuple[str, Element]]:
        """For each title that has text: its language as the file writes it (empty if missing), and its element."""
        return [(first_text(self.language, element), element) for element in elements(self.path, root) if text_of(element)]


@dataclass(eq=False, repr=False)
class TitleValue(ValueKind):
    """The kind of values that say where titles are: an XPath, or a table with `path` and `language`."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "an XPath or a table with the keys path, language"

    def check(self, name: str, value: Any) -> TitleField:
        """The field with compiled XPaths. By default the attribute `lang` of a title has its language."""
        content = table_of_path(name, value, ("path", "language"))
        return TitleField(XPATH.check(name, content["path"]), XPATHS.check(f"{name} (language)", content.get("language", "@lang")))

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string or an object."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"path": {}, "language": {}}, "required": ["path"]}]}


NUMBERS = PathList(NumberValue(), "XPaths or tables with a path")
TITLES = PathList(TitleValue(), "XPaths or tables with a path")


@dataclass(frozen=True, kw_only=True)
class PatentKeys(Table):
    """The keys of the table `[patent]`. XPaths are relative to the root, unless the help text names another element."""

    numbers: str = option(
        "docdb", OneOf(("docdb", "uspto")), "How the file writes numbers: `docdb`, or `uspto` for the fixed widths of the US patent office."
    )
    publication: tuple[NumberField, ...] = option(
        (), NUMBERS, "XPaths of elements with the number of the publication; the first number found is used."
    )
    application: tuple[NumberField, ...] = option(
        (), NUMBERS, "XPaths of elements with the number of the application; the first number found is used."
    )
    priorities: tuple[NumberField, ...] = option(
        (), NUMBERS, "XPaths of elements with numbers of applications whose priority the patent claims; all numbers are used."
    )
    family: tuple[Field, ...] = option(
        (),
        FIELDS,
        "XPaths that find the id of the patent family. Without an id, the family is the earliest priority, else the application.",
    )
    titles: tuple[TitleField, ...] = option(
        (),
        TITLES,
        "XPaths of titles. The one in the document's language becomes the document's title, else the English one, else the first one.",
    )
    ipc: tuple[Field, ...] = option(
        (), FIELDS, "XPaths that find codes of the International Patent Classification (IPC); all codes are used."
    )
    cpc: tuple[Field, ...] = option(
        (), FIELDS, "XPaths that find codes of the Cooperative Patent Classification (CPC); all codes are used."
    )
    ecla: tuple[Field, ...] = option((), FIELDS, "XPaths that find codes of the European Classification (ECLA); all codes are used.")
    uspc: tuple[Field, ...] = option(
        (), FIELDS, "XPaths that find codes of the US classification; all codes are used. The form `uspto-class` converts them to 15/327.6."
    )
    applicants: tuple[etree.XPath, ...] = option(
        (), XPATHS, "XPaths of the elements of applicants; the first XPath that finds a name is used."
    )
    inventors: tuple[etree.XPath, ...] = option(
        (), XPATHS, "XPaths of the elements of inventors; the first XPath that finds a name is used."
    )
    assignees: tuple[etree.XPath, ...] = option(
        (), XPATHS, "XPaths of the elements of assignees; the first XPath that finds a name is used."
    )
    name: tuple[Field, ...] = option(
        (Field(compiled(".")),),
        FIELDS,
        "XPaths, from the element of an applicant, inventor or assignee, that find the name; the first one that finds text is used.",
    )
    cites: tuple[NumberField, ...] = option(
        (), NUMBERS, "XPaths of elements with numbers of patents that the bibliographic data cite; all numbers are used."
    )
    cites_in_text: tuple[NumberField, ...] = option(
        (),
        NUMBERS,
        "XPaths, from the element of a passage, of elements with numbers of patents that the passage cites; all numbers are used.",
    )
    literature: tuple[Field, ...] = option((), FIELDS, "XPaths that find cited documents that are not patents; all values are used.")

    bibliography: tuple[str, ...] = option(
        ("bibliographic-data",), TEXTS, "Tags that hold the bibliographic data, which becomes one section."
    )
    description: tuple[str, ...] = option(("description",), TEXTS, "Tags of the description; the profile must list them under sections.")
    paragraphs: tuple[str, ...] = option(
        ("p",),
        TEXTS,
        "Tags of paragraphs; the profile must list them under passages. In the description, paragraphs have numbers and may be headings.",
    )
    paragraph_number: tuple[etree.XPath, ...] = option(
        (compiled("@num"),),
        XPATHS,
        "XPaths, from the element of a paragraph, that find its number; a value that is not all digits is ignored.",
    )
    printed: etree.XPath = option(
        compiled("true()"), XPATH, "XPath that is true if the publication is printed with paragraph numbers, so that people cite by them."
    )
    heading_level: str = option(
        "", Text(), "Attribute with the level of a heading; ignored if all headings of a document have the same value."
    )
    claim_sets: tuple[str, ...] = option(
        ("claims",), TEXTS, "Tags of a set of claims in one language; the profile must list them under sections."
    )
    claims: tuple[str, ...] = option(("claim",), TEXTS, "Tags of a claim; the profile must list them under passages.")
    claim_number: tuple[etree.XPath, ...] = option(
        (compiled("@num"),),
        XPATHS,
        "XPaths, from the element of a claim, that find its number; a claim without a number gets the next number.",
    )
    claim_references: Mapping[str, str] = free_table(
        FilledText(), "Tags that refer to claims, with the attribute that holds the claim's id."
    )
