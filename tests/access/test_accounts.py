"""An API client's secrets while they are rotated, and the end of a client."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.access import accounts
from frontdesk.access.authentication import note_use, recognise_client
from frontdesk.access.callers import digest
from frontdesk.access.model import AccountState, NewClient, Scope
from frontdesk.access.store import caller_of
from frontdesk.db import Database
from frontdesk.errors import NotFound, Suspended
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import NOW, Customer, make_customer


class Client:
    """The customer's client."""

    def __init__(self, db: Database, clock: SetClock, customer: Customer) -> None:
        self.db = db
        self.clock = clock
        self.customer = customer
        self.id = customer.client_id
        self.first_secret = customer.client_secret

    def rotate(self, **options: Any) -> str:
        with self.db.write() as tx:
            return accounts.rotate_secret(tx, EVERY, self.id, now=self.clock(), **options)

    def let_in(self, *secrets: str) -> list[bool]:
        """Whether each of the secrets is a good one; it is used then."""
        answers = []
        now = self.clock()
        for secret in secrets:
            with self.db.write() as tx:
                found = recognise_client(tx, client_id=self.id, client_secret=secret, now=now)
                if found is not None:
                    note_use(tx, found, now=now)
            answers.append(found is not None)
        return answers

    def passes(self) -> bool:
        """Whether the customer's token is one that is looked up in the database."""
        return self.db.ask(caller_of(digest(self.customer.token)).read) is not None


@pytest.fixture
def client(db: Database, clock: SetClock, customer: Customer) -> Client:
    return Client(db, clock, customer)


def test_rotations_at_once_leave_two_secrets_alive(client: Client) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: client.rotate(), range(6)))
    secrets = client.db.ask(lambda tx: accounts.list_secrets(tx, EVERY, client.id))
    assert sum(secret.revoked_at is None for secret in secrets) == 2
    assert sum(client.let_in(*made)) == 2


def test_secrets_and_client_ids_are_made_from_256_and_128_random_bits(client: Client) -> None:
    made = {client.rotate() for _ in range(5)}
    assert {len(secret) for secret in made} == {43}
    assert len(made) == 5
    assert len(client.id) == 32


@pytest.mark.parametrize("client_id", ["", "nobody", "a\0b", "\udcff", "x" * 65])
def test_what_is_no_client_or_account_is_not_found(db: Database, client_id: str) -> None:
    with pytest.raises(NotFound), db.read() as tx:
        accounts.get_client(tx, EVERY, client_id)
    with pytest.raises(NotFound), db.write() as tx:
        accounts.rotate_secret(tx, EVERY, client_id, now=NOW)
    for state in (AccountState.SUSPENDED, AccountState.ACTIVE):
        with pytest.raises(NotFound), db.write() as tx:
            accounts.set_state(tx, 99, state, now=NOW)


def test_after_a_leak_only_the_new_secret_works_and_no_token(client: Client) -> None:
    secrets = [client.first_secret, client.rotate(), client.rotate(leaked=True)]
    assert client.let_in(*secrets) == [False, False, True]
    assert not client.passes()


def test_one_secret_can_be_ended_once_and_only_by_its_own_client(
    client: Client, db: Database
) -> None:
    other = make_customer(db, name="Other")
    new = client.rotate()
    _, first = db.ask(lambda tx: accounts.list_secrets(tx, EVERY, client.id))
    missing = pytest.raises(NotFound)
    found = nullcontext()
    for client_id, answer in ((other.client_id, missing), (client.id, found), (client.id, missing)):
        with answer, db.write() as tx:
            accounts.revoke_secret(tx, EVERY, client_id, first.id, now=NOW)
    assert client.let_in(client.first_secret, new) == [False, True]


def test_a_closed_account_stays_closed_and_gets_no_client(client: Client, db: Database) -> None:
    account_id = client.customer.account_id
    with db.write() as tx:
        accounts.set_state(tx, account_id, AccountState.CLOSED, now=NOW)
    assert not client.passes()
    assert client.let_in(client.first_secret) == [False]
    for state in (AccountState.SUSPENDED, AccountState.ACTIVE):
        with pytest.raises(Suspended), db.write() as tx:
            accounts.set_state(tx, account_id, state, now=NOW)
    with pytest.raises(Suspended), db.write() as tx:
        accounts.create_client(tx, NewClient(account_id, "Late", {Scope.CUSTOMER}), now=NOW)


def test_a_secret_ends_at_its_time_and_keeps_the_day_of_its_last_use(
    client: Client, clock: SetClock
) -> None:
    def days() -> list[str | None]:
        return [
            each.last_used_on
            for each in client.db.ask(lambda tx: accounts.list_secrets(tx, EVERY, client.id))
        ]

    new = client.rotate(expires_at=clock() + timedelta(days=1))
    assert days() == [None, None]
    assert client.let_in(client.first_secret, "wrong") == [True, False]
    assert days() == [None, "2026-11-20"]
    clock.advance(86_399)
    assert client.let_in(new) == [True]
    assert days() == ["2026-11-21", "2026-11-20"]
    clock.advance(1)
    assert client.let_in(new) == [False]
