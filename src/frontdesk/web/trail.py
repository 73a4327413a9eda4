"""The caller in the audit trail: client, request id, and the network as a keyed hash, for an address can be a person's."""

import hmac

from frontdesk import audit
from frontdesk.access.authentication import network_of
from frontdesk.app import App
from frontdesk.audit.model import Requester
from frontdesk.db.races import write_alone
from frontdesk.web.request import Request

DIGEST_LETTERS = 16


def requester_of(app: App, request: Request, *, actor: str | None = None) -> Requester:
    """The caller behind the request's token, or `actor` where there is none."""
    network = network_of(request.address(app.config.trusted_proxies))
    digest = hmac.digest(app.config.link_secret.encode(), network.encode(), "sha256").hex()
    name = request.caller.client_id if actor is None else actor
    return Requester(name, request.request_id, app.clock(), digest[:DIGEST_LETTERS])


async def record_read(app: App, request: Request, action: str, subject_id: int) -> None:
    """Add an audit entry for what the caller is about to read. Raises Unavailable: what can't be recorded is not shown."""
    requester, account_id = requester_of(app, request), request.caller.account_id
    await app.in_thread(
        lambda: write_alone(
            app.db, lambda tx: audit.record_action(tx, requester, action, account_id, subject_id)
        )
    )
