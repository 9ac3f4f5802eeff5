"""Write the index that `test_fixture` opens: `python -m tests.compat.make_fixture`.

Run it when the format changes, and put the number of the new format into the name of the folder. The indexes of all
formats that were ever released stay.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from perikope.core.locks import LOCK_FILE
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.index.manifest import FORMAT
from perikope.search.facade import Index

FOLDER = Path(__file__).parent / f"index-v{FORMAT}"


METADATA = {"year": 2013, "date": "2013-04-01", "ipc": ["F04D 13/02", "H02K 49/10"], "by": {"name": "Ada", "born": None}, "open": True}


def first() -> Document:
    builder = TreeBuilder("pumps/kx.md", title="KX-200 heat pump", metadata=METADATA, cites=["pumps/old.md"])
    builder.passage("The pump has a magnetic coupling.", id="intro")
    with builder.span(Kind.SECTION, "sec", part="claims", id="claims"):
        builder.title("Claims")
        builder.passage("A pump with a rotor and a magnet.", marks=[("b", 14, 19)], refs=["intro"])
        builder.passage("The pump of the first claim, where the rotor is sealed.")
    builder.source, builder.source_hash = "pumps/kx.md", "5d41402a"
    return builder.build()


def second() -> Document:
    builder = TreeBuilder("pompe", title="Pompe à chaleur", language="fr")
    builder.passage("La pompe a un rotor et un aimant.")
    with builder.span(Kind.SECTION, "sec", language="en"):
        builder.passage("The rotor of the pump, in English.")
    return builder.build()


def third() -> Document:
    builder = TreeBuilder("deleted", title="Deleted", metadata={"year": 1999, "ipc": "F04D"})
    builder.passage("A pump that nobody finds.")
    return builder.build()


def fourth() -> Document:
    builder = TreeBuilder("often", title="Often", metadata={"year": 2009, "ipc": "F04D  29/42"})
    builder.passage("pump " * 300)
    return builder.build()


def make(folder: Path) -> None:
    """Two segments, a deletion, metadata of several kinds, two parts, two languages, and a frequency above one byte."""
    index = Index.create(folder)
    index.add([first(), second(), third()])
    index.commit()
    index.delete(["deleted"])
    index.add([fourth()])
    index.commit()
    (folder / LOCK_FILE).unlink()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    make(FOLDER)
