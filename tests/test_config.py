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


@pytest.mark.parametrize(
    "text",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///:memory:?cache=shared",
        "sqlite:///file:memdb?mode=memory",
    ],
)
def test_a_database_in_memory_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"FRONTDESK_DATABASE_URL: a database in memory.*use sqlite:///path"
    ):
        read_config({"FRONTDESK_DATABASE_URL": text})


@pytest.mark.parametrize("text", ["sqlite:///var/frontdesk.db?mode=ro", "sqlite:////srv/frontdesk.db?"])
def test_options_of_sqlite_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"FRONTDESK_DATABASE_URL: an SQLite database takes no options"):
        read_config({"FRONTDESK_DATABASE_URL": text})


def test_options_of_postgresql_stay() -> None:
    url = "postgresql://somebody@db.example.com/frontdesk?sslmode=require"
    assert read_config({"FRONTDESK_DATABASE_URL": url}).database_url.endswith("?sslmode=require")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("HTTPS://api.example.com:8443/", "HTTPS://api.example.com:8443"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://front_desk/some/path/", "http://front_desk/some/path"),
        ("https://xn--bcher-kva.example/caf%C3%A9", "https://xn--bcher-kva.example/caf%C3%A9"),
    ],
)
def test_a_base_address_is_kept_without_a_slash_at_its_end(text: str, stored: str) -> None:
    assert read_config({"FRONTDESK_BASE_URL": text}).base_url == stored


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("nowhere", "use an absolute http"),
        ("ftp://api.example.com", "use an absolute http"),
        ("http://", "its host"),
        ("https://api.example.com?x=1", "without a query"),
        ("https://api.example.com/#top", "without a query"),
        ("https://somebody:hush@api.example.com", "use an absolute http"),
        ("http://[::1", "use an absolute http"),
        ("http://[::1]x", "use an absolute http"),
        ("http://[::g]", "its host"),
        ("http://127.0.0.300", "its host"),
        ("https://api.example.com\r\nSet-Cookie: a=b", "its host"),
        ("https://api.example.com\n", "its host"),
        ("https://api example.com", "its host"),
        (" https://api.example.com", "use an absolute http"),
        ('https://api.example.com"', "its host"),
        ("https://api.example.com';rm", "its host"),
        ("https://api..example.com", "its host"),
        ("https://-api.example.com", "its host"),
        ("https://bücher.example", "xn--"),
        ("http://127.0.0.1:99999", "between 1 and 65535"),
        ("http://127.0.0.1:0", "between 1 and 65535"),
        ("http://127.0.0.1:", "between 1 and 65535"),
        ("http://127.0.0.1:8000\n", "between 1 and 65535"),
        ("http://127.0.0.1:\uff18\uff10", "between 1 and 65535"),
        ("https://api.example.com/a b", "the path"),
        ("https://api.example.com/a;b", "the path"),
        ("https://api.example.com/$(id)", "the path"),
        ("https://api.example.com/café", "%XX"),
        ("https://api.example.com/a\r\n", "the path"),
    ],
)
def test_a_base_address_that_is_not_plain_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"FRONTDESK_BASE_URL": text})
    said = str(refused.value)
    assert said.startswith("FRONTDESK_BASE_URL: ")
    assert hint in said
    assert "hush" not in said
