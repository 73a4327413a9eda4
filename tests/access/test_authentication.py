"""Who is let in with a client_id and a secret, and how those who guess are slowed down."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from frontdesk.access import authentication
from frontdesk.access.authentication import Recognised, note_use, recognise_client, seconds_limited
from frontdesk.access.guessing import LONGEST_WINDOW
from frontdesk.access.tables import failed_attempts
from frontdesk.db import Database
from frontdesk.errors import RateLimited
from tests.conftest import SetClock
from tests.factories import Customer, make_customer

PER_CLIENT = authentication.FAILURES_PER_CLIENT_AND_ADDRESS
PER_ADDRESS = authentication.FAILURES_PER_ADDRESS
WINDOW = authentication.WINDOW_SECONDS
HERE = "192.0.2.1"
THERE = "198.51.100.7"


class Caller:
    """Somebody who tries client_ids, by default the customer's, and secrets from an address."""

    def __init__(self, db: Database, clock: SetClock, client_id: str) -> None:
        self.db = db
        self.clock = clock
        self.client_id = client_id

    def let_in(self, client_id: str, secret: str, address: str = HERE) -> Recognised | None:
        """Whether the pair is right. A wrong one is recorded, or refused unheard (RateLimited)."""
        now = self.clock()
        with self.db.write() as tx:
            found = recognise_client(tx, client_id=client_id, client_secret=secret, now=now)
            if found is None:
                authentication.record_failure(tx, client_id=client_id, address=address, now=now)
            else:
                note_use(tx, found, now=now)
        return found

    def is_paused(self, address: str = HERE) -> bool:
        """Whether the right secret waits a moment."""
        with self.db.read() as tx:
            return (
                seconds_limited(tx, client_id=self.client_id, address=address, now=self.clock()) > 0
            )

    def fail(self, times: int, *client_ids: str, address: str = HERE) -> None:
        tried = client_ids or (self.client_id,)
        for n in range(times):
            assert not self.let_in(tried[n % len(tried)], "wrong", address)

    def wait_seconds(self, client_id: str | None = None, *, address: str = HERE) -> int:
        """How long a further wrong secret is told to wait."""
        with pytest.raises(RateLimited) as limited:
            self.let_in(client_id or self.client_id, "wrong", address)
        return limited.value.retry_after_seconds


@pytest.fixture
def caller(db: Database, clock: SetClock, customer: Customer) -> Caller:
    return Caller(db, clock, customer.client_id)


def row_count(db: Database) -> int:
    return db.ask(
        lambda tx: int(tx.execute(select(func.count()).select_from(failed_attempts)).scalar_one())
    )


def test_unknown_clients_and_wrong_secrets_are_refused(caller: Caller, db: Database) -> None:
    for text in ("", "wrong", "nul\0", "\udcff", "пароль", "x" * 70_000, "' OR 1=1 --", "0" * 32):
        assert not caller.let_in(text, "a secret")
        assert not caller.let_in(caller.client_id, text)
    assert not caller.let_in(caller.client_id, make_customer(db, name="Other").client_secret)


def test_after_ten_failures_wrong_secrets_wait_until_the_oldest_is_five_minutes_old(
    caller: Caller,
) -> None:
    caller.fail(1)
    caller.clock.advance(100)
    caller.fail(PER_CLIENT - 1)
    assert caller.wait_seconds() == WINDOW - 100
    caller.clock.advance(WINDOW - 100 - 0.5)
    assert caller.wait_seconds() == 1
    caller.clock.advance(0.5)
    assert not caller.is_paused()
    caller.fail(1)
    assert caller.wait_seconds() == 100, (
        "the window slides: one more had room, the oldest now is of the 100th second"
    )


def test_an_ipv6_caller_is_known_by_its_network(caller: Caller) -> None:
    for n in range(PER_CLIENT):
        caller.fail(1, address=f"2001:db8:0:1:{n:x}::1")
    caller.wait_seconds(address="2001:db8:0:1:ffff::")
    assert not caller.is_paused("2001:db8:0:2::1")
    for address, known_as in ((f"::ffff:{THERE}", THERE), ("no IP address", "no IP address")):
        caller.fail(PER_CLIENT, address=address)
        caller.wait_seconds(address=known_as)


def test_guesses_that_are_sent_at_once_find_no_more_room_than_one_after_the_other(
    caller: Caller,
) -> None:
    def guess(_: int) -> bool:
        try:
            return not caller.let_in(caller.client_id, "wrong")
        except RateLimited:
            return False

    with ThreadPoolExecutor(8) as threads:
        tried = sum(threads.map(guess, range(40)))
    assert tried == PER_CLIENT


def test_what_no_longer_counts_is_cleared_away_by_later_failures(
    caller: Caller, db: Database
) -> None:
    for n in range(8):
        guessed = (f"guess-{n}", f"guess-{n}-b", f"guess-{n}-c")
        caller.fail(PER_ADDRESS, *guessed, address=f"203.0.113.{n}")
        caller.clock.advance(LONGEST_WINDOW.total_seconds() / 4)
    # Four rounds are less than an hour old, and one more may be half cleared away.
    assert row_count(db) <= 5 * 2 * PER_ADDRESS


def test_failures_elsewhere_or_of_another_client_lock_nobody_out(
    caller: Caller, db: Database
) -> None:
    for n in range(20):
        caller.fail(PER_CLIENT, address=f"203.0.113.{n}")
    caller.fail(PER_CLIENT, make_customer(db, name="Other").client_id)
    assert not caller.is_paused()


def test_an_address_that_tries_many_clients_is_stopped_for_all_of_them(
    caller: Caller, db: Database
) -> None:
    caller.fail(PER_CLIENT)
    caller.clock.advance(60)
    caller.fail(PER_ADDRESS - PER_CLIENT, *(f"guess-{n}" for n in range(20)))
    before = row_count(db)
    # After 240 s neither limit holds: the ten oldest failures count for both.
    for client_id in (None, *(f"another-{n}" for n in range(20))):
        assert caller.wait_seconds(client_id) == WINDOW - 60
    assert not caller.is_paused(THERE)
    assert row_count(db) == before <= 2 * PER_ADDRESS
    caller.clock.advance(WINDOW - 60)
    caller.fail(PER_CLIENT)
    assert caller.wait_seconds() == WINDOW


def test_a_clock_a_day_ahead_locks_nobody_out_and_one_by_seconds_counts(
    caller: Caller, db: Database
) -> None:
    caller.clock.advance(86_400)
    caller.fail(PER_CLIENT)
    caller.clock.advance(-86_400)
    assert not caller.is_paused()
    caller.clock.advance(3)
    caller.fail(PER_CLIENT)
    caller.clock.advance(-3)
    assert caller.wait_seconds() == WINDOW
    kept = db.ask(lambda tx: list(tx.execute(select(failed_attempts.c.subject_hash)).scalars()))
    assert [len(subject) for subject in kept] == [32] * 2 * PER_CLIENT  # hashes only


def test_the_right_secret_enters_and_pauses_where_others_failed(
    caller: Caller, customer: Customer
) -> None:
    for is_first, address, is_paused in (
        (True, HERE, False),
        (False, THERE, False),
        (False, HERE, True),
    ):
        found = caller.let_in(customer.client_id, customer.client_secret, address)
        assert found is not None
        assert (found.client.client_id, found.client.account_id) == (
            customer.client_id,
            customer.account_id,
        )
        assert (found.is_first_today, caller.is_paused(address)) == (is_first, is_paused)
        if is_first:
            assert row_count(caller.db) == 0
            caller.fail(PER_CLIENT)
