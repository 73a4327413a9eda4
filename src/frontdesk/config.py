"""Every setting of an installation: its name, its default, one sentence. It reads the environment and nothing else.

A setting `x` is the environment variable `FRONTDESK_X`. docs/configuration.md is checked against this table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from frontdesk.errors import FrontdeskError
from frontdesk.relay import Relay, parse_relay

SECRET_LENGTH = 32  # characters
HOST_LENGTH = 253  # of a name in the DNS


class ConfigError(FrontdeskError):
    """Some settings can't be used. `problems` has a sentence for each: the variable, the rule, never the value."""

    code = "invalid_settings"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Environment(StrEnum):
    SANDBOX = "sandbox"
    PRODUCTION = "production"


class Uniqueness(StrEnum):
    """Where no two records may carry the same external_id, member_id or e-mail (docs/interface.md, Eligible members)."""

    SERVICE = "service"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Config:
    database_url: str
    base_url: str
    environment: Environment
    uniqueness: Uniqueness
    queue_ttl_seconds: int
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    queue_default_visit_seconds: int
    queue_longest_visit_seconds: int
    link_secret: str
    smtp_url: Relay | None
    smtp_connections: int
    mail_from: str
    sandbox_recipients: tuple[str, ...]
    delivery_attempts: int
    ambiguous_hold_hours: int
    ambiguous_resend: bool
    file_limit_mib: int

    @property
    def host_name(self) -> str:
        """The host in `base_url`; "" where that is an IPv6 address, which is no name."""
        return self.base_url.partition("://")[2].partition("/")[0].partition(":")[0].strip("[]")


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    sentence: str
    parse: Callable[[str], object]

    @property
    def variable(self) -> str:
        return f"FRONTDESK_{self.name.upper()}"


def _database_url(text: str) -> str:
    scheme = text.partition("://")[0]
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return "postgresql+psycopg://" + text.partition("://")[2]
    if text == "sqlite://" or text.startswith(("sqlite:///:memory:", "sqlite:///file:")):
        raise ValueError(
            "a database in memory would be another one for every process; use sqlite:///path/to/file"
        )
    if text.startswith("sqlite:///") and "?" in text:
        raise ValueError("an SQLite database takes no options after a `?`; use sqlite:///path/to/file")
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///"):
        return text
    raise ValueError("use sqlite:///path/to/file or postgresql://user:password@host:port/database")


def _base_url(text: str) -> str:
    """The address without a slash at its end. It goes into links, mails and shell commands, so it is plain throughout."""
    example = "such as https://api.example.com"
    parts = re.fullmatch(r"(?i:https?)://(\[[^\]/]*\]|[^:/?#@\[\]]*)(?::([^/?#@]*))?(/[^?#]*)?", text)
    if parts is None:
        raise ValueError(f"use an absolute http(s) address without a query, {example}")
    host, port, path = parts.groups()
    if not _is_host(host):
        raise ValueError(
            f"use an absolute http(s) address, {example}; its host is a name of letters, digits, dots and hyphens "
            "(one with other letters in its xn-- form), or an IP address"
        )
    if port is not None and not (re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65_535):
        raise ValueError("the port in the address is a whole number between 1 and 65535")
    if path is not None and not re.fullmatch(r"(?:/|[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*", path):
        raise ValueError(
            "the path in the address may hold letters, digits, `.`, `_`, `~`, `-` and `/`; anything else in its %XX form"
        )
    return text.rstrip("/")


def _is_host(text: str) -> bool:
    if text.startswith("[") or re.fullmatch(r"[0-9.]+", text):
        try:
            return bool(ip_address(text.strip("[]")))
        except ValueError:
            return False
    label = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
    return len(text) <= HOST_LENGTH and bool(re.fullmatch(rf"{label}(?:\.{label})*\.?", text))


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 86_400:
        raise ValueError("use whole seconds between 1 and 86400")
    return int(text)


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


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and lowest <= int(text) <= highest):
            raise ValueError(f"use a whole number between {lowest} and {highest}")
        return int(text)

    return parse


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("use one of: yes, no")
    return text == "yes"


def _smtp_url(text: str) -> Relay | None:
    return parse_relay(text) if text else None


def _mail_from(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+", text):
        raise ValueError("use a plain address, such as invitations@example.com")
    return text


def _recipients(text: str) -> tuple[str, ...]:
    """Addresses and @domains, folded."""
    found = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if any(not re.fullmatch(r"[^@\s]*@[^@\s]+", part) for part in found):
        raise ValueError(
            "use addresses and @domains with commas between them, such as qa@example.com,@test.example"
        )
    return found


def _mebibytes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_048_576:
        raise ValueError("use whole MiB between 1 and 1048576")
    return int(text)


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def parse(text: str) -> StrEnum:
        try:
            return kind(text)
        except ValueError:
            raise ValueError("use one of: " + ", ".join(kind)) from None

    return parse


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "database_url",
        "sqlite:///var/frontdesk.db",
        "Where the records are: a file for the embedded SQLite, or the address of a PostgreSQL database.",
        _database_url,
    ),
    Setting(
        "base_url",
        "http://127.0.0.1:8000",
        "The address that callers use; every link in an answer starts with it (the Host header never does).",
        _base_url,
    ),
    Setting(
        "environment",
        "sandbox",
        "`sandbox` never mails real people; `production` does.",
        _one_of(Environment),
    ),
    Setting(
        "uniqueness",
        "service",
        "Where external_id, member_id and e-mail are unique: over the whole `service`, or inside each `account`. "
        "Fixed when the database is first migrated.",
        _one_of(Uniqueness),
    ),
    Setting(
        "queue_ttl_seconds",
        "15",
        "How long the values of a plan's queue are served before they are taken anew.",
        _seconds,
    ),
    Setting(
        "trusted_proxies",
        "none",
        "Addresses and networks (10.0.0.7,192.168.4.0/24) of the proxies before the server, whose X-Forwarded-For is "
        "believed when failed attempts are counted per address.",
        _networks,
    ),
    Setting(
        "queue_default_visit_seconds",
        "900",
        "How long a visit is taken to last where no visit of the plan or its provider group has ended yet.",
        _seconds,
    ),
    Setting(
        "queue_longest_visit_seconds",
        "14400",
        "After this long a visit whose end was never told no longer keeps its doctor busy.",
        _seconds,
    ),
    Setting(
        "link_secret",
        "",
        "What the links in invitations are made from: 32 or more characters that nobody can guess, the same for every "
        "process of the installation. Production needs one.",
        _secret,
    ),
    Setting(
        "smtp_url",
        "",
        "The relay that mails leave by: `smtp://user:password@host:port` (STARTTLS) or `smtps://…`. "
        "A sandbox without one catches every mail; production without one delivers nothing.",
        _smtp_url,
    ),
    Setting(
        "smtp_connections",
        "8",
        "How many connections to the relay one worker opens at most.",
        _whole(1, 200),
    ),
    Setting(
        "mail_from",
        "invitations@localhost.localdomain",
        "Who mails come from where an account has set no sender, and where those come back to that can't be delivered.",
        _mail_from,
    ),
    Setting(
        "sandbox_recipients",
        "",
        "Whom a sandbox with a relay may mail: addresses and `@domains`, with commas between them. "
        "Mails to anybody else are caught. Without it a sandbox with a relay does not start.",
        _recipients,
    ),
    Setting(
        "delivery_attempts",
        "20",
        "How often an invitation that the relay refuses for now is tried, over about 15 hours, before it has failed.",
        _whole(1, 1000),
    ),
    Setting(
        "ambiguous_hold_hours",
        "24",
        "How long an invitation is held, to be looked up, when the relay's answer was lost.",
        _whole(1, 8760),
    ),
    Setting(
        "ambiguous_resend",
        "yes",
        "Whether one that nobody settled in that time is sent once more (`yes`) or stays held (`no`).",
        _yes_or_no,
    ),
    Setting(
        "file_limit_mib",
        "1024",
        "The largest eligibility file that an upload may have, in MiB (1,048,576 bytes), as it is sent.",
        _mebibytes,
    ),
)


# Variables that others of our own programs read: the server's processes among themselves, the tests.
_NOT_SETTINGS = {"FRONTDESK_PARENT", "FRONTDESK_FAULTS"}


def read_config(variables: Mapping[str, str]) -> Config:
    """The settings from environment variables. Raises ConfigError naming every setting that can't be used."""
    values: dict[str, object] = {}
    wrong: list[str] = []
    for setting in SETTINGS:
        try:
            values[setting.name] = setting.parse(variables.get(setting.variable) or setting.default)
        except ValueError as error:
            wrong.append(f"{setting.variable}: {error}")
    known = {setting.variable for setting in SETTINGS}
    wrong += [
        f"{name}: no such setting"
        for name in sorted(variables)
        if name.startswith("FRONTDESK_")
        and name not in known
        and name not in _NOT_SETTINGS
        and not name.startswith("FRONTDESK_TEST_")
    ]
    real = values.get("smtp_url") and values.get("environment") is Environment.SANDBOX
    if real and not values.get("sandbox_recipients", "unreadable"):
        wrong.append(
            "FRONTDESK_SMTP_URL: a sandbox mails nobody by itself; name whom it may mail in "
            "FRONTDESK_SANDBOX_RECIPIENTS, or leave the relay out"
        )
    if wrong:
        raise ConfigError(wrong)
    return Config(**values)  # type: ignore[arg-type]
