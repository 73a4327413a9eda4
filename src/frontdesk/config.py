"""Every setting of an installation. One line of `Config` declares its name, default and reader.

A setting `x` is the environment variable `FRONTDESK_X`. docs/configuration.md explains it; a test
compares the two.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from frontdesk import HAS_SANDBOX, SANDBOX_WHEEL, codes
from frontdesk.errors import FrontdeskError
from frontdesk.text import fold_email, is_host_name

Kind = TypeVar("Kind", bound=StrEnum)

SECRET_LENGTH = 32  # characters
FILE_ENDING = "_FILE"
SECRET_FILE_CHARACTERS = 4096

_PORTS = {"smtp": 587, "smtps": 465}
_SHAPE = "use smtp://user:password@host:port (STARTTLS) or smtps://… (TLS from the start)"
_ENCODED = (
    "characters of user and password that are no letters or digits stand in their %XX form, such as "
    "%40 for @, %2F for /, %3F for ?, %23 for # and %25 for %"
)

# Variables of our own programs that are no settings: of the serving processes, of the tests.
_NOT_SETTINGS = {"FRONTDESK_SUPERVISED", "FRONTDESK_METRICS", "FRONTDESK_FAULTS"}


class ConfigError(FrontdeskError, code=codes.operators.INVALID_SETTINGS):
    """Some settings can't be used. `problems` has a sentence for each: the variable, the rule,
    never the value.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Environment(StrEnum):
    SANDBOX = "sandbox"
    PRODUCTION = "production"


class Uniqueness(StrEnum):
    """Where no two records may share an external_id, member_id or e-mail (docs/interface.md,
    Eligible members).
    """

    SERVICE = "service"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Relay:
    """The relay's address and login. `tls`: from the start (`implicit`), by STARTTLS (`required`),
    `off`.
    """

    host: str
    port: int
    tls: str
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)


def parse_relay(url: str) -> Relay:
    """The relay of a `smtp[s]://user:password@host:port[?tls=required|off]`. Raises ValueError with
    the expected form.

    Certificates are always verified. On smtp:// STARTTLS is required, so that an attacker can't
    strip it, unless `tls=off` is given or the relay is this machine; a password is never sent in
    the clear to another machine.
    """
    shape = f"{_SHAPE}; {_ENCODED}" if "@" in url else _SHAPE
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise ValueError(shape) from None
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.fragment:
        raise ValueError(shape)
    if "@" in parts.query:  # a password with a `?`
        raise ValueError(shape)
    tls = _tls(parts.scheme, host, parts.query)
    user = unquote(parts.username) if parts.username else None
    if user is not None and tls == "off" and not is_this_machine(host):
        raise ValueError("a password is not sent without TLS: leave out tls=off, or the user")
    return Relay(host, port or _PORTS[parts.scheme], tls, user, unquote(parts.password or ""))


def _tls(scheme: str, host: str, query: str) -> str:
    given = parse_qs(query, keep_blank_values=True)
    if set(given) - {"tls"}:
        raise ValueError(f"{_SHAPE}; the only option is tls")
    if scheme == "smtps":
        if given:
            raise ValueError("smtps:// has no option tls: it is TLS from the start")
        return "implicit"
    choice = given.get("tls", ["off" if is_this_machine(host) else "required"])[-1]
    if choice not in ("required", "off"):
        raise ValueError("tls is one of: required, off")
    return choice


def is_this_machine(host: str) -> bool:
    """Whether the name or address leads each machine to itself (RFC 6761, section 6.3)."""
    name = host.lower().removesuffix(".")
    try:
        address = ip_address(name)
    except ValueError:
        return name in ("localhost", "localhost.localdomain") or name.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _database_url(text: str) -> str:
    scheme = text.partition("://")[0]
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return "postgresql+psycopg://" + _with_hosts_in_query(text.partition("://")[2])
    if text == "sqlite://" or text.startswith(("sqlite:///:memory:", "sqlite:///file:")):
        raise ValueError(
            "a database in memory would be another one for every process; use sqlite:///path/to/file"
        )
    if text.startswith("sqlite:///") and "?" in text:
        raise ValueError(
            "an SQLite database takes no options after a `?`; use sqlite:///path/to/file"
        )
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///"):
        return text
    raise ValueError("use sqlite:///path/to/file or postgresql://user:password@host:port/database")


def _with_hosts_in_query(address: str) -> str:
    """The address with several hosts as SQLAlchemy and libpq both take them:
    `?host=h1,h2&port=p1,p2`. The one that takes writes is used, because a standby would answer with
    old records.
    """
    found = re.fullmatch(r"((?:[^:/]*(?::[^@]*)?@)?)([^/?]*)([^?]*)(?:\?(.*))?", address, re.DOTALL)
    login, hosts, path, query = found.groups("") if found else ("", "", address, "")
    if "@" in hosts:
        raise ValueError(_ENCODED)
    options = parse_qs(query)
    if "," in hosts:
        each = [
            re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?", host) for host in hosts.split(",")
        ]
        named = [
            (host[1], host[2] or "5432") for host in each if host is not None and _is_host(host[1])
        ]
        if (
            len(named) < len(each)
            or any(int(port) > 65_535 for _, port in named)
            or "host" in options
        ):
            raise ValueError(
                "write several hosts with commas between them, each with its port or none, such as "
                "postgresql://user:password@host1:5432,host2:5432/database"
            )
        listed = [
            ",".join(host.strip("[]") for host, _ in named),
            ",".join(port for _, port in named),
        ]
        query = f"host={listed[0]}&port={listed[1]}" + (query and f"&{query}")
        hosts = ""
        options["host"] = listed[:1]
    if "," in ",".join(options.get("host", ())):
        chosen = options.get("target_session_attrs", ["read-write"])[-1]
        if chosen not in ("read-write", "primary"):
            raise ValueError(
                "with several hosts use target_session_attrs=read-write, or leave it out"
            )
        query += "" if "target_session_attrs" in options else f"&target_session_attrs={chosen}"
    return login + hosts + path + (query and f"?{query}")


def _base_url(text: str) -> str:
    """The address without a slash at its end. It goes into links, mails and shell commands, so it
    is plain throughout.
    """
    example = "such as https://api.example.com"
    parts = re.fullmatch(
        r"(?i:https?)://(\[[^\]/]*\]|[^:/?#@\[\]]*)(?::([^/?#@]*))?(/[^?#]*)?", text
    )
    if parts is None:
        raise ValueError(f"use an absolute http(s) address without a query, {example}")
    host, port, path = parts.groups()
    if not _is_host(host):
        raise ValueError(
            f"use an absolute http(s) address, {example}; its host is a name of letters, digits, "
            "dots and hyphens (one with other letters in its xn-- form), or an IP address"
        )
    if port is not None and not (re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65_535):
        raise ValueError("the port in the address is a whole number between 1 and 65535")
    if path is not None and not re.fullmatch(r"(?:/|[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*", path):
        raise ValueError(
            "the path in the address may hold letters, digits, `.`, `_`, `~`, `-` and `/`; "
            "anything else in its %XX form"
        )
    return text.rstrip("/")


def _is_host(text: str) -> bool:
    if text.startswith("[") or re.fullmatch(r"[0-9.]+", text):
        try:
            return bool(ip_address(text.strip("[]")))
        except ValueError:
            return False
    return is_host_name(text)


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    if text == "none":
        return ()
    try:
        return tuple(ip_network(part.strip()) for part in text.split(","))
    except ValueError:
        raise ValueError(
            "use addresses and networks with commas between them, such as 10.0.0.7,192.168.4.0/24, or none"
        ) from None


def _secret(text: str) -> str:
    if text and len(text) < SECRET_LENGTH:
        raise ValueError(f"use at least {SECRET_LENGTH} characters that nobody can guess")
    return text


def _whole(lowest: int, highest: int, unit: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (
            text.isascii() and text.isdigit() and len(text) <= 9 and lowest <= int(text) <= highest
        ):
            raise ValueError(f"use {unit} between {lowest} and {highest}")
        return int(text)

    return parse


def _age(lowest: int, unit: str) -> Callable[[str], int]:
    """So many days or years, or 0: for ever."""
    read = _whole(0, 36_500, unit)

    def parse(text: str) -> int:
        if 0 < (number := read(text)) < lowest:
            raise ValueError(f"use at least {lowest} {unit}, or 0 for ever")
        return number

    return parse


def _mail_from(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+", text):
        raise ValueError("use a plain address, such as invitations@example.com")
    return text


def _recipients(text: str) -> tuple[str, ...]:
    """Addresses and @domains, folded."""
    found = tuple(fold_email(part.strip()) for part in text.split(",") if part.strip())
    if any(not re.fullmatch(r"[^@\s]*@[^@\s]+", part) for part in found):
        raise ValueError(
            "use addresses and @domains with commas between them, such as qa@example.com,@test.example"
        )
    return found


def _one_of(kind: type[Kind]) -> Callable[[str], Kind]:
    def parse(text: str) -> Kind:
        try:
            return kind(text)
        except ValueError:
            raise ValueError("use one of: " + ", ".join(kind)) from None

    return parse


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `parse` raises ValueError with the rule, never the value."""

    name: str
    default: str
    parse: Callable[[str], object]
    is_secret: bool  # may be in a file

    @property
    def variable(self) -> str:
        return f"FRONTDESK_{self.name.upper()}"


def setting(default: str, parse: Callable[[str], Any], *, is_secret: bool = False) -> Any:
    return field(metadata={"default": default, "parse": parse, "is_secret": is_secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings, each with its default and its reader; docs/configuration.md explains each."""

    database_url: str = setting("sqlite:///var/frontdesk.db", _database_url, is_secret=True)
    pool_connections: int = setting("16", _whole(4, 16, "connections"))
    base_url: str = setting("http://127.0.0.1:8000", _base_url)
    console_url: str = setting("", lambda text: _base_url(text) if text else "")
    environment: Environment = setting("sandbox", _one_of(Environment))
    uniqueness: Uniqueness = setting("service", _one_of(Uniqueness))
    queue_ttl_seconds: int = setting("15", _whole(1, 86_400, "whole seconds"))
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting("none", _networks)
    link_secret: str = setting("", _secret, is_secret=True)
    smtp_url: Relay | None = setting(
        "", lambda text: parse_relay(text) if text else None, is_secret=True
    )
    mail_from: str = setting("invitations@localhost.localdomain", _mail_from)
    sandbox_recipients: tuple[str, ...] = setting("", _recipients)
    requests_per_minute: int = setting("300000", _whole(60, 1_000_000, "whole requests"))
    file_limit_mib: int = setting("1024", _whole(1, 1_048_576, "whole MiB"))
    drain_seconds: int | None = setting(
        "", lambda text: _whole(0, 60, "seconds")(text) if text else None
    )

    # 0 is for ever. 45 CFR 164.316 asks for six years of history and audit trail.
    keep_reports_days: int = setting("400", _age(1, "days"))
    keep_invitations_days: int = setting("400", _age(1, "days"))
    keep_withdrawn_days: int = setting("90", _age(1, "days"))
    keep_ended_years: int = setting("10", _age(1, "years"))
    keep_history_years: int = setting("10", _age(6, "years"))
    keep_audit_years: int = setting("7", _age(6, "years"))

    @property
    def drain(self) -> int:
        """Seconds from SIGTERM to the end of the service: `drain_seconds`, or their default."""
        default = 5 if self.environment is Environment.PRODUCTION else 0
        return default if self.drain_seconds is None else self.drain_seconds

    @property
    def host_name(self) -> str:
        """The host in `base_url`; "" where that is an IPv6 address, which is no name."""
        return self.base_url.partition("://")[2].partition("/")[0].partition(":")[0].strip("[]")

    @property
    def sends_mail(self) -> bool:
        """Whether mails leave, or are caught: without a relay a sandbox catches them, and production
        sends none.
        """
        return self.smtp_url is not None or self.environment is not Environment.PRODUCTION

    @property
    def console_origin(self) -> str:
        """Scheme, host and port under which browsers reach the console: those of `console_url`, else
        of `base_url`.
        """
        parts = urlsplit(self.console_url or self.base_url)
        return f"{parts.scheme.lower()}://{parts.netloc.lower()}"

    @property
    def allows_loopback(self) -> bool:
        """Whether webhooks may go to programs on this machine: in a sandbox that only this machine
        reaches. A hosted one would let its customers talk to the services beside it.
        """
        host = urlsplit(self.base_url).hostname or ""
        return self.environment is Environment.SANDBOX and is_this_machine(host)


SETTINGS = tuple(Setting(name=each.name, **each.metadata) for each in fields(Config))


def read_config(variables: Mapping[str, str]) -> Config:
    """The settings from environment variables. Raises ConfigError naming every setting that can't
    be used.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for setting in SETTINGS:
        try:
            values[setting.name] = setting.parse(_given(setting, variables) or setting.default)
        except ValueError as error:
            wrong.append(f"{setting.variable}: {error}")
    known = _NOT_SETTINGS | {setting.variable for setting in SETTINGS}
    known |= {setting.variable + FILE_ENDING for setting in SETTINGS if setting.is_secret}
    wrong += [
        f"{name}: no such setting"
        for name in sorted(variables)
        if name.startswith("FRONTDESK_")
        and name not in known
        and not name.startswith("FRONTDESK_TEST_")
    ]
    real = values.get("smtp_url") and values.get("environment") is Environment.SANDBOX
    if real and not values.get("sandbox_recipients", "unreadable"):
        wrong.append(
            "FRONTDESK_SMTP_URL: a sandbox mails no one by itself; name the addresses it may mail in "
            "FRONTDESK_SANDBOX_RECIPIENTS, or leave the relay out"
        )
    if values.get("environment") is Environment.SANDBOX and not HAS_SANDBOX:
        wrong.append(
            "FRONTDESK_ENVIRONMENT: set it to production; the default, sandbox, needs the wheel "
            f"{SANDBOX_WHEEL}, which is not installed"
        )
    if wrong:
        raise ConfigError(wrong)
    return Config(**values)


def names_uniqueness(variables: Mapping[str, str]) -> bool:
    """Whether the environment says where identifiers are unique, instead of leaving it to the
    default.
    """
    return bool(variables.get("FRONTDESK_UNIQUENESS"))


def _given(setting: Setting, variables: Mapping[str, str]) -> str | None:
    """The value of the variable, or the content of the file that `…_FILE` names, without the line
    end at its end.
    """
    value = variables.get(setting.variable)
    path = variables.get(setting.variable + FILE_ENDING)
    if not (setting.is_secret and path):
        return value
    if value:
        raise ValueError(f"set either this or {setting.variable}{FILE_ENDING}")
    named = f"the file that {setting.variable}{FILE_ENDING} names"
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = file.read(SECRET_FILE_CHARACTERS + 1)
    except OSError as error:
        raise ValueError(f"{named} can't be read: {error.strerror}") from None
    except ValueError:
        content = ""
    if not content.strip() or len(content) > SECRET_FILE_CHARACTERS:
        raise ValueError(f"{named} holds no value in UTF-8 of one line")
    return content.rstrip("\r\n")
