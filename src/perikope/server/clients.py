"""The addresses of clients, as the log has them.

The address of a connection is that of a proxy, if there is one. A proxy adds the address of its own client at the end
of the header `X-Forwarded-For`. A client can send this header too, so it is read only if it comes from a proxy that the
operator has named, and only from its end up to the first address that no such proxy has.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perikope.core.errors import UsageError

FORWARDED = b"x-forwarded-for"
"""The header in which proxies name their clients."""
UNIX = "unix"
"""The name of whatever connects to a Unix socket, which has no address."""
ADDRESS, NETWORK, NONE = "address", "network", "none"
SHOWN = (NETWORK, ADDRESS, NONE)
"""What the log says about a client: its network, its address, or nothing."""
MOST_PROXIES = 16
"""The most proxies on the way of a request. Further addresses are not looked at."""
_SHARED_BITS = {4: 24, 6: 48}
"""The length of the prefix that stands for a network, by version. It is shared by many people."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Clients:
    """Finds the address of the client of a request."""

    proxies: tuple[Network, ...] = ()
    """The networks of proxies whose header is read."""
    has_socket_proxy: bool = False
    """Whether what connects to the Unix socket is such a proxy."""
    shown: str = NETWORK
    """One of `SHOWN`."""

    @classmethod
    def of(cls, proxies: Sequence[str], shown: str = NETWORK) -> Clients:
        """Read the settings; raises `UsageError` if one of `proxies` is neither an address, a network nor `unix`."""
        networks = []
        for text in proxies:
            try:
                if text != UNIX:
                    networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise UsageError(f"--proxy {text[:80]} is no address; give one such as 10.0.0.5, a network (10.0.0.0/8) or unix") from None
        return cls(tuple(networks), UNIX in proxies, shown)

    def described(self, scope: Mapping[str, Any]) -> str:
        """The client of a request, as the log has it; empty if the log does not have it, or nothing is known."""
        if self.shown == NONE:
            return ""
        address = self._client(scope)
        if address is None:
            return ""
        # The address of this machine is nobody's.
        if self.shown == ADDRESS or address.is_loopback:
            return str(address)
        return str(ipaddress.ip_network((address, _SHARED_BITS[address.version]), strict=False))

    def _client(self, scope: Mapping[str, Any]) -> Address | None:
        client = scope.get("client")
        address = _read(client[0]) if client else None
        if not (self._is_proxy(address) if address is not None else self.has_socket_proxy):
            return address
        for text in _forwarded(scope["headers"]):
            # If a proxy names what is no address, its own is the last that is known.
            if (named := _read(text)) is None:
                return address
            address = named
            if not self._is_proxy(address):
                return address
        return address

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self.proxies)


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The addresses that proxies have added, the last one first."""
    joined = b",".join(value for name, value in headers if name == FORWARDED)
    return [text.decode("latin-1") for text in reversed(joined.rsplit(b",", MOST_PROXIES)[-MOST_PROXIES:])] if joined else []


def _read(text: str) -> Address | None:
    """An address, which may have a port; None if the text is none. An IPv4 address in IPv6 is an IPv4 address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
