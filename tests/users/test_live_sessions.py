"""Sessions of pages that refresh themselves: read for all viewers together, and what ends them."""

import asyncio
from collections.abc import Callable

import pytest

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.db import Tx
from frontdesk.reach import EVERY
from frontdesk.users import directory, factors, sessions
from frontdesk.users.live_sessions import LiveSessions
from frontdesk.users.model import IDLE, Role
from tests.db.statements import statements
from tests.users.conftest import KEY, PASSWORD, Desk, Person

FROM_SESSIONS = "FROM sessions"


def found_of(live: LiveSessions, *secrets: str) -> list[bool]:
    """Which of them get a refresh, one after the other."""

    async def ask() -> list[bool]:
        return [(live.in_memory(each) or await live.find(each)) is not None for each in secrets]

    return asyncio.run(ask())


def test_the_sessions_of_all_viewers_are_read_by_one_statement_in_five_seconds(desk: Desk) -> None:
    people = [desk.join(f"viewer-{number}@example.org") for number in range(3)]
    secrets = [person.sessions[0] for person in people]
    live = desk.live_sessions()
    assert found_of(live, *secrets) == [True] * 3
    for _ in range(3):
        desk.clock.advance(4.9)
        with statements(desk.db, FROM_SESSIONS) as read:
            assert found_of(live, *secrets) == [True] * 3
        assert read == []
        desk.clock.advance(0.1)
        with statements(desk.db, FROM_SESSIONS) as read:
            assert found_of(live, *secrets) == [True] * 3
        assert len(read) == 1


def test_viewers_that_come_while_it_is_read_need_no_statement(desk: Desk) -> None:
    secrets = [desk.join(f"viewer-{number}@example.org").sessions[0] for number in range(3)]
    live = desk.live_sessions()

    async def ask_together() -> int:
        found = await asyncio.gather(*map(live.find, secrets))
        return sum(session is not None for session in found)

    assert found_of(live, *secrets) == [True] * 3
    desk.clock.advance(5)
    with statements(desk.db, FROM_SESSIONS) as read:
        assert asyncio.run(ask_together()) == 3
    assert len(read) == 1


def test_the_session_of_a_viewer_who_has_gone_is_not_read_again(desk: Desk) -> None:
    gone, stays = (desk.join(f"{name}@example.org").sessions[0] for name in ("ana", "tom"))
    live = desk.live_sessions()
    assert found_of(live, gone, stays) == [True, True]
    for _ in range(2):
        desk.clock.advance(5)
        assert found_of(live, stays) == [True]
    desk.clock.advance(5)
    with statements(desk.db, FROM_SESSIONS) as read:
        assert found_of(live, stays) == [True]
    [(_, parameters)] = read
    assert len(parameters) == 1


def _change_roles(desk: Desk, person: Person) -> None:
    with desk.db.write() as tx:
        directory.change_roles(tx, EVERY, person.user.id, {Role.VIEWER}, desk.requester())


def _change_password(desk: Desk, person: Person) -> None:
    secret = desk.sign_in(person).secret
    new = "another-horse-and-cart"
    sessions.change_password(desk.db, desk.visitor(), session=secret, present=PASSWORD, new=new)


def _change_factor(desk: Desk, person: Person) -> None:
    secret = desk.sign_in(person).secret
    with desk.db.write() as tx:
        factors.offer_factor(tx, desk.live(secret), desk.requester(person.user.actor))
    code = desk.code(desk.seed(person.user.id))
    sessions.change_factor(desk.db, desk.visitor(), KEY, session=secret, code=code)


def _remove_factor(desk: Desk, person: Person) -> None:
    with desk.db.write() as tx:
        directory.remove_factor(tx, EVERY, person.user.id, desk.requester())


def _end_user(desk: Desk, person: Person) -> None:
    with desk.db.write() as tx:
        directory.end_user(tx, EVERY, person.user.id, desk.requester())


def _end_sessions(desk: Desk, person: Person) -> None:
    with desk.db.write() as tx:
        sessions.end_sessions(tx, EVERY, person.user.id, desk.requester())


def _suspend_account(desk: Desk, person: Person) -> None:
    with desk.db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=desk.clock())


@pytest.mark.parametrize(
    "change",
    [
        _change_roles,
        _change_password,
        _change_factor,
        _remove_factor,
        _end_user,
        _end_sessions,
        _suspend_account,
    ],
)
def test_what_ends_a_session_ends_its_refreshes_within_five_seconds(
    desk: Desk, change: Callable[[Desk, Person], None]
) -> None:
    person = desk.join()
    secret = person.sessions[0]
    live = desk.live_sessions()
    assert found_of(live, secret) == [True]
    change(desk, person)
    desk.clock.advance(5)
    assert found_of(live, secret) == [False]


def test_in_the_process_of_the_sign_out_the_refreshes_end_at_once(desk: Desk) -> None:
    person = desk.join()
    secret = person.sessions[0]
    live = desk.live_sessions()
    assert found_of(live, secret) == [True]
    _end_sessions(desk, person)
    live.forget(secret)
    assert found_of(live, secret) == [False]


def test_a_session_that_ends_while_it_is_read_is_not_kept(desk: Desk) -> None:
    person = desk.join()
    secret = person.sessions[0]
    read: list[bool] = []

    async def ask_slowly(question: Callable[[Tx], object]) -> object:
        answer = desk.db.ask(question)
        if not read:
            _end_sessions(desk, person)
            live.forget(secret)
        read.append(True)
        return answer

    live = LiveSessions(ask_slowly, desk.clock)  # type: ignore[arg-type]
    assert found_of(live, secret) == [False]
    assert len(read) == 2


def test_a_use_by_another_page_keeps_the_refreshes(desk: Desk) -> None:
    secret = desk.join().sessions[0]
    live = desk.live_sessions()
    desk.clock.advance(IDLE.total_seconds() - 2)
    assert found_of(live, secret) == [True]
    assert desk.session(secret) is not None
    desk.clock.advance(3)
    assert found_of(live, secret) == [True]


def test_a_clock_that_was_set_back_keeps_no_session(desk: Desk) -> None:
    person = desk.join()
    live = desk.live_sessions()
    assert found_of(live, person.sessions[0]) == [True]
    _end_sessions(desk, person)
    desk.clock.advance(-3600)
    assert found_of(live, person.sessions[0]) == [False]
