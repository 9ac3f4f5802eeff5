"""Write the collections into a folder, and print what was written."""

import argparse
import sys
from pathlib import Path

from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.sizes import SIZES
from tests.support.lookalikes.wikipedia import make_wikipedia


def main() -> None:
    """Write three collections, or their controls."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.lookalikes", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="small", help="how many documents and topics (default: small)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other words and texts (default: 1)")
    parser.add_argument("--control", action="store_true", help="plant no effects; prox may still be above Reference")
    given = parser.parse_args()
    patents = make_patents(given.folder / "clef-ip", given.seed, size=given.size, effect="none" if given.control else "all")
    positions = make_wikipedia(given.folder / "inex-positions", "positions", given.seed, size=given.size, control=given.control)
    tags = make_wikipedia(given.folder / "inex-tags", "tags", given.seed, size=given.size, control=given.control)
    for made in (patents, positions, tags):
        sys.stdout.write(f"{made.folder}: {made.document_count:,} documents in {made.documents.name}/\n")
        for path in (made.topics, made.judgements, made.training_topics, made.training_judgements):
            sys.stdout.write(f"  {path.relative_to(made.folder)}\n")


if __name__ == "__main__":
    main()
