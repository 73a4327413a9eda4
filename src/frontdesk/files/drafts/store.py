"""The SQL of drafts: their steps, and their content in parts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from frontdesk.db import Tx
from frontdesk.files.model import Draft, DraftState, FileState
from frontdesk.files.tables import draft_parts, eligibility_files, file_drafts

_d = file_drafts.c
_parts = draft_parts.c
PARTS_TOGETHER = 16  # of a draft's content, up to 1 MiB each: deleted in 0.2 s
_UNFINISHED = (FileState.RECEIVING, FileState.WAITING, FileState.RUNNING, FileState.HELD)


def insert_draft(tx: Tx, **values: Any) -> Draft:
    [draft] = _drafts(tx, sa.insert(file_drafts).values(**values).returning(file_drafts))
    return draft


def find_draft(tx: Tx, draft_id: int) -> Draft | None:
    return next(iter(_drafts(tx, sa.select(file_drafts).where(_d.id == draft_id))), None)


def list_drafts(tx: Tx, account_id: int) -> list[Draft]:
    """Those whose content is stored, in the order of their beginnings."""
    mine = (_d.account_id == account_id) & (_d.state != DraftState.RECEIVING)
    return _drafts(tx, sa.select(file_drafts).where(mine).order_by(_d.account_id, _d.id))


def change_draft(tx: Tx, draft_id: int, version: int, **changes: Any) -> Draft | None:
    """The draft with the changes and its next version; None if it has another version."""
    query = sa.update(file_drafts).where(_d.id == draft_id, _d.version == version)
    query = query.values(version=version + 1, **changes)
    return next(iter(_drafts(tx, query.returning(file_drafts))), None)


def keep_suggestion(tx: Tx, draft_id: int, suggestion: dict[str, Any]) -> Draft:
    """Store what is suggested for the content; the draft's version stays."""
    query = sa.update(file_drafts).where(_d.id == draft_id).values(suggestion=suggestion)
    [draft] = _drafts(tx, query.returning(file_drafts))
    return draft


def insert_part(
    tx: Tx, draft_id: int, number: int, content: bytes, *, size_bytes: int, now: datetime
) -> bool:
    """Store the next part; False if the draft is gone. `size_bytes` is the size of all parts so far,
    unpacked.
    """
    change = sa.update(file_drafts).where(_d.id == draft_id)
    changed = tx.execute(change.values(size_bytes=size_bytes, changed_at=now))
    if not changed.rowcount:
        return False
    tx.execute(sa.insert(draft_parts).values(draft_id=draft_id, number=number, content=content))
    return True


def content_part(tx: Tx, draft_id: int, number: int) -> bytes | None:
    mine = (_parts.draft_id == draft_id) & (_parts.number == number)
    return tx.execute(sa.select(_parts.content).where(mine)).scalar()


class DraftCounts(NamedTuple):
    """The drafts of an account that arrive, those that wait for a step, and the bytes of both."""

    arriving: int
    waiting: int
    size_bytes: int


def count_drafts(tx: Tx, account_id: int, *, silent_since: datetime) -> DraftCounts:
    """A draft that was applied counts as its file; one that has received nothing since `silent_since`
    does not count.
    """
    is_receiving = _d.state == DraftState.RECEIVING
    counted = (_d.state == DraftState.OPEN) | (is_receiving & (_d.changed_at >= silent_since))
    query = sa.select(
        sa.func.count().filter(is_receiving),
        sa.func.count().filter(~is_receiving),
        sa.func.coalesce(sa.func.sum(_d.size_bytes), 0),
    )
    found = tx.execute(query.where(_d.account_id == account_id, counted)).one()
    return DraftCounts(*map(int, found))


def unfinished_drafts(tx: Tx, account_id: int) -> list[int]:
    """The account's drafts, whose content may hold a member."""
    query = sa.select(_d.id).where(_d.account_id == account_id).order_by(_d.account_id, _d.id)
    return list(tx.execute(query).scalars())


def drafts_to_delete(tx: Tx, before: datetime, *, silent_since: datetime) -> Sequence[int]:
    """The drafts that were discarded, or were applied by a file that has ended, or whose last step
    was before this time, or whose content has broken off; without those that a file has still to read.
    """
    broken_off = (_d.state == DraftState.RECEIVING) & (_d.changed_at < silent_since)
    ended = _d.state.in_((DraftState.APPLIED, DraftState.DISCARDED))
    candidates = {
        *tx.execute(sa.select(_d.id).where(_d.changed_at < before)).scalars(),
        *tx.execute(sa.select(_d.id).where(ended)).scalars(),
        *tx.execute(sa.select(_d.id).where(broken_off)).scalars(),
    }
    files = eligibility_files.c
    read = sa.select(files.draft_id).where(
        files.draft_id.in_(sorted(candidates)), files.state.in_(_UNFINISHED)
    )
    return sorted(candidates - {*tx.execute(read).scalars()})


def applied_file(tx: Tx, draft_id: int, account_id: int) -> int | None:
    """The file as which the draft was applied, also if the draft is deleted; None without one."""
    files = eligibility_files.c
    query = sa.select(files.id, files.account_id, files.dry_run).where(files.draft_id == draft_id)
    found = tx.execute(query).all()  # by the draft alone: it has few files, its account has many
    applied = [each.id for each in found if each.account_id == account_id and not each.dry_run]
    return applied[0] if applied else None


def delete_some_of_draft(tx: Tx, draft_id: int) -> bool:
    """Delete some of the draft's parts, or else the draft; True if something of it is left."""
    mine = _parts.draft_id == draft_id
    numbers = sa.select(_parts.number).where(mine).order_by(_parts.number).limit(PARTS_TOGETHER)
    found = tx.execute(numbers).scalars().all()
    tx.execute(sa.delete(draft_parts).where(mine, _parts.number.in_(found)))
    if not found:
        tx.execute(sa.delete(file_drafts).where(_d.id == draft_id))
    return bool(found)


def _drafts(tx: Tx, query: sa.Executable) -> list[Draft]:
    return [Draft(**row) for row in tx.execute(query).mappings()]
