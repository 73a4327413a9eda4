"""The address that a request came from when proxies stand before the server.

A caller can write any X-Forwarded-For. Each proxy appends the address that called it, so the list is read from the right, and
only as far as the installation's own proxies wrote it.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network

# Some proxies write [address]:port or address:port.
_LONGEST = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")


def caller_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """The address that called the outermost trusted proxy; `peer` where the connection is not from a trusted proxy.

    `forwarded` is the X-Forwarded-For header, its lines joined by commas. An entry that is no address ends the search: the proxy
    that wrote it counts as the caller.
    """
    address = peer
    for entry in reversed(forwarded.split(",")):
        found = _address(entry) if _is_trusted(address, trusted) else None
        if found is None:
            break
        address = found
    return address


def _address(entry: str) -> str | None:
    text = entry.strip()
    if len(text) > _LONGEST:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    found = _parsed(text)
    return None if found is None else str(found)


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in trusted)


@lru_cache(maxsize=256)
def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address; of an IPv4 address inside an IPv6 one, as a server that listens on both sees it, the IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
