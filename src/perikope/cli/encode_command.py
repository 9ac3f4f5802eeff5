"""`perikope encode`: compute the vectors of all passages and store them in the index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from perikope.cli.options import click_option
from perikope.cli.output import count
from perikope.core.options import declared
from perikope.neural.stores.cluster_options import ClusterOptions

F = TypeVar("F", bound=Callable[..., Any])


def _clusters(command: F) -> F:
    """Add the options of clusters to a command."""
    for option in reversed(list(declared(ClusterOptions).values())):
        command = click_option(option, option.default)(command)
    return command


@click.command(name="encode")
@click.argument("index", metavar="INDEX")
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="Name of the store of vectors, which models use as parameter store.  [default: colbert, hgat or dense]",
)
@click.option(
    "--encoder",
    default="",
    metavar="NAME|FOLDER",
    help="Encoder: a Hugging Face or ColBERT model, or a folder that `perikope train` wrote.  [default: all-MiniLM-L6-v2]",
)
@click.option("--pooled", is_flag=True, help="Store one vector per passage, pooled from its token vectors; the model `vectors` needs this.")
@click.option(
    "--dimension",
    default=None,
    type=click.IntRange(0),
    metavar="N",
    help="Dimension of token vectors; 0 keeps the dimension of the encoder.  [default: 128]",
)
@click.option(
    "--code",
    default=None,
    type=click.Choice(["float16", "int8", "residual"]),
    help="Encoding of stored vectors: 256, 130 or 36 bytes each at 128 dimensions.  [default: residual; float16 if pooled]",
)
@click.option(
    "--heading-path/--no-heading-path", default=None, help="Put the heading path of a passage before its text when it is encoded."
)
@click.option("--device", default="", metavar="NAME", help="Device: cpu or cuda.  [default: cuda if there is a GPU]")
@click.option(
    "--runtime",
    default=None,
    type=click.Choice(["torch", "onnx", "onnx-int8"]),
    help="Library that computes token vectors; onnx-int8 is faster on a CPU and slightly less accurate.  [default: torch]",
)
@click.option(
    "--workers",
    default=None,
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes with one thread each that encode on a CPU; graph attention and a GPU use one.  [default: one per core]",
)
@_clusters
def command(index: str, workers: int | None, **options: Any) -> int:
    """Encode all passages, so that neural models can rank them.

    A command that was stopped continues when it is given again: vectors are stored once a minute. If the store exists,
    only new documents are encoded, and options that are not given keep the values of the store. An
    encoder that was trained with graph attention (`perikope train --variant`) makes a store for the model hgat.
    A large store with one vector per passage also gets clusters, by which --also-nearest need not compare all vectors.

    \b
    Examples:
      perikope encode idx
      perikope search idx "magnetic coupling"
      perikope encode idx --encoder my-ranker --name mine
      perikope search idx "magnetic coupling" --model 'hybrid(store=mine)'
    """
    from pathlib import Path

    from perikope.core.cores import usable_cores
    from perikope.core.installation import install_command
    from perikope.index.reader import Snapshot
    from perikope.neural.stores.clusters import EXTRA, can_have_clusters, has_faiss
    from perikope.neural.stores.making import EncodeOptions, encode_index

    snapshot = Snapshot.open(Path(index))
    clusters = {name: value for name in declared(ClusterOptions) if (value := options.pop(name)) is not None}
    chosen = EncodeOptions(workers=workers or usable_cores(), clusters=clusters, **options)
    with click.progressbar(length=snapshot.totals.passages, label="passages", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def tell_work(passages: Sequence[int]) -> None:
            bar.length = sum(passages)

        store = encode_index(snapshot, chosen, bar.update, tell_work)
    if can_have_clusters(store, store.cluster_options) and not has_faiss():
        click.echo(f"without faiss, --also-nearest compares all vectors: {install_command(EXTRA)}, then encode again", err=True)
    click.echo(f"{count(store.documents, 'document')}, {count(store.tokens, 'vector')} of {store.bytes_per_token} bytes in {store.folder}")
    return 0
