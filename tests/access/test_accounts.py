"""An API client's secrets while they are rotated, and the end of a client."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, select

from frontdesk.access.accounts import (
    close_account,
    create_client,
    get_client,
    list_secrets,
    resume_account,
    revoke_secret,
    rotate_secret,
    suspend_account,
)
from frontdesk.access.authentication import note_use, recognise_client
from frontdesk.access.model import NewClient, Scope, digest
from frontdesk.access.store import caller_of
from frontdesk.access.tables import client_secrets
from frontdesk.db import Database
from frontdesk.errors import NotFound, Suspended
from tests.conftest import SetClock
from tests.factories import Customer, make_customer


def let_in(db: Database, client_id: str, secret: str, now: datetime) -> bool:
    with db.write() as tx:
        found = recognise_client(tx, client_id=client_id, client_secret=secret, now=now)
        if found is not None:
            note_use(tx, found, now=now)
    return found is not None


def rotate(db: Database, client_id: str, now: datetime) -> str:
    with db.write() as tx:
        return rotate_secret(tx, client_id, now=now)


def test_rotations_at_once_leave_two_secrets_alive(db: Database, customer: Customer, clock: SetClock) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: rotate(db, customer.client_id, clock()), range(6)))
    live = select(func.count()).select_from(client_secrets).where(client_secrets.c.revoked_at.is_(None))
    assert db.ask(lambda tx: tx.execute(live).scalar()) == 2
    assert sum(let_in(db, customer.client_id, secret, clock()) for secret in made) == 2


def test_secrets_and_client_ids_are_made_from_256_and_128_random_bits(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    made = {rotate(db, customer.client_id, clock()) for _ in range(5)}
    assert {len(secret) for secret in made} == {43}
    assert len(made) == 5
    assert len(customer.client_id) == 32


@pytest.mark.parametrize("client_id", ["", "nobody", "a\0b", "\udcff", "x" * 65])
def test_what_is_no_client_is_not_found(db: Database, clock: SetClock, client_id: str) -> None:
    with pytest.raises(NotFound), db.read() as tx:
        get_client(tx, client_id)
    with pytest.raises(NotFound):
        rotate(db, client_id, clock())


def test_after_a_leak_only_the_new_secret_works_and_no_token(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    before = rotate(db, customer.client_id, clock())
    with db.write() as tx:
        new = rotate_secret(tx, customer.client_id, now=clock(), leaked=True)
    secrets = (customer.client_secret, before, new)
    assert [let_in(db, customer.client_id, secret, clock()) for secret in secrets] == [False, False, True]
    assert not passes(db, customer.token)


def test_one_secret_can_be_ended_once_and_only_by_its_own_client(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    other = make_customer(db, name="Other")
    new = rotate(db, customer.client_id, clock())
    _, first = db.ask(lambda tx: list_secrets(tx, customer.client_id))
    for client_id, answer in (
        (other.client_id, pytest.raises(NotFound)),
        (customer.client_id, nullcontext()),
        (customer.client_id, pytest.raises(NotFound)),
    ):
        with answer, db.write() as tx:
            revoke_secret(tx, client_id, first.id, now=clock())
    secrets = (customer.client_secret, new)
    assert [let_in(db, customer.client_id, secret, clock()) for secret in secrets] == [False, True]


def test_a_secret_ends_at_its_time(db: Database, customer: Customer, clock: SetClock) -> None:
    with db.write() as tx:
        end = clock() + timedelta(days=1)
        secret = rotate_secret(tx, customer.client_id, now=clock(), expires_at=end)
    clock.advance(86_399)
    assert let_in(db, customer.client_id, secret, clock())
    clock.advance(1)
    assert not let_in(db, customer.client_id, secret, clock())


def test_a_secret_keeps_the_day_of_its_last_use(db: Database, customer: Customer, clock: SetClock) -> None:
    def days() -> list[str | None]:
        return [secret.last_used_on for secret in db.ask(lambda tx: list_secrets(tx, customer.client_id))]

    new = rotate(db, customer.client_id, clock())
    assert days() == [None, None]
    let_in(db, customer.client_id, customer.client_secret, clock())
    let_in(db, customer.client_id, "wrong", clock())
    assert days() == [None, "2026-11-20"]
    clock.advance(86_400)
    let_in(db, customer.client_id, new, clock())
    assert days() == ["2026-11-21", "2026-11-20"]


def test_a_closed_account_stays_closed_and_gets_no_client(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        close_account(tx, customer.account_id, now=clock())
    assert not passes(db, customer.token)
    assert not let_in(db, customer.client_id, customer.client_secret, clock())
    for change in (suspend_account, resume_account):
        with pytest.raises(Suspended), db.write() as tx:
            change(tx, customer.account_id)
    with pytest.raises(Suspended), db.write() as tx:
        create_client(tx, NewClient(customer.account_id, "Late", {Scope.CUSTOMER}), now=clock())


def passes(db: Database, token: str) -> bool:
    """Whether the token is one that is looked up in the database."""
    look_up = caller_of(digest(token))
    return db.ask(look_up.read) is not None
