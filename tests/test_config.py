"""Settings that are more than a word."""

from ipaddress import ip_network

import pytest

from frontdesk.config import ConfigError, read_config


def test_no_proxy_is_trusted_unless_named() -> None:
    assert read_config({}).trusted_proxies == ()
    assert read_config({"FRONTDESK_TRUSTED_PROXIES": "none"}).trusted_proxies == ()


def test_trusted_proxies_are_addresses_and_networks() -> None:
    named = read_config({"FRONTDESK_TRUSTED_PROXIES": "10.0.0.7, 192.168.4.0/24,2001:db8::/32"})
    assert named.trusted_proxies == tuple(map(ip_network, ("10.0.0.7/32", "192.168.4.0/24", "2001:db8::/32")))


@pytest.mark.parametrize(
    "text", ["proxy.example.com", "10.0.0.7,", "10.0.0.7/8", "10.0.0.7;10.0.0.8", "*", "10.0.0.300"]
)
def test_what_is_no_network_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"FRONTDESK_TRUSTED_PROXIES: use addresses and networks.*10\.0\.0\.7"
    ):
        read_config({"FRONTDESK_TRUSTED_PROXIES": text})
