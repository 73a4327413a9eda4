"""An account that has stored as many bytes as it may in a day is refused until the next day, and
others are not.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, timedelta
from unittest.mock import patch

import orjson
import pytest

from frontdesk import usage
from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.db import Database
from frontdesk.db.engine import database_time
from frontdesk.eligibility import find_members
from frontdesk.errors import Unavailable
from frontdesk.files.model import EligibilityFile
from frontdesk.files.run import run_next
from frontdesk.reach import EVERY
from frontdesk.usage import change_quota, list_usage
from frontdesk.usage.model import Usage
from frontdesk.usage.store import add_usage
from tests.api.conftest import codes
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, member_body, second_token
from tests.files.families import load_all, relative
from tests.files.loading import Desk, csv_of, lines_of, row


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def limit(db: Database, account_id: int, **bytes_per_day: int) -> None:
    with db.write() as tx:
        change_quota(tx, account_id, **bytes_per_day)


def test_an_account_at_its_quota_is_refused_until_tomorrow_and_others_are_not(
    api: Api, app: App, db: Database, customer: Customer, path: str, clock: SetClock
) -> None:
    limit(db, customer.account_id, stored_bytes_per_day=10)
    assert api.post(path, member_body(1)).status_code == 201
    app.usage.save(db, clock())
    refused = [
        api.post(path, member_body(2)),
        api.post(path + "/batch", [member_body(2)]),
        api.post(path + "-files", content=csv_of([row(1)]), headers={"Content-Type": "text/csv"}),
    ]
    for answer in refused:
        assert (answer.status_code, codes(answer)) == (429, {"body": "storage_used_up"})
        assert 0 < int(answer.headers["Retry-After"]) <= 24 * 3600
    theirs = make_customer(db, name="Other")
    other = f"/v2/plans/{theirs.plan_ids[0]}/eligibility"
    assert api.as_(theirs.token).post(other, member_body(3)).status_code == 201
    limit(db, customer.account_id, stored_bytes_per_day=10**9)
    app.usage.save(db, clock())
    assert api.post(path, member_body(2)).status_code == 201


def test_the_next_day_an_account_may_write_again(
    app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    limit(db, customer.account_id, stored_bytes_per_day=10)
    app.usage.save(db, clock())
    app.usage.refuse_used_up(customer.account_id, clock() + timedelta(days=1))


def test_history_answers_and_files_are_counted_by_account(
    api: Api, app: App, db: Database, customer: Customer, path: str, clock: SetClock
) -> None:
    large = member_body(1, metadata={f"note-{n}": "x" * 250 for n in range(20)})
    api.post(path, large, headers={"Idempotency-Key": "one"})
    content = csv_of([row(1)])
    api.post(path + "-files", content=content, headers={"Content-Type": "text/csv"})
    app.usage.save(db, clock())
    usage = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))[customer.account_id]
    assert 5000 < usage.today.history_bytes < 7000
    assert usage.today.answer_bytes > 5000
    assert usage.today.file_bytes == len(content)
    assert usage.kept == usage.today


def use(db: Database, account_id: int, stored_bytes: int) -> None:
    """Let the account have stored so many bytes today, by the database's clock."""
    with db.write() as tx:
        day = database_time(tx).astimezone(UTC).date().isoformat()
        add_usage(tx, day, {account_id: Usage(history_bytes=stored_bytes)})


def state(file: EligibilityFile) -> tuple[str, str | None]:
    return file.state.value, file.problem["code"] if file.problem else None


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    return Desk(db, customer, clock)


def test_a_file_that_waits_is_begun_when_its_account_has_storage_left(
    desk: Desk, db: Database, customer: Customer
) -> None:
    """Files that were accepted before the quota was used up: up to a hundred, and 4 GiB."""
    limit(db, customer.account_id, stored_bytes_per_day=100_000)
    file = desk.hand_in(csv_of([row(1)]))
    use(db, customer.account_id, 100_000)
    theirs = Desk(db, make_customer(db, name="Other"), desk.clock)
    other = theirs.hand_in(csv_of([row(2)]))
    while desk.work_on_any():
        pass
    assert (state(desk.reread(file)), state(desk.reread(other))) == (
        ("waiting", None),
        ("done", None),
    )
    limit(db, customer.account_id, stored_bytes_per_day=200_000)
    assert desk.work_on_any()
    assert state(desk.reread(file)) == ("done", None)


def test_an_undo_waits_as_a_file_does(desk: Desk, db: Database, customer: Customer) -> None:
    undo = desk.hand_in_undo(desk.load(csv_of([row(1)])))
    limit(db, customer.account_id, stored_bytes_per_day=10)
    use(db, customer.account_id, 10)
    assert not desk.work_on_any()
    assert state(desk.reread(undo)) == ("waiting", None)


def test_a_file_that_was_begun_is_loaded_to_its_end(
    desk: Desk, db: Database, customer: Customer
) -> None:
    file = desk.hand_in(csv_of([row(n) for n in range(20)]))

    def has_begun() -> bool:
        return desk.reread(file).rows_done > 0

    assert run_next(db, desk.clock, replace(desk.options, chunk_rows=5, should_stop=has_begun))
    begun = desk.reread(file)
    assert (state(begun), 0 < begun.rows_done < 20) == (("waiting", None), True)
    limit(db, customer.account_id, stored_bytes_per_day=10)
    use(db, customer.account_id, 10)
    assert desk.work_on_any()
    ended = desk.reread(file)
    assert (state(ended), ended.counts) == (("done", None), {"created": 20})


def test_a_file_of_more_rows_than_an_account_may_store_fails_before_its_first_row(
    desk: Desk, db: Database, customer: Customer
) -> None:
    """A row of three bytes stores 1.5 KiB of faults: a file of one GiB would store 500 GiB."""
    limit(db, customer.account_id, stored_bytes_per_day=10 * 1024)
    file = desk.load(lines_of([row(1)]) + b"{}\n" * 10)
    assert (state(file), file.rows_done) == (("failed", "too_many_rows"), 0)
    assert db.ask(lambda tx: find_members(tx, EVERY, "E00001")) == []
    assert desk.load(lines_of([row(1)]) + b"{}\n" * 9).counts == {"created": 1, "refused": 9}


def test_unchanged_families_of_an_834_do_not_count_as_rows_to_store(
    desk: Desk, db: Database, customer: Customer
) -> None:
    families = [relative(family, 1) for family in range(3)]
    assert load_all(desk, families).counts == {"created": 3}
    limit(db, customer.account_id, stored_bytes_per_day=1024)
    assert load_all(desk, families).counts == {"unchanged": 3}
    changed = [family.replace("Boston", "Salem") for family in families]
    assert state(load_all(desk, changed)) == ("failed", "too_many_rows")


def test_the_warnings_of_a_file_are_counted(
    desk: Desk, db: Database, customer: Customer, clock: SetClock
) -> None:
    def counted() -> int:
        usage.counter_of(db.engine).save(db, clock())
        found = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))
        return found[customer.account_id].today.history_bytes

    unusable = dict.fromkeys(
        ("email", "phone", "medical_eligibility", "subscriber_relationship"), "x"
    )
    content = lines_of([row(n) | unusable for n in range(50)])
    desk.load(content)
    before = counted()
    file = desk.load(content)
    assert file.counts == {"unchanged": 50, "warned": 50}
    with db.read() as tx:
        query = f"SELECT warnings FROM file_rows WHERE file_id = {file.id}"  # noqa: S608
        found = tx.exec_driver_sql(query).scalars().all()
    texts = [each if isinstance(each, str) else orjson.dumps(each) for each in found]
    assert counted() - before > sum(map(len, texts)) > 10_000


def test_reads_of_members_are_counted_and_end_at_twice_the_quota(
    api: Api, app: App, db: Database, customer: Customer, path: str, clock: SetClock
) -> None:
    """Each leaves an entry of the audit trail: 300,000 in a minute would be 100 GB in a day."""
    reader = api.as_(second_token(db, customer.account_id, Scope.ELIGIBILITY_READ))
    member = api.post(path, member_body(1)).json()["id"]
    page = f"{path}/{member}"
    app.usage.save(db, clock())
    before = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))[
        customer.account_id
    ].today
    for _ in range(10):
        assert reader.get(page).status_code == 200
    app.usage.save(db, clock())
    after = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))[customer.account_id].today
    assert 2500 <= after.history_bytes - before.history_bytes < 5000
    limit(db, customer.account_id, stored_bytes_per_day=after.history_bytes * 2 // 3)
    app.usage.save(db, clock())
    assert api.post(path, member_body(2)).status_code == 429
    assert reader.get(page).status_code == 200
    limit(db, customer.account_id, stored_bytes_per_day=after.history_bytes // 2)
    app.usage.save(db, clock())
    for answer in (reader.get(page), reader.get(f"{page}/history"), reader.get(path)):
        assert (answer.status_code, codes(answer)) == (429, {"body": "storage_used_up"})
    assert api.get("/v2/plans").status_code == 200


def test_changes_of_plans_and_mappings_end_at_twice_the_quota(
    api: Api, app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    def change() -> list[int]:
        plan = api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "Gold"})
        mapping = api.request("PUT", "/v2/eligibility-mappings/one", json={"columns": {}})
        return [plan.status_code, mapping.status_code]

    assert change() == [200, 201]
    limit(db, customer.account_id, stored_bytes_per_day=10)
    app.usage.save(db, clock())
    assert change() == [429, 429]


def test_what_could_not_be_stored_is_counted_the_next_time(
    app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    usage.count(app.db.engine, customer.account_id, history=77)
    for error in (Unavailable("The database is away."), RuntimeError("a fault of the program")):
        with (
            patch("frontdesk.usage.counter.write_alone", side_effect=error),
            suppress(RuntimeError),
        ):
            app.usage.save(db, clock())
    app.usage.save(db, clock())
    found = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))
    assert found[customer.account_id].today == Usage(history_bytes=77)


def test_what_the_last_request_has_added_is_stored_without_another_request(
    app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    async def write_once() -> None:
        app.refuse_used_up_trail(customer.account_id)
        usage.count(app.db.engine, customer.account_id, history=77)
        for _ in range(200):
            await asyncio.sleep(0.02)
            if db.ask(lambda tx: list_usage(tx, clock().date().isoformat())):
                return

    with (
        patch("frontdesk.app.SAVE_SECONDS", -0.95),
        patch("frontdesk.usage.counter.SAVE_SECONDS", 3600.0),
    ):
        asyncio.run(write_once())
    found = db.ask(lambda tx: list_usage(tx, clock().date().isoformat()))
    assert found[customer.account_id].today == Usage(history_bytes=77)
