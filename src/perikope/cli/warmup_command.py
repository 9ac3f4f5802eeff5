"""`perikope warmup`: compile everything once, so that the first real command is fast."""

from __future__ import annotations

import time

import click


@click.command(name="warmup")
def command() -> int:
    """Compile the kernels into the cache of this user; a later command then starts in a second.

    \b
    Example:
      perikope warmup
    """
    from perikope.evaluation.demo import warm_up
    from perikope.kernels.jit import cache_directory

    started = time.perf_counter()
    warm_up()
    place = cache_directory() or "nowhere (no writable cache folder; set PERIKOPE_CACHE)"
    click.echo(f"kernels compiled in {time.perf_counter() - started:.1f} s, kept in {place}")
    return 0
