"""The console's cookies, and the proof that a form is our own.

A session's cookie is `__Host-frontdesk`: Secure, HttpOnly, SameSite=Lax. On a developer's own machine
without TLS it is `frontdesk-sandbox`, because browsers differ in what they take for secure there.
"""

import hmac
import secrets
from functools import lru_cache
from urllib.parse import urlsplit

from frontdesk.codes import Kind
from frontdesk.config import Config, Environment, is_this_machine
from frontdesk.errors import FrontdeskError
from frontdesk.web.request import Request
from frontdesk.web.response import Header

SESSION = "frontdesk"
ATTEMPT = "frontdesk-sign-in"  # a sign-in whose password was right
BROWSER = "frontdesk-browser"  # a browser that has signed in before
FORM = "frontdesk-form"  # what the token of a form before the sign-in is derived from

SECRET_BYTES = 32
LONGEST_SECRET = 128
BROWSER_SECONDS = 400 * 24 * 3600  # the longest that browsers keep a cookie


class ForeignForm(FrontdeskError, kind=Kind.FORBIDDEN):
    """The request does not come from a form of ours."""


def needs_tls(config: Config) -> bool:
    """Whether the cookies are sent over TLS only: not in a sandbox on this machine."""
    return _needs_tls(config.environment, config.console_url or config.base_url)


@lru_cache(maxsize=16)  # each request asks, and addresses take long to read
def _needs_tls(environment: Environment, url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return environment is not Environment.SANDBOX or not is_this_machine(host)


def cookie_name(config: Config, name: str) -> str:
    """The name under which a browser keeps it."""
    if needs_tls(config):
        return f"__Host-{name}"
    return f"{name}-sandbox"


def read_cookie(config: Config, request: Request, name: str) -> str | None:
    """The value of a cookie of ours; None without one, or for one that can't be ours."""
    wanted = cookie_name(config, name)
    for part in (request.header(b"cookie") or "").split(";"):
        found, _, value = part.strip().partition("=")
        if found == wanted and 0 < len(value) <= LONGEST_SECRET and value.isascii():
            return value
    return None


def set_cookie(config: Config, name: str, value: str, *, seconds: int | None = None) -> Header:
    """The header that has a browser keep it, until it is closed or for so many seconds."""
    parts = [f"{cookie_name(config, name)}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if needs_tls(config):
        parts.append("Secure")
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    return b"set-cookie", "; ".join(parts).encode("ascii")


def drop_cookie(config: Config, name: str) -> Header:
    return set_cookie(config, name, "", seconds=0)


def new_form_secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def form_token(secret: str) -> str:
    """The token that each form of a session carries, or with the secret of the cookie FORM each form
    before the sign-in.
    """
    return hmac.digest(secret.encode(), b"frontdesk console form", "sha256").hex()


def refuse_foreign_form(config: Config, request: Request) -> None:
    """Raises ForeignForm unless the browser says that the request comes from a page of ours
    (Sec-Fetch-Site, in an older browser Origin).
    """
    site = request.header(b"sec-fetch-site")
    if site is not None:
        is_own = site == "same-origin"
    else:
        is_own = request.header(b"origin") == config.console_origin
    if not is_own:
        raise ForeignForm("This form was not sent from a page of the console. Nothing was changed.")


def refuse_wrong_token(secret: str | None, sent: str) -> None:
    """Raises ForeignForm unless the form's token is that of the secret."""
    is_own = secret is not None and hmac.compare_digest(form_token(secret).encode(), sent.encode())
    if not is_own:
        raise ForeignForm(
            "This form is too old, or it was not made for this browser. Nothing was changed. Open "
            "the page again."
        )
