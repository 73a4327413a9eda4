"""The caller as the service sees it (docs/interface.md, Your client)."""

from frontdesk.access.accounts import get_account, get_client
from frontdesk.api.eligibility_files import enveloped
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.text import wire_time
from frontdesk.web.request import Request
from frontdesk.web.response import Response


async def show_caller(app: App, request: Request) -> Response:
    """Read your own client. Answers the account and the client of the token, its scopes, the environment, and the requests that
    are left in this minute. Any scope is enough.

    200 CallerEnvelope: The client and its account.
    Problems: suspended
    """
    caller, allowance = request.caller, request.allowance

    def read(tx: Tx) -> tuple[str, str | None]:
        account = None if caller.account_id is None else get_account(tx, caller.account_id).name
        return get_client(tx, caller.client_id).name, account

    client, account = await app.ask(read)
    data = {
        "type": "callers",
        "account": None if account is None else {"id": caller.account_id, "name": account},
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
