"""Options that several commands share."""

from __future__ import annotations

import re
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
            click.option("--fetch", default="bm25", show_default=True, metavar="NAME(…)", help="Ranks documents: bm25, pl2, dph or lm."),
            click.option("--expand", default="", metavar="NAME(…)", help="Add words of the best documents: bo1 or rm3."),
            click.option(
                "--documents", default=1000, show_default=True, type=click.IntRange(1), metavar="N", help="How many documents to look into."
            ),
            click.option("--browse-query", default="", metavar="TEXT", help="Score passages with this query instead."),
            click.option("--language", default="", metavar="CODE", help="Look in this language only; else in all that the index holds."),
        )
    ):
        command = option(command)
    return command


class SizeType(click.ParamType[int]):
    """Bytes, written as 512M or 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size; write it as 512M or 2G", param, context)
        return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def size_option(command: F) -> F:
    """How much memory a change of the index may take."""
    return click.option(
        "--memory",
        type=SizeType(),
        default="1G",
        show_default=True,
        metavar="SIZE",
        help="About how much memory it may take; one huge document may take more.",
    )(command)
