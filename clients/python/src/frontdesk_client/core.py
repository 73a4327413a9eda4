"""Requests and their answers, without a connection: each operation is a generator that yields what
has to be done.

`Frontdesk` performs the steps with blocking calls, `AsyncFrontdesk` with awaits. The rules of
tokens, retries and pages are here, once.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

import httpx

from frontdesk_client.content import Content, as_json
from frontdesk_client.errors import (
    ApiError,
    AuthenticationFailed,
    FrontdeskError,
    Unauthorized,
    UnexpectedAnswer,
    Unreachable,
    error_of,
    json_object,
)

T = TypeVar("T")

VERSION = "0.1.0"
REPEATED_STATUS = {408, 429, 502, 503, 504}
REPEATED_ONCE = 500  # a fault of the service, which a second attempt may not meet
IN_FLIGHT = "idempotency_in_flight"
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
# A limit of the minute ends within it. A longer Retry-After, such as until midnight, is the
# caller's to wait for.
LONGEST_RETRY_AFTER_SECONDS = 60.0
RENEW_SECONDS = 60.0
LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


class WithoutQuery(logging.Filter):
    """Takes the query out of httpx's log lines for these hosts: it may hold an address or an
    identifier of a member.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hosts: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                part.copy_with(query=None)
                if isinstance(part, httpx.URL) and part.host in self.hosts
                else part
                for part in record.args
            )
        return True


WITHOUT_QUERY = WithoutQuery()
logging.getLogger("httpx").addFilter(WITHOUT_QUERY)


@dataclass(frozen=True)
class Call:
    """A request by its meaning; `content` is the body of an upload, `form` that of a token request."""

    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    json: Any = None
    form: dict[str, str] | None = None
    content: Content | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Send(NamedTuple):
    """Step: send a request, and read the whole answer."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes | Content | None


class Pause(NamedTuple):
    """Step: wait."""

    seconds: float


class NeedToken(NamedTuple):
    """Step: get the token, a new one if this one was rejected."""

    rejected: str | None


Step: TypeAlias = "Send | Pause | NeedToken"
Operation: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list that is read by the page: the call for the first page, and how a page is read: its
    items, and the parameters of the next page or None.
    """

    call: Call
    read: Callable[[httpx.Response], tuple[list[T], dict[str, str] | None]]


class Core:
    """A client of the service: its credentials, its token, and how requests are repeated."""

    def __init__(
        self,
        base_url: str,
        client_id: str,
        client_secret: str,
        *,
        scope: str | None,
        attempts: int,
        strict: bool = False,
    ) -> None:
        url = httpx.URL(base_url)
        if url.scheme != "https" and not (url.scheme == "http" and url.host in LOCAL_HOSTS):
            raise ValueError(
                "The base URL must begin with https://, because records are health information."
            )
        if attempts < 1:
            raise ValueError("attempts must be at least 1.")
        WITHOUT_QUERY.hosts.add(url.host)
        self.base_url = base_url.rstrip("/")
        self._form = {"grant_type": "client_credentials", "client_id": client_id}
        self._form |= {"client_secret": client_secret} | ({"scope": scope} if scope else {})
        self._attempts = attempts
        self._preference = {"Prefer": "handling=strict"} if strict else {}
        self._token = ""
        self._renew_at = 0.0

    def token(self, rejected: str | None) -> str | None:
        """The token, if it is still good."""
        is_good = self._token and self._token != rejected and monotonic() < self._renew_at
        return self._token if is_good else None

    def fetch_token(self) -> Operation[str]:
        """Get a new token. It is renewed a minute before its end. Raises AuthenticationFailed,
        Unreachable, ApiError.
        """
        begun = monotonic()
        response = yield from self.repeat(Call("POST", "/oauth/token", form=self._form))
        content = json_object(response)
        if not isinstance(content.get("access_token"), str):
            raise UnexpectedAnswer(
                "The answer of /oauth/token has no access_token. Is the base URL right?"
            )
        lifetime = float(content.get("expires_in", 0))
        self._token = content["access_token"]
        self._renew_at = begun + lifetime - min(RENEW_SECONDS, lifetime / 10)
        return self._token

    def request(self, call: Call) -> Operation[httpx.Response]:
        """Send a call with a token and, if it changes something, an Idempotency-Key, the same one
        in all attempts.

        Raises Unreachable, ApiError, AuthenticationFailed.
        """
        headers = self._preference | call.headers
        if call.method in ("POST", "PATCH"):
            headers.setdefault("Idempotency-Key", uuid4().hex)
        return (yield from self.repeat(replace(call, headers=headers), is_authorized=True))

    def page(self, pages: Pages[T]) -> Operation[tuple[list[T], Pages[T] | None]]:
        """The items of a page, and the pages after it or None."""
        items, following = pages.read((yield from self.request(pages.call)))
        if not following:
            return items, None
        return items, replace(pages, call=replace(pages.call, params=following))

    def json(self, call: Call) -> Operation[Any]:
        """The JSON object of the answer."""
        response = yield from self.request(call)
        return content_of(response)

    def repeat(self, call: Call, *, is_authorized: bool = False) -> Operation[httpx.Response]:
        """Send a call until it succeeds, is refused for good, or no attempt is left. A 401 renews
        the token once.
        """
        send = prepared(call)
        rejected: str | None = None
        faults_of_service = 0
        attempt = 0
        while True:
            token = (yield NeedToken(rejected)) if is_authorized else None
            if token is not None:
                send.headers["Authorization"] = f"Bearer {token}"
            attempt += 1
            cause: Exception | None = None
            failure: FrontdeskError
            try:
                response: httpx.Response = yield send
            except httpx.LocalProtocolError:
                raise  # the request itself is at fault
            except httpx.RequestError as error:
                cause = error
                failure = Unreachable(
                    f"{call.method} {call.path} got no answer ({type(error).__name__})."
                )
            else:
                if response.is_success:
                    return response
                failure = error_of(response)
                is_expired = (
                    isinstance(failure, Unauthorized) and token is not None and rejected is None
                )
                if is_expired and is_repeatable(call):
                    rejected = token  # revoked, or a clock runs ahead
                    continue
                faults_of_service += response.status_code == REPEATED_ONCE
            seconds = self._pause(call, failure, attempt)
            if seconds is None or faults_of_service > 1:
                raise failure from cause
            yield Pause(seconds)

    def _pause(self, call: Call, failure: FrontdeskError, attempt: int) -> float | None:
        """Seconds until the next attempt, or None if there is none."""
        if attempt >= self._attempts or not is_repeatable(call):
            return None
        backoff: float = min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS)
        backoff *= random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        if not isinstance(failure, ApiError | AuthenticationFailed):
            return backoff
        is_in_flight = isinstance(failure, ApiError) and IN_FLIGHT in failure.codes
        if failure.status not in {*REPEATED_STATUS, REPEATED_ONCE} and not is_in_flight:
            return None
        wanted = failure.retry_after or 0.0
        if wanted > LONGEST_RETRY_AFTER_SECONDS:
            return None
        return max(backoff, wanted * random.uniform(1.0, 1.1))  # noqa: S311 - jitter


def is_repeatable(call: Call) -> bool:
    """Every call may be sent again: it reads, its method is idempotent, or it has an
    Idempotency-Key. But a pipe is used up.
    """
    return call.content is None or call.content.is_repeatable


def prepared(call: Call) -> Send:
    """The call with its headers and its body."""
    headers = {
        "Accept": "application/json",
        "User-Agent": f"frontdesk-client-python/{VERSION}",
    } | call.headers
    body: bytes | Content | None = call.content
    if call.content is not None:
        headers["Content-Type"] = "application/octet-stream"  # the service looks at the content
        if call.content.size is not None:
            headers["Content-Length"] = str(call.content.size)
    elif call.form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode(call.form).encode()
    elif call.json is not None:
        headers["Content-Type"] = "application/json"
        body = as_json(call.json)
    return Send(call.method, call.path, call.params, headers, body)


def content_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of a success. Raises UnexpectedAnswer."""
    content = json_object(response)
    if not content:
        path = response.request.url.path
        raise UnexpectedAnswer(f"The answer of {path} is not a JSON object. Is the base URL right?")
    return content


def list_page(response: httpx.Response) -> tuple[list[Any], dict[str, str] | None]:
    """The items of a page, and the parameters of the next one. Only these are taken from the link,
    so that no answer can send the token elsewhere.
    """
    content = content_of(response)
    following = content.get("links", {}).get("next")
    return content.get("data", []), dict(
        parse_qsl(urlsplit(following).query)
    ) if following else None


def given(**parameters: Any) -> dict[str, str]:
    """Query parameters without those that are None; booleans in lower case."""
    texts = {name: value for name, value in parameters.items() if value is not None}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in texts.items()
    }
