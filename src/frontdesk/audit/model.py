"""Entries of the audit trail."""

from typing import Any, NamedTuple


class AuditEntry(NamedTuple):
    """One action. `actor` is an API client's client_id, or `cli:` and a login name; `detail` holds names and ids only."""

    action: str
    actor: str
    request_id: str
    account_id: int | None = None
    subject_id: int | None = None
    detail: dict[str, Any] | None = None
