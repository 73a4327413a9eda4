"""Entries of the audit trail."""

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


class AuditQuery(NamedTuple):
    """Which entries are wanted; None asks for all. `action` is a whole one (`client.rotated`) or its noun (`client`). `since`
    and `until` are included."""

    account_id: int | None = None
    actor: str | None = None
    action: str | None = None
    subject_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
