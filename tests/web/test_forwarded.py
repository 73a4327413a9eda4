"""Whose address a request came from: what a caller writes into X-Forwarded-For never counts."""

from ipaddress import ip_network

import pytest

from frontdesk.web.request import caller_address

PROXIES = [ip_network(text) for text in ("10.0.0.7/32", "192.168.4.0/24", "2001:db8:1::/48")]
PROXY = "10.0.0.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        # Nobody vouches for what a stranger forwards.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        # The proxy does: its entry is the last one.
        (PROXY, ["198.51.100.1"], "198.51.100.1"),
        (PROXY, ["6.6.6.6,198.51.100.1,192.168.4.1,10.0.0.7"], "198.51.100.1"),
        # Ways to write an address.
        ("::ffff:10.0.0.7", ["198.51.100.1"], "198.51.100.1"),
        (PROXY, ["198.51.100.1:4711"], "198.51.100.1"),
        (PROXY, ["2001:DB8:2::5"], "2001:db8:2::5"),
        (PROXY, ["[2001:db8:2::5]:443, [2001:db8:1::1]:80"], "2001:db8:2::5"),
        (PROXY, ["::ffff:198.51.100.1"], "198.51.100.1"),
        (PROXY, ["  198.51.100.1\t"], "198.51.100.1"),
        # Without a usable entry the last proxy that is known counts.
        (PROXY, [], PROXY),
        (PROXY, ["unknown"], PROXY),
        (PROXY, ["198.51.100.1, not an address, 192.168.4.1"], "192.168.4.1"),
        (PROXY, ["1" * 30_000], PROXY),
        (PROXY, ["٣.1.1.1"], PROXY),
        (PROXY, ["192.168.4.1, 192.168.4.2"], "192.168.4.1"),
    ],
)  # fmt: skip
def test_the_caller_is_the_last_that_is_no_proxy(peer: str, forwarded: list[str], address: str) -> None:
    assert caller_address(peer, ", ".join(forwarded), PROXIES) == address


def test_without_trusted_proxies_the_connection_counts() -> None:
    assert caller_address("127.0.0.1", "198.51.100.1", []) == "127.0.0.1"
