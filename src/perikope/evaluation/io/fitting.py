"""Judgements brought to the names that rankings of an index use.

Files judge passages by id, elements by XPath (CLEF-IP), characters (INEX, spans) or whole documents. Rankings name passages by
id. `fit_judgements` translates, once, for everything that ranks: tuning, learning, experiments, neural training. It counts what the
index does not have. Judgements of which nothing fits are an error, since every figure measured with them would be 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from perikope.browse.structure import DocumentOutline
from perikope.core.errors import InputError
from perikope.core.names import encode, is_element_path, running_number, split_name
from perikope.evaluation.io import inex
from perikope.evaluation.io.judgements import Judgements, judgement_form, read_judgements
from perikope.evaluation.io.lines import numbered_lines
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment

FEW = 0.5
"""A smaller share of judged documents or passages that fit is worth a warning."""
SHOWN = 3
"""Number of examples that a warning or an error names."""


@dataclass(frozen=True, slots=True)
class FittedJudgements:
    """Judgements by the names of rankings, and what did not fit."""

    names: Judgements
    """Grade by passage (or document) by topic. Of one that is judged several times, the highest grade counts."""
    judged: int
    """Number of judgements in the file."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Judged names that the index does not have, with the line of the first judgement."""
    path: str = ""

    @property
    def warning(self) -> str:
        """What to tell the user about judgements that did not fit; empty where all did."""
        if not self.missing:
            return ""
        examples = ", ".join(f"{name} (line {line})" if line else name for name, line in list(self.missing.items())[:SHOWN])
        count = f"{len(self.missing):,} of {self.judged:,}"
        return f"{self.path}: {count} judged passages are not in the index and count as not found: {examples}"


def fit_judgements(path: str | os.PathLike[str], snapshot: Snapshot, form: str = "auto") -> FittedJudgements:
    """Read the judgements of a file and name what they judge as rankings of the index do.

    An element stands for the passages in it; an element inside a passage stands for that passage. Relevant characters stand for
    every passage that contains one of them.
    """
    form = judgement_form(path) if form == "auto" else form
    passages = _PassagesByName(snapshot)
    judgements = inex_names(path, passages) if form == "inex" else _names(read_judgements(path, form), passages)
    fitted: Judgements = {}
    missing: dict[str, int] = {}
    judged = 0
    for qid, name, names, grade in judgements:
        of_topic = fitted.setdefault(qid, {})
        if name:
            judged += 1
        if name and names is None:
            missing.setdefault(name, 0)
        for passage in names or ():
            of_topic[passage] = max(grade, of_topic.get(passage, grade))
    found = FittedJudgements(fitted, judged, _with_lines(missing, path), os.fspath(path))
    if judged and len(missing) >= judged:
        examples = ", ".join(list(missing)[:SHOWN])
        raise InputError(
            f"none of the {judged:,} judged passages is in the index (for example {examples}): "
            "are the judgements of another collection, or was it indexed with other ids?",
            path=path,
        )
    return found


_Judged = tuple[str, str, list[str] | None, int]
"""Topic, judged name, names in rankings (None where the index has no such thing), grade."""


def _names(judgements: Judgements, passages: _PassagesByName) -> Iterator[_Judged]:
    for qid, judged in judgements.items():
        yield qid, "", None, 0
        for name, grade in judged.items():
            yield qid, name, passages.named(name), grade


def inex_names(path: str | os.PathLike[str], passages: _PassagesByName) -> Iterator[_Judged]:
    """The passages with relevant characters; a judged document without any adds nothing to its topic."""
    for qid, documents in inex.read_judgements(path).items():
        yield qid, "", None, 0
        for document, text in documents.items():
            of_document = passages.of(document)
            if of_document is None:
                yield qid, document, None, 1
                continue
            if text.document_length > of_document.length or any(sum(pair) > of_document.length for pair in text.ranges):
                raise InputError(
                    f"topic {qid} judges {text.document_length:,} characters of {document}, and the indexed file has "
                    f"{of_document.length:,}: the judgements are of another version of the collection",
                    path=path,
                )
            yield qid, document, of_document.with_characters(text.ranges), 1


def _with_lines(missing: Mapping[str, int], path: str | os.PathLike[str]) -> dict[str, int]:
    """The first line of the file that names the document of each missing name; 0 where that is not found."""
    if not missing or not Path(path).is_file():
        return dict(missing)
    waiting = {split_name(name)[0]: name for name in reversed(list(missing))}
    lines = dict(missing)
    for number, line in numbered_lines(path):
        for document in [cell for cell in line.replace(",", " ").split() if cell in waiting]:
            lines[waiting.pop(document)] = number
        if not waiting:
            break
    return lines


class _PassagesByName:
    """The passages of documents by every name that judgements have for them; each document is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._documents: dict[str, _DocumentPassages | None] = {}

    def of(self, document: str) -> _DocumentPassages | None:
        """The passages of a document; None where the index does not have it."""
        if document not in self._documents:
            number = self._snapshot.find_document(document)
            self._documents[document] = None if number < 0 else _DocumentPassages(*self._snapshot.locate(number))
        return self._documents[document]

    def named(self, name: str) -> list[str] | None:
        """The names of rankings for a judged name; None where the index has no such thing."""
        document, passage = split_name(name)
        of_document = self.of(document)
        if of_document is None:
            return None
        if not passage:
            return [name]
        if passage in of_document.ids:
            return [f"{of_document.prefix}{encode(passage)}"]
        return of_document.at(passage) or None if is_element_path(passage) else None


class _DocumentPassages:
    """The passages of one document."""

    def __init__(self, segment: Segment, local: int) -> None:
        self._segment, self._local = segment, local
        self.prefix = f"{encode(segment.document_id(local))}#"
        id_of = segment.span_namer(local)
        first = int(segment["document.first_span"][local])
        self._spans = [segment.span_of("passage.span", local, passage) - first for passage in segment.passages_of(local)]
        self.ids = {id_of(span) or running_number(number): number for number, span in enumerate(self._spans)}
        self._names = [f"{self.prefix}{encode(id)}" for id in self.ids]

    @cached_property
    def _places(self) -> dict[int, tuple[str, int, int]]:
        return {span: (place.path, place.start, place.end) for span, place in self._segment.places(self._local).items()}

    @cached_property
    def length(self) -> int:
        """Number of characters of the file that the document was read from; of its text where the file is not known."""
        if 0 in self._places:
            return self._places[0][2]
        return len(self._segment.text(self._local))

    @cached_property
    def _paths(self) -> list[str]:
        """The path of each passage: in the file it was read from, or in its tree where the format has no files of elements."""
        if self._places:
            return [self._places[span][0] if span in self._places else "" for span in self._spans]
        outline = DocumentOutline(self._segment, self._local)
        return [outline.path(span) for span in self._spans]

    def at(self, path: str) -> list[str]:
        """The passages in the element at a path, or the passage that the element is in."""
        inside = [name for name, own in zip(self._names, self._paths, strict=True) if own == path or own.startswith(f"{path}/")]
        if inside:
            return inside
        around = [(len(own), name) for name, own in zip(self._names, self._paths, strict=True) if own and path.startswith(f"{own}/")]
        return [max(around)[1]] if around else []

    def with_characters(self, ranges: tuple[tuple[int, int], ...]) -> list[str]:
        """The passages that contain a character of some ranges (start and length), which count the characters of the file."""
        names = []
        for name, span in zip(self._names, self._spans, strict=True):
            if span in self._places:
                _, start, end = self._places[span]
                if any(first < end and start < first + length for first, length in ranges):
                    names.append(name)
        return names
