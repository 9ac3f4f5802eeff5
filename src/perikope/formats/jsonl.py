"""JSON Lines: the format for data of any origin, with one document per line.

    {"id": "d1", "title": "…", "language": "en", "metadata": {"date": "2013-04-01"}, "cites": ["d7"],
     "sections": [{"id": "s1", "title": "1 Introduction", "tag": "sec", "part": "description",
                   "passages": ["plain text",
                                {"id": "p2", "tag": "p", "text": "…", "marks": [["b", 4, 9]], "refs": ["p1"]}]}]}

If passages and nested sections alternate, use `content`, a list of both in order, instead of `passages` and `sections`.
A key with the value null counts as missing.

Unknown keys are ignored. A key is an error, however, if it looks like a misspelt or misplaced key, or if other tools
use it for one of these keys, because text could be lost silently. In a folder or an archive, a file whose first line is
no document is another program's, so it is left out and named; a wrong line further down is an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import IO, Any

import orjson

from perikope.core.errors import InputError, UnreadableFile
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.formats import Source, line_chunks, reader
from perikope.formats._source import MAX_BYTES, is_running_number, language_or_nothing
from perikope.formats._unpack import stem

MAX_DEPTH = 64
"""The deepest nesting of sections and of metadata, so that a hostile line cannot exhaust the stack."""

_CHILDREN = ("content", "passages", "sections")
_DOCUMENT = frozenset(("id", "title", "language", "metadata", "cites", *_CHILDREN))
_SECTION = frozenset(("id", "title", "tag", "part", "language", *_CHILDREN))
_BEIR = frozenset(("_id", "title", "text", "metadata"))
"""The keys of a line in a corpus of the BEIR benchmark, a form that many collections use."""
_PASSAGE = frozenset(("id", "tag", "text", "marks", "refs", "part", "language"))

_NAMES_OF_TEXT = ("body", "contents", "paragraphs", "chunks")
_NAMES_OF_PARTS = ("abstract", "claims", "description", "summary")
_NAMES_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "document": {
        **dict.fromkeys((*_NAMES_OF_TEXT, "text"), "passages"),
        **dict.fromkeys(_NAMES_OF_PARTS, "sections"),
        **dict.fromkeys(("references", "citations"), "cites"),
        **dict.fromkeys(("docno", "_id", "doc_id"), "id"),
        "lang": "language",
        "meta": "metadata",
    },
    "section": {
        **dict.fromkeys((*_NAMES_OF_TEXT, "text"), "passages"),
        **dict.fromkeys(("heading", "headline", "header", "name"), "title"),
        "_id": "id",
        "lang": "language",
    },
    "passage": {
        **dict.fromkeys(_NAMES_OF_TEXT, "text"),
        **dict.fromkeys(("references", "citations"), "refs"),
        "_id": "id",
        "lang": "language",
    },
}
"""Keys of other tools, by kind of object, with our key. `doc_id` is no id of a passage: it names the document."""


def pieces(source: Source, size: int) -> Iterator[Source]:
    """Cut a source into pieces for several workers, as `line_chunks` does; the first line must be a document."""
    for piece in line_chunks(source, size):
        if not source.named and piece.first_line == 1:
            next(read(piece), None)
        yield piece


@reader("jsonl", suffixes=(".jsonl", ".ndjson"), split=pieces)
def read(source: Source) -> Iterator[Document]:
    """JSON Lines: one document per line with sections, passages and metadata."""
    empty = True
    with source.open() as stream:
        for number, line in _lines(stream, source):
            try:
                document = _document(_parse(line), source)
            except (_RecordError, InputError) as problem:
                kind = UnreadableFile if empty and not source.named and source.first_line <= 1 else InputError
                raise kind(str(problem), path=source.path, line=number) from None
            empty = False
            if document is not None:
                yield document
    # A chunk of a file may consist of blank lines.
    if empty and not source.first_line:
        raise UnreadableFile("holds no document; write one JSON object per line, or remove the file", path=source.path)


def document_from(record: Mapping[str, object], language: str = "en") -> Document:
    """Make a document from a dictionary with the keys of a line of JSON Lines. `language` is its default language.

    Values that JSON can express are accepted, such as tuples for lists and dates in metadata.

    >>> document_from({"id": "d1", "title": "Pumps", "passages": ["A magnet drives the rotor."]})
    Document('d1', 'Pumps', 1 passage, 32 characters)
    """
    id = record.get("id", record.get("_id"))
    known = f"document {id!r}" if isinstance(id, str) else "a document without an id"
    try:
        document = _document(orjson.loads(orjson.dumps({**record})), Source("", "", language))
    except orjson.JSONEncodeError as error:
        raise InputError(f"{known} cannot be expressed in JSON: {error}") from None
    except _RecordError as problem:
        raise InputError(f"{known}: {problem}") from None
    if document is None:
        raise InputError(f"{known} is empty; remove it or give it text")
    return document


def _document(record: object, source: Source) -> Document | None:
    """The document of a parsed line; None for a line of a BEIR corpus without text."""
    if is_of_beir := _is_of_beir(record):
        record = _from_beir(record, source)
    return None if is_of_beir and not record else _Record(source).build(record)


class _RecordError(Exception):
    """An error in a record; each level around the error adds its location to `where`, innermost first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.where: list[str] = []

    def __str__(self) -> str:
        levels = self.where[::-1]
        location = ".".join(levels if len(levels) <= 6 else [*levels[:3], "…", *levels[-2:]])
        return f"{location}: {self.args[0]}" if location else str(self.args[0])


def _lines(stream: IO[bytes], source: Source) -> Iterator[tuple[int, bytes]]:
    number = (source.first_line or 1) - 1
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        if len(line) > MAX_BYTES:
            raise InputError(f"the line is longer than {MAX_BYTES >> 20} MB; split the document", path=source.path, line=number)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line and not line.isspace():
            yield number, line


def _parse(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as wrong:
            raise _RecordError(f"not UTF-8 text (byte {wrong.start + 1}); convert the file to UTF-8") from None
        raise _RecordError(f"not valid JSON: {error.msg} at character {error.pos + 1}; write one complete object per line") from None


def _is_of_beir(record: object) -> bool:
    return isinstance(record, dict) and "_id" in record and "text" in record and record.keys() <= _BEIR


def _from_beir(record: Any, source: Source) -> dict[str, Any]:
    """Convert a record of a BEIR corpus to a record with one passage; empty if the record has no text."""
    if stem(os.path.basename(source.path)) == "queries.jsonl":
        raise _RecordError("the file holds the queries of a BEIR folder, not documents; index only its corpus.jsonl")
    title, text = _text(record, "title"), _text(record, "text")
    common = {"id": record["_id"], "metadata": record.get("metadata")}
    if not text.strip():
        return common | {"passages": [title]} if title.strip() else {}
    return common | {"title": title, "passages": [text]}


class _Record:
    """Makes the document of one record."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.ids: set[str] = set()
        self.builder: TreeBuilder

    def build(self, record: object) -> Document:
        if not isinstance(record, dict):
            raise _RecordError(f"a line must hold one document, an object in braces, not {_name(record)}")
        _check_keys(record, _DOCUMENT, "document")
        id = _text(record, "id")
        if not id.strip():
            raise _RecordError('the document has no id; add "id": "…"')
        metadata = record.get("metadata")
        if metadata is not None:
            if not isinstance(metadata, dict):
                raise _RecordError(f'"metadata" must be an object such as {{"date": "2013-04-01"}}, not {_name(metadata)}')
            _check_depth(metadata)
        language = _language(record) or self.source.language
        self.builder = TreeBuilder(id, title=_text(record, "title"), language=language, metadata=metadata, cites=_texts(record, "cites"))
        self.builder.source, self.builder.source_hash = self.source.source, self.source.source_hash
        self.builder.member = self.source.member
        self.children(record, 0)
        return self.builder.build()

    def children(self, record: dict[str, Any], depth: int) -> None:
        passages, sections, content = record.get("passages"), record.get("sections"), record.get("content")
        if content is not None and (passages is not None or sections is not None):
            raise _RecordError('give either "content" or "passages" and "sections", not both: their order would be unclear')
        if passages is not None:
            self.each("passages", passages, self.passage, depth)
        if sections is not None:
            self.each("sections", sections, self.section, depth)
        if content is not None:
            self.each("content", content, self.item, depth)

    def each(self, key: str, items: object, add: Callable[[Any, int], None], depth: int) -> None:
        if not isinstance(items, list):
            raise _RecordError(f'"{key}" must be a list in brackets, not {_name(items)}')
        number = 0
        try:
            for number, item in enumerate(items):  # noqa: B007
                add(item, depth)
        except _RecordError as problem:
            problem.where.append(f"{key}[{number}]")
            raise

    def passage(self, item: object, depth: int) -> None:
        if isinstance(item, str):
            self.builder.passage(item)
            return
        if not isinstance(item, dict):
            raise _RecordError(f'a passage must be text or an object with "text", not {_name(item)}')
        _check_keys(item, _PASSAGE, "passage")
        if item.get("text") is None:
            raise _RecordError('the passage has no "text"; add it or remove the passage')
        text = _text(item, "text")
        self.builder.passage(
            text,
            _text(item, "tag") or "p",
            id=self.id(item),
            part=_text(item, "part"),
            language=_language(item),
            marks=_marks(item, len(text)) if item.get("marks") else (),
            refs=_texts(item, "refs"),
        )

    def section(self, item: object, depth: int, kind: Kind = Kind.SECTION, tag: str = "sec") -> None:
        if not isinstance(item, dict):
            raise _RecordError(f"a section must be an object, not {_name(item)}")
        _check_keys(item, _SECTION, "section")
        if depth >= MAX_DEPTH:
            raise _RecordError(f"sections are nested deeper than {MAX_DEPTH} levels; flatten the document")
        self.builder.open(kind, _text(item, "tag") or tag, id=self.id(item), part=_text(item, "part"), language=_language(item))
        title = _text(item, "title")
        if title:
            self.builder.title(title)
        self.children(item, depth + 1)
        self.builder.close()

    def item(self, item: object, depth: int) -> None:
        if not isinstance(item, dict) or "text" in item:
            self.passage(item, depth)
        elif item.get("title"):
            self.section(item, depth)
        elif any(key in item for key in _CHILDREN):
            self.section(item, depth, Kind.ELEMENT, "div")
        else:
            raise _RecordError('add "text" if this is a passage, or "content", "passages" or "sections" if it is an element')

    def id(self, item: dict[str, Any]) -> str:
        id = _text(item, "id")
        if id:
            if is_running_number(id):
                raise _RecordError(f"the id {id!r} cannot be used: ids of the form @3 are running numbers; change it or leave it out")
            if id in self.ids:
                raise _RecordError(f"the id {id!r} is used twice in this document; change one of the two")
            self.ids.add(id)
        return id


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _RecordError(f'"{key}" must be text in quotes, not {_name(value)}')
    return value


def _texts(record: dict[str, Any], key: str) -> list[str]:
    values = record.get(key)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _RecordError(f'"{key}" must be a list of texts such as ["d7", "d8"]')
    return values


def _language(record: dict[str, Any]) -> str:
    tag = _text(record, "language")
    if not tag:
        return ""
    code = language_or_nothing(tag)
    if not code:
        raise _RecordError(f'"language" must be a code such as en, fr or de, not {tag!r}')
    return code


def _marks(item: dict[str, Any], length: int) -> list[tuple[str, int, int]]:
    if not isinstance(item["marks"], list):
        raise _RecordError('"marks" must be a list of [tag, start, end], for example [["b", 4, 9]]')
    marks = []
    for mark in item["marks"]:
        # `type`, because true and false are instances of int.
        if not isinstance(mark, list) or [type(value) for value in mark] != [str, int, int]:
            raise _RecordError(f'a mark must be [tag, start, end], for example ["b", 4, 9], not {json.dumps(mark)[:60]}')
        tag, start, end = mark
        if not 0 <= start < end <= length:
            raise _RecordError(f"the mark {json.dumps(mark)} lies outside the text; it needs 0 <= start < end <= {length}")
        marks.append((tag, start, end))
    return marks


def _check_keys(record: dict[str, Any], valid: frozenset[str], kind: str) -> None:
    if record.keys() <= valid:
        return
    for key in sorted(record.keys() - valid):
        ours = _NAMES_ELSEWHERE[kind].get(key.lower(), "")
        if _is_lost(record, key, ours) if ours else _looks_misplaced(key):
            use = f'use "{ours}"; ' if ours else ""
            hint = '; put other data into "metadata"' if kind == "document" else ""
            if ours == "sections":
                use = f'use "sections": [{{"part": "{key.lower()}", "passages": ["…"]}}]; '
            raise _RecordError(f"a {kind} has no key {key!r}; {use}valid: {', '.join(sorted(valid))}{hint}")


def _is_lost(record: dict[str, Any], key: str, ours: str) -> bool:
    """Whether a value is lost if `key`, another tool's name for our key `ours`, is ignored.

    It is lost unless the record also has a value under `ours`. Text and passages always count as lost. An abstract and
    the like may repeat what is in the document, so they are lost only if the record has no content of ours.
    """
    if ours == "sections":
        return record[key] is not None and all(record.get(child) is None for child in _CHILDREN)
    return record[key] is not None and (ours in ("passages", "text") or record.get(ours) is None)


@lru_cache(maxsize=1024)
def _looks_misplaced(key: str) -> bool:
    """Whether a key is valid for another kind of object, or similar to a valid key."""
    ours = _DOCUMENT | _SECTION | _PASSAGE
    return key in ours or bool(get_close_matches(key.lower(), ours, n=1, cutoff=0.75))


def _check_depth(value: object, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise _RecordError(f'"metadata" is nested deeper than {MAX_DEPTH} levels; flatten it')
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, depth + 1)


def _name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return f"the number {str(value)[:20]}"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
