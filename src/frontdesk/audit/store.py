"""Entries of the audit trail, the requesters of their actions, and their SQL."""

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select

from frontdesk import usage
from frontdesk.audit.tables import audit_entries
from frontdesk.db import Tx
from frontdesk.db.sets import SetTransaction, insert_set
from frontdesk.reach import Reach
from frontdesk.text import stored_time

_columns = audit_entries.c
ENTRY_BYTES = 250  # of an entry without a detail, with its part of the indexes


class AuditEntry(NamedTuple):
    """One action. `actor` is as of a Requester; `detail` holds names and ids only."""

    action: str
    actor: str
    request_id: str
    account_id: int | None = None
    subject_id: int | None = None
    detail: dict[str, Any] | None = None


class Requester(NamedTuple):
    """The requester of an action: an API client by its client_id, a user of the console by
    `user_actor`, `cli:` and a login name, or a part of the service; with the id and time of the
    request, and over HTTP the network as a keyed hash.
    """

    actor: str
    request_id: str
    now: datetime
    network: str | None = None

    def entry(
        self,
        action: str,
        account_id: int | None = None,
        subject_id: int | None = None,
        **detail: Any,
    ) -> AuditEntry:
        """The entry about an action of this request. `detail` holds names and ids only."""
        if self.network is not None:
            detail["network"] = self.network
        return AuditEntry(
            action, self.actor, self.request_id, account_id, subject_id, detail or None
        )


class AuditQuery(NamedTuple):
    """A filter of entries; None selects all. `action` is an action (`client.rotated`) or its noun
    (`client`). `since` and `until` are included.
    """

    actor: str | None = None
    action: str | None = None
    subject_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


ALL = AuditQuery()


def record(tx: SetTransaction, entries: Sequence[AuditEntry], *, now: datetime) -> None:
    """Add the entries, and count their bytes for the quotas of their accounts."""
    at = stored_time(now)
    names = ("at", *AuditEntry._fields)
    insert_set(
        tx, audit_entries, [dict(zip(names, (at, *entry), strict=True)) for entry in entries]
    )
    sizes: dict[int, int] = {}
    for entry in entries:
        if entry.account_id is not None:
            size = ENTRY_BYTES + len(str(entry.detail)) if entry.detail else ENTRY_BYTES
            sizes[entry.account_id] = sizes.get(entry.account_id, 0) + size
    for account_id, size in sizes.items():
        usage.count(tx.engine, account_id, history=size)


def record_action(
    tx: SetTransaction,
    requester: Requester,
    action: str,
    account_id: int | None = None,
    subject_id: int | None = None,
    **detail: Any,
) -> None:
    record(tx, [requester.entry(action, account_id, subject_id, **detail)], now=requester.now)


def list_entries(
    tx: Tx, reach: Reach, criteria: AuditQuery = ALL, *, limit: int = 100
) -> list[dict[str, Any]]:
    """The newest entries within reach first, as rows by column."""
    equal = {
        "account_id": reach.account_id,
        "actor": criteria.actor,
        "subject_id": criteria.subject_id,
    }
    conditions = [_columns[name] == value for name, value in equal.items() if value is not None]
    if criteria.action is not None:
        of_noun = _columns.action.startswith(f"{criteria.action}.", autoescape=True)
        conditions.append((_columns.action == criteria.action) | of_noun)
    if criteria.since is not None:
        conditions.append(_columns.at >= criteria.since)
    if criteria.until is not None:
        conditions.append(_columns.at <= criteria.until)
    query = select(audit_entries).where(*conditions).order_by(_columns.id.desc()).limit(limit)
    return [dict(row) for row in tx.execute(query).mappings()]


def entries_after(tx: Tx, entry_id: int, *, until: datetime, limit: int) -> list[dict[str, Any]]:
    """The entries after this id, the oldest first, as rows by column, up to the first that is newer
    than `until`.
    """
    query = select(audit_entries).where(_columns.id > entry_id).order_by(_columns.id).limit(limit)
    found = [dict(row) for row in tx.execute(query).mappings()]
    late = next((index for index, row in enumerate(found) if row["at"] > until), len(found))
    return found[:late]


def entries_about(tx: Tx, member_id: int) -> list[dict[str, Any]]:
    is_about_members = or_(
        _columns.action.startswith("member."), _columns.action.startswith("eligibility.")
    )
    query = select(audit_entries).where(_columns.subject_id == member_id, is_about_members)
    found = [
        {str(name): value for name, value in row.items()} for row in tx.execute(query).mappings()
    ]
    return sorted(found, key=itemgetter("id"))


def entries_of_secrets(tx: Tx, client: int) -> list[tuple[datetime, str]]:
    """When a secret of the client, by its number, was made, and by which actor; the newest first."""
    made = _columns.action.in_(("client.created", "client.rotated"))
    query = select(_columns.id, _columns.at, _columns.actor).where(
        _columns.subject_id == client, made
    )
    return [(at, actor) for _, at, actor in sorted(map(tuple, tx.execute(query)), reverse=True)]


def last_entry_id(tx: Tx) -> int:
    """0 while the trail is empty."""
    return tx.execute(select(func.max(_columns.id))).scalar() or 0
