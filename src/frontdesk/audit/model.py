"""Entries of the audit trail, and the requesters of their actions."""

from datetime import datetime
from typing import Any, NamedTuple


class AuditEntry(NamedTuple):
    """One action. `actor` is an API client's client_id, or `cli:` and a login name; `detail` holds names and ids only."""

    action: str
    actor: str
    request_id: str
    account_id: int | None = None
    subject_id: int | None = None
    detail: dict[str, Any] | None = None


class Requester(NamedTuple):
    """The requester of an action: an API client by its client_id, `cli:` and a login name, or a part of the service; with the id
    and time of the request, and over HTTP the network as a keyed hash."""

    actor: str
    request_id: str
    now: datetime
    network: str | None = None

    def entry(
        self, action: str, account_id: int | None = None, subject_id: int | None = None, **detail: Any
    ) -> AuditEntry:
        """The entry about an action of this request. `detail` holds names and ids only."""
        if self.network is not None:
            detail["network"] = self.network
        return AuditEntry(action, self.actor, self.request_id, account_id, subject_id, detail or None)


class AuditQuery(NamedTuple):
    """A filter of entries; None selects all. `action` is an action (`client.rotated`) or its noun (`client`). `since`
    and `until` are included."""

    account_id: int | None = None
    actor: str | None = None
    action: str | None = None
    subject_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
