"""XML: which schema a document is of is seen from its root; each schema is a profile, some with code of their own.

`xml` reads any document whose schema is known. A schema's own name (`jats`) reads only that one; so does a file of a user's own profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from perikope.document import Document
from perikope.errors import UnreadableFile
from perikope.formats import FORMATS, Format, Source, reader
from perikope.formats._profile import Profile, Walk, load
from perikope.formats._xml import chunks, trees

SUFFIXES = (".xml", ".nxml")
WALKS: dict[str, type[Walk]] = {}
"""Schemas that a profile alone does not describe, by the name of their profile."""


@reader("xml", suffixes=SUFFIXES, split=chunks)
def read(source: Source) -> Iterator[Document]:
    """XML of any schema with a profile; which one, its root element says."""
    for tree in trees(source):
        profile = next((profile for profile in profiles().values() if profile.fits(tree.root)), None)
        if profile is None:
            names = ", ".join(profiles())
            message = f"is XML with the root <{tree.root.tag}>, of none of the schemas known ({names}); write a profile and give it as --format"
            raise UnreadableFile(message, path=source.path, line=tree.first_line)
        yield WALKS.get(profile.name, Walk)(profile, tree, source).document()


def read_as(source: Source, profile: Profile) -> Iterator[Document]:
    """Documents of one schema."""
    for tree in trees(source):
        if profile.roots and tree.root.tag not in profile.roots:
            roots = " or ".join(f"<{root}>" for root in profile.roots)
            raise UnreadableFile(f"has the root <{tree.root.tag}>; {profile.name} has {roots}", path=source.path, line=tree.first_line)
        yield WALKS.get(profile.name, Walk)(profile, tree, source).document()


@cache
def profiles() -> dict[str, Profile]:
    """The profiles that come with the program, by name."""
    folder = files("perikope.formats") / "profiles"
    found = [load(Path(str(entry))) for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return {profile.name: profile for profile in sorted(found, key=lambda profile: profile.name)}


@cache
def of_file(path: str) -> Format:
    """The format that a user's own profile describes."""
    profile = load(Path(path))
    return Format(path, (), partial(read_as, profile=profile), profile.summary, chunks, SUFFIXES)


for _name, _profile in profiles().items():
    FORMATS.add(_name, Format(_name, (), partial(read_as, profile=_profile), _profile.summary, chunks, SUFFIXES))
