"""A file's rows are known by the file's id. No request id that a caller sends makes a POST look like one of them."""

from typing import Any

from sqlalchemy import text

from frontdesk.clock import stored_time
from frontdesk.db import Database, migrate
from tests.conftest import Api, SetClock
from tests.files.loading import Desk, csv_of, row


def post_as_file(api: Api, desk: Desk, number: int, **changes: Any) -> None:
    body = {"external_id": f"E{number:05d}"} | changes
    answer = api.post(
        f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility", body, headers={"X-Request-ID": "file-1"}
    )
    assert answer.status_code in (200, 201)


def test_an_undo_takes_back_no_post_that_was_sent_under_the_files_name(api: Api, desk: Desk) -> None:
    file = desk.load(csv_of([row(1), row(2)]))
    post_as_file(api, desk, 1, last_name="Posted")
    undo = desk.undo(file)
    assert undo.counts == {"withdrawn": 1, "refused": 1}
    assert (2, "refused", "changed_since") in desk.outcomes(undo)
    assert {key: member["last_name"] for key, member in desk.members().items()} == {"E00001": "Posted"}


def test_history_that_named_files_by_request_id_names_them_by_id_after_the_migration(
    api: Api, desk: Desk, owner: Database, clock: SetClock
) -> None:
    file = desk.load(csv_of([row(1), row(2), row(3)]))
    clock.advance(1)
    post_as_file(api, desk, 2, last_name="Posted")
    desk.load(csv_of([row(3, last_name="Later")]))
    posted = history(desk.db)
    migrate.downgrade(owner, "0010")
    with desk.db.read() as tx:
        old = tx.execute(text("SELECT request_id FROM member_history ORDER BY id")).scalars().all()
    assert old == ["file-1", "file-1", "file-1", "file-1", "file-2"]
    assert migrate.upgrade(owner)[0] == "0011"
    assert history(desk.db) == posted
    assert [entry[1] for entry in posted] == [1, 1, 1, None, 2]
    assert desk.undo(file).counts == {"withdrawn": 1, "refused": 2}


def history(db: Database) -> list[tuple[Any, ...]]:
    query = text("SELECT member_id, file_id, request_id, changes, changed_at FROM member_history ORDER BY id")
    with db.read() as tx:
        return [tuple(entry) for entry in tx.execute(query)]


def test_a_long_history_is_converted_in_batches(desk: Desk, owner: Database, clock: SetClock) -> None:
    """Rows on both sides of every border between two batches, and rows that name a file that never was."""
    file = desk.load(csv_of([row(1)]))
    migrate.downgrade(owner, "0010")
    borders = [1, 19_999, 20_000, 20_001, 40_000, 40_001]
    add = text(
        "INSERT INTO member_history (id, member_id, outcome, plan_id, changes, client, request_id, changed_at)"
        " VALUES (:id, 1, 'updated', 1, '{}', 'client-1', :request_id, :at)"
    )
    at = stored_time(clock()) if desk.db.is_sqlite else clock()
    with desk.db.write() as tx:
        rows = [(number, "file-1") for number in borders[1:]] + [(50_000, "file-7"), (50_001, "file-01")]
        tx.execute(add, [{"id": id_, "request_id": key, "at": at} for id_, key in rows])
    migrate.upgrade(owner)
    with desk.db.read() as tx:
        named = text("SELECT id, request_id FROM member_history WHERE file_id = :id ORDER BY id")
        assert [tuple(entry) for entry in tx.execute(named, {"id": file.id})] == [
            (id_, "request-1") for id_ in borders
        ]
        left = text("SELECT request_id FROM member_history WHERE file_id IS NULL ORDER BY id")
        assert tx.execute(left).scalars().all() == ["file-7", "file-01"]
