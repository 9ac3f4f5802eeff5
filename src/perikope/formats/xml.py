"""XML: which schema a document is of is seen from its root; each schema is a profile, some with code of their own.

`xml` reads any document whose schema is known. A format's own name (`jats`, `uspto`) reads only the schemas that name it as theirs; a file
of a user's own profile reads that one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import FORMATS, Format, Source, reader
from perikope.formats._profile import Profile, load
from perikope.formats._traversal import read_document
from perikope.formats._xml import Problems, XmlDocument, chunks, trees
from perikope.formats.walks import WALKS, Walk

SUFFIXES = (".xml", ".nxml")


@reader("xml", suffixes=SUFFIXES, split=chunks)
def read(source: Source) -> Iterator[Document]:
    """XML of any schema with a profile; which one, its root element says."""
    problems = Problems()
    for tree in trees(source, problems):
        with problems:
            document = read_document(walk_for(tree, source), tree, source)
            problems.read += 1
            yield document
    problems.report()


def walk_for(tree: XmlDocument, source: Source) -> Walk:
    """The walk through a document, by that profile of the source's format that fits its root."""
    known = profiles_of(source.format)
    profile = next((profile for profile in known if profile.fits(tree.root)), None)
    if profile is None:
        for_root = [profile.name for profile in known if not profile.roots or tree.root.tag in profile.roots]
        roots = ", ".join(dict.fromkeys(f"<{root}>" for profile in known for root in profile.roots))
        why = f"but without what {' or '.join(for_root)} must hold" if for_root else f"none of {roots}"
        message = f"is XML with the root <{tree.root.tag}>, {why}; write a profile for it and give it as --format PROFILE.toml"
        raise UnreadableFile(message, path=source.path, line=tree.first_line)
    return WALKS[profile.walk](profile, tree.root)


def profiles_of(format: str) -> list[Profile]:
    """The profiles that a format consists of: all for `xml`, those of its name, or the one in a user's own file."""
    if format.endswith(".toml"):
        return [_of_file(format)]
    return [profile for profile in profiles().values() if format in ("xml", profile.format)]


@cache
def profiles() -> dict[str, Profile]:
    """The profiles that come with the program, by name."""
    folder = files("perikope.formats") / "profiles"
    found = [load(Path(str(entry))) for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return {profile.name: profile for profile in sorted(found, key=lambda profile: profile.name)}


def _of_file(path: str) -> Profile:
    try:
        state = os.stat(path)
    except OSError:
        return load(Path(path))
    return _loaded(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _loaded(path: str, changed: int, size: int) -> Profile:
    """A profile as its file is at one time: it may be changed while the program runs."""
    return load(Path(path))


def format_of(path: str) -> Format:
    """The format that a user's own profile describes."""
    return Format(path, (), read, _of_file(path).summary, chunks, SUFFIXES)


for _profile in profiles().values():
    # Of a format of several schemas, the one that has the format's name stands for all.
    if _profile.name == _profile.format:
        FORMATS.add(_profile.format, Format(_profile.format, (), read, _profile.summary, chunks, SUFFIXES))
