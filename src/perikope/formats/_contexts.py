"""The rules of a profile by the tags around an element, each looked up once per profile.

A rule depends on the tag of an element and on the few tags around it that the profile names. A context stands for these
tags. It has the rule of each tag inside it, and the context inside such an element:

    rule, inside = context[element.tag]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from perikope.formats._profile import Rule

Element = etree._Element
Rules = Mapping[str, tuple[tuple[tuple[str, ...], "Rule"], ...]]


class TagContext(dict[str, tuple["Rule", "TagContext"]]):
    """The rules of tags, and the contexts inside them, for the children of one kind of element.

    Only tags that the profile names are kept, so that files with many other tags do not fill memory.
    """

    __slots__ = ("_around", "_contexts", "_other")

    def __init__(self, contexts: Contexts, around: tuple[str, ...]) -> None:
        super().__init__()
        self._contexts, self._around = contexts, around
        self._other: tuple[Rule, TagContext] | None = None

    def __missing__(self, tag: str) -> tuple[Rule, TagContext]:
        if tag in self._contexts.named:
            self[tag] = entry = self._contexts.entry(tag, self._around)
            return entry
        if self._other is None:
            self._other = self._contexts.entry("", self._around)
        return self._other


class Contexts:
    """All contexts of a profile."""

    def __init__(self, rules: Rules, otherwise: Rule) -> None:
        entries = [entry for entries in rules.values() for entry in entries]
        self._rules, self._otherwise = rules, otherwise
        self._depth = max((len(around) for around, _ in entries), default=0)
        self.named = frozenset((*rules, *(tag for around, _ in entries for tag in around))) - {"*"}
        """The tags that the profile names."""
        self._of: dict[tuple[str, ...], TagContext] = {}

    def inside(self, element: Element | None) -> TagContext:
        """The context of the children of an element; that of a root for None."""
        return self._context(tuple(islice(self._tags(element), self._depth)))

    def entry(self, tag: str, around: tuple[str, ...]) -> tuple[Rule, TagContext]:
        """The rule of a tag, and the context inside it; `around` are the tags around it, innermost first.

        The tag is empty for all tags that the profile does not name.
        """
        inside = self._context((tag, *around)[: self._depth])
        for needed, rule in self._rules.get(tag) or self._rules["*"]:
            if needed == around[: len(needed)]:
                return rule, inside
        return self._otherwise, inside

    def _tags(self, element: Element | None) -> Iterator[str]:
        while element is not None:
            yield str(element.tag) if element.tag in self.named else ""
            element = element.getparent()

    def _context(self, around: tuple[str, ...]) -> TagContext:
        if around not in self._of:
            self._of[around] = TagContext(self, around)
        return self._of[around]
