"""The SQL of disclosures."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, insert, select

from frontdesk.db import Tx
from frontdesk.disclosures.model import MOST_READ, Disclosure, KeptSearch, OpenedNames
from frontdesk.disclosures.tables import disclosures, opened_names, people_searches

_columns = disclosures.c


def list_of_member(tx: Tx, member_id: int, times: tuple[datetime, datetime]) -> list[Disclosure]:
    """The newest disclosures of the member in these times, newest first."""
    return _list(tx, _columns.member_id == member_id, times)


def list_by_actor(tx: Tx, actor: str, times: tuple[datetime, datetime]) -> list[Disclosure]:
    """The newest disclosures to the user in these times, newest first."""
    return _list(tx, _columns.actor == actor, times)


def _list(tx: Tx, mine: ColumnElement[bool], times: tuple[datetime, datetime]) -> list[Disclosure]:
    after, until = times
    query: Any = select(*_columns[Disclosure._fields]).where(
        mine, _columns.at > after, _columns.at <= until
    )
    rows = tx.execute(query.order_by(_columns.at.desc()).limit(MOST_READ))
    return [Disclosure(*row) for row in rows]


def add(tx: Tx, disclosure: Disclosure, times: tuple[datetime, datetime]) -> None:
    """Insert the disclosure, and delete up to 20 old ones outside the times, by the primary key. So
    the table stays small.
    """
    _delete_old(tx, disclosures, times)
    tx.execute(insert(disclosures).values(disclosure._asdict()))


def find_opened_names(
    tx: Tx, file_id: int, session_id: int, times: tuple[datetime, datetime]
) -> OpenedNames | None:
    """The newest opening of the file's names in the session in these times."""
    columns = opened_names.c
    after, until = times
    mine = (columns.file_id == file_id) & (columns.session_id == session_id)
    query: Any = select(*columns[OpenedNames._fields]).where(
        mine, columns.at > after, columns.at <= until
    )
    row = tx.execute(query.order_by(columns.at.desc()).limit(1)).first()
    return None if row is None else OpenedNames(*row)


def add_opened_names(tx: Tx, opened: OpenedNames, times: tuple[datetime, datetime]) -> None:
    """As `add`, for the names of a file."""
    _delete_old(tx, opened_names, times)
    tx.execute(insert(opened_names).values(opened._asdict()))


def _delete_old(tx: Tx, table: Table, times: tuple[datetime, datetime]) -> None:
    after, until = times
    columns = table.c
    oldest = select(columns.id).order_by(columns.id).limit(20)
    # Another process is already deleting locked rows, and waiting for it could be a deadlock.
    mine = columns.id.in_(oldest.with_for_update(skip_locked=True))
    over = (columns.at <= after) | (columns.at > until)
    tx.execute(delete(table).where(mine & over))


def add_search(tx: Tx, search: KeptSearch, *, before: datetime) -> None:
    """Insert the search, and delete up to 20 that are older than a time, by the primary key."""
    columns = people_searches.c
    oldest = select(columns.id).order_by(columns.id).limit(20)
    mine = columns.id.in_(oldest.with_for_update(skip_locked=True))
    tx.execute(delete(people_searches).where(mine & (columns.at <= before)))
    values = search._asdict() | {"member_ids": " ".join(map(str, search.member_ids))}
    tx.execute(insert(people_searches).values(values))


def list_search_times(tx: Tx, actor: str, times: tuple[datetime, datetime]) -> list[datetime]:
    """The times of the user's newest searches in these times, newest first."""
    columns = people_searches.c
    after, until = times
    mine = (columns.actor == actor, columns.at > after, columns.at <= until)
    query = select(columns.at).where(*mine).order_by(columns.at.desc()).limit(MOST_READ)
    return list(tx.execute(query).scalars())


def find_search(tx: Tx, number: str) -> KeptSearch | None:
    """The search with this number."""
    columns = people_searches.c
    query: Any = select(*columns[KeptSearch._fields]).where(columns.number == number)
    row = tx.execute(query).first()
    if row is None:
        return None
    found = KeptSearch(*row)
    return found._replace(member_ids=tuple(map(int, row.member_ids.split())))
