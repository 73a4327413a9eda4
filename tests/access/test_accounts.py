"""An API client's secrets while they are rotated, and the end of a client."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sqlalchemy import func, select

from frontdesk.access.accounts import create_client, get_client, revoke_client, rotate_secret
from frontdesk.access.authentication import authenticate_client
from frontdesk.access.model import Scope
from frontdesk.access.tables import client_secrets
from frontdesk.db import Database
from frontdesk.errors import NotFound
from tests.conftest import SetClock
from tests.factories import Customer


def let_in(db: Database, client_id: str, secret: str, now: datetime) -> bool:
    with db.write() as tx:
        found = authenticate_client(
            tx, client_id=client_id, client_secret=secret, address="192.0.2.1", now=now
        )
    return found is not None


def rotate(db: Database, client_id: str, now: datetime) -> str:
    with db.write() as tx:
        return rotate_secret(tx, client_id, now=now)


def test_during_a_rotation_the_two_newest_secrets_work_and_no_third(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    secrets = [customer.client_secret]
    alive = []
    for _ in range(3):
        secrets.append(rotate(db, customer.client_id, clock()))
        alive.append([let_in(db, customer.client_id, secret, clock()) for secret in secrets])
    assert alive == [[True, True], [False, True, True], [False, False, True, True]]


def test_rotations_at_once_leave_two_secrets_alive(db: Database, customer: Customer, clock: SetClock) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: rotate(db, customer.client_id, clock()), range(6)))
    live = select(func.count()).select_from(client_secrets).where(client_secrets.c.revoked_at.is_(None))
    assert db.ask(lambda tx: tx.execute(live).scalar()) == 2
    assert sum(let_in(db, customer.client_id, secret, clock()) for secret in made) == 2


def test_a_secret_made_for_one_client_is_another_clients_wrong_one(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        sibling, secret = create_client(
            tx,
            account_id=customer.account_id,
            name="Sibling",
            scopes=frozenset({Scope.CUSTOMER}),
            requests_per_minute=None,
            now=clock(),
        )
    assert let_in(db, sibling.client_id, secret, clock())
    assert not let_in(db, customer.client_id, secret, clock())


def test_secrets_and_client_ids_are_made_from_256_and_128_random_bits(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    made = {rotate(db, customer.client_id, clock()) for _ in range(5)}
    assert {len(secret) for secret in made} == {43}
    assert len(made) == 5
    assert len(customer.client_id) == 32


def test_a_revoked_client_gets_no_new_secret_and_stays_revoked_since_the_first_time(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        first = revoke_client(tx, customer.client_id, now=clock())
    clock.advance(60)
    with db.write() as tx:
        assert revoke_client(tx, customer.client_id, now=clock()) == first
    with pytest.raises(NotFound):
        rotate(db, customer.client_id, clock())


@pytest.mark.parametrize("client_id", ["", "nobody", "a\0b", "\udcff", "x" * 65])
def test_what_is_no_client_is_not_found(db: Database, clock: SetClock, client_id: str) -> None:
    with pytest.raises(NotFound), db.read() as tx:
        get_client(tx, client_id)
    with pytest.raises(NotFound):
        rotate(db, client_id, clock())
