"""The address of a relay, from FRONTDESK_SMTP_URL; it opens no connection."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

_PORTS = {"smtp": 587, "smtps": 465}
_SHAPE = "use smtp://user:password@host:port (STARTTLS) or smtps://… (TLS from the start)"


@dataclass(frozen=True, slots=True)
class Relay:
    """Where the relay is and how it is spoken to. `tls`: from the start (`implicit`), by STARTTLS (`required`), `off`."""

    host: str
    port: int
    tls: str
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)


def parse_relay(url: str) -> Relay:
    """The relay of a `smtp[s]://user:password@host:port[?tls=required|off]`. Raises ValueError saying what to write.

    Certificates are always verified. On smtp:// STARTTLS is required, so that nobody can strip it, unless `tls=off` says
    otherwise or the relay is this machine; a password is never sent in the clear to another one.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_SHAPE) from None
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.fragment:
        raise ValueError(_SHAPE)
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
