"""Random and hand-made documents for tests."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import strategies as st

from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.search.facade import Index

WORDS = ["pump", "rotor", "magnet", "seal", "shaft", "the", "of", "valve", "Pumps", "été"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
PARTS = ["", "", "", "abstract", "claims"]
LANGUAGES = ["", "", "", "fr"]


@st.composite
def sections(draw, depth=3):
    """A section as (title, part, language, children); a child is a passage text or a section."""
    children = draw(st.lists(texts if depth == 0 else st.one_of(texts, texts, sections(depth=depth - 1)), max_size=4))
    return draw(st.one_of(st.just(""), texts)), draw(st.sampled_from(PARTS)), draw(st.sampled_from(LANGUAGES)), children


@st.composite
def documents(draw, id="d1"):
    """A random document with nested, titled sections in several parts and languages."""
    title, _, _, children = draw(sections())
    builder = TreeBuilder(id, title=title)
    builder.passage(draw(texts))
    fill(builder, children)
    return builder.build()


def fill(builder: TreeBuilder, children) -> None:
    for child in children:
        if isinstance(child, str):
            builder.passage(child)
        else:
            title, part, language, inner = child
            with builder.span(Kind.SECTION, "sec", part=part, language=language):
                if title:
                    builder.title(title)
                fill(builder, inner)


@st.composite
def collections(draw, min_size=1, max_size=5):
    """Documents with distinct ids, in random order of ids."""
    count = draw(st.integers(min_size, max_size))
    ids = draw(st.permutations([f"d{i}" for i in range(count)]))
    return [draw(documents(id=id)) for id in ids]


@cache
def _folder(process: int) -> Path:
    """The one folder of a test run, removed at its end: a test may read an index after it has let go of it."""
    folder = Path(mkdtemp(prefix="perikope-tests-"))

    def remove() -> None:
        if os.getpid() == process:  # a forked child must leave it alone
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


_numbers = itertools.count()


def index_of(documents: list[Document], cuts: list[int] = (), **settings) -> Index:
    """An index in a temporary folder; each cut is a place where a commit ends a segment."""
    place = _folder(os.getpid()) / str(next(_numbers))
    place.mkdir()
    index = Index.create(place / "index", **settings)
    bounds = [0, *sorted(cuts), len(documents)]
    for first, end in itertools.pairwise(bounds):
        index.add(documents[first:end])
        index.commit()
    return index


def plain_document(id: str, title: str, *passages: str, part: str = "") -> Document:
    builder = TreeBuilder(id, title=title)
    for passage in passages:
        builder.passage(passage, part=part)
    return builder.build()


def structured_document() -> Document:
    """Nested sections, a part, titles and a mark."""
    builder = TreeBuilder("d1", title="Pumps")
    builder.passage("A pump moves fluid.")
    with builder.span(Kind.SECTION, "sec", part="description"):
        builder.title("Rotor")
        builder.passage("The rotor turns.", marks=[("b", 4, 9)])
        builder.passage("The seal of the rotor.")
        with builder.span(Kind.SECTION, "sec"):
            builder.passage("A magnet drives the pump.")
    return builder.build()
