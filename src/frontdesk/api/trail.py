"""The caller in the audit trail: client, request id, and the network as a keyed hash, for an address can be a person's."""

import hmac

from frontdesk import audit
from frontdesk.access.authentication import network_of
from frontdesk.app import App
from frontdesk.audit.model import AuditEntry
from frontdesk.db.races import write_alone
from frontdesk.files.model import Requester
from frontdesk.web.request import Request

DIGEST_LETTERS = 16


def network_digest(app: App, request: Request) -> str:
    network = network_of(request.address(app.config.trusted_proxies))
    digest = hmac.digest(app.config.link_secret.encode(), network.encode(), "sha256").hex()
    return digest[:DIGEST_LETTERS]


def requester_of(app: App, request: Request) -> Requester:
    client = request.caller.client_id
    return Requester(client, request.request_id, app.clock(), network_digest(app, request))


async def record_read(app: App, request: Request, action: str, subject_id: int) -> None:
    """Add an audit entry for what the caller is about to read. Raises Unavailable: what can't be recorded is not shown."""
    by = requester_of(app, request)
    detail = {"network": by.network}
    entry = AuditEntry(action, by.client, by.request_id, request.caller.account_id, subject_id, detail)
    await app.in_thread(lambda: write_alone(app.db, lambda tx: audit.record(tx, [entry], now=by.now)))
