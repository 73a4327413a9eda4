"""Entries of the audit trail, the requesters of their actions, and their SQL."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    RowMapping,
    Select,
    TextClause,
    case,
    func,
    literal,
    null,
    select,
    tuple_,
    union_all,
)

from frontdesk import usage
from frontdesk.audit.tables import (
    BY_USERS,
    LOOKS,
    NOT_ABOUT_MEMBERS,
    OF_A_MEMBER,
    OF_ANOTHER,
    audit_entries,
)
from frontdesk.db import Tx
from frontdesk.db.sets import SetTransaction, as_json, insert_set
from frontdesk.reach import Reach
from frontdesk.text import stored_time

_columns = audit_entries.c
MEMBER_OPENED = "member.opened"
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


class AuditSubjects(NamedTuple):
    """Subjects of one noun by their ids, and the actions that are wanted. The ids of several nouns
    are equal, so the actions tell whose they are.
    """

    ids: Collection[int]
    actions: Collection[str]


class LooksOfWeek(NamedTuple):
    """How many times a user did this in a week, which is an index of the weeks asked for. `reason`: of
    opened records.
    """

    actor: str
    action: str
    week: int
    reason: str | None
    times: int


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
    equal = {"account_id": reach.account_id, "actor": criteria.actor}
    conditions = [_columns[name] == value for name, value in equal.items() if value is not None]
    if criteria.action is not None:
        of_noun = _columns.action.startswith(f"{criteria.action}.", autoescape=True)
        conditions.append((_columns.action == criteria.action) | of_noun)
    if criteria.since is not None:
        conditions.append(_columns.at >= criteria.since)
    if criteria.until is not None:
        conditions.append(_columns.at <= criteria.until)
    if criteria.subject_id is None:
        query = select(audit_entries).where(*conditions).order_by(_columns.id.desc())
    else:
        conditions.append(_columns.subject_id == criteria.subject_id)
        query = _of_subject(conditions)
    return [dict(row) for row in tx.execute(query.limit(limit)).mappings()]


def _of_subject(conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """The entries about a subject, by both of its indexes, the newest first."""
    halves = [select(audit_entries).where(*conditions, half) for half in (OF_A_MEMBER, OF_ANOTHER)]
    found = union_all(*halves).subquery()
    # For `id` alone PostgreSQL reads all entries in the order of their ids.
    return select(found).order_by((found.c.id + 0).desc())


def entries_after(tx: Tx, entry_id: int, *, until: datetime, limit: int) -> list[dict[str, Any]]:
    """The entries after this id, the oldest first, as rows by column, up to the first that is newer
    than `until`.
    """
    query = select(audit_entries).where(_columns.id > entry_id).order_by(_columns.id).limit(limit)
    found = [dict(row) for row in tx.execute(query).mappings()]
    late = next((index for index, row in enumerate(found) if row["at"] > until), len(found))
    return found[:late]


def entries_about(tx: Tx, member_id: int) -> list[dict[str, Any]]:
    query = select(audit_entries).where(_columns.subject_id == member_id, OF_A_MEMBER)
    return sorted(map(_row, tx.execute(query).mappings()), key=itemgetter("id"))


def list_about(
    tx: Tx, subjects: Iterable[AuditSubjects], *, before_id: int, limit: int
) -> list[dict[str, Any]]:
    """The newest entries about any of the subjects before an id, as rows by column."""
    ids = {
        id_
        for each in subjects
        if each.ids
        for id_ in _ids_about(tx, each, before_id=before_id, limit=limit)
    }
    newest = sorted(ids, reverse=True)[:limit]
    query = select(audit_entries).where(_columns.id.in_(newest)).order_by(_columns.id.desc())
    return [_row(each) for each in tx.execute(query).mappings()]


def _ids_about(tx: Tx, about: AuditSubjects, *, before_id: int, limit: int) -> list[int]:
    """The newest ids before an id of each of the subjects, at most `limit` of each; of subjects that
    are no members, of each and each action.
    """
    is_of_members = all(action.startswith(("member.", "eligibility.")) for action in about.actions)
    names = ", ".join(f"'{action}'" for action in sorted(about.actions))
    ids = as_json(sorted(about.ids))
    if is_of_members:
        sql = (_OF_MEMBERS if tx.dialect.name == "sqlite" else _OF_MEMBERS_POSTGRESQL).format(names)
        return list(tx.exec_driver_sql(sql, (ids, before_id, limit)).scalars())
    sql = _OF_OTHERS if tx.dialect.name == "sqlite" else _OF_OTHERS_POSTGRESQL
    actions = as_json(sorted(about.actions))
    return list(tx.exec_driver_sql(sql, (ids, actions, before_id, limit)).scalars())


# Ranges in the order of their index: with `=` PostgreSQL may read all entries in the order of their ids.
_OF_MEMBERS = f"""SELECT e.id FROM json_each(?) AS w JOIN audit_entries e ON e.id IN (
    SELECT a.id FROM audit_entries a WHERE a.subject_id = w.value AND a.id < ?
    AND {OF_A_MEMBER} AND a.action IN ({{}}) ORDER BY a.id DESC LIMIT ?)"""  # noqa: S608 - our own words
_OF_MEMBERS_POSTGRESQL = f"""SELECT e.id FROM json_array_elements_text(%s::json) AS w
    CROSS JOIN LATERAL (
        SELECT a.id FROM audit_entries a
        WHERE (a.subject_id, a.id) < (w.value::bigint, %s) AND a.subject_id >= w.value::bigint
        AND {OF_A_MEMBER} AND a.action IN ({{}}) ORDER BY a.subject_id DESC, a.id DESC LIMIT %s
    ) AS e"""  # noqa: S608
_OF_OTHERS = f"""SELECT e.id FROM json_each(?) AS w CROSS JOIN json_each(?) AS x
    JOIN audit_entries e ON e.id IN (
        SELECT a.id FROM audit_entries a
        WHERE a.subject_id = w.value AND a.action = x.value AND a.id < ? AND {OF_ANOTHER}
        ORDER BY a.id DESC LIMIT ?)"""  # noqa: S608
_OF_OTHERS_POSTGRESQL = f"""SELECT e.id FROM json_array_elements_text(%s::json) AS w
    CROSS JOIN json_array_elements_text(%s::json) AS x CROSS JOIN LATERAL (
        SELECT a.id FROM audit_entries a
        WHERE (a.subject_id, a.action, a.id) < (w.value::bigint, x.value, %s)
        AND (a.subject_id, a.action) >= (w.value::bigint, x.value) AND {OF_ANOTHER}
        ORDER BY a.subject_id DESC, a.action DESC, a.id DESC LIMIT %s
    ) AS e"""  # noqa: S608


def list_newest(tx: Tx, *, before_id: int, limit: int) -> list[dict[str, Any]]:
    """The newest entries of all accounts and of the installation before an id, as rows by column."""
    query = select(audit_entries).where(_columns.id < before_id)
    query = query.order_by(_columns.id.desc()).limit(limit)
    return [_row(each) for each in tx.execute(query).mappings()]


def list_of_account(tx: Tx, account_id: int, *, before_id: int, limit: int) -> list[dict[str, Any]]:
    """The newest entries of the account before an id, as rows by column, without those about
    members.
    """
    return _page(tx, _columns.account_id, account_id, NOT_ABOUT_MEMBERS, before_id, limit)


def list_by_user(tx: Tx, actor: str, *, before_id: int, limit: int) -> list[dict[str, Any]]:
    """The newest entries of a user of the console (`user:12`) before an id, as rows by column."""
    return _page(tx, _columns.actor, actor, BY_USERS, before_id, limit)


def count_looks(tx: Tx, account_id: int, weeks: Sequence[datetime]) -> list[LooksOfWeek]:
    """What users of the console did to learn of people of the account, since the first of these weeks,
    whose beginnings ascend.
    """
    began = [(_columns.at >= begins_at, number) for number, begins_at in enumerate(weeks)]
    week = case(*reversed(began)).label("week")
    since = (_columns.account_id == account_id, _columns.at >= weeks[0], LOOKS)
    is_opened = _columns.action == MEMBER_OPENED
    reason = _columns.detail["reason"].as_string().label("reason")
    # Only the reasons are read from the entries, all else from the index.
    parts = (
        select(_columns.actor, _columns.action, week, reason).where(*since, is_opened),
        select(_columns.actor, _columns.action, week, null().label("reason")).where(
            *since, ~is_opened
        ),
    )
    found: list[LooksOfWeek] = []
    for part in parts:
        looks = part.subquery()
        query = select(looks, func.count().label("times")).group_by(*looks.c)
        found += [LooksOfWeek(*row) for row in tx.execute(query)]
    return found


def _page(
    tx: Tx, column: Column[Any], value: Any, condition: TextClause, before_id: int, limit: int
) -> list[dict[str, Any]]:
    """A range of the partial index over the column and the id, in its own order."""
    place = (column == value, _columns.id < before_id)
    if tx.dialect.name != "sqlite":  # as in `list_about`
        bound = literal(value, column.type)
        place = (tuple_(column, _columns.id) < tuple_(bound, before_id), column >= value)
    query = select(audit_entries).where(*place, condition)
    query = query.order_by(column.desc(), _columns.id.desc()).limit(limit)
    return [_row(each) for each in tx.execute(query).mappings()]


def _row(mapping: RowMapping) -> dict[str, Any]:
    return {str(name): value for name, value in mapping.items()}


def entries_of_secrets(tx: Tx, client: int) -> list[tuple[datetime, str]]:
    """When a secret of the client, by its number, was made, and by which actor; the newest first."""
    made = _columns.action.in_(("client.created", "client.rotated"))
    query = select(_columns.id, _columns.at, _columns.actor).where(
        _columns.subject_id == client, made, OF_ANOTHER
    )
    return [(at, actor) for _, at, actor in sorted(map(tuple, tx.execute(query)), reverse=True)]


def last_entry_id(tx: Tx) -> int:
    """0 while the trail is empty."""
    return tx.execute(select(func.max(_columns.id))).scalar() or 0
