"""The SQL of erasures and exports that wait for a worker."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from frontdesk.audit.model import Requester
from frontdesk.db import Tx
from frontdesk.privacy.model import ErasureRequest, ExportRequest, Person, Places
from frontdesk.privacy.tables import erasure_requests, export_requests


def list_erasure_requests(
    tx: Tx, *, account_id: int | None = None, member_id: int | None = None
) -> list[ErasureRequest]:
    """The oldest first."""
    columns = erasure_requests.c
    query = select(erasure_requests).order_by(columns.asked_at, columns.member_id)
    if account_id is not None:
        query = query.where(columns.account_id == account_id)
    if member_id is not None:
        query = query.where(columns.member_id == member_id)
    return [
        ErasureRequest(
            Person(row.member_id, row.account_id),
            Requester(row.actor, row.request_id, row.asked_at, row.network),
        )
        for row in tx.execute(query)
    ]


def insert_erasure_request(tx: Tx, request: ErasureRequest) -> None:
    values = request.person._asdict() | request.requester._asdict()
    values["asked_at"] = values.pop("now")
    tx.execute(insert(erasure_requests).values(values))


def delete_erasure_requests(tx: Tx, member_ids: Collection[int]) -> int:
    """How many there were."""
    mine = erasure_requests.c.member_id.in_(sorted(member_ids))
    return tx.execute(delete(erasure_requests).where(mine)).rowcount


def find_export_request(tx: Tx, member_id: int) -> ExportRequest | None:
    row = tx.execute(select(export_requests).where(export_requests.c.member_id == member_id)).first()
    if row is None:
        return None
    places = None
    if row.places is not None:
        parts, entry_ids = row.places
        places = Places([(file_id, number) for file_id, number in parts], entry_ids)
    return ExportRequest(Person(row.member_id, row.account_id), row.asked_at, places)


def list_export_requests(tx: Tx) -> list[tuple[Person, datetime | None]]:
    """The members, in the order in which they were asked for, and when their places were found."""
    columns = export_requests.c
    query = select(columns.member_id, columns.account_id, columns.found_at)
    in_order = query.order_by(columns.asked_at, columns.member_id)
    return [(Person(row.member_id, row.account_id), row.found_at) for row in tx.execute(in_order)]


def insert_export_request(tx: Tx, request: ExportRequest) -> None:
    tx.execute(insert(export_requests).values(request.person._asdict() | {"asked_at": request.asked_at}))


def set_places(tx: Tx, member_id: int, places: Places, now: datetime) -> None:
    """Store the places, unless another worker has, or the request is gone."""
    mine = (export_requests.c.member_id == member_id) & export_requests.c.found_at.is_(None)
    tx.execute(update(export_requests).where(mine).values(places=places, found_at=now))


def delete_export_requests(tx: Tx, member_ids: Collection[int]) -> None:
    tx.execute(delete(export_requests).where(export_requests.c.member_id.in_(sorted(member_ids))))


def delete_places(tx: Tx, *, found_before: datetime) -> None:
    tx.execute(delete(export_requests).where(export_requests.c.found_at < found_before))
