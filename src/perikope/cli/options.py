"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def search_options(command: F) -> F:
    """How documents are fetched and passages scored."""
    for option in reversed(
        (
            click.option(
                "--model", default="qsf_v_title", show_default=True, metavar="NAME(…)", help="Scores passages; see `perikope models`."
            ),
            click.option("--fetch", default="bm25", show_default=True, metavar="NAME(…)", help="Ranks documents: bm25(k1=1.2,b=0.75)."),
            click.option(
                "--documents", default=1000, show_default=True, type=click.IntRange(1), metavar="N", help="How many documents to look into."
            ),
            click.option("--browse-query", default="", metavar="TEXT", help="Score passages with this query instead."),
            click.option("--language", default="", metavar="CODE", help="Language of the query, if not the index's own."),
        )
    ):
        command = option(command)
    return command
