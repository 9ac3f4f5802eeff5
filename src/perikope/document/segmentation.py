"""Segmenters: functions that replace the passages of a document by sentences or windows of words, or select passages.

    markup            the passages of the file, unchanged
    at-most:N         the passages of the file; those of more than N words are cut between sentences or, in code, lines
    sentences         one passage per sentence; a passage of several sentences becomes an element around them
    words:N           N words per passage, without overlap
    windows:N/STEP    N words per passage; a passage begins every STEP words, so that neighbours overlap if STEP < N
    tags:TAG,…        only the passages of the file with these tags; other passages become elements, and keep their text

A passage never crosses the border of its section. The text of a document does not change, only its spans do.

Code is never mixed with other text, and its passages keep their tag. It has no sentences: there it is cut at natural
places, and so are sentences of more than `LONGEST` characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from perikope.core.errors import UsageError
from perikope.document.pieces import CODE, LONGEST, natural_pieces
from perikope.document.tree import Document, Kind, Place, Spans
from perikope.text.analysis import word_spans
from perikope.text.sentences import sentence_spans

SEGMENTERS = ("markup", "at-most:N", "sentences", "tags:TAG,…", "words:N", "windows:N/STEP")
"""The valid forms of a segmenter's name."""

SENTENCE_TAG, WINDOW_TAG = "s", "w"

_TAGS = re.compile(r"tags:(?P<tags>[^\s,]+(?:,[^\s,]+)*)")
_AT_MOST = re.compile(r"at-most:(?P<words>[1-9][0-9]{0,8})")
_LINES = re.compile(r"[^\S\n]*\S.*")
_WINDOWS = re.compile(r"words:(?P<words>[0-9]{1,9})|windows:(?P<length>[0-9]{1,9})/(?P<step>[0-9]{1,9})")


def segmenter(spec: str) -> Callable[[Document], Document]:
    r"""Return the function that replaces the passages of a document, from a name such as `words:100`.

    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1")
    >>> _ = builder.passage("Stop the pump. Drain it."), builder.passage("Wait.")
    >>> print(segmenter("sentences")(builder.build()).outline(), end="")
    section document language=en
      element p
        passage s 'Stop the pump.'
        passage s 'Drain it.'
      passage p 'Wait.'
    >>> print(segmenter("words:4")(builder.build()).outline(), end="")
    section document language=en
      passage w 'Stop the pump. Drain'
      passage w 'it.\nWait.'
    """
    if spec == "markup":
        return _as_marked_up
    if spec == "sentences":
        return _split_sentences
    if tags := selected_tags(spec):
        return partial(_select_tags, tags=tags)
    if match := _AT_MOST.fullmatch(spec):
        return partial(_cut_long, length=int(match["words"]))
    match = _WINDOWS.fullmatch(spec)
    length = int(match["words"] or match["length"]) if match else 0
    step = int(match["step"] or length) if match else 0
    if not 1 <= step <= length:
        raise UsageError(
            f"cannot segment by {spec!r}; use {', '.join(SEGMENTERS[:-1])} or {SEGMENTERS[-1]} "
            "with 1 ≤ STEP ≤ N, such as at-most:200, words:100 or windows:150/75"
        )
    return partial(_cut_windows, length=length, step=step)


def selected_tags(spec: str) -> frozenset[str]:
    """The tags that a segmenter `tags:TAG,…` selects; empty for other segmenters.

    >>> sorted(selected_tags("tags:p,li")), sorted(selected_tags("words:100"))
    (['li', 'p'], [])
    """
    selected = _TAGS.fullmatch(spec)
    return frozenset(selected["tags"].split(",")) if selected else frozenset()


def _as_marked_up(document: Document) -> Document:
    return document


def _select_tags(document: Document, *, tags: frozenset[str]) -> Document:
    """Turn each passage with another tag into an element. Its words stay in the document, but in no passage."""
    kinds = document.spans.kind[:]
    for passage in document.of_kind(Kind.PASSAGE):
        if document.labels[document.spans.tag[passage]] not in tags:
            kinds[passage] = Kind.ELEMENT
    return replace(document, spans=replace(document.spans, kind=kinds))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A new passage: the characters `start` to `end` (exclusive) of the text."""

    start: int
    end: int
    holder: int
    """The old span that holds the new passage."""
    after: int
    """The old passage that the new one follows in the list of spans, and inherits part and language from."""
    tag: str


def _split_sentences(document: Document) -> Document:
    """Turn each passage of several sentences into an element that holds one passage per sentence."""
    spans = document.spans
    pieces: list[_Piece] = []
    for passage in document.of_kind(Kind.PASSAGE):
        first, text, is_code = spans.start[passage], document.text_of(passage), _is_code(document, passage)
        sentences = natural_pieces(text) if is_code else list(_short_sentences(text))
        if len(sentences) > 1:
            tag = CODE if is_code else SENTENCE_TAG
            pieces += [_Piece(first + start, first + end, passage, passage, tag) for start, end in sentences]
    return _rebuild(document, pieces, bytes(len(spans)))


def _is_code(document: Document, passage: int) -> bool:
    return document.labels[document.spans.tag[passage]] == CODE


def _short_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence. One of more than `LONGEST` characters is cut at natural places."""
    for start, end in sentence_spans(text):
        if end - start <= LONGEST:
            yield start, end
        else:
            yield from ((start + first, start + last) for first, last in natural_pieces(text[start:end]))


def _cut_long(document: Document, *, length: int) -> Document:
    """Turn each passage of more than `length` words into an element that holds several passages with the same tag."""
    spans, words = document.spans, _Words(document.text)
    pieces: list[_Piece] = []
    for passage in document.of_kind(Kind.PASSAGE):
        start, end = spans.start[passage], spans.end[passage]
        if words.within(start, end) > length:
            text, tag = document.text_of(passage), document.labels[spans.tag[passage]]
            units = [match.span() for match in _LINES.finditer(text)] if tag == CODE else sentence_spans(text)
            packed = _packed([(start + first, start + last) for first, last in units], words, length)
            pieces += [_Piece(first, last, passage, passage, tag) for first, last in packed]
    return _rebuild(document, pieces, bytes(len(spans)))


def _packed(units: Sequence[tuple[int, int]], words: _Words, length: int) -> Iterator[tuple[int, int]]:
    """Join neighbouring units, such as sentences, into pieces of at most `length` words, each as long as possible.

    A unit of more words is cut between words.
    """
    pending: tuple[int, int] | None = None
    for start, end in units:
        if pending is not None:
            if words.within(pending[0], end) <= length:
                pending = (pending[0], end)
                continue
            yield pending
        pending = (start, end)
        if words.within(start, end) > length:
            *whole, pending = words.windows(_Run(0, [], start, end, words.before(start), words.before(end)), length, length)
            yield from whole
    if pending is not None:
        yield pending


def _cut_windows(document: Document, *, length: int, step: int) -> Document:
    """Replace each run of passages by windows of `length` words; a window begins every `step` words."""
    words = _Words(document.text)
    pieces: list[_Piece] = []
    vanished = bytearray(len(document.spans))
    transparent = _transparent_elements(document, words)
    for run in _runs(document, words, transparent):
        if len(run.passages) == 1 and run.last_word - run.first_word <= length:
            continue  # nothing to cut: the passage keeps its tag, its id and its marks
        tag = CODE if _is_code(document, run.passages[0]) else WINDOW_TAG
        pieces += [_Piece(start, end, run.holder, run.passages[0], tag) for start, end in words.windows(run, length, step)]
        for passage in run.passages:
            vanished[passage] = True
            for ancestor in _ancestors(document.spans, passage, run.holder):
                vanished[ancestor] = True
    return _rebuild(document, pieces, vanished)


@dataclass(slots=True)
class _Run:
    """Passages that follow each other in one section, without words between them.

    Ends are exclusive: the characters are `start` to `end`, the words are number `first_word` to `last_word`.
    """

    holder: int
    """The innermost span around all passages of the run that the windows do not replace."""
    passages: list[int]
    start: int
    end: int
    first_word: int
    last_word: int


class _Words:
    """Start and end of each word of a text, in characters; words are numbered from 0."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts, ends = word_spans(text)
        self.starts: list[int] = starts.tolist()
        self.ends: list[int] = ends.tolist()

    def before(self, character: int) -> int:
        """The number of words that start before a position, given in characters."""
        return bisect_left(self.starts, character)

    def within(self, start: int, end: int) -> int:
        """The number of words that start at `start` or later, and before `end`."""
        return self.before(end) - self.before(start)

    def windows(self, run: _Run, length: int, step: int) -> Iterator[tuple[int, int]]:
        """Start and end (exclusive) of each window of a run, in characters.

        The last window ends with the run. No window lies completely inside the window before it.
        """
        first = run.first_word
        while True:
            last = first + length
            start = run.start if first == run.first_word else self._border(first)
            end = run.end if last >= run.last_word else self._border(last)
            inside = self.text[start:end]
            start += len(inside) - len(inside.lstrip())
            yield start, start + len(inside.strip())
            if last >= run.last_word:
                return
            first += step

    def _border(self, word: int) -> int:
        """The position at which to cut before a word: after the last white space.

        So an opening bracket stays with the word that follows it.
        """
        gap = self.text[self.ends[word - 1] : self.starts[word]]
        attached = len(gap) - max((at + 1 for at, character in enumerate(gap) if character.isspace()), default=len(gap))
        return self.starts[word] - attached


def _transparent_elements(document: Document, words: _Words) -> bytearray:
    """One flag per span: whether it is an element that consists only of passages of one part and one language.

    The passages must all be code, or all be other text.

    A run of passages can continue across the border of such an element.
    """
    spans = document.spans
    transparent = bytearray(len(spans))
    words_in_passages = [0] * len(spans)
    settings: list[set[tuple[int, int, bool]]] = [set() for _ in range(len(spans))]
    structured = bytearray(len(spans))
    for i in range(len(spans) - 1, 0, -1):  # children before parents
        kind, parent = spans.kind[i], spans.parent[i]
        if kind == Kind.PASSAGE:
            words_in_passages[i] = words.within(spans.start[i], spans.end[i])
            settings[i] = {(spans.part[i], spans.language[i], _is_code(document, i))}
        elif kind in (Kind.SECTION, Kind.TITLE):
            structured[i] = True
        elif kind == Kind.ELEMENT:
            covered = words_in_passages[i] == words.within(spans.start[i], spans.end[i])
            transparent[i] = covered and len(settings[i]) == 1 and not structured[i]
        words_in_passages[parent] += words_in_passages[i]
        settings[parent] |= settings[i]
        structured[parent] |= structured[i]
    return transparent


def _runs(document: Document, words: _Words, transparent: Sequence[int]) -> Iterator[_Run]:
    """Group the passages of a document into runs, in reading order."""
    spans = document.spans
    run: _Run | None = None
    for i in range(len(spans)):
        kind, start, end = spans.kind[i], spans.start[i], spans.end[i]
        if kind == Kind.PASSAGE:
            holder = next(span for span in _ancestors(spans, i, -1) if not transparent[span])
            first_word, last_word = words.before(start), words.before(end)
            if run is not None and _continues(document, run, i, holder) and run.last_word == first_word:
                run.passages.append(i)
                run.end, run.last_word = end, last_word
            else:
                if run is not None:
                    yield run
                run = _Run(holder, [i], start, end, first_word, last_word)
        elif run is not None and kind in (Kind.SECTION, Kind.TITLE):
            yield run
            run = None
    if run is not None:
        yield run


def _continues(document: Document, run: _Run, passage: int, holder: int) -> bool:
    """Whether a passage has the holder, the part and the language of a run, and is code if the run is."""
    spans, first = document.spans, run.passages[0]
    is_alike = spans.part[passage] == spans.part[first] and spans.language[passage] == spans.language[first]
    return run.holder == holder and is_alike and _is_code(document, passage) == _is_code(document, first)


def _ancestors(spans: Spans, span: int, until: int) -> Iterator[int]:
    """The ancestors of a span, innermost first, up to `until` (exclusive)."""
    while (span := spans.parent[span]) != until:
        yield span


def _rebuild(document: Document, pieces: Sequence[_Piece], vanished: Sequence[int]) -> Document:
    """Return the document with new passages and without the vanished spans.

    `vanished` has one flag per span. A reference from a vanished span moves to the span around it.
    """
    if not pieces:
        return document
    old, new = document.spans, Spans()
    labels = tuple(dict.fromkeys((*document.labels, *(piece.tag for piece in pieces))))
    label = {tag: number for number, tag in enumerate(labels)}
    split = {piece.holder for piece in pieces if old.kind[piece.holder] == Kind.PASSAGE}
    number = [-1] * len(old)  # by old span: its new number; for a vanished span, the new number of the span around it
    span_ids: dict[int, str] = {}
    # The new passages inherit the place in the file and the citation of the old passage.
    places: dict[int, Place] = {}
    citations: dict[int, str] = {}
    piece_number = -1
    written = 0

    def inherit(new_span: int, old_span: int) -> None:
        if old_span in document.places:
            places[new_span] = document.places[old_span]
        if old_span in document.citations:
            citations[new_span] = document.citations[old_span]

    def write_pieces(limit: int, start: int) -> None:
        nonlocal written, piece_number
        while written < len(pieces) and pieces[written].after < limit and pieces[written].start <= start:
            piece = pieces[written]
            part, language = old.part[piece.after], old.language[piece.after]
            piece_number = new.append(Kind.PASSAGE, label[piece.tag], number[piece.holder], piece.start, piece.end, part, language)
            inherit(piece_number, piece.after)
            written += 1

    for i in range(len(old)):
        write_pieces(i, old.start[i])
        parent = old.parent[i]
        if vanished[i]:
            number[i] = number[parent]
            continue
        kind = Kind.ELEMENT if i in split else old.kind[i]
        around = number[parent] if parent >= 0 else -1
        if parent in split and written and _holds(pieces[written - 1], old, i):
            around = piece_number  # a mark inside one sentence
        number[i] = new.append(kind, old.tag[i], around, old.start[i], old.end[i], old.part[i], old.language[i])
        if i in document.span_ids:
            span_ids[number[i]] = document.span_ids[i]
        inherit(number[i], i)
    write_pieces(len(old), len(document.text))
    references = tuple((number[source], target) for source, target in document.references)
    return replace(document, spans=new, labels=labels, span_ids=span_ids, references=references, places=places, citations=citations)


def _holds(piece: _Piece, spans: Spans, child: int) -> bool:
    """Whether the old span `child` is a child of the passage that the piece was cut from, and lies inside the piece."""
    return piece.holder == spans.parent[child] and piece.start <= spans.start[child] and spans.end[child] <= piece.end
