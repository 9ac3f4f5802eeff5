"""The option of commands that do their work on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import click

machines_option = click.option(
    "--address",
    metavar="ADDRESS",
    help="Spread the topics over the Ray cluster at this address, as host:port; auto finds the local one. All nodes must see the same "
    "files under the same paths.  [default: this machine only]",
)


def on_ray_module() -> ModuleType:
    """The module that speaks to Ray. Raises `MissingExtra` if Ray is not installed."""
    from perikope.core.errors import MissingExtra

    try:
        from perikope.cluster import on_ray
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "ray", "cluster") from None
    return on_ray


@contextmanager
def spread_over(address: str | None, workers: int) -> Iterator[None]:
    """Inside the block, the machines of the Ray cluster at an address work on the topics. None means this machine.

    `workers` is the option --workers, which is for this machine only.
    """
    if address is None:
        yield
        return
    from perikope.core.errors import UsageError
    from perikope.evaluation.pool import tasks_done_by

    if workers:
        raise UsageError("--workers is for this machine; leave it out, since --address uses all processors of the Ray cluster")
    on_ray_module().join_ray(address)
    from perikope.cluster.ray_workers import RayMachines

    with tasks_done_by(RayMachines()):
        yield
