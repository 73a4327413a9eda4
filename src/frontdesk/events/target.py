"""Where webhooks may go: the rules of an endpoint's address, and of the addresses that its name
leads to.

An endpoint is another program on the internet, never a machine of the installation (server-side
request forgery, OWASP API7).
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from frontdesk.config import is_this_machine
from frontdesk.events.model import URL_LENGTH
from frontdesk.text import is_host_name

PORTS = {"https": 443, "http": 80}
_PLAIN = re.compile("[!-~]+")

# IANA's special-purpose registries (2026): private, shared, loopback, link-local with the metadata
# services, documentation, benchmarks, multicast, reserved.
_SPECIAL = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24
    198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
"""
_CLOSED = [ip_network(network) for network in _SPECIAL.split()]
# The only global unicast addresses of IPv6: mapped, NAT64, unique-local, link-local and multicast
# ones are outside.
_GLOBAL = ip_network("2000::/3")


class WebhookTarget(NamedTuple):
    """The parts of an endpoint's address. `may_be_local`: it names this machine, which a sandbox on
    a developer's machine allows."""

    is_tls: bool
    host: str
    port: int
    path: str
    host_header: str
    may_be_local: bool


NOWHERE = WebhookTarget(is_tls=True, host="", port=0, path="/", host_header="", may_be_local=False)


def parse_target(url: str, *, allows_loopback: bool) -> WebhookTarget:
    """Raises ValueError with the rule that the address breaks."""
    shape = "must be an absolute https address without a user, a password and a fragment"
    if len(url) > URL_LENGTH:
        raise ValueError(f"must have at most {URL_LENGTH} characters")
    try:
        parts: SplitResult = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        raise ValueError(shape) from None
    has_user = "@" in parts.netloc or "\\" in url
    if (
        not _PLAIN.fullmatch(url)
        or has_user
        or "#" in url
        or port == 0
        or parts.scheme not in PORTS
    ):
        raise ValueError(shape)
    address = _address(host)
    if not host or (address is None and not is_host_name(host)):
        raise ValueError(shape)
    is_local = allows_loopback and is_this_machine(host)
    is_tls = parts.scheme == "https"
    if not is_tls and not is_local:
        raise ValueError(
            "must be an https address; a sandbox on your own machine takes http on that machine too"
        )
    if not is_local and (is_this_machine(host) or (address is not None and not is_public(address))):
        raise ValueError("must be an address on the internet, not one of a private network")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(is_tls, host, port or PORTS[parts.scheme], path, parts.netloc, is_local)


def host_of(url: str) -> str:
    """The name or address in an endpoint's address, in one spelling; "" if there is none."""
    try:
        return (urlsplit(url).hostname or "").removesuffix(".")
    except ValueError:
        return ""


def may_connect(target: WebhookTarget, address: str) -> bool:
    found = _address(address)
    return found is not None and (is_public(found) or (target.may_be_local and found.is_loopback))


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL:
        return False
    return not any(address in network for network in _CLOSED if network.version == address.version)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
