"""The SQL of a reset: an account's files, members and suppressed addresses, some at a time."""

from collections.abc import Collection

import sqlalchemy as sa

from frontdesk.db import Tx
from frontdesk.eligibility.tables import members
from frontdesk.files.model import DraftState, FileState
from frontdesk.files.tables import (
    eligibility_files,
    file_drafts,
    file_lists,
    file_parts,
    file_rows,
    file_unchanged,
)
from frontdesk.idempotency.tables import stored_answers
from frontdesk.invitations.tables import invitations, suppressions
from frontdesk.privacy.model import Person

WINDOW = 1000  # members that a transaction reads
ERASED_TOGETHER = 50  # SQLite has one writer, for which other writes wait
CHUNKS = 5  # of a report that a transaction deletes


def delete_answers(tx: Tx, account_id: int) -> None:
    tx.execute(sa.delete(stored_answers).where(stored_answers.c.account_id == account_id))


def unended_files(tx: Tx, account_id: int) -> list[int]:
    """The files that wait, run or are held."""
    columns = eligibility_files.c
    states = (FileState.WAITING, FileState.RUNNING, FileState.HELD)
    query = sa.select(columns.id).where(columns.account_id == account_id, columns.state.in_(states))
    return list(tx.execute(query.order_by(columns.id)).scalars())


def discard_drafts(tx: Tx, account_id: int) -> None:
    """End the account's uploads by steps; a worker deletes them with their content."""
    columns = file_drafts.c
    mine = sa.update(file_drafts).where(columns.account_id == account_id)
    tx.execute(mine.values(state=DraftState.DISCARDED, version=columns.version + 1))


def file_before(tx: Tx, account_id: int, before_id: int) -> tuple[int, FileState] | None:
    """The account's newest file with an id below this one."""
    columns = eligibility_files.c
    mine = (columns.account_id == account_id) & (columns.id < before_id)
    query = sa.select(columns.id, columns.state).where(mine).order_by(columns.id.desc()).limit(1)
    row = tx.execute(query).first()
    return row and (row.id, row.state)


def delete_some_of_file(tx: Tx, file_id: int) -> bool:
    """Delete chunks of the file's report, or else the file. True if the file is gone. A part of its
    content is deleted with each call.
    """
    deleted = 0
    for table, column in ((file_rows, "chunk"), (file_unchanged, "chunk"), (file_parts, "number")):
        for _ in range(CHUNKS):
            first = tx.execute(
                sa.select(sa.func.min(table.c[column])).where(table.c.file_id == file_id)
            ).scalar()
            if first is None:
                break
            mine = (table.c.file_id == file_id) & (table.c[column] == first)
            deleted += tx.execute(sa.delete(table).where(mine)).rowcount
    if deleted:
        return False
    tx.execute(sa.delete(file_lists).where(file_lists.c.file_id == file_id))
    tx.execute(sa.delete(eligibility_files).where(eligibility_files.c.id == file_id))
    return True


def members_after(tx: Tx, plan_id: int, after_id: int) -> tuple[list[Person], int | None]:
    """Members of the plan after this id that are not erased, in id order; and the id for the next
    call, None at the end.
    """
    columns = members.c
    # A range of the index in its own order (eligibility.store.list_ids_under).
    if tx.dialect.name == "sqlite":
        place = (columns.plan_id == plan_id) & (columns.id > after_id)
    else:
        from_here = sa.tuple_(columns.plan_id, columns.id) > sa.tuple_(plan_id, after_id)
        place = from_here & (columns.plan_id <= plan_id)
    query = sa.select(columns.id, columns.account_id, columns.external_id).where(place)
    rows = tx.execute(query.order_by(columns.plan_id, columns.id).limit(WINDOW)).all()
    stored = [Person(row.id, row.account_id) for row in rows if row.external_id]
    if len(stored) > ERASED_TOGETHER:
        return stored[:ERASED_TOGETHER], stored[ERASED_TOGETHER - 1].member_id
    return stored, rows[-1].id if rows else None


def delete_suppressions(tx: Tx, account_id: int, member_ids: Collection[int]) -> None:
    """Allow the account to mail the addresses again that its own mail to these members has
    suppressed.
    """
    columns = invitations.c
    mailed = sa.select(columns.address_folded).where(columns.member_id.in_(sorted(member_ids)))
    addresses = {address for address in tx.execute(mailed).scalars() if address}
    mine = suppressions.c.address_folded.in_(sorted(addresses)) & (
        suppressions.c.account_id == account_id
    )
    tx.execute(sa.delete(suppressions).where(mine))
