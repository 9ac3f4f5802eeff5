"""The table `[patent]` of a profile: where a schema has its bibliographic data, its description and its claims."""

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
"""Country, number, kind and date of a publication or an application, as the file has them."""
_NUMBER_KEYS = ("path", "country", "number", "kind", "date", "words")


@dataclass(frozen=True, slots=True)
class NumberField:
    """Where numbers of patents stand: in elements whose parts XPaths find, or in the words of a text."""

    path: etree.XPath
    parts: tuple[etree.XPath, etree.XPath, etree.XPath, etree.XPath]
    """XPaths of country, number, kind and date inside each element."""
    words: bool = False

    def values(self, root: Element) -> list[Parts]:
        """The parts of each number; if an element holds several, the second date belongs to the second number."""
        if self.words:
            return [(*parts, "") for element in elements(self.path, root) for parts in cited_patents(text_of(element))]
        return [parts for element in elements(self.path, root) for parts in self._in(element)]

    def _in(self, element: Element) -> list[Parts]:
        results = [[text_of(item) if isinstance(item, etree._Element) else item for item in items(path, element)] for path in self.parts]
        country, numbers, kind, date = results
        return [(_at(country, index), number, _at(kind, index), _at(date, index)) for index, number in enumerate(numbers)]


def _at(values: list[str], index: int) -> str:
    """The value that belongs to the number with this index; one value belongs to all."""
    return values[0] if len(values) == 1 else values[index] if index < len(values) else ""


@dataclass(eq=False, repr=False)
class NumberValue(ValueKind):
    """An XPath, or a table of `path`, `country`, `number`, `kind`, `date` and `words`."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return f"an XPath or a table with the keys {', '.join(_NUMBER_KEYS)}"

    def check(self, name: str, value: Any) -> NumberField:
        """The compiled field; the parts are by default the children `country`, `doc-number`, `kind` and `date`."""
        content = table_of_path(name, value, _NUMBER_KEYS)
        country, number, kind, date = (
            XPATH.check(f"{name} ({key})", content.get(key, child))
            for key, child in (("country", "country"), ("number", "doc-number"), ("kind", "kind"), ("date", "date"))
        )
        words = Switch().check(f"{name} (words)", content.get("words", False))
        return NumberField(XPATH.check(name, content["path"]), (country, number, kind, date), words)

    def schema(self) -> dict[str, Any]:
        """A string or an object."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "properties": {key: {} for key in _NUMBER_KEYS}, "required": ["path"]}]}


@dataclass(frozen=True, slots=True)
class TitleField:
    """Where titles stand, and what says their language."""

    path: etree.XPath
    language: tuple[etree.XPath, ...] = ()

    def values(self, root: Element) -> list[tuple[str, Element]]:
        """The language, as the file writes it, and the element of each title that has text."""
        return [(first_text(self.language, element), element) for element in elements(self.path, root) if text_of(element)]


@dataclass(eq=False, repr=False)
class TitleValue(ValueKind):
    """An XPath, or a table of `path` and `language`."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "an XPath or a table with the keys path, language"

    def check(self, name: str, value: Any) -> TitleField:
        """The compiled field; the language is by default in the attribute `lang`."""
        content = table_of_path(name, value, ("path", "language"))
        return TitleField(XPATH.check(name, content["path"]), XPATHS.check(f"{name} (language)", content.get("language", "@lang")))

    def schema(self) -> dict[str, Any]:
        """A string or an object."""
        return {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"path": {}, "language": {}}, "required": ["path"]}]}


NUMBERS = PathList(NumberValue(), "XPaths or tables of a path")
TITLES = PathList(TitleValue(), "XPaths or tables of a path")


@dataclass(frozen=True, kw_only=True)
class PatentKeys(Table):
    """The keys of the table `[patent]`. XPaths start at the root unless their sentence names another element."""

    numbers: str = option(
        "docdb", OneOf(("docdb", "uspto")), "How numbers are written: as in DOCDB, or in the fixed widths of the US office."
    )
    publication: tuple[NumberField, ...] = option((), NUMBERS, "Number of the publication; the first number found is used.")
    application: tuple[NumberField, ...] = option((), NUMBERS, "Number of the application; the first number found is used.")
    priorities: tuple[NumberField, ...] = option((), NUMBERS, "Applications whose date the patent claims; all values are used.")
    family: tuple[Field, ...] = option((), FIELDS, "Number of the family; by default the earliest priority, else the application.")
    titles: tuple[TitleField, ...] = option((), TITLES, "Titles with their languages; the one in the document's language is its title.")
    ipc: tuple[Field, ...] = option((), FIELDS, "Codes of the International Patent Classification (IPC); all values are used.")
    cpc: tuple[Field, ...] = option((), FIELDS, "Codes of the Cooperative Patent Classification (CPC); all values are used.")
    ecla: tuple[Field, ...] = option((), FIELDS, "Codes of the European Classification (ECLA); all values are used.")
    uspc: tuple[Field, ...] = option((), FIELDS, "Codes of the US classification, in the form 15/327.6; all values are used.")
    applicants: tuple[etree.XPath, ...] = option((), XPATHS, "Elements of the applicants; the first XPath that finds any is used.")
    inventors: tuple[etree.XPath, ...] = option((), XPATHS, "Elements of the inventors; the first XPath that finds any is used.")
    assignees: tuple[etree.XPath, ...] = option((), XPATHS, "Elements of the assignees; the first XPath that finds any is used.")
    name: tuple[Field, ...] = option(
        (Field(compiled(".")),), FIELDS, "Name inside the element of a person or an organisation; the first value that has text is used."
    )
    cites: tuple[NumberField, ...] = option((), NUMBERS, "Patents that the bibliographic data cite; all values are used.")
    cites_in_text: tuple[NumberField, ...] = option(
        (), NUMBERS, "Patents that a passage cites, from the element of the passage; all values are used."
    )
    literature: tuple[Field, ...] = option((), FIELDS, "Other documents that the patent cites; all values are used.")

    bibliography: tuple[str, ...] = option(("bibliographic-data",), TEXTS, "Tags of the bibliographic data; they become one section.")
    description: tuple[str, ...] = option(("description",), TEXTS, "Tags of the description, which must be sections.")
    paragraphs: tuple[str, ...] = option(
        ("p",), TEXTS, "Tags of paragraphs, which must be passages. Those of the description are numbered, and may be headings."
    )
    paragraph_number: tuple[etree.XPath, ...] = option(
        (compiled("@num"),), XPATHS, "Number of a paragraph, from the element of the paragraph; digits only."
    )
    printed: etree.XPath = option(compiled("true()"), XPATH, "Whether paragraphs are printed with their numbers, so that people cite them.")
    heading_level: str = option("", Text(), "Attribute with the level of a heading; ignored if all headings of a document have the same.")
    claim_sets: tuple[str, ...] = option(("claims",), TEXTS, "Tags of the claims in one language, which must be sections.")
    claims: tuple[str, ...] = option(("claim",), TEXTS, "Tags of a claim, which must be passages.")
    claim_number: tuple[etree.XPath, ...] = option(
        (compiled("@num"),), XPATHS, "Number of a claim, from the element of the claim; by default claims are counted."
    )
    claim_references: Mapping[str, str] = free_table(
        FilledText(), "Tags that refer to claims, with the attribute that holds the claim's id."
    )
