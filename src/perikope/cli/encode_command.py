"""`perikope encode`: vectors of all passages, computed once and kept in the index."""

from __future__ import annotations

import sys
from typing import Any

import click

from perikope.cli.output import count


@click.command(name="encode")
@click.argument("index", metavar="INDEX")
@click.option("--name", default="", metavar="NAME", help="Of the store, as models call for it; else colbert, hgat or dense, by its kind.")
@click.option(
    "--encoder",
    default="",
    metavar="NAME|FOLDER",
    help="A Hugging Face or ColBERT model, or what `perikope train` made; all-MiniLM-L6-v2 where not given.",
)
@click.option("--pooled", is_flag=True, help="One vector a passage, the mean over its tokens, for `vectors`.")
@click.option("--dimension", default=None, type=click.IntRange(0), metavar="N", help="Of token vectors: 128; 0 for the encoder's own.")
@click.option(
    "--code",
    default=None,
    type=click.Choice(["float16", "int8", "residual"]),
    help="How vectors are kept: at 128 dimensions 256, 130 or 36 bytes each. residual; float16 where pooled.",
)
@click.option("--heading-path/--no-heading-path", default=None, help="Whether the titles above a passage are put in front of it.")
@click.option("--device", default="", metavar="NAME", help="cpu or cuda; a GPU where there is one.")
@click.option(
    "--runtime",
    default=None,
    type=click.Choice(["torch", "onnx", "onnx-int8"]),
    help="What computes token vectors: torch where not given; onnx-int8 is faster on a CPU and loses a little.",
)
def command(index: str, **options: Any) -> int:
    """Encode all passages, so that neural models can rank them; only what is new, where the store is there already.

    What is not given is as the store was made. A folder of a trained ranker with graph attention makes a store for `hgat`.

    \b
    Examples:
      perikope encode idx
      perikope search idx "magnetic coupling" --recipe hybrid
      perikope encode idx --encoder my-ranker --name mine
      perikope search idx "magnetic coupling" --model 'fuse(models=[qsf_v_title,hgat(store=mine)])'
    """
    from pathlib import Path

    from perikope.index.reader import Snapshot
    from perikope.neural.stores.making import EncodeOptions, encode_index

    snapshot = Snapshot.open(Path(index))
    with click.progressbar(length=snapshot.totals.passages, label="passages", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        store = encode_index(snapshot, EncodeOptions(**options), bar.update)
    click.echo(f"{count(store.documents, 'document')}, {count(store.tokens, 'vector')} of {store.bytes_per_token} bytes in {store.folder}")
    return 0
