"""From files to an index in one step, as the command line does it: all of it, or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perikope.api import Index
from perikope.errors import InputError, UnreadableFile
from perikope.formats import read
from perikope.segment import segmenter
from perikope.text import read_stopwords


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What was added and what had to be skipped."""

    documents: int
    passages: int
    skipped: tuple[UnreadableFile, ...]


def build(
    folder: str,
    paths: Sequence[str],
    *,
    append: bool = False,
    format: str = "auto",
    language: str = "en",
    stemmer: str = "snowball",
    stopwords: str = "default",
    segment: str = "markup",
) -> BuildReport:
    """Index files and folders; an error leaves the index as it was, or no index where there was none."""
    cut = segmenter(segment)
    existed = Path(folder).exists()
    if append:
        index = Index.open(folder)
    else:
        words = stopwords if stopwords in ("default", "none") else read_stopwords(stopwords)
        index = Index.create(folder, language=language, stemmer=stemmer, stopwords=words)
    before = index.documents, index.passages
    skipped: list[UnreadableFile] = []
    try:
        index.add(cut(document) for document in read(list(paths), format=format, language=language, on_problem=skipped.append))
        index.commit()
        if index.documents == before[0]:
            raise InputError("; ".join(str(problem) for problem in skipped[:3]) or "there are no documents in it", path=", ".join(paths))
    except BaseException:
        index.rollback()
        if not append:
            _remove(Path(folder), keep_folder=existed)
        raise
    return BuildReport(index.documents - before[0], index.passages - before[1], tuple(skipped))


def _remove(folder: Path, *, keep_folder: bool) -> None:
    """Undo the making of an index; the folder was new or empty, so all in it is ours."""
    for path in folder.iterdir():
        path.unlink()
    if not keep_folder:
        shutil.rmtree(folder, ignore_errors=True)
