"""Checking a bearer token: from memory for five seconds, never longer than it lives."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from frontdesk.access import callers
from frontdesk.access.accounts import get_client, revoke_client
from frontdesk.access.authentication import recognise_client
from frontdesk.access.callers import LIFETIME_SECONDS, TokenCheck, digest, issue_token, revoke_token
from frontdesk.access.model import AccountState, Caller, Scope
from frontdesk.access.store import caller_of
from frontdesk.access.tables import access_tokens
from frontdesk.db import Database
from frontdesk.errors import Unauthorized
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import EVERY_SCOPE, NOW, Customer

END = NOW + timedelta(seconds=LIFETIME_SECONDS)
CALLER = Caller(1, "c", 1, None, frozenset(), END, AccountState.ACTIVE, None)


class Tokens:
    """A TokenCheck over a database of one's own making: `known` by token; `during` runs while a
    look-up is under way.
    """

    def __init__(self) -> None:
        self.known: dict[str, Caller] = {"token": CALLER}
        self.asked = 0
        self.seconds = 1000.0
        self.clock = SetClock(NOW)
        self.during: Callable[[], None] = lambda: None
        self.check = TokenCheck(self._look_up, self.clock)

    def passes(self, token: str = "token") -> bool:
        try:
            asyncio.run(self.check.check(token))
        except Unauthorized:
            return False
        return True

    async def _look_up(self, token_hash: bytes) -> Caller | None:
        self.asked += 1
        found = {digest(token): caller for token, caller in self.known.items()}.get(token_hash)
        self.during()
        return found


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Tokens:
    tokens = Tokens()
    monkeypatch.setattr("frontdesk.access.callers.monotonic", lambda: tokens.seconds)
    return tokens


def test_a_remembered_token_ends_on_the_second_that_it_expires(tokens: Tokens) -> None:
    assert tokens.passes()
    tokens.clock.advance(LIFETIME_SECONDS - 0.001)
    assert tokens.passes()
    tokens.clock.advance(0.001)
    assert not tokens.passes()
    tokens.known["new"] = CALLER
    assert not tokens.passes("new")


def test_a_look_up_that_began_before_a_revocation_is_not_remembered(tokens: Tokens) -> None:
    def revoke() -> None:
        tokens.known.pop("token", None)
        tokens.check.forget("token")

    tokens.during = revoke
    assert tokens.passes()  # asked before the revocation, so either answer is right
    assert not tokens.passes()


def test_no_more_than_ten_thousand_tokens_are_remembered() -> None:
    async def look_up(_: bytes) -> Caller:
        return CALLER

    async def check_many() -> None:
        for n in range(callers.CACHE_SIZE + 1):
            await check.check(f"token-{n}")

    check = TokenCheck(look_up, SetClock(NOW))
    asyncio.run(check_many())
    assert len(check._seen) == callers.CACHE_SIZE
    assert digest("token-0") not in check._seen


def test_an_issued_token_names_its_account_client_and_scopes_for_two_hours(
    db: Database, customer: Customer
) -> None:
    caller = db.ask(caller_of(digest(customer.token)).read)
    assert caller is not None
    assert (caller.account_id, caller.client_id) == (customer.account_id, customer.client_id)
    by_name = EVERY_SCOPE - {Scope.CUSTOMER}
    assert caller.scopes == set(Scope) - {Scope.OPERATOR} - by_name
    assert caller.expires_at == NOW + timedelta(seconds=7200)


def test_only_a_tokens_hash_is_stored(db: Database, customer: Customer) -> None:
    with db.read() as tx:
        [row] = tx.execute(access_tokens.select()).mappings()
    assert bytes(row["token_hash"]) == digest(customer.token)
    assert customer.token not in str(dict(row))


def test_a_revoked_clients_tokens_are_worthless(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        client = get_client(tx, EVERY, customer.client_id)
        revoke_client(tx, EVERY, customer.client_id, now=clock())
        token = issue_token(tx, client, client.scopes, now=clock())
    for each in (customer.token, token):
        assert db.ask(caller_of(digest(each)).read) is None
    own = {"client_id": customer.client_id, "client_secret": customer.client_secret}
    assert db.ask(lambda tx: recognise_client(tx, **own, now=clock())) is None


def test_a_token_is_looked_up_again_five_seconds_after_a_look_up_began(tokens: Tokens) -> None:
    def slow() -> None:
        tokens.seconds += 4

    tokens.during = slow
    assert tokens.passes()
    tokens.seconds += 0.99
    assert (tokens.passes(), tokens.asked) == (True, 1)
    tokens.seconds += 0.01
    assert (tokens.passes(), tokens.asked) == (True, 2)
    assert not tokens.passes("new")
    tokens.known["new"] = CALLER  # an unknown token is not remembered
    assert tokens.passes("new")


def test_a_client_has_a_thousand_tokens_at_most(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        client = get_client(tx, EVERY, customer.client_id)
        tokens = [customer.token]
        for _ in range(callers.LIVE_TOKENS):
            clock.advance(1)
            assert revoke_token(tx, client, issue_token(tx, client, client.scopes, now=clock()))
            tokens.append(issue_token(tx, client, client.scopes, now=clock()))
        assert len(tx.execute(access_tokens.select()).all()) == callers.LIVE_TOKENS
    alive = [db.ask(caller_of(digest(token)).read) is not None for token in tokens]
    assert alive == [False] + [True] * callers.LIVE_TOKENS
    clock.advance(LIFETIME_SECONDS + 1)
    with db.write() as tx:
        issue_token(tx, client, client.scopes, now=clock())
        assert len(tx.execute(access_tokens.select()).all()) == 1


def test_while_the_database_is_away_a_token_of_lately_is_known_until_it_expires(
    tokens: Tokens,
) -> None:
    tokens.known["other"] = CALLER
    assert tokens.check.good_lately("token") is None  # never seen
    assert tokens.passes()
    tokens.seconds += callers.LATELY_SECONDS
    assert tokens.passes("other")  # the last answer of the database
    tokens.seconds += 3600
    assert tokens.check.good_lately("token") == tokens.check.good_lately("other") == CALLER
    assert tokens.passes("other")  # the database answers, and may have lost the token since
    assert tokens.check.good_lately("token") is None
    tokens.clock.advance(LIFETIME_SECONDS)
    assert tokens.check.good_lately("other") is None
    tokens.clock.advance(-LIFETIME_SECONDS)
    tokens.check.forget("other")
    assert tokens.check.good_lately("other") is None
