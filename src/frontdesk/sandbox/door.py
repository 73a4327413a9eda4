"""The sandbox's door for customers: `POST /sandbox/reset`. Production has no such path."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.errors import Unavailable
from frontdesk.plans import list_plans
from frontdesk.sandbox import reset
from frontdesk.sandbox.acting import enrol_acting
from frontdesk.web.endpoint import Endpoint, requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response, json_response

RESET_SECONDS = 8.0
PAUSE_SECONDS = 0.01  # between transactions, for others that write to SQLite
NEWEST = 2**62


def open_door(app: App) -> Sequence[Endpoint]:
    """The routes of a sandbox. From now on some records of the application act by their external_id."""
    app.enrolments.act = enrol_acting
    return ENDPOINTS


async def reset_account(app: App, request: Request) -> Response:
    """`POST /sandbox/reset`: remove the account's files, members, invitations, mails and mappings. Each transaction is small, so
    that other callers hardly wait. `sandbox` is also the default environment, so the account's operator has to allow it
    to a client by name.

    Raises UnderLegalHold; Unavailable if it takes too long: the next call goes on.
    """
    account_id, requester = request.account_id, requester_of(app, request)
    until = time.monotonic() + RESET_SECONDS
    await app.write(lambda tx: reset.begin(tx, account_id, requester))
    counts = {"files": 0, "members": 0}
    place: int | None = NEWEST
    while place is not None:
        place, gone = await app.write(partial(reset.delete_files, account_id=account_id, before_id=place))
        counts["files"] += gone
        if place is not None:
            _check_time(until)
    for plan in await app.ask(lambda tx: list_plans(tx, account_id)):
        place = 0
        while place is not None:
            erase = partial(reset.erase_members, plan_id=plan.id, after_id=place)
            place, gone = await app.write(partial(erase, requester=requester_of(app, request)))
            counts["members"] += gone
            if gone:  # members that are erased already must not use up the time of each call
                _check_time(until)
                await asyncio.sleep(PAUSE_SECONDS)
    links = {"self": app.config.base_url + request.target}
    return json_response({"links": links, "data": {"type": "sandbox_resets", **counts}})


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise Unavailable("The reset has not ended. Send it again: it goes on from here.")


ENDPOINTS = (Endpoint("POST", "/sandbox/reset", reset_account, Scope.SANDBOX_RESET),)
