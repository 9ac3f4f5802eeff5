"""Words of files as perikope reads them, beside those that other programs find: `python -m benchmarks words FOLDER`.

For each file of a folder, one independent program gives its words in reading order: pandoc's tree of the document for
DOCX, ODT, EPUB, RTF, Org, RST, LaTeX, notebooks and CSV; python-pptx and openpyxl walk through slides and workbooks;
asciidoctor and pandoc read AsciiDoc, polars Parquet, pdftotext PDF, and the older half of Python's e-mail package
messages. Two programs may be named with `--with`, such as `soffice` and `unrtf`. A program that is not installed leaves
its formats out.

The table has, per format: the share of those words that our document has (each as often), words that are missing and
besides, and the share of the words that occur once in both and are in the same order. `--list N` prints the words.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import Table, publish
from benchmarks.word_sources import EXTRACTORS, OTHERS, NoWords
from perikope.core.errors import InputError
from perikope.document.tree import Document, Kind
from perikope.formats import read


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks words", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--with", dest="other", choices=sorted(OTHERS), help="another program for the formats that it reads")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="print up to N missing and other words per file")
    parser.add_argument("--files", action="store_true", help="one row per file that differs")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    extractors = OTHERS[options.other] if options.other else EXTRACTORS
    paths = sorted(path for path in options.folder.rglob("*") if path.is_file() and path.suffix.lower() in extractors)
    publish(tables(paths, extractors, options.files, options.list), options.markdown)


def tables(paths: Sequence[Path], extractors: dict[str, Callable[[Path], str]], with_files: bool, listed: int) -> list[Table]:
    """One row per format, and one per file if wanted."""
    columns = ("format", "files", "not read", "words", "found", "missing", "besides", "in order")
    whole, single = Table("Words of files", columns), Table("Files with differences", columns)
    by_suffix: dict[str, list[Comparison]] = {}
    unread: Counter[str] = Counter()
    for path in paths:
        suffix = path.suffix.lower()
        try:
            found = compared(words_in(extractors[suffix](path)), words_of(path))
        except (InputError, NoWords) as problem:
            if isinstance(problem, InputError):
                unread[suffix] += 1
            single.rows.append((path.name, " ".join(str(problem).split())[:150]))
            continue
        by_suffix.setdefault(suffix, []).append(found)
        if found.missing or found.besides or found.order < 1:
            single.rows.append(_row(path.name, [found], 0))
            if listed:
                single.rows.append(("", f"missing {_some(found.missing, listed)}; besides {_some(found.besides, listed)}"))
    whole.rows = [_row(suffix, found, unread[suffix]) for suffix, found in sorted(by_suffix.items())]
    return [whole, single] if with_files or listed else [whole]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Words of another program and ours."""

    words: int
    missing: Counter[str]
    besides: Counter[str]
    order: float


def compared(theirs: Sequence[str], ours: Sequence[str]) -> Comparison:
    """Which words are missing or besides, each as often as it is, and the share of words in order."""
    their_counts, our_counts = Counter(theirs), Counter(ours)
    return Comparison(len(theirs), their_counts - our_counts, our_counts - their_counts, in_order(theirs, ours))


def in_order(theirs: Sequence[str], ours: Sequence[str]) -> float:
    """The share of the words that both have once which can be kept without changing their order.

    >>> in_order(["a", "b", "c", "d"], ["a", "c", "b", "d"])
    0.75
    """
    their_counts, our_counts = Counter(theirs), Counter(ours)
    place = {word: number for number, word in enumerate(theirs) if their_counts[word] == 1}
    places = [place[word] for word in ours if our_counts[word] == 1 and word in place]
    ends: list[int] = []
    for number in places:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends) / len(places) if places else 1.0


def words_in(text: str) -> list[str]:
    """The words of a text: letters and digits, in one case, whatever signs are around and inside them.

    >>> words_in("Straße, x²: A-1 don't ﬁnd")
    ['strasse', 'x2', 'a', '1', 'don', 't', 'find']
    """
    plain = unicodedata.normalize("NFKC", text.replace("\u00ad", "").replace("\u200b", "")).casefold()
    return re.findall(r"[^\W_]+", plain)


def words_of(path: Path) -> list[str]:
    """The words of the titles and passages of a file, as perikope reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problems: list[Any] = []
        texts = [text for document in read([path], on_problem=problems.append) for text in texts_of(document)]
    return words_in(" ".join(texts))


def texts_of(document: Document) -> Iterator[str]:
    """The texts of all titles and passages, in order."""
    for number, kind in enumerate(document.spans.kind):
        if kind in (Kind.TITLE, Kind.PASSAGE):
            yield document.text_of(number)


def _row(name: str, found: Sequence[Comparison], unread: int) -> tuple[str, ...]:
    words = sum(one.words for one in found)
    missing, besides = sum(one.missing.total() for one in found), sum(one.besides.total() for one in found)
    order = sum(one.order * one.words for one in found) / max(words, 1)
    return (
        name,
        str(len(found)),
        str(unread),
        f"{words:,}",
        f"{1 - missing / max(words, 1):.2%}",
        f"{missing:,}",
        f"{besides:,}",
        f"{order:.1%}",
    )


def _some(words: Counter[str], most: int) -> str:
    return " ".join(f"{word}×{count}" if count > 1 else word for word, count in words.most_common(most)) or "nothing"
