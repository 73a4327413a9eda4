"""Settings that are more than a word."""

from ipaddress import ip_network

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from frontdesk import config
from frontdesk.config import ConfigError, Environment, parse_relay, read_config


def test_trusted_proxies_are_addresses_and_networks_and_none_unless_named() -> None:
    assert read_config({}).trusted_proxies == ()
    assert read_config({"FRONTDESK_TRUSTED_PROXIES": "none"}).trusted_proxies == ()
    named = read_config({"FRONTDESK_TRUSTED_PROXIES": "10.0.0.7, 192.168.4.0/24,2001:db8::/32"})
    assert named.trusted_proxies == tuple(
        map(ip_network, ("10.0.0.7/32", "192.168.4.0/24", "2001:db8::/32"))
    )


NETWORKS = "FRONTDESK_TRUSTED_PROXIES: use addresses and networks.*10\\.0\\.0\\.7"
MEMORY = "FRONTDESK_DATABASE_URL: a database in memory.*use sqlite:///path"
HOSTS = "FRONTDESK_DATABASE_URL: write several hosts with commas.*host1:5432,host2:5432"
STANDBY = "FRONTDESK_DATABASE_URL: with several hosts use target_session_attrs=read-write"
ENCODED = "FRONTDESK_DATABASE_URL: characters of user and password .* %40 for @"
ENCODED_FOR_RELAY = "FRONTDESK_SMTP_URL: use smtp://.*; characters of user .* %23 for #"
OPTIONS = "FRONTDESK_DATABASE_URL: an SQLite database takes no options"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        *(
            (text, NETWORKS)
            for text in ("proxy.example.com", "10.0.0.7,", "10.0.0.7/8", "*", "10.0.0.7;10.0.0.8")
        ),
        *((f"sqlite://{text}", MEMORY) for text in ("", "/:memory:", "/:memory:?cache=shared")),
        ("sqlite:///file:memdb?mode=memory", MEMORY),
        ("sqlite:///var/frontdesk.db?mode=ro", OPTIONS),
        *(
            (f"postgresql://u:p@{text}", HOSTS)
            for text in ("a,/x", "a:5432,b:x/x", "::1,a/x", "a:1,b:65536/x", "a b,c/x")
        ),
        ("postgresql://u:p@a,b/x?host=c", HOSTS),
        *(
            (f"postgresql://u:p@a,b/x?target_session_attrs={text}", STANDBY)
            for text in ("any", "prefer-standby")
        ),
        ("postgresql:///x?host=a,b&target_session_attrs=standby", STANDBY),
        *((f"postgresql://u:{text}@h/x", ENCODED) for text in ("p@ss", "p@s,s", "@")),
        *((f"smtp://u:{text}@h", ENCODED_FOR_RELAY) for text in ("p#s", "p/s", "1?s", "[s")),
    ],
)
def test_what_can_not_be_used_is_refused_with_an_example(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint) as caught:
        read_config({hint.partition(":")[0]: text})
    assert "p@s" not in str(caught.value)


def test_a_password_with_special_characters_is_read_in_its_encoded_form() -> None:
    relay = parse_relay("smtp://me%40example.com:p%40%2F%3F%23%25@h")
    assert (relay.user, relay.password) == ("me@example.com", "p@/?#%")
    assert parse_relay("smtp://me@example.com:pass@h").user == "me@example.com"
    url = read_config({"FRONTDESK_DATABASE_URL": "postgresql://u:p%40s@h/x"}).database_url
    assert make_url(url).password == "p@s"


def test_options_of_postgresql_stay() -> None:
    url = "postgresql://somebody@db.example.com/frontdesk?sslmode=require"
    assert read_config({"FRONTDESK_DATABASE_URL": url}).database_url.endswith("?sslmode=require")


WRITES = "&target_session_attrs=read-write"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("u:p@h1:5599,h2:5541/db?target_session_attrs=read-write",
         "u:p@/db?host=h1,h2&port=5599,5541" + WRITES),
        ("h1,h2.example.com:5433/db", "/db?host=h1,h2.example.com&port=5432,5433" + WRITES),
        ("u:p%2C@[2001:db8::1]:5433,[::1]/db?sslmode=require",
         "u:p%2C@/db?host=2001:db8::1,::1&port=5433,5432&sslmode=require" + WRITES),
        ("/db?host=/run/a,/run/b", "/db?host=/run/a,/run/b" + WRITES),
        ("u@a,b/db?target_session_attrs=primary",
         "u@/db?host=a,b&port=5432,5432&target_session_attrs=primary"),
        ("u:p,q@h1:5433/db?target_session_attrs=any", "u:p,q@h1:5433/db?target_session_attrs=any"),
    ],
)  # fmt: skip
def test_several_hosts_are_given_to_libpq_and_sqlalchemy_in_the_form_that_both_take(
    given: str, read: str
) -> None:
    url = read_config({"FRONTDESK_DATABASE_URL": f"postgresql://{given}"}).database_url
    assert url == f"postgresql+psycopg://{read}"
    address = make_url(url)
    arguments = address.get_dialect()().create_connect_args(address)[1]
    libpq = conninfo_to_dict(
        address.set(drivername="postgresql").render_as_string(hide_password=False)
    )
    assert {name: str(value) for name, value in arguments.items()} == {"port": ","} | libpq


@pytest.mark.parametrize(
    "stored",
    [
        *("https://api.example.com", "HTTPS://api.example.com:8443", "http://127.0.0.1:8000"),
        *(
            "http://[::1]:8000",
            "http://front_desk/some/path",
            "https://xn--bcher-kva.example/caf%C3%A9",
        ),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_base_address_is_kept_without_a_slash_at_its_end(stored: str, slash: str) -> None:
    assert read_config({"FRONTDESK_BASE_URL": stored + slash}).base_url == stored


API = "https://api.example.com"
WRONG = {
    "use an absolute http": [
        *(
            "nowhere",
            "ftp://api.example.com",
            "https://somebody:hush@api.example.com",
            "http://[::1",
        ),
        *("http://[::1]x", " https://api.example.com"),
    ],
    "its host": [
        *("http://", "http://[::g]", "http://127.0.0.300", f"{API}\r\nSet-Cookie: a=b", f"{API}\n"),
        *("https://api example.com", f'{API}"', f"{API}';rm", "https://api..example.com"),
        "https://-api.example.com",
    ],
    "without a query": [f"{API}?x=1", f"{API}/#top"],
    "xn--": ["https://bücher.example"],
    "between 1 and 65535": [
        f"http://127.0.0.1:{port}" for port in ("99999", "0", "", "8000\n", "\uff18\uff10")
    ],
    "the path": [f"{API}/{path}" for path in ("a b", "a;b", "$(id)", "a\r\n")],
    "%XX": [f"{API}/café"],
}


@pytest.mark.parametrize(
    ("text", "hint"), [(text, hint) for hint, texts in WRONG.items() for text in texts]
)
def test_a_base_address_that_is_not_plain_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"FRONTDESK_BASE_URL": text})
    said = str(refused.value)
    assert said.startswith("FRONTDESK_BASE_URL: ")
    assert hint in said
    assert "hush" not in said


@pytest.mark.parametrize(
    ("environment", "seconds", "drain"),
    [("production", "", 5), ("sandbox", "", 0), ("production", "0", 0), ("sandbox", "60", 60)],
)
def test_a_drain_lasts_five_seconds_in_production_unless_told(
    environment: str, seconds: str, drain: int
) -> None:
    said = {"FRONTDESK_ENVIRONMENT": environment, "FRONTDESK_DRAIN_SECONDS": seconds}
    assert read_config(said).drain == drain


def test_a_drain_of_more_than_a_minute_is_refused() -> None:
    with pytest.raises(ConfigError, match="FRONTDESK_DRAIN_SECONDS: use seconds between 0 and 60"):
        read_config({"FRONTDESK_DRAIN_SECONDS": "61"})


def test_a_program_without_the_sandbox_needs_to_be_set_to_production(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "HAS_SANDBOX", False)
    for variables in ({}, {"FRONTDESK_ENVIRONMENT": "sandbox"}):
        with pytest.raises(ConfigError, match=r"ENVIRONMENT: set it to production.*frontdesk_sand"):
            read_config(variables)
    found = read_config({"FRONTDESK_ENVIRONMENT": "production"})
    assert found.environment is Environment.PRODUCTION
