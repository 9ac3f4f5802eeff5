"""`perikope serve`: an HTTP server for indexes, or for a folder of documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perikope.cli.options import click_option
from perikope.core.errors import MissingExtra, UsageError
from perikope.core.options import declared
from perikope.server.settings import GROUPS, ServerSettings

if TYPE_CHECKING:
    from socket import socket

    from perikope.server.opening import Opener
    from perikope.server.served import ServedIndexes

F = TypeVar("F", bound=Callable[..., Any])


def server_settings(command: F) -> F:
    """Add the settings of a server to a command."""
    for option in reversed([option for group in GROUPS for option in declared(ServerSettings).values() if option.group == group]):
        command = click_option(option, option.default)(command)
    return command


@click.command(name="serve")
@click.argument("paths", metavar="INDEX…|FOLDER", nargs=-1)
@server_settings
@click.option("--open/--no-open", "opens", default=None, help="Open the page of the server in a browser.")
@click.option("--new-token", default="", metavar="NAME", help="Print a new token, and the lines for the file of tokens; serve nothing.")
def command(paths: tuple[str, ...], opens: bool | None, new_token: str, **given: Any) -> int:
    """Serve indexes over HTTP, or a folder of documents.

    An INDEX is a folder that `perikope index` made; NAME=INDEX gives it another name in addresses. Any other FOLDER is
    read into an index in the cache, and read again when its files change. Only programs on this machine reach the
    server, unless --host says otherwise. Writing needs a token. SIGHUP reads the file of tokens again.

    \b
    Example:
      perikope serve idx
      perikope serve manuals/
      perikope serve patents=idx1 articles=idx2 --port 9000 --tokens tokens.toml
      perikope serve --new-token ingest
    """
    _check_installed()
    if new_token:
        from perikope.server import gate

        secret, lines = gate.new_token(new_token)
        click.echo(
            f"token, to be given to the client (it is not stored anywhere):\n  {secret}\n\nfor the file of --tokens:\n{lines}", nl=False
        )
        return 0
    if not paths:
        raise UsageError("give an index or a folder of documents to serve")
    serve(read_settings(given), lambda: _served(paths), opens)
    return 0


def read_settings(given: dict[str, Any]) -> ServerSettings:
    """The settings of a server from the options of a command. A mistake is reported before anything starts."""
    _check_installed()
    settings = ServerSettings.of({name: value for name, value in given.items() if value not in (None, ())})
    _check_address(settings)
    if settings.mcp:
        import perikope.service.mcp_protocol  # noqa: F401  (a missing package is reported now)
    return settings


def serve(settings: ServerSettings, served: Callable[[], ServedIndexes], opens: bool | None, opener: Opener | None = None) -> None:
    """Serve indexes until a signal ends the server. `opener` opens them if their files are not on this machine."""
    from perikope.server.running import ignore_reload, listening_socket

    ignore_reload()
    with listening_socket(settings) as listening:
        _serve_at(listening, settings, served(), opens, opener)


def _serve_at(listening: socket, settings: ServerSettings, indexes: ServedIndexes, opens: bool | None, opener: Opener | None) -> None:
    """Serve indexes at a socket until a signal comes."""
    from perikope.server import gate
    from perikope.server.clients import Clients
    from perikope.server.logs import Log
    from perikope.server.running import Server

    clients = Clients.of(settings.proxy, settings.log_clients)
    log = Log(access=settings.access_log, queries=settings.log_queries, slow=settings.slow, clients=clients)
    shown = settings.allow_host[0] if settings.allow_host and gate.is_any_address(settings.host) else _host(settings.host)
    address = f"unix socket {settings.socket}" if settings.socket else f"http://{shown}:{listening.getsockname()[1]}"
    on_ready = partial(_tell, indexes, address, opens and not settings.socket)
    server = Server(settings, indexes, listening, address, log, on_ready, opener=opener)
    if settings.commands and opener is None:
        from perikope.cli.served_commands import run_search

        server.run_command = run_search
    server.gate()  # mistakes in the file of tokens are reported now
    server.run()


def _check_installed() -> None:
    try:
        import perikope.server.running  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "uvicorn", "server") from None


def _check_address(settings: ServerSettings) -> None:
    """Warn if others can reach the server."""
    import warnings

    from perikope.server.gate import is_loopback

    if settings.socket or is_loopback(settings.host):
        return
    if not settings.allow_host:
        raise UsageError(f"--host {settings.host} lets other machines in: say under which name they reach this one, with --allow-host NAME")
    if not settings.tokens:
        warnings.warn('everybody who reaches this server can read its indexes; --tokens FILE with read = "token" limits it', stacklevel=2)


def _served(paths: Iterable[str]) -> ServedIndexes:
    """The indexes to serve. Folders of documents are read when the server starts."""
    from perikope.index.reader import Snapshot
    from perikope.server.folders import cached_index, is_index
    from perikope.server.served import ServedIndex, ServedIndexes

    by_name: dict[str, ServedIndex] = {}
    for written in paths:
        name, location = named_location(written, list(by_name))
        path = Path(location)
        if is_index(path):
            Snapshot.open(path)  # an index that cannot be read is reported now
            by_name[name] = ServedIndex(name, path)
            continue
        by_name[name] = ServedIndex(name, cached_index(path), path)
    return ServedIndexes(by_name)


def named_location(written: str, taken: Sequence[str]) -> tuple[str, str]:
    """The name and the location of an index that is given as LOCATION or NAME=LOCATION."""
    from perikope.server.served import name_of

    given, mark, rest = written.partition("=")
    has_name = bool(mark) and not Path(written).exists()
    location = rest if has_name else written
    return name_of(given if has_name else "", Path(location), taken), location


def _tell(served: ServedIndexes, address: str, opens: bool | None) -> None:
    """Say that the server is ready, and where."""
    names = ", ".join(served.by_name)
    click.echo(f"perikope: serving {names} at {address} (Ctrl-C ends it)")
    first = next(iter(served.by_name))
    if address.startswith("http"):
        click.echo(f"perikope: open it in a browser, or ask {address}/indexes/{first}/search?query=WORDS")
    sys.stdout.flush()
    if opens:
        import webbrowser

        webbrowser.open(address)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
