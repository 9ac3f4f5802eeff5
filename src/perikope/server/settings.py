"""The settings of a server, declared once: the command line and the settings file derive from them."""

from __future__ import annotations

from dataclasses import dataclass

from perikope.core.cores import usable_cores
from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import Names, OneOf, Real, Switch, Text, Whole
from perikope.server.clients import NETWORK, SHOWN

ADDRESS, ACCESS, LIMITS, LOGS = "Address", "Access", "Limits", "Logs"
GROUPS = (ADDRESS, ACCESS, LIMITS, LOGS)
"""The headings under which settings are listed, in order."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Options):
    """All settings of a server."""

    host: str = option("127.0.0.1", Text(), "Address to listen on.", group=ADDRESS, metavar="ADDRESS")
    port: int = option(8321, Whole(Range(0, 65535)), "Port to listen on; 0 chooses a free one.", group=ADDRESS, metavar="N")
    socket: str = option("", Text(), "Listen on this Unix socket instead of a port.", group=ADDRESS, metavar="PATH")
    commands: bool = option(
        True, Switch(), "Let `perikope search` of the same user search in this server.",
        help_off="Do not let `perikope search` of the same user search in this server.", group=ACCESS,
    )  # fmt: skip
    allow_host: tuple[str, ...] = option(
        (), Names(), "Name under which clients reach the server, such as search.example.org. Requests to other names are refused.",
        group=ACCESS, metavar="NAME",
    )  # fmt: skip
    tokens: str = option(
        "",
        Text(),
        "File with the tokens of clients and what they may do (TOML). Without it, nobody can write.",
        group=ACCESS,
        metavar="FILE",
    )
    allow_origin: tuple[str, ...] = option(
        (), Names(), "Web site whose pages may read from this server, such as https://app.example.org.", group=ACCESS, metavar="ORIGIN"
    )
    proxy: tuple[str, ...] = option(
        (), Names(), "Address or network of a proxy in front of the server, such as 127.0.0.1 or 10.0.0.0/8, or unix for what connects to "
        "--socket. The log then has the clients that it names in X-Forwarded-For.", group=LOGS, metavar="ADDRESS",
    )  # fmt: skip
    originals: str = option(
        "", Text(), "Folder that the indexes were made from. Clients can then read the files of found passages. A FOLDER that is "
        "served needs no such option.", group=ACCESS, metavar="FOLDER",
    )  # fmt: skip
    mcp: bool = option(False, Switch(), "Let assistants search and read at /mcp, by the Model Context Protocol.", group=ACCESS)
    workers: int = option(0, Whole(Range(0)), "Number of processes that search; 0 is one per core.", group=LIMITS, metavar="N")
    queue: int = option(
        0, Whole(Range(0)), "Number of requests that may wait for a process; further ones are refused. 0 is 32 per process.",
        group=LIMITS, metavar="N",
    )  # fmt: skip
    timeout: float = option(10.0, Real(Range(0.05, 3600)), "Seconds that a request may take, waiting included.", group=LIMITS, metavar="S")
    write_timeout: float = option(300.0, Real(Range(0.05, 86400)), "Seconds that a change may take.", group=LIMITS, metavar="S")
    max_body: int = option(1 << 26, Whole(Range(1)), "Largest body of a request that adds documents, in bytes.", group=LIMITS, metavar="N")
    max_query: int = option(
        1 << 16, Whole(Range(1)), "Largest body or query string of other requests, in bytes.", group=LIMITS, metavar="N"
    )
    max_k: int = option(1000, Whole(Range(1)), "Largest number of results of a request, offset included.", group=LIMITS, metavar="N")
    max_batch: int = option(100, Whole(Range(1)), "Largest number of queries of a batch.", group=LIMITS, metavar="N")
    max_connections: int = option(1000, Whole(Range(1)), "Largest number of open connections.", group=LIMITS, metavar="N")
    client_timeout: float = option(
        10.0,
        Real(Range(0.05, 3600)),
        "Seconds that a client may take to send the head or the body of a request.",
        group=LIMITS,
        metavar="S",
    )
    cache: int = option(32 << 20, Whole(Range(0)), "Memory for answers that are sent again, in bytes.", group=LIMITS, metavar="N")
    log_queries: bool = option(False, Switch(), "Write queries to the log. Without it, the log has no text of users.", group=LOGS)
    log_clients: str = option(
        NETWORK, OneOf(SHOWN), "What the log has of a client: its network (the first three numbers of an IPv4 address, 48 bits of IPv6), "
        "its whole address, or none of it.", group=LOGS,
    )  # fmt: skip
    slow: float = option(1.0, Real(Range(0)), "Seconds after which a request is logged as slow, with its stages.", group=LOGS, metavar="S")
    access_log: bool = option(
        True, Switch(), "Write one line per request.", help_off="Write no line per request, except slow ones.", group=LOGS
    )

    @property
    def processes(self) -> int:
        """The number of processes that search."""
        return self.workers or usable_cores()

    @property
    def waiting(self) -> int:
        """The number of requests that may wait."""
        return self.queue or 32 * self.processes
