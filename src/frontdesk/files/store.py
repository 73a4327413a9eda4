"""The SQL of eligibility files: the files, their content in parts, the accounts' mappings. Their
reports are in `row_store`.
"""

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from frontdesk.access import account_is_active
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.db.failures import violation_as
from frontdesk.db.sets import SameKey, count_by_key
from frontdesk.eligibility.model import Outcome
from frontdesk.errors import Conflict
from frontdesk.files.model import (
    KEPT,
    REFUSED,
    SKIPPED,
    WARNED,
    EligibilityFile,
    FileFilter,
    FileSettings,
    FileState,
    StoredMapping,
)
from frontdesk.files.tables import (
    eligibility_files,
    eligibility_mappings,
    file_parts,
    file_settings,
    file_turns,
)
from frontdesk.formats.model import FileMode
from frontdesk.usage import storage_is_left

_columns = eligibility_files.c
LARGEST_ID = 2**63 - 1
FULL_FILES = 10  # of a plan, of which the last one that was not undone is wanted
PARTS_TOGETHER = 16  # of a file's content, up to 1 MiB each: deleted in 0.2 s
# A file that has counted nothing else has left each member as it was.
APPLIED_NOTHING = frozenset({KEPT, REFUSED, SKIPPED, WARNED})
TOOK_NOTHING_BACK = frozenset({REFUSED, Outcome.UNCHANGED.value})  # of an undo
UNFINISHED = (FileState.RECEIVING, FileState.WAITING, FileState.RUNNING, FileState.HELD)


def insert_file(tx: Tx, requester: Requester, **values: Any) -> EligibilityFile:
    by = {
        "client": requester.actor,
        "request_id": requester.request_id,
        "created_at": requester.now,
    }
    [file] = _files(
        tx, sa.insert(eligibility_files).values(**by, **values).returning(eligibility_files)
    )
    return file


def find_file(tx: Tx, file_id: int, *, lock: bool = False) -> EligibilityFile | None:
    """With `lock`, no other transaction decides about the file until this one ends."""
    query = sa.select(eligibility_files).where(_columns.id == file_id)
    return _file(tx, query.with_for_update() if lock else query)


def list_files(tx: Tx, file_filter: FileFilter) -> list[EligibilityFile]:
    """The files, the newest first. Those of an account or a plan are a range of an index in its own
    order: for `account_id = 1 ORDER BY id` PostgreSQL would read the files of all accounts.
    """
    before = LARGEST_ID if file_filter.before_id is None else file_filter.before_id
    given = {name: getattr(file_filter, name) for name in ("sha256", "state", "plan_id")}
    given = {name: value for name, value in given.items() if value is not None}
    account_id = file_filter.reach.account_id
    query = sa.select(eligibility_files)
    if file_filter.created_before is not None:
        query = query.where(_columns.created_at < file_filter.created_before)
    if account_id is None:
        query = query.filter_by(**given)
        return _files(tx, _first(_newest_first(tx, query, {}, before), file_filter.limit))
    given |= {"account_id": account_id}
    key = {name: given.pop(name) for name in _index_for(given)}
    if "plan_id" in key:
        del given["account_id"]
    for name, value in given.items():
        query = query.where(_by_no_index(name) == value)
    files = _files(tx, _first(_newest_first(tx, query, key, before), file_filter.limit))
    # The files of a plan are all of one account. As a condition that had PostgreSQL expect few of
    # them, and sort all files of the plan: 0.15 s for 100,000.
    return [file for file in files if file.account_id == account_id]


def _index_for(given: Collection[str]) -> tuple[str, ...]:
    """The columns before the id in the index that finds the files with these values soonest."""
    if "sha256" in given:
        return ("account_id", "sha256")
    owner = "plan_id" if "plan_id" in given else "account_id"
    return (owner, "state") if "state" in given else (owner,)


def _by_no_index(name: str) -> sa.ColumnElement[Any]:
    """The column, for a condition that must not choose the index."""
    column = _columns[name]
    is_number = isinstance(column.type, sa.Integer)
    return column + 0 if is_number else sa.func.coalesce(column, sa.literal("", sa.Text))


def _newest_first(
    tx: Tx, query: sa.Select[Any], key: Mapping[str, Any], before: int
) -> sa.Select[Any]:
    """The query for a range of an index that has these columns and the id, in its own order: by
    values on SQLite, which of row values uses the first, by row values on PostgreSQL, which would
    read the files of all accounts in the order of their ids.
    """
    columns = [_columns[name] for name in key]
    values = [sa.literal(value, _columns[name].type) for name, value in key.items()]
    if tx.dialect.name == "sqlite" or not key:
        query = query.where(*map(operator.eq, columns, values), _columns.id < before)
    else:
        query = query.where(sa.tuple_(*columns, _columns.id) < sa.tuple_(*values, before))
        query = query.where(sa.tuple_(*columns) >= sa.tuple_(*values))
    return query.order_by(*(column.desc() for column in (*columns, _columns.id)))


def _first(query: sa.Select[Any], limit: int) -> sa.Select[Any]:
    """So many rows. The number stands in the statement: a plan for any number sorted all files of
    the account on PostgreSQL.
    """
    return query.limit(sa.literal_column(str(int(limit)), sa.Integer))


def change_file(tx: Tx, file_id: int, **changes: Any) -> EligibilityFile:
    query = sa.update(eligibility_files).where(_columns.id == file_id).values(**changes)
    [file] = _files(tx, query.returning(eligibility_files))
    return file


def find_undo(tx: Tx, file_id: int) -> int | None:
    """The newest undo of the file that has neither failed nor been cancelled."""
    void = (FileState.FAILED, FileState.CANCELLED)
    undoes = (_columns.undoes_id == file_id) & _columns.state.not_in(void)
    return tx.execute(sa.select(sa.func.max(_columns.id)).where(undoes)).scalar()


def done_undos(tx: Tx, file_id: int) -> list[tuple[int, bool]]:
    """The ended undos of the file, the newest first: the id, and whether it has taken anything back."""
    undoes = (_columns.undoes_id == file_id) & (_columns.state == FileState.DONE)
    found = tx.execute(sa.select(_columns.id, _columns.counts).where(undoes))
    undos = [(id_, not (counts and TOOK_NOTHING_BACK.issuperset(counts))) for id_, counts in found]
    return sorted(undos, reverse=True)


def with_undos(tx: Tx, file_ids: Collection[int]) -> set[int]:
    """Those of the files that an undo was asked for."""
    query = sa.select(_columns.undoes_id).where(_columns.undoes_id.in_(sorted(file_ids)))
    return {*tx.execute(query).scalars()}


def count_undos(tx: Tx, file_id: int) -> int:
    """How often an undo of the file was begun, whatever became of it."""
    undoes = _columns.undoes_id == file_id
    return int(tx.execute(sa.select(sa.func.count()).where(undoes)).scalar_one())


def find_claimable(
    tx: Tx, now: datetime, *, only: int | None = None, before: datetime | None = None
) -> EligibilityFile | None:
    """A file with a lapsed lease, else one that waits while no other of its account runs. Of
    several, the oldest of the account with the oldest last turn. With `before`, only of accounts
    with an earlier last turn.

    Unless it is the `only` one, a file is begun while the account has storage left in the day. One
    that was begun goes on.
    """
    busy = sa.select(_columns.account_id).where(_columns.state == FileState.RUNNING)
    waits = (_columns.state == FileState.WAITING) & _columns.account_id.not_in(busy)
    if only is None:
        day = f"{now.astimezone(UTC):%Y-%m-%d}"
        waits &= _columns.started_at.is_not(None) | storage_is_left(_columns.account_id, day)
    own_turns = SameKey(file_turns.c.account_id, _columns.account_id)
    taken_at = file_turns.c.taken_at
    for condition in (_has_lapsed(now), waits):
        query = (
            sa.select(eligibility_files)
            .outerjoin(file_turns, own_turns)
            .where(condition, account_is_active(_columns.account_id))
            .order_by(taken_at.asc().nulls_first(), _columns.id)
            .limit(1)
        )
        if before is not None:
            query = query.where(taken_at.is_(None) | (taken_at < before))
        if only is not None:
            query = query.where(_columns.id == only)
        file = _file(tx, query)
        if file is not None:
            return file
    return None


def take_turn(tx: Tx, account_id: int, now: datetime) -> None:
    """Note the turn of the account: other accounts go first from now on."""
    own = file_turns.c.account_id == account_id
    if tx.execute(sa.update(file_turns).where(own).values(taken_at=now)).rowcount == 0:
        tx.execute(sa.insert(file_turns).values(account_id=account_id, taken_at=now))


def find_backlog(tx: Tx, account_id: int) -> tuple[int, int]:
    """How many files of the account arrive, wait or run, and their bytes."""
    states = (FileState.RECEIVING, FileState.WAITING, FileState.RUNNING)
    of_account = (
        (_columns.account_id == account_id)
        & _columns.state.in_(states)
        & _columns.undoes_id.is_(None)
    )
    size = sa.func.coalesce(sa.func.sum(_columns.size_bytes), 0)
    query = sa.select(sa.func.count(), size).where(of_account)
    count, size_bytes = tx.execute(query).one()
    return int(count), int(size_bytes)


def claim(
    tx: Tx, file_id: int, epoch: int, *, now: datetime, lease_until: datetime
) -> EligibilityFile | None:
    """Start the next epoch of the file, under a lease. None if it was claimed after `epoch`, or its
    lease was renewed. Raises Conflict when a worker has another file of the account in hand.
    """
    is_free = (_columns.state == FileState.WAITING) | _has_lapsed(now)
    query = sa.update(eligibility_files).where(
        _columns.id == file_id, _columns.epoch == epoch, is_free
    )
    query = query.values(
        state=FileState.RUNNING, epoch=epoch + 1, lease_until=lease_until, rows_checked=None
    )
    with violation_as(Conflict(), eligibility_files, "account_id"):
        return _file(tx, query.returning(eligibility_files))


def save(tx: Tx, file_id: int, epoch: int, **changes: Any) -> EligibilityFile | None:
    """Change the file if it still runs in this epoch; None if it does not."""
    runs = (_columns.epoch == epoch) & (_columns.state == FileState.RUNNING)
    change = sa.update(eligibility_files).where(_columns.id == file_id, runs).values(**changes)
    return _file(tx, change.returning(eligibility_files))


def list_full_files(tx: Tx, plan_id: int, *, before_id: int) -> Sequence[tuple[int, int | None]]:
    """The ids and numbers of rows of the plan's last applied full files, the newest first; undone
    ones are among them.
    """
    applied = {"plan_id": plan_id, "mode": FileMode.FULL, "dry_run": False, "state": FileState.DONE}
    query = sa.select(_columns.id, _columns.rows_total).where(_columns.id < before_id)
    query = query.filter_by(**applied).order_by(_columns.id.desc()).limit(FULL_FILES)
    return [(file_id, rows) for file_id, rows in tx.execute(query)]


def applied_files(tx: Tx, plan_id: int, sender: str, *, after: str) -> list[EligibilityFile]:
    """The plan's applied 834s of the sender (GS02) with a date after a day, the newest first. Undone
    ones are among them.
    """
    query = sa.select(eligibility_files).where(
        _columns.plan_id == plan_id,
        _columns.sender == sender,
        _columns.file_date > after,
        _columns.state == FileState.DONE,
        _columns.dry_run.is_(False),
        _columns.mode != FileMode.COMPARE,
    )
    return _files(tx, query.order_by(_columns.plan_id.desc(), _columns.id.desc()))


def newer_files(tx: Tx, plan_id: int, after_id: int) -> list[int]:
    """The plan's files after this one that have applied rows, and its full ones that have begun to
    or are held before that, the newest first. Undos don't count, nor does a file that has ended
    and applied nothing.
    """
    of_plan = (_columns.plan_id == plan_id) & (_columns.id > after_id) & _columns.dry_run.is_(False)
    is_full = _columns.mode == FileMode.FULL
    has_begun = _columns.started_at.is_not(None)
    is_written = _columns.undoes_id.is_(None) & (_columns.mode != FileMode.COMPARE)
    has_applied = is_written & (_columns.rows_done > 0)
    void = (FileState.CANCELLED, FileState.FAILED)
    stands = is_full & has_begun & _columns.state.not_in(void)
    # A range of an index in its own order, as in `list_files`.
    query = sa.select(_columns.id, _columns.state, _columns.counts)
    query = query.where(of_plan, has_applied | stands)
    found = tx.execute(query.order_by(_columns.plan_id.desc(), _columns.id.desc()))
    return [
        file_id
        for file_id, state, counts in found
        if state in UNFINISHED or not (counts and APPLIED_NOTHING.issuperset(counts))
    ]


def list_mappings(tx: Tx, account_id: int) -> list[StoredMapping]:
    """By name."""
    table = eligibility_mappings
    query = sa.select(table).where(table.c.account_id == account_id).order_by(table.c.name)
    return [StoredMapping(**row) for row in tx.execute(query).mappings()]


def find_mapping(tx: Tx, account_id: int, name: str | None) -> StoredMapping | None:
    """The account's mapping of this name; with None its default."""
    for mapping in list_mappings(tx, account_id):
        if mapping.is_default if name is None else mapping.name == name:
            return mapping
    return None


def save_mapping(tx: Tx, mapping: StoredMapping, *, is_new: bool) -> None:
    """Replaces the mapping of this name, unless it is new: then one that another transaction has stored
    meanwhile is a unique violation. A new default replaces the earlier default.
    """
    table = eligibility_mappings
    if not is_new:
        delete_mapping(tx, mapping.account_id, mapping.name)
    if mapping.is_default:
        was_default = (table.c.account_id == mapping.account_id) & table.c.is_default.is_(True)
        tx.execute(sa.update(table).where(was_default).values(is_default=False))
    tx.execute(sa.insert(table).values(**asdict(mapping)))


def delete_mapping(tx: Tx, account_id: int, name: str) -> bool:
    """False if there is none of this name."""
    table = eligibility_mappings
    query = sa.delete(table).where(table.c.account_id == account_id, table.c.name == name)
    return tx.execute(query).rowcount == 1


def get_file_settings(tx: Tx, account_id: int) -> FileSettings:
    """The account's settings; the defaults where none were ever set."""
    query = sa.select(file_settings).where(file_settings.c.account_id == account_id)
    row = tx.execute(query).first()
    return FileSettings(*row) if row else FileSettings(account_id)


def set_file_settings(tx: Tx, account_id: int, **changes: Any) -> FileSettings:
    """Change the settings named in `changes`, keep the others."""
    settings = replace(get_file_settings(tx, account_id), **changes)
    tx.execute(sa.delete(file_settings).where(file_settings.c.account_id == account_id))
    tx.execute(sa.insert(file_settings).values(asdict(settings)))
    return settings


def insert_part(tx: Tx, file_id: int, number: int, content: bytes) -> None:
    tx.execute(sa.insert(file_parts).values(file_id=file_id, number=number, content=content))


def find_part(tx: Tx, file_id: int, number: int) -> bytes | None:
    mine = (file_parts.c.file_id == file_id) & (file_parts.c.number == number)
    return tx.execute(sa.select(file_parts.c.content).where(mine)).scalar()


def delete_parts(tx: Tx, file_id: int) -> bool:
    """Delete some of the content's parts; True if parts are left. SQLite overwrites each page of
    them, and nothing else can be written meanwhile: 12 s for 1 GiB.
    """
    mine = file_parts.c.file_id == file_id
    numbers = sa.select(file_parts.c.number).where(mine).order_by(file_parts.c.number)
    found = tx.execute(numbers.limit(PARTS_TOGETHER + 1)).scalars().all()
    tx.execute(sa.delete(file_parts).where(mine, file_parts.c.number.in_(found[:PARTS_TOGETHER])))
    return len(found) > PARTS_TOGETHER


def ended_files_with_parts(tx: Tx) -> list[int]:
    """The ended files with content that is not deleted yet."""
    ids = []
    last = 0
    of_file = file_parts.c.file_id
    first_after = sa.select(sa.func.min(of_file)).where(of_file > sa.bindparam("last"))
    while (found := tx.execute(first_after, {"last": last}).scalar()) is not None:
        ids.append(found)
        last = found
    if not ids:
        return []
    query = sa.select(_columns.id).where(_columns.id.in_(ids), _columns.state.not_in(UNFINISHED))
    return list(tx.execute(query).scalars())


def delete_file(tx: Tx, file_id: int) -> None:
    """Delete a file that has no content any more."""
    tx.execute(sa.delete(eligibility_files).where(_columns.id == file_id))


def unfinished_uploads(tx: Tx, before: datetime) -> list[int]:
    broken_off = (_columns.state == FileState.RECEIVING) & (_columns.created_at < before)
    return list(tx.execute(sa.select(_columns.id).where(broken_off)).scalars())


def count_unfinished(tx: Tx) -> dict[FileState, tuple[int, datetime | None]]:
    """By state how many files are unfinished, and when the oldest was made; of those that wait,
    only if it has not begun.
    """
    waits_again = (_columns.state == FileState.WAITING) & _columns.started_at.is_not(None)
    oldest = sa.func.min(sa.case((~waits_again, _columns.created_at)))
    query = sa.select(_columns.state, sa.func.count(), oldest).where(_columns.state.in_(UNFINISHED))
    rows = tx.execute(query.group_by(_columns.state))
    return dict.fromkeys(UNFINISHED, (0, None)) | {state: (count, at) for state, count, at in rows}


def count_in_state(
    tx: Tx, account_ids: Collection[int], state: FileState, *, most: int
) -> dict[int, int]:
    """How many files of each account are in a state, `most` at most."""
    rows = f"FROM eligibility_files WHERE account_id = :key AND state = '{state.value}'"
    return count_by_key(tx, rows, account_ids, most=most)


def unfinished_files(tx: Tx, account_id: int) -> list[int]:
    """The account's files that have not ended, or still hold content: they may hold a member, or
    change it.
    """
    of_account = sa.select(_columns.id).where(_columns.account_id == account_id)
    unfinished = tx.execute(of_account.where(_columns.state.in_(UNFINISHED))).scalars().all()
    ended = ended_files_with_parts(tx)
    with_content = tx.execute(of_account.where(_columns.id.in_(ended))).scalars().all()
    return sorted({*unfinished, *with_content})


def _has_lapsed(now: datetime) -> sa.ColumnElement[bool]:
    return (_columns.state == FileState.RUNNING) & (_columns.lease_until < now)


def _files(tx: Tx, query: sa.Executable) -> list[EligibilityFile]:
    return [EligibilityFile(**row) for row in tx.execute(query).mappings()]


def _file(tx: Tx, query: sa.Executable) -> EligibilityFile | None:
    return next(iter(_files(tx, query)), None)
