"""The caller as the service sees it (docs/interface.md, Your client)."""

from frontdesk.access.accounts import get_account, get_client
from frontdesk.api.envelope import enveloped
from frontdesk.api.oauth import GROUP
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.interface.operations import Answer
from frontdesk.interface.types import callers as types
from frontdesk.reach import EVERY
from frontdesk.text import wire_time
from frontdesk.web.request import Request
from frontdesk.web.response import Response


@GROUP.get(
    Path.CALLER,
    any_scope=True,
    answers={200: Answer("The client and its account.", types.CallerEnvelope)},
    problems=[Kind.SUSPENDED],
)
async def show_caller(app: App, request: Request) -> Response:
    """Read your own client.

    Answers the account and the client of the token, its scopes, the environment, and the requests
    that are left in this minute. Any scope is enough.
    """
    caller = request.caller
    allowance = request.allowance

    def read(tx: Tx) -> tuple[str, types.CallerAccount | None]:
        # The caller's own client, of an account or of the installation.
        name = get_client(tx, EVERY, caller.client_id).name
        if caller.account_id is None:
            return name, None
        account = get_account(tx, caller.account_id)
        return name, {"id": account.id, "name": account.name, "time_zone": account.time_zone}

    client, account = await app.ask(read)
    data: types.CallerBody = {
        "type": "callers",
        "account": account,
        "client": {"client_id": caller.client_id, "name": client},
        "scopes": sorted(caller.scopes),
        "environment": app.config.environment,
        "token_expires_at": wire_time(caller.expires_at),
        "limits": {
            "requests_per_minute": allowance.limit,
            "remaining": allowance.remaining,
            "reset_seconds": allowance.reset_seconds,
        },
    }
    return enveloped(app, request, data)
