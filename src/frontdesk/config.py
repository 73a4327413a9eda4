"""Every setting of an installation: its name, its default, one sentence. It reads the environment and nothing else.

A setting `x` is the environment variable `FRONTDESK_X`. docs/configuration.md is checked against this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit


class ConfigError(Exception):
    """A setting that can't be used; the message names it and says how to mend it."""


class Environment(StrEnum):
    SANDBOX = "sandbox"
    PRODUCTION = "production"


class Uniqueness(StrEnum):
    """Where no two records may carry the same external_id, member_id or e-mail (CONTRACT, Eligibility)."""

    SERVICE = "service"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Config:
    database_url: str
    base_url: str
    environment: Environment
    uniqueness: Uniqueness
    queue_ttl_seconds: int
    file_limit_mib: int


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
    if scheme == "sqlite" and text.startswith("sqlite:///") and len(text) > len("sqlite:///"):
        return text
    raise ValueError("use sqlite:///path/to/file or postgresql://user:password@host:port/database")


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError("use an absolute http(s) address without a query, such as https://api.example.com")
    return text.rstrip("/")


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 86_400:
        raise ValueError("use whole seconds between 1 and 86400")
    return int(text)


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
        "file_limit_mib",
        "1024",
        "The largest eligibility file that an upload may have, in MiB (1,048,576 bytes), as it is sent.",
        _mebibytes,
    ),
)


# Variables that others of our own programs read: the server's processes among themselves, the tests.
_NOT_SETTINGS = {"FRONTDESK_METRICS_FOLDER", "FRONTDESK_FAULTS"}


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
    if wrong:
        raise ConfigError("\n".join(wrong))
    return Config(**values)  # type: ignore[arg-type]
