"""Files that no format reads: counted by suffix, with advice on what to do with them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from perikope.formats._unpack import stem

NO_SUFFIX = "without suffix"
"""The name of the group of files without a suffix."""
MOST_SUFFIXES = 6
"""The number of suffixes that a summary names."""

_SUFFIX = re.compile(r"\.[a-z0-9_+-]{1,10}")
_AS_MARKDOWN = "`{command} --format markdown` reads them as Markdown"
_AS_TEXT = "if they are text, `{command} --format text` reads them as plain text"


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """A group of suffixes whose files are not read."""

    suffixes: frozenset[str]
    advice: str = ""
    """What to do so that the files can be read; empty if they hold no text. `{command}` stands for the command."""

    @property
    def must_be_converted(self) -> bool:
        """Whether another program must convert the files before any format can read them."""
        return self.advice.startswith("not read")


def _group(suffixes: str, advice: str = "") -> OtherFiles:
    return OtherFiles(frozenset(f".{suffix}" for suffix in suffixes.split()), advice)


GROUPS = (
    _group("djvu ps", "not read; convert them to PDF first, for example with ddjvu or ps2pdf"),
    _group("doc fb2 mobi pages ppt odp key", "not read; save them as DOCX, PPTX, EPUB or PDF first"),
    _group("xls ods numbers", "not read; save them as XLSX or CSV first"),
    _group("mdx mdown mkd mkdn mdwn qmd rmd", _AS_MARKDOWN),
    _group("textile wiki mediawiki", "not read; convert them to HTML first, for example with pandoc"),
    _group("mbox msg", "not read; save each message as a file .eml first"),
    _group("7z rar zst lz lz4 lzma cab iso", "not read; unpack them first"),
    # The files of the remaining groups hold no text that a reader would search.
    _group("png jpg jpeg gif svg svgz webp bmp ico tif tiff psd eps xcf heic"),
    _group("mp3 wav ogg flac m4a mp4 mov avi mkv webm mid"),
    _group("ttf otf woff woff2 eot pfb afm"),
    _group("css scss less js mjs map wasm pyc pyo so o a dll exe class jar whl deb rpm bin db sqlite pkl npy npz columns"),
)
"""The groups of known suffixes. Files of all other suffixes, and without suffix, may be text."""
UNKNOWN = OtherFiles(frozenset(), _AS_TEXT)


def suffix_of(path: str) -> str:
    """The suffix of a file in lower case, or `NO_SUFFIX`. For a packed file, it includes the suffix before.

    >>> [suffix_of(name) for name in ("docs/a.PDF", "docs/a.rst.gz", "LICENSE", "changelog.gz", "Dr. Who")]
    ['.pdf', '.rst.gz', 'without suffix', '.gz', 'without suffix']
    """
    name = os.path.basename(path).lower()
    plain = stem(name)
    suffix = os.path.splitext(plain)[1]
    return (suffix if _SUFFIX.fullmatch(suffix) else "") + name[len(plain) :] or NO_SUFFIX


def group_of(suffix: str) -> OtherFiles:
    """The group of a suffix that `suffix_of` returned."""
    plain = stem(suffix)
    return next((group for group in GROUPS if plain in group.suffixes), UNKNOWN)


def summary(counts: Mapping[str, int]) -> str:
    """The numbers of files by suffix as text, the most frequent first.

    >>> summary({".pdf": 3, ".png": 12, "without suffix": 1})
    '12 .png, 3 .pdf, 1 without suffix'
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named, others = ordered[:MOST_SUFFIXES], ordered[MOST_SUFFIXES:]
    if len(others) == 1:
        named, others = ordered, []
    text = ", ".join(f"{count} {suffix}" for suffix, count in named)
    return text + (f", and {sum(count for _, count in others)} of {len(others)} other suffixes" if others else "")


def links_outside(count: int) -> str:
    """A number of links that lead outside the indexed folder, in words.

    >>> links_outside(1), links_outside(2)
    ('1 link that leads outside the folder', '2 links that lead outside the folder')
    """
    return f"{count} {'link that leads' if count == 1 else 'links that lead'} outside the folder"


def advice(counts: Mapping[str, int], command: str) -> list[str]:
    """One line of advice per group of suffixes, the group with most files first. Groups without text have no line.

    `command` is the command that reads them if `--format` is added to it.
    """
    suffixes: dict[OtherFiles, list[str]] = {}
    for suffix in sorted(counts, key=lambda suffix: (-counts[suffix], suffix)):
        suffixes.setdefault(group_of(suffix), []).append(suffix)
    lines = []
    for group in sorted(suffixes, key=lambda group: -sum(counts[suffix] for suffix in suffixes[group])):
        listed = suffixes[group]
        shown = (
            ", ".join(listed)
            if len(listed) <= MOST_SUFFIXES
            else "others"
            if group is UNKNOWN
            else f"{', '.join(listed[:MOST_SUFFIXES])} …"
        )
        if group.advice:
            lines.append(f"{shown}: {group.advice.format(command=command)}")
    return lines


def with_text(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of suffixes whose files may hold text that a reader would search."""
    return {suffix: count for suffix, count in counts.items() if group_of(suffix).advice}
