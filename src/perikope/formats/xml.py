"""XML: the root element of a document tells its schema. A profile describes a schema and names the walk to use.

The format `xml` reads every document that a built-in profile fits. A format such as `jats` or `uspto` reads only the
schemas of its own profiles. A format named by a file, `my.toml`, reads the schema of the profile in this file.
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
    """XML of any schema with a profile, recognised by the root element."""
    problems = Problems()
    for tree in trees(source, problems):
        with problems:
            document = read_document(walk_for(tree, source), tree, source)
            problems.read += 1
            yield document
    problems.report()


def walk_for(tree: XmlDocument, source: Source) -> Walk:
    """The walk for a document, from the first profile of the source's format that fits the document.

    Raises `UnreadableFile` if no profile fits.
    """
    known = profiles_of(source.format)
    profile = next((profile for profile in known if profile.fits(tree.root)), None)
    if profile is None:
        for_root = [profile.name for profile in known if not profile.roots or tree.root.tag in profile.roots]
        roots = ", ".join(dict.fromkeys(f"<{root}>" for profile in known for root in profile.roots))
        why = "which no built-in profile describes" if source.format == "xml" else f"which is none of {roots}"
        if for_root:
            why = f"but does not meet `when` of the profile {' or '.join(for_root)}"
        message = f"is XML with the root <{tree.root.tag}>, {why}; write a profile for it and give it as --format PROFILE.toml"
        raise UnreadableFile(message, path=source.path, line=tree.first_line)
    return WALKS[profile.walk](profile, tree.root)


def profiles_of(format: str) -> list[Profile]:
    """The profiles of a format, given by its name: the built-in profiles of this format, and for `xml` all of them.

    A name that ends in `.toml` is the path of a file with one profile.
    """
    if format.endswith(".toml"):
        return [_of_file(format)]
    return [profile for profile in profiles().values() if format in ("xml", profile.format)]


@cache
def profiles() -> dict[str, Profile]:
    """The built-in profiles by name."""
    folder = files("perikope.formats") / "profiles"
    loaded = [load(Path(str(entry))) for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return {profile.name: profile for profile in sorted(loaded, key=lambda profile: profile.name)}


def _of_file(path: str) -> Profile:
    try:
        state = os.stat(path)
    except OSError:
        return load(Path(path))
    return _loaded(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _loaded(path: str, changed: int, size: int) -> Profile:
    """Load a profile. It is cached by path, modification time (`changed`, in ns) and size.

    So a file that changes while the program runs is loaded again.
    """
    return load(Path(path))


def format_of(path: str) -> Format:
    """The format that the profile in the file `path` describes. The name of the format is `path`."""
    return Format(path, (), read, _of_file(path).summary, chunks, SUFFIXES)


for _profile in profiles().values():
    # If a format has several profiles, the profile with the format's name provides the summary.
    if _profile.name == _profile.format:
        FORMATS.add(_profile.format, Format(_profile.format, (), read, _profile.summary, chunks, SUFFIXES))
