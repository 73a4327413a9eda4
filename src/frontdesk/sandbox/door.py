"""The sandbox's door for customers: `POST /sandbox/reset`. Production has no such path."""

import asyncio
import time
from functools import partial
from typing import Any

from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.errors import Unavailable
from frontdesk.interface.operations import Answer, Group, arranged
from frontdesk.plans import list_plans
from frontdesk.reach import Reach
from frontdesk.sandbox import reset
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response, json_response

GROUP = Group("Sandbox", "What only a sandbox has.")

RESET_SECONDS = 8.0
PAUSE_SECONDS = 0.01  # between transactions, for others that write to SQLite
NEWEST = 2**62


@GROUP.post(
    "/sandbox/reset",
    scope=Scope.SANDBOX_RESET,
    answers={200: Answer("What was removed.", dict[str, Any])},
    problems=[Kind.WRONG_STATE],
)
async def reset_account(app: App, request: Request) -> Response:
    """Remove the account's files, members, invitations, mails and mappings.

    Each transaction is small, so that other callers hardly wait. `sandbox` is also the default
    environment, so the account's operator has to allow it to a client by name. A call that takes
    too long is 503: the next call goes on.
    """
    account_id = request.account_id
    requester = requester_of(app, request)
    until = time.monotonic() + RESET_SECONDS
    await app.write(lambda tx: reset.begin(tx, account_id, requester))
    counts = {"files": 0, "members": 0}
    place: int | None = NEWEST
    while place is not None:
        place, gone = await app.write(
            partial(reset.delete_files, account_id=account_id, before_id=place)
        )
        counts["files"] += gone
        if place is not None:
            _check_time(until)
    for plan in await app.ask(lambda tx: list_plans(tx, Reach.of(account_id))):
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


ENDPOINTS = arranged([GROUP])
