"""Write both collections into a folder."""

import sys
from pathlib import Path

from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.wikipedia import make_wikipedia

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.support.lookalikes FOLDER")
    make_patents(Path(sys.argv[1]) / "clef-ip")
    make_wikipedia(Path(sys.argv[1]) / "inex-positions", "positions")
    make_wikipedia(Path(sys.argv[1]) / "inex-tags", "tags")
