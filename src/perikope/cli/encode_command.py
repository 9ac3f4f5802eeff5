"""`perikope encode`: vectors of all passages, computed once and kept in the index."""

from __future__ import annotations

import sys
from typing import Any

import click

from perikope.cli.output import count


@click.command(name="encode")
@click.argument("index", metavar="INDEX")
@click.option("--name", default="colbert", show_default=True, metavar="NAME", help="Of the store; models call for it.")
@click.option("--encoder", default="all-MiniLM-L6-v2", show_default=True, metavar="NAME|FOLDER", help="A Hugging Face or ColBERT model.")
@click.option(
    "--dimension", default=128, show_default=True, type=click.IntRange(0), metavar="N", help="Of the vectors; 0 for the encoder's own."
)
@click.option(
    "--code",
    default="residual",
    show_default=True,
    type=click.Choice(["float16", "int8", "residual"]),
    help="How vectors are kept: at 128 dimensions 256, 130 or 34 bytes a token.",
)
@click.option("--heading-path/--no-heading-path", default=True, show_default=True, help="Put the titles above a passage in front of it.")
@click.option("--device", default="", metavar="NAME", help="cpu or cuda; a GPU where there is one.")
def command(index: str, name: str, encoder: str, **options: Any) -> int:
    """Encode all passages, so that neural models can rank them; only what is new, where the store is there already.

    \b
    Example:
      perikope encode idx --name minilm
      perikope search idx "magnetic coupling" --model 'fuse(models=[qsf_v_title,colbert(store="minilm")])'
    """
    from pathlib import Path

    from perikope.index.reader import Snapshot
    from perikope.neural.encoder import Encoder
    from perikope.neural.store import ENCODER, FOLDER, MANIFEST, VectorStore, update_store

    snapshot = Snapshot.open(Path(index))
    place = Path(index) / FOLDER / name
    # A store keeps its encoder: the same name later means the same vectors.
    known = str(place / ENCODER) if (place / MANIFEST).is_file() and (place / ENCODER).is_dir() else encoder
    loaded = Encoder.load(known, options["dimension"], device=options["device"])
    total = snapshot.totals.passages
    with click.progressbar(length=total, label="passages", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        store: VectorStore = update_store(
            snapshot,
            name,
            loaded.encode,
            loaded.dimension,
            code=options["code"],
            heading_path=options["heading_path"],
            save_encoder=loaded.save,
            facts={"encoder": encoder},
            on_document=bar.update,
        )
    size = store.codebook.bytes_a_token
    click.echo(f"{count(store.documents, 'document')}, {count(store.tokens, 'vector')} of {size} bytes in {store.folder}")
    return 0
