"""Counts each request of an API client, and tells it what it has left."""

from frontdesk.access.model import RequestAllowance
from frontdesk.app import App
from frontdesk.errors import RateLimited
from frontdesk.web.request import Request
from frontdesk.web.response import Header

LOW_SHARE = 10


async def count_request(app: App, request: Request, *, client: int, own_limit: int | None) -> None:
    """Raises RateLimited when the client has used its requests of the minute.

    The response then carries the RateLimit headers, and those to a client with a limit of its own do always. Under the
    installation's limit they come when a tenth is left, so that the usual response does not grow by them.
    """
    limits = app.limits
    try:
        allowance = limits.admit_now(client, own_limit)
        if allowance is None:
            allowance = await app.in_time(limits.admit(client, own_limit))
    except RateLimited as error:
        spent = RequestAllowance(limits.limit_of(own_limit), 0, error.retry_after_seconds)
        request.extra_headers += _headers(spent)
        raise
    if own_limit is not None or allowance.remaining * LOW_SHARE < allowance.limit:
        request.extra_headers += _headers(allowance)


def _headers(allowance: RequestAllowance) -> tuple[Header, ...]:
    return (
        (b"ratelimit-limit", b"%d" % allowance.limit),
        (b"ratelimit-remaining", b"%d" % allowance.remaining),
        (b"ratelimit-reset", b"%d" % allowance.reset_seconds),
    )
