"""Queries from patents, in terms of the index.

A patent becomes two queries (Albarede et al. 2021). By default, the words of the abstract with the highest tf-idf fetch
documents, and the words of the claims with the highest tf-idf score passages. The tf-idf of a word w is

    tf(w) · log(N / N_w)

Here tf(w) is the frequency of w in the text, N the number of documents in the index, and N_w the number of documents
that contain w. The query patent and its family are not counted in N and N_w, since a word that no other document
contains cannot find anything. Words are compared as terms of the index. Stop words, numbers (mostly reference signs)
and words that are not in the index are left out. Words with equal tf-idf are ordered alphabetically by their terms.

A query may also have all words of its text, with numbers, and the classification codes of the patent (Gobeill and Ruch
2012).

Models that read text, such as `colbert`, get the whole text of these parts (`Query.source`), not the chosen words
(Albarede et al. 2023, 5.1.2 and 5.2.2).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perikope.core.access import check_access, may_name_files
from perikope.core.arrays import Integers
from perikope.core.errors import InputError, UsageError, unknown
from perikope.core.names import normal_path
from perikope.document.languages import NAMES
from perikope.document.tree import Document, Kind
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS
from perikope.query.boolean import Word
from perikope.query.code_terms import code_weights, with_terms
from perikope.query.publications import find_publication, parse_publication
from perikope.query.syntax import terms_of
from perikope.query.terms import Query
from perikope.text.analysis import language_code, words

if TYPE_CHECKING:
    # Not imported at run time, since it imports an HTTP client, which takes time.
    from perikope.patents.translation import Translator

PARTS = ("title", "abstract", "description", "claims", "bibliography")
"""Parts of a patent whose words a query can use."""
ALL = "all"
"""The number of words of a query that has all words of its text."""
FETCH_WORDS, FETCH_FROM = 10, "abstract"
BROWSE_WORDS, BROWSE_FROM = 100, "claims"
_LISTED = 5
_UNKNOWN_LANGUAGE = "und"

PartNames = str | Sequence[str]
Claims = str | Sequence[str | int]
"""The query claims: a text, or a list of claims of the patent by number, id or path in the original file."""


class PatentText(NamedTuple):
    """The text of a passage or title of a patent."""

    part: str
    language: str
    text: str
    id: str = ""
    path: str = ""
    """The path of the element in the original file; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Patent:
    """A patent to search with."""

    name: str
    """The name of the patent in messages."""
    pieces: tuple[PatentText, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    """The id that the patent has, or would have, in an index; empty for claims without a patent."""
    language: str = _UNKNOWN_LANGUAGE

    @property
    def parts(self) -> set[str]:
        """The parts of the patent that have text, such as `claims`."""
        return {piece.part for piece in self.pieces}

    def with_claims(self, claims: Claims) -> Patent:
        """The patent with other claims, given as a text, or with some of its own claims only.

        Own claims are given by number (3), id (`claim-3`) or path (`/patent-document/claims/claim[3]`).
        """
        if isinstance(claims, str):
            if not words(claims):
                raise UsageError("the text of the claims is empty; give at least one word")
            chosen = [PatentText("claims", _UNKNOWN_LANGUAGE, claims)]
        else:
            own_claims = [piece for piece in self.pieces if piece.part == "claims"]
            # Claims are looked up one by one, so that the error can name a missing claim.
            chosen = [piece for name in claims for piece in self._claim(own_claims, name)]
        return replace(self, pieces=(*(piece for piece in self.pieces if piece.part != "claims"), *dict.fromkeys(chosen)))

    def _claim(self, claims: Sequence[PatentText], name: str | int) -> list[PatentText]:
        text = str(name).strip()
        if text.startswith("/"):
            wanted = normal_path(text)
            matching = [piece for piece in claims if piece.path and _inside(normal_path(piece.path), wanted)]
        else:
            id = f"claim-{text}" if text.isdecimal() else text
            # The ids of claims in a language other than that of the patent end with the language.
            matching = [piece for piece in claims if piece.id == id or piece.id == f"{id}-{piece.language}"]
        if not matching:
            # A heading such as "What is claimed is" has a path but no id. Paths are listed only if no claim has an id.
            ids = [piece.id for piece in claims if piece.id] or [piece.path for piece in claims if piece.path]
            raise UsageError(f"{self.name} has no claim {text!r}; its claims are {_some(ids)}")
        return matching


def _inside(path: str, wanted: str) -> bool:
    """Whether two elements are equal, or one contains the other, given their normalised paths."""
    return f"{path}/".startswith(f"{wanted}/") or f"{wanted}/".startswith(f"{path}/")


# Reading patents


def load_patent(snapshot: Snapshot, patent: str | os.PathLike[str] | Document) -> Patent:
    """Load a patent from a file, from the index (by publication number or id), or from a `Document`."""
    if isinstance(patent, Document):
        return _of_document(patent, patent.id)
    path = os.fspath(patent)
    if not path.strip():
        raise UsageError("the patent to search with is empty; give a file or a publication number")
    # If a folder has the same name as a publication number, the number is meant.
    if not isinstance(patent, str) or (_is_file(path) and not (os.path.isdir(path) and parse_publication(path))):
        check_access(path, "a patent")
        return _of_file(path)
    if may_name_files() and os.path.dirname(path) and parse_publication(path) is None:
        raise InputError("there is no such file; give the file of a patent, or a publication number", path=path)
    return of_index(snapshot, find_publication(snapshot, path, or_file=True))


def _is_file(path: str) -> bool:
    """Whether a name is the path of a file or folder; False if files cannot be named."""
    return may_name_files() and os.path.exists(path)


def pasted(claims: str) -> Patent:
    """A patent that consists of the given text of claims only."""
    return Patent("the given text", ()).with_claims(claims)


def _of_file(path: str) -> Patent:
    from perikope.formats import read

    if os.path.isdir(path):
        raise InputError("is a folder; give the file of one patent", path=path)
    documents = list(islice(read(path, hashes=False), _LISTED + 1))
    if len(documents) != 1:
        ids = _some([document.id for document in documents[:_LISTED]]) + " …" * (len(documents) > _LISTED)
        raise InputError(
            f"must contain one patent, but contains {ids}; give a file with one patent, or index the file and give a number", path=path
        )
    patent = _of_document(documents[0], path)
    if not patent.parts & {"abstract", "description", "claims"}:
        raise InputError("is not a patent: it has no abstract, description or claims; give the file of a patent", path=path)
    return patent


def _of_document(document: Document, name: str) -> Patent:
    spans, labels = document.spans, document.labels
    spans_with_text = (
        (
            labels[spans.part[span]],
            labels[spans.language[span]],
            spans.start[span],
            spans.end[span],
            document.span_ids.get(span, ""),
            document.places[span].path if span in document.places else "",
        )
        for span, kind in enumerate(spans.kind)
        if kind in (Kind.PASSAGE, Kind.TITLE)
    )
    return Patent(name, tuple(_pieces(document.text, spans_with_text)), document.metadata, document.id, language_code(document.language))


def of_index(snapshot: Snapshot, number: int) -> Patent:
    """The document with this number in the index, as a patent."""
    segment, local = snapshot.locate(number)
    first, end = (int(place) for place in segment["document.first_span"][local : local + 2])
    kinds = segment.rows("span.kind", first, end)
    places, id_of = segment.places(local), segment.span_namer(local)
    spans_with_text = (
        (
            segment.label("part", first + span),
            segment.label("language", first + span),
            segment.row("span.start", first + span),
            segment.row("span.end", first + span),
            id_of(span) or "",
            places[span].path if span in places else "",
        )
        for span in np.flatnonzero((kinds == Kind.PASSAGE) | (kinds == Kind.TITLE)).tolist()
    )
    pieces = tuple(_pieces(segment.text(local), spans_with_text))
    id = segment.document_id(local)
    return Patent(id, pieces, segment.metadata(local), id, language_code(segment.label("language", first)))


def _pieces(text: str, spans: Iterable[tuple[str, str, int, int, str, str]]) -> Iterator[PatentText]:
    """Yield the texts of spans in reading order. If spans overlap, as windows do, each character is used once."""
    done = 0
    for part, language, start, end, id, path in spans:
        if end > max(start, done):
            yield PatentText(part, language_code(language), text[max(start, done) : end], id, path)
            done = end


# Making queries


@dataclass(frozen=True, slots=True)
class Forms:
    """The number of words of each query, and the parts of the patent that the words come from."""

    fetch_words: int | str = FETCH_WORDS
    fetch_from: PartNames = FETCH_FROM
    browse_words: int | str = BROWSE_WORDS
    browse_from: PartNames = BROWSE_FROM
    weighted: bool = False
    """Whether words are weighted by their frequency in the text; otherwise each word has weight 1."""
    code_level: str = "full"
    """The level of the codes in the query that fetches documents."""

    def __post_init__(self) -> None:
        for name, count in (("fetch_words", self.fetch_words), ("browse_words", self.browse_words)):
            if count != ALL and (not isinstance(count, int) or count < 1):
                raise UsageError(f"{name} must be a whole number of at least 1, or all, not {count!r}")
        for given, known in ((self.fetch_from, (*PARTS, *CODE_FIELDS)), (self.browse_from, PARTS)):
            if not _listed(given):
                raise UsageError(f"fetch_from and browse_from must name at least one part of the patent: {', '.join(PARTS)}")
            for part in _listed(given):
                if part in CODE_FIELDS and part not in known:
                    raise UsageError(f"browse_from cannot have {part}, since no passage contains codes; name it in fetch_from")
                if part not in known:
                    raise unknown("part of a patent", part, known)


@dataclass(frozen=True, slots=True)
class Setting:
    """The index for which a query is made, with languages, the patent's family and a translator."""

    snapshot: Snapshot
    languages: Sequence[str]
    """The languages that are searched; the preferred language is first."""
    members: Sequence[int] = ()
    """Numbers of documents of the patent's family. If the patent has no abstract, an abstract of the family is used."""
    left_out: Sequence[int] = ()
    """Numbers of documents that are not counted in N and N_w, since they cannot be results."""
    translator: Translator | None = None
    """Translates text in a language that is not searched; None to use the words as they are."""
    by_language: bool = False
    """Whether the collection is counted by language."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and the languages in which its words are looked up."""

    text: str
    languages: tuple[str, ...]


def queries(patent: Patent, forms: Forms, setting: Setting, on_note: Callable[[str], None]) -> tuple[Query, Query]:
    """The two queries of a patent: the first fetches documents, the second scores passages.

    `on_note` receives one sentence for each thing that could not be done as requested.
    """
    notes: list[str | _Untranslated] = []
    fetch_from = _listed(forms.fetch_from)
    parts, fields = ([name for name in fetch_from if (name in CODE_FIELDS) == is_field] for is_field in (False, True))
    codes = code_weights(patent.metadata, fields, forms.code_level)
    words_to_fetch = _form(patent, parts, forms.fetch_words, forms.weighted, setting, notes.append) if parts or not codes else NO_WORDS
    fetch = with_terms(words_to_fetch, codes if forms.weighted else dict.fromkeys(codes, 1.0))
    browse = _form(patent, _listed(forms.browse_from), forms.browse_words, forms.weighted, setting, notes.append)
    for note in dict.fromkeys(_in_words(note, notes, patent) for note in notes):
        on_note(note)
    return fetch, browse


class _Untranslated(NamedTuple):
    """A part of a patent whose words are looked up as they are, because its language is not searched."""

    language: str
    part: str


_OnNote = Callable[[str | _Untranslated], None]


def _in_words(note: str | _Untranslated, notes: Sequence[str | _Untranslated], patent: Patent) -> str:
    """A note as a sentence. All untranslated parts in the same language give the same sentence."""
    if isinstance(note, str):
        return note
    same = (other.part for other in notes if isinstance(other, _Untranslated) and other.language == note.language)
    *first, last = dict.fromkeys(same)
    parts = f"{', '.join(first)} and {last}" if first else last
    return (
        f"{note.language}, the language of the {parts} of {patent.name}, is not searched, and there is no translator: "
        "the words are looked up untranslated"
    )


NO_WORDS = Query("", (), ())
"""The words of a query that has codes only."""


def _form(patent: Patent, parts: Sequence[str], most: int | str, weighted: bool, setting: Setting, on_note: _OnNote) -> Query:
    texts = [text for part in parts if (text := _text(patent, part, setting, on_note))]
    for part in ("claims", "abstract"):
        if not texts and (text := _text(patent, part, setting, on_note)):
            if patent.id:
                on_note(f"{patent.name} has no {' and no '.join(parts)}: words are taken from its {part} instead")
            texts = [text]
    if not texts:
        others = sorted(patent.parts.intersection(PARTS).difference(parts))
        rest = f"only {', '.join(others)}; take words from another part" if others else "and no other part with text"
        raise UsageError(f"{patent.name} has neither claims nor an abstract to search with, {rest}")
    found = best_words(setting.snapshot, [(text.text, text.languages) for text in texts], setting.left_out, with_numbers=most == ALL)
    best = found[:most] if isinstance(most, int) else found
    if not best:
        on_note(f"no word of {patent.name} is in the index, so nothing can be found")
    query = _query(best, weighted, "\n".join(text.text for text in texts))
    return replace(query, languages=tuple(setting.languages)) if setting.by_language else query


def _text(patent: Patent, part: str, setting: Setting, on_note: _OnNote) -> _Text | None:
    """The text of a part in one language; None if the patent has no such part.

    The language is the preferred one, else that of the patent if it is searched, else another searched language. A text
    in a language that is not searched is translated. The words are looked up in all searched languages. Names are not
    translated, and are looked up in all languages of the index.
    """
    texts = _texts(patent, part, setting, on_note)
    if not texts:
        return None
    wanted = list(setting.languages)
    if part == NAMES:
        return _Text("\n".join(texts.values()), tuple(dict.fromkeys((*wanted, *setting.snapshot.languages))))
    suiting = [language for language in (wanted[0], patent.language, *wanted) if language in texts and language in wanted]
    language = suiting[0] if suiting else patent.language if patent.language in texts else next(iter(texts))
    text = texts[language]
    if suiting:
        if setting.translator is not None and language != wanted[0]:
            on_note(
                f"the {part} of {patent.name} is not translated, because its language ({language}) is searched too; "
                f"to translate it, search {wanted[0]} only"
            )
        return _Text(text, tuple(dict.fromkeys((language, *wanted))))
    if language != _UNKNOWN_LANGUAGE and setting.translator is not None:
        text = setting.translator(text, language, wanted[0])
    elif language != _UNKNOWN_LANGUAGE:
        on_note(_Untranslated(language, part))
    return _Text(text, tuple(wanted))


def _texts(patent: Patent, part: str, setting: Setting, on_note: _OnNote) -> dict[str, str]:
    """The texts of a part, by language.

    If the patent has no abstract in a searched language, the abstract of a member of its family is used.
    """
    own = _by_language(patent, part)
    if part != "abstract" or any(language in own for language in setting.languages):
        return own
    for member in setting.members:
        other = of_index(setting.snapshot, member)
        theirs = _by_language(other, part)
        if any(language in theirs for language in setting.languages):
            on_note(f"{patent.name} has no abstract{' in a searched language' * bool(own)}: the abstract of {other.name} is used")
            return theirs
    return own


def _by_language(patent: Patent, part: str) -> dict[str, str]:
    texts_of_language: dict[str, list[str]] = {}
    for piece in patent.pieces:
        if piece.part == part:
            texts_of_language.setdefault(piece.language, []).append(piece.text)
    return {language: "\n".join(texts) for language, texts in texts_of_language.items()}


@dataclass(frozen=True, slots=True)
class WeighedWord:
    """A word of a text with its tf-idf, and the counts from which the tf-idf is computed."""

    word: str
    """The word as first written."""
    terms: tuple[str, ...]
    """One term per language in which the word is looked up."""
    frequency: int
    """The number of occurrences of the word in the text."""
    documents: int
    """The number of documents that contain the word: the largest number of all its terms."""
    value: float
    """The tf-idf of the word."""


def best_words(
    snapshot: Snapshot, texts: Iterable[tuple[str, Sequence[str]]], left_out: Sequence[int] = (), *, with_numbers: bool = False
) -> list[WeighedWord]:
    """The words of texts, ordered by descending tf-idf, which the module docstring defines.

    Each text comes with the languages in which its words are looked up. Documents whose numbers are in `left_out` are
    not counted in N and N_w. Numbers are words only if `with_numbers` is true.
    """
    frequency: dict[tuple[str, ...], int] = {}
    written: dict[tuple[str, ...], str] = {}
    for text, languages in texts:
        terms_of_word: dict[str, tuple[str, ...]] = {}
        for word in words(text):
            terms = terms_of_word.get(word)
            if terms is None:
                # As in any query, stop words of the first language are left out in all languages.
                is_word = (with_numbers or not word.isdecimal()) and snapshot.analyzer.term(word, languages[0]) is not None
                terms = terms_of_word[word] = tuple(terms_of(word, snapshot.analyzer, languages)) if is_word else ()
            if terms:
                frequency[terms] = frequency.get(terms, 0) + 1
                written.setdefault(terms, word)
    held = _documents_with(snapshot, list(dict.fromkeys(term for terms in frequency for term in terms)), left_out)
    documents = snapshot.totals.documents - len(left_out)
    weighed = []
    for terms, tf in frequency.items():
        df = max(held[term] for term in terms)
        if df:
            weighed.append(WeighedWord(written[terms], terms, tf, df, tf * math.log(documents / df)))
    return sorted(weighed, key=lambda word: (-word.value, word.terms))


def _documents_with(snapshot: Snapshot, terms: list[str], left_out: Sequence[int]) -> dict[str, int]:
    """The number of documents that contain each term; documents in `left_out` are not counted."""
    if not terms:
        return {}
    count = snapshot.look_up(terms).counts[0].copy()
    numbers_by_segment = snapshot.numbers_of_terms(terms) if left_out else ()
    for document in left_out:
        segment, local = snapshot.locate(document)
        numbers: Integers = numbers_by_segment[snapshot.segments.index(segment)]
        count -= (numbers >= 0) & np.isin(numbers, segment.tokens(local))
    return dict(zip(terms, count.tolist(), strict=True))


def _query(best: Sequence[WeighedWord], weighted: bool, source: str) -> Query:
    """The query of the best words of a text; `source` is the whole text, for models that read text."""
    weights: dict[str, float] = {}
    for word in best:
        for term in word.terms:
            weights[term] = weights.get(term, 0.0) + word.frequency if weighted else 1.0
    text = " ".join(word.word for word in best)
    return Query(text, tuple(weights), tuple(weights.values()), words=tuple(Word(word.terms) for word in best), source=source)


def _listed(names: PartNames) -> list[str]:
    given = names.split(",") if isinstance(names, str) else names
    return list(dict.fromkeys(name.strip() for name in given if name.strip()))


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_LISTED]) + (f" … {ids[-1]}" if len(ids) > _LISTED else "") or "none"
