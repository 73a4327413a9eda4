"""Which address a request came from when proxies stand before the server; it knows addresses and nothing of HTTP.

A caller can write any X-Forwarded-For it likes; each proxy adds, at the right, the address it was called from. So the list
is read from the right, and only as far as the installation's own proxies vouch for it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network

# [address]:port and address:port, as some proxies write it; an address alone is left as it is.
_LONGEST = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")


def caller_address(peer: str, forwarded: Iterable[str], trusted: Sequence[Network]) -> str:
    """The address of who called the outermost trusted proxy, or of the peer where it is none.

    `forwarded` are the X-Forwarded-For headers in order. An entry that is no address ends the search: the last proxy that
    could be made out counts as the caller.
    """
    address = peer
    entries = ",".join(forwarded).split(",") if trusted and _is_trusted(peer, trusted) else []
    for entry in reversed(entries):
        found = _address(entry)
        if found is None:
            break
        address = found
        if not _is_trusted(found, trusted):
            break
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
    """An IPv4 address inside an IPv6 one is what a server that listens on both sees; it is the IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
