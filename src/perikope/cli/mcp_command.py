"""`perikope mcp`: tools for assistants, by the Model Context Protocol."""

from __future__ import annotations

import click


@click.command(name="mcp")
@click.argument("indexes", metavar="INDEX…", nargs=-1, required=True)
def command(indexes: tuple[str, ...]) -> int:
    """Let an assistant search indexes and read documents, by the Model Context Protocol over standard input and output.

    An INDEX is the folder of an index, or the address of a server that `perikope serve` runs. NAME=INDEX gives a folder
    another name; with an address, it names one of the indexes of the server. A server that needs a token gets that in
    the environment variable PERIKOPE_TOKEN. The assistant can only read.

    \b
    Example:
      perikope mcp idx
      perikope mcp manuals=idx patents=idx2
      perikope mcp http://localhost:8321
    """
    from perikope.adapters.mcp import serve_stdio

    serve_stdio(indexes)
    return 0
