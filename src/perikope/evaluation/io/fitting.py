"""Judgements in the names that rankings of an index have.

Files judge passages by id, elements by XPath (CLEF-IP), ranges of characters (INEX, spans) or whole documents. Rankings
name passages by id. `fit_judgements` converts the judgements of a file, for everything that ranks or learns: tuning,
learning, experiments, neural training and evaluation. It counts the judgements that do not fit the index. If none of
them fits, it raises an error, because every figure would be 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perikope.browse.structure import DocumentOutline
from perikope.core.arrays import Floats, Mask
from perikope.core.errors import InputError
from perikope.core.names import document_name, encode, is_element_path, split_name
from perikope.evaluation.io import beir, inex, irds, spans
from perikope.evaluation.io.judged import Judgements, by_query
from perikope.evaluation.io.judgements import checked_form, judged_names
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.text.analysis import word_spans

TokenRanges = dict[int, list[tuple[int, int]]]
"""Ranges of tokens (first, end exclusive) by the number of their document, in ascending order."""


class Misfit(NamedTuple):
    """A relevant judgement that does not fit the index."""

    line: int
    """Line of the file, from 1; 0 if the judgement is not from a file."""
    reason: str


@dataclass(frozen=True, slots=True)
class FittedJudgements:
    """Judgements in the names of rankings."""

    names: Judgements
    """Grades by query id and name. If several judgements concern a passage, the highest grade counts.

    A relevant judgement that does not fit keeps its name in the file, so that it counts as not found.
    """
    relevant: int
    """Number of relevant judgements in the file."""
    misfits: tuple[Misfit, ...]
    path: str

    @property
    def warning(self) -> str:
        """A line about the relevant judgements that do not fit; empty if all fit."""
        if not self.misfits:
            return ""
        counted = f"{len(self.misfits):,} of {self.relevant:,} relevant judgements do not fit the index and count as not found"
        return f"{self.path}: {counted}, such as {_shown(self.misfits[0])}"


def fit_judgements(path: str | os.PathLike[str], snapshot: Snapshot, form: str = "auto") -> FittedJudgements:
    """Read the judgements of a file, and convert them to names that rankings of the index have.

    An element stands for the passages in it, and an element inside a passage for that passage. A range of characters
    stands for every passage that contains one of them. A document keeps its name.
    """
    names: Judgements = {}
    misfits: list[Misfit] = []
    relevant = 0
    for judgement in _located(path, snapshot, form):
        of_query = names.setdefault(judgement.qid, {})
        relevant += judgement.grade > 0
        if judgement.reason and judgement.grade > 0:
            misfits.append(Misfit(judgement.line, judgement.reason))
        for name in judgement.names:
            of_query[name] = max(judgement.grade, of_query.get(name, judgement.grade))
    if not names:
        raise InputError("is empty: there is no judgement in it; name another file", path=path)
    if relevant and len(misfits) == relevant:
        raise InputError(
            f"none of the {relevant:,} relevant judgements fits the index, such as {_shown(misfits[0])}; "
            "check that the judgements are of this collection",
            path=path,
        )
    return FittedJudgements(names, relevant, tuple(misfits), os.fspath(path))


def relevant_tokens(path: str | os.PathLike[str], snapshot: Snapshot, form: str = "auto") -> dict[str, TokenRanges] | None:
    """The relevant tokens of each query, from a file that judges ranges of characters.

    A token is relevant if its middle is. Returns None for files that judge passages, elements or documents as
    a whole. Judgements that do not fit the index are left out; `fit_judgements` reports them.
    """
    form = checked_form(path, form)
    if form not in ("inex", "spans"):
        return None
    documents = _JudgedDocuments(snapshot)
    tokens: dict[str, TokenRanges] = {}
    if form == "inex":
        for qid, judged in inex.read_judgements(path).items():
            found = {name: documents.of(name) for name in judged}
            tokens[qid] = {each.number: each.tokens_in_file(judged[name].ranges) for name, each in found.items() if each is not None}
        return tokens
    for qid, of_query in spans.read_spans(path).items():
        masks: dict[int, Mask] = {}
        for span in of_query:
            document, passage = split_name(span.name)
            judged_document = documents.of(document)
            if judged_document is not None and passage in judged_document.passages:
                mask = judged_document.tokens_in_passage(passage, span.start, span.end)
                masks[judged_document.number] = masks.get(judged_document.number, mask) | mask
        tokens[qid] = {number: _runs(mask) for number, mask in masks.items()}
    return tokens


def _shown(misfit: Misfit) -> str:
    return f"line {misfit.line}: {misfit.reason}" if misfit.line else misfit.reason


class _Located(NamedTuple):
    """A judgement with the names that it stands for in rankings.

    If it does not fit the index, `reason` says why, and `names` has its name in the file.
    """

    line: int
    qid: str
    names: Sequence[str]
    grade: int
    reason: str = ""


def _located(path: str | os.PathLike[str], snapshot: Snapshot, form: str) -> Iterator[_Located]:
    documents = _JudgedDocuments(snapshot)
    if not irds.is_id(path):
        path = beir.qrels_file(Path(path))
        form = checked_form(path, form)
    if form == "inex":
        yield from _located_text(inex.read_judgements(path), documents)
    elif form == "spans":
        yield from _located_spans(spans.read_spans(path), documents)
    else:
        judged = list(judged_names(path, form))
        by_query(judged, path)
        for line, qid, name, grade in judged:
            try:
                yield _Located(line, qid, documents.names(name), grade)
            except LookupError as error:
                yield _Located(line, qid, (name,), grade, str(error.args[0]))


def _located_text(judgements: inex.InexJudgements, documents: _JudgedDocuments) -> Iterator[_Located]:
    for qid, judged in judgements.items():
        for document, text in judged.items():
            grade, of_document = int(text.relevant_characters > 0), documents.of(document)
            end = max((start + length for start, length in text.ranges), default=0)
            if of_document is None:
                yield _Located(text.line, qid, (document,), grade, f"the index has no document {document!r}")
            elif end > of_document.length:
                reason = f"the text ends at character {end:,}, but the file of {document} has {of_document.length:,} characters"
                yield _Located(text.line, qid, (document,), grade, reason)
            else:
                yield _Located(text.line, qid, of_document.with_characters(text.ranges), grade)


def _located_spans(judgements: spans.Spans, documents: _JudgedDocuments) -> Iterator[_Located]:
    for qid, of_query in judgements.items():
        for span in of_query:
            grade = int(span.end is None or span.end > span.start)
            try:
                names = documents.names(span.name)
                characters = documents.characters(span.name)
                if span.end is not None and span.end > characters:
                    raise LookupError(f"the span ends at character {span.end:,}, but {span.name} has {characters:,} characters")
                yield _Located(span.line, qid, names, grade)
            except LookupError as error:
                yield _Located(span.line, qid, (span.name,), grade, str(error.args[0]))


class _JudgedDocuments:
    """The judged documents of an index; each is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._documents: dict[str, _JudgedDocument | None] = {}

    def of(self, document: str) -> _JudgedDocument | None:
        """The document with an id; None if the index does not have it."""
        if document not in self._documents:
            number = self._snapshot.find_document(document)
            self._documents[document] = None if number < 0 else _JudgedDocument(number, *self._snapshot.locate(number))
        return self._documents[document]

    def names(self, name: str) -> Sequence[str]:
        """The names that rankings use for what a judged name stands for: passages, or a document.

        Raises a `LookupError` with the reason if the index does not contain it.
        """
        document, passage = split_name(name)
        of_document = self.of(document)
        if of_document is None:
            raise LookupError(f"the index has no document {document!r}")
        if not passage:
            return (document_name(name),)
        if passage in of_document.passages:
            return (of_document.name(passage),)
        if not is_element_path(passage):
            raise LookupError(f"document {document!r} has no passage {passage!r}")
        if not (names := of_document.at(passage)):
            raise LookupError(f"document {document!r} has no passage at {passage}")
        return names

    def characters(self, name: str) -> int:
        """The number of characters in the text of a passage or document, which the index must contain."""
        document, passage = split_name(name)
        of_document = self.of(document)
        assert of_document is not None
        return of_document.characters(passage)


class _JudgedDocument:
    """The passages of one document by id, by path and by ranges of characters."""

    def __init__(self, number: int, segment: Segment, local: int) -> None:
        self.number = number
        self._segment, self._local = segment, local
        self._first_span = int(segment["document.first_span"][local])
        self._prefix = f"{encode(segment.document_id(local))}#"

    @cached_property
    def passages(self) -> dict[str, int]:
        """The span of each passage (numbered in the document), by the id of the passage."""
        return self._segment.passage_spans(self._local)

    def name(self, passage: str) -> str:
        """The name of a passage in rankings."""
        return f"{self._prefix}{encode(passage)}"

    @cached_property
    def _places(self) -> dict[int, tuple[str, int, int]]:
        return {span: (place.path, place.start, place.end) for span, place in self._segment.places(self._local).items() if place.path}

    @cached_property
    def length(self) -> int:
        """Number of characters of the file that the document was read from; of its text if the file is not known."""
        return self._places[0][2] if 0 in self._places else len(self._segment.text(self._local))

    def characters(self, passage: str) -> int:
        """Number of characters of a passage in the text of the document; of the whole text if `passage` is empty."""
        span = self.passages.get(passage, 0)
        characters = self._segment.characters(self._first_span + span)
        return int(characters.stop - characters.start)

    @cached_property
    def _paths(self) -> list[tuple[str, str]]:
        """The id and the path of each passage: its XPath in the file or, without one, its path in the document tree."""
        if self._places:
            return [(passage, self._places[span][0]) for passage, span in self.passages.items() if span in self._places]
        outline = DocumentOutline(self._segment, self._local)
        return [(passage, outline.path(span)) for passage, span in self.passages.items()]

    def at(self, path: str) -> list[str]:
        """The names of the passages in the element at a path, or of the passage that contains the element."""
        inside = [self.name(passage) for passage, other in self._paths if other == path or other.startswith(f"{path}/")]
        if inside:
            return inside
        around = [(len(other), passage) for passage, other in self._paths if path.startswith(f"{other}/")]
        return [self.name(max(around)[1])] if around else []

    def with_characters(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """The names of the passages that contain a character of the ranges (start and length), counted in the file."""
        placed = ((passage, self._places[span]) for passage, span in self.passages.items() if span in self._places)
        return [
            self.name(passage)
            for passage, (_, start, end) in placed
            if any(first < end and start < first + length for first, length in ranges)
        ]

    @cached_property
    def _middles(self) -> Floats:
        """The position of the middle of each token in the text of the document, in characters."""
        starts, ends = word_spans(self._segment.text(self._local))
        if starts.size != self._segment["document.tokens"][self._local]:
            raise self._segment.columns.damaged(f"has a damaged text (document {self._local})")
        return (starts + ends) / 2.0

    @cached_property
    def _middles_in_file(self) -> Floats:
        """The position of the middle of each token in the file; -1 for a token that has no position in the file.

        The index stores positions of elements. A token is placed in its innermost element by its distance from the
        start of the element. If the element is longer in the file, because of white space, distances are stretched.
        """
        positions = np.full(self._middles.size, -1.0)
        for span, (_, start, end) in sorted(self._places.items()):
            text = self._segment.characters(self._first_span + span)
            if text.stop > text.start:
                inside = slice(*np.searchsorted(self._middles, (text.start, text.stop)))
                positions[inside] = start + (self._middles[inside] - text.start) * ((end - start) / (text.stop - text.start))
        return positions

    def tokens_in_file(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """The tokens in ranges of characters (start and length) of the file, as ranges (first, end exclusive)."""
        relevant = np.zeros(self._middles_in_file.size, bool)
        for start, length in ranges:
            relevant |= (self._middles_in_file >= start) & (self._middles_in_file < start + length)
        return _runs(relevant)

    def tokens_in_passage(self, passage: str, start: int, end: int | None) -> Mask:
        """A mask of the document's tokens that is true for those in a range of characters of a passage.

        `start` and `end` (exclusive) count from the start of the passage. An `end` of None is the end of the passage.
        """
        text = self._segment.characters(self._first_span + self.passages[passage])
        last = text.stop if end is None else text.start + end
        mask: Mask = (self._middles >= text.start + start) & (self._middles < last)
        return mask


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """The first and the end index (exclusive) of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
