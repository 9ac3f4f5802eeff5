"""Check that the index contains the features that a model needs, such as titles, sections or tags.

If a feature is missing, the model still ranks, and the user gets a warning. If the index has none of the tags that the
user named, the check raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from perikope.browse.models import Model, Need
from perikope.browse.structure import known_tags
from perikope.browse.tags import KIND, tag_table
from perikope.core.errors import UsageError, unknown
from perikope.fetch.filters import known_parts
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import read_table
from perikope.index.segments import Segment


def lacking(snapshot: Snapshot, model: Model) -> Iterator[str]:
    """Yield one message per feature that the model needs and that no document of the index has.

    The needs of models among its parameters are checked as well. There are no messages if the index is empty. Raises
    `UsageError` if none of the tags that the user named occurs in the index.
    """
    if not snapshot.numbers:
        return
    for need in model.definition.needs(model.parameters):
        if complaint := _COMPLAINTS[need.of](snapshot, need):
            yield f"{model.definition.name}: {complaint}"
    for inner in model.inner:
        yield from lacking(snapshot, inner)


def _titles(snapshot: Snapshot, need: Need) -> str:
    has = any(segment.remember(_has_titles, "") for segment in snapshot.segments)
    return "" if has else "no document or section of the index has a title, so titles do not change the ranking"


def _has_titles(segment: Segment, _: str) -> bool:
    return bool(segment["section.title_length"].any())


def _sections(snapshot: Snapshot, need: Need) -> str:
    has = any(segment.remember(_has_sections, "") for segment in snapshot.segments)
    return "" if has else "no document of the index has sections, so each document counts as one section"


def _has_sections(segment: Segment, _: str) -> bool:
    return bool((segment["section.parent"] >= 0).any())


def _part(snapshot: Snapshot, need: Need) -> str:
    name = need.names[0]
    return "" if name in known_parts(snapshot) else f"no part of the index is named {name}, so positions in it do not change the ranking"


def _weighted(snapshot: Snapshot, need: Need) -> str:
    known = {tag for segment in snapshot.segments for tag in segment.remember(_tags_of, "")} - {""}
    if need.table:
        weighted = tag_table(read_table(need.table, KIND, snapshot.folder)).weights
        return "" if known & {*weighted} else "no tag that has a weight occurs in the index, so all words have weight 1"
    return _named(need.names, known, "tag", "so its weight has no effect")


def _tags_of(segment: Segment, _: str) -> frozenset[str]:
    return frozenset(segment.labels[label] for label in np.unique(segment["span.tag"]).tolist() if label < len(segment.labels))


def _logical(snapshot: Snapshot, need: Need) -> str:
    known = known_tags(snapshot)
    if not need.table:
        return _named(need.names, known, "tag of elements", "so it bounds no influence")
    try:
        logical = tag_table(read_table(need.table, KIND, snapshot.folder)).logical
    except UsageError:
        if need.table not in known:
            raise
        return ""
    return "" if {*known} & {*logical} else "no logical tag occurs in the index, so influence ends only where the document ends"


def _named(names: Collection[str], known: Collection[str], kind: str, effect: str) -> str:
    """A message about the named tags that the index lacks, or "" if it has all of them.

    Raises `UsageError` if the index has none of them.
    """
    missing = [name for name in names if name not in known]
    if len(missing) == len(names):
        raise unknown(kind, missing[0], sorted(known))
    return f"no element of the index is a <{'> or <'.join(missing)}>, {effect}" if missing else ""


_COMPLAINTS: Mapping[str, Callable[[Snapshot, Need], str]] = {
    "titles": _titles,
    "sections": _sections,
    "part": _part,
    "weighted tags": _weighted,
    "logical tags": _logical,
}
