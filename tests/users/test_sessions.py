"""Sessions: how they end, and what asks for a fresh second factor."""

from datetime import timedelta

import pytest

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.errors import Invalid, NotFound
from frontdesk.reach import EVERY
from frontdesk.users import directory, end_sessions_of_account, factors, sessions
from frontdesk.users.model import FRESH, IDLE, SESSION_TIME, NotFresh, SignedIn
from frontdesk.users.sign_in import set_up_factor
from tests.users.conftest import KEY, PASSWORD, Desk

MINUTE = 60.0
NEW_PASSWORD = "another-horse-and-cart"


def test_a_session_ends_after_thirty_minutes_without_use(desk: Desk) -> None:
    secret = desk.sign_in(desk.join()).secret
    for _ in range(3):
        desk.clock.advance(29 * MINUTE)
        found = desk.session(secret)
        assert found is not None
        assert found.idle_until == desk.clock() + IDLE
    desk.clock.advance(30 * MINUTE - 1)
    assert desk.session(secret, is_use=False) is not None
    desk.clock.advance(1)
    assert desk.session(secret) is None


def test_a_refresh_by_a_timer_is_no_use(desk: Desk) -> None:
    secret = desk.sign_in(desk.join()).secret
    for _ in range(29):
        desk.clock.advance(MINUTE)
        assert desk.session(secret, is_use=False) is not None
    desk.clock.advance(MINUTE)
    assert desk.session(secret, is_use=False) is None


def test_a_session_ends_after_twelve_hours_however_it_is_used(desk: Desk) -> None:
    done = desk.sign_in(desk.join())
    while desk.clock() + timedelta(minutes=20) < done.session.created_at + SESSION_TIME:
        desk.clock.advance(20 * MINUTE)
        assert desk.session(done.secret) is not None
    desk.clock.advance(20 * MINUTE)
    assert desk.session(done.secret) is None


def test_a_use_is_written_once_a_minute(desk: Desk) -> None:
    done = desk.sign_in(desk.join())

    def stored() -> str:
        query = "SELECT last_used_at FROM sessions ORDER BY id DESC LIMIT 1"
        return str(desk.db.ask(lambda tx: tx.exec_driver_sql(query).scalar_one()))

    first = stored()
    desk.clock.advance(59)
    desk.session(done.secret)
    assert stored() == first
    desk.clock.advance(1)
    desk.session(done.secret)
    assert stored() != first


def test_the_secret_of_a_session_is_stored_as_a_hash_only(desk: Desk) -> None:
    done = desk.sign_in(desk.join())
    rows = desk.db.ask(lambda tx: str(tx.exec_driver_sql("SELECT * FROM sessions").all()))
    assert done.secret not in rows
    assert len(done.secret) == 43, "256 bits in base64"
    assert desk.session("invented") is None
    assert desk.session("") is None


def test_a_user_has_five_sessions_and_the_oldest_ends(desk: Desk) -> None:
    person = desk.join()
    for _ in range(5):
        desk.sign_in(person)
    assert [desk.session(secret) is not None for secret in person.sessions] == [False, *[True] * 5]
    found = desk.db.ask(lambda tx: sessions.list_sessions(tx, person.user.id, now=desk.clock()))
    assert [each.id for each in found] == sorted((each.id for each in found), reverse=True)
    assert len(found) == 5


def test_people_end_their_own_sessions_and_no_others(desk: Desk) -> None:
    ana = desk.join()
    tom = desk.join("tom@example.org")
    mine = desk.live(ana.sessions[0])
    with desk.db.write() as tx, pytest.raises(NotFound):
        sessions.end_session(tx, tom.user.id, mine.id, desk.requester(tom.user.actor))
    with desk.db.write() as tx:
        sessions.end_session(tx, ana.user.id, mine.id, desk.requester(ana.user.actor))
    assert desk.session(ana.sessions[0]) is None
    assert desk.session(tom.sessions[0]) is not None
    desk.sign_in(tom)
    with desk.db.write() as tx:
        assert sessions.end_sessions(tx, EVERY, tom.user.id, desk.requester()) == 2
    assert [desk.session(secret) for secret in tom.sessions] == [None, None]


def test_the_number_of_an_ended_session_is_given_to_no_other(desk: Desk) -> None:
    ana = desk.join()
    numbers = [desk.live(ana.sessions[0]).id]
    for _ in range(2):
        with desk.db.write() as tx:
            sessions.end_session(tx, ana.user.id, numbers[-1], desk.requester(ana.user.actor))
        numbers.append(desk.sign_in(ana).session.id)
    assert numbers == sorted(set(numbers))


def test_a_suspended_account_ends_the_sessions_for_good(desk: Desk) -> None:
    person = desk.join()
    now = desk.clock()
    account_id = desk.customer.account_id
    with desk.db.write() as tx:
        set_state(tx, account_id, AccountState.SUSPENDED, now=now)
    assert desk.session(person.sessions[0]) is None
    with desk.db.write() as tx:
        end_sessions_of_account(tx, account_id)
        set_state(tx, account_id, AccountState.ACTIVE, now=now)
    assert desk.session(person.sessions[0]) is None
    assert desk.session(desk.sign_in(person).secret) is not None


def test_a_second_factor_is_fresh_for_ten_minutes(desk: Desk) -> None:
    person = desk.join()
    secret = person.sessions[0]
    desk.clock.advance(FRESH.total_seconds() - 1)
    assert desk.live(secret).is_fresh(desk.clock())
    desk.clock.advance(1)
    stale = desk.live(secret)
    assert not stale.is_fresh(desk.clock())
    with pytest.raises(NotFresh):
        sessions.refuse_unless_fresh(stale, now=desk.clock())
    done = desk.confirm(secret, desk.code(person.totp))
    assert done is not None
    assert desk.live(done.secret).is_fresh(desk.clock())
    assert done.session.ends_at == stale.ends_at, "it lives no longer"


def test_five_wrong_codes_end_a_session(desk: Desk) -> None:
    person = desk.join()
    secret = person.sessions[0]
    for n in range(4):
        assert desk.confirm(secret, f"00000{n}") is None
    done = desk.confirm(secret, desk.code(person.totp))
    assert done is not None, "a right code begins the count anew"
    for n in range(5):
        assert desk.session(done.secret) is not None
        assert desk.confirm(done.secret, f"00000{n}") is None
    assert desk.session(done.secret) is None
    with pytest.raises(NotFound):
        desk.confirm(done.secret, desk.code(person.totp))


def test_another_password_ends_the_other_sessions(desk: Desk) -> None:
    person = desk.join()
    secret = desk.sign_in(person).secret
    visitor = desk.visitor()

    def change(present: str, new: str) -> str | None:
        done = sessions.change_password(desk.db, visitor, session=secret, present=present, new=new)
        return done and done.secret

    assert change("wrong password", NEW_PASSWORD) is None
    with pytest.raises(Invalid):
        change(PASSWORD, "short")
    assert desk.session(person.sessions[0]) is not None
    new_secret = change(PASSWORD, NEW_PASSWORD)
    assert new_secret is not None
    assert [desk.session(each) for each in person.sessions] == [None, None]
    assert desk.session(new_secret) is not None
    assert desk.password(person.user.email, PASSWORD) is None
    assert desk.password(person.user.email, NEW_PASSWORD) is not None


def test_a_password_is_changed_with_a_fresh_second_factor_only(desk: Desk) -> None:
    person = desk.join()
    desk.clock.advance(FRESH.total_seconds())
    with pytest.raises(NotFresh):
        sessions.change_password(
            desk.db, desk.visitor(), session=person.sessions[0], present=PASSWORD, new=NEW_PASSWORD
        )


def test_another_second_factor_ends_the_old_one_its_codes_and_the_other_sessions(
    desk: Desk,
) -> None:
    person = desk.join()
    secret = desk.sign_in(person).secret
    with desk.db.write() as tx:
        factors.offer_factor(tx, desk.live(secret), desk.requester(person.user.actor))
    new = desk.seed(person.user.id)
    assert desk.seed(person.user.id).secret == new.secret, "a reload shows the same"

    def change(code: str) -> object:
        return sessions.change_factor(desk.db, desk.visitor(), KEY, session=secret, code=code)

    assert change(desk.code(person.totp)) is None, "a code of the old one"
    assert desk.check(desk.attempt(person), desk.code(person.totp)) is not None, (
        "the old one is in force until the new one is confirmed"
    )
    done = change(desk.code(new))
    assert isinstance(done, SignedIn)
    assert len(done.recovery_codes) == 10
    assert [desk.session(each) for each in person.sessions] == [None, None]
    attempt = desk.attempt(person)
    assert desk.check(attempt, desk.code(person.totp)) is None
    assert desk.check(attempt, person.recovery_codes[0]) is None
    assert desk.check(attempt, desk.code(new)) is not None


def test_factors_are_changed_with_a_fresh_second_factor_only(desk: Desk) -> None:
    person = desk.join()
    secret = person.sessions[0]
    requester = desk.requester(person.user.actor)
    with desk.db.write() as tx:
        factors.offer_factor(tx, desk.live(secret), requester)
    new = desk.seed(person.user.id)
    desk.clock.advance(FRESH.total_seconds())
    later = desk.requester(person.user.actor)
    stale = desk.live(secret)
    with desk.db.write() as tx, pytest.raises(NotFresh):
        factors.offer_factor(tx, stale, later)
    with desk.db.write() as tx, pytest.raises(NotFresh):
        sessions.renew_recovery_codes(tx, stale, later)
    with pytest.raises(NotFresh):
        sessions.change_factor(desk.db, desk.visitor(), KEY, session=secret, code=desk.code(new))


def test_new_recovery_codes_end_the_old_ones(desk: Desk) -> None:
    person = desk.join()
    with desk.db.write() as tx:
        codes = sessions.renew_recovery_codes(
            tx, desk.live(person.sessions[0]), desk.requester(person.user.actor)
        )
    assert set(codes).isdisjoint(person.recovery_codes)
    attempt = desk.attempt(person)
    assert desk.check(attempt, person.recovery_codes[0]) is None
    assert desk.check(attempt, codes[0]) is not None


def test_a_removed_second_factor_is_told_at_the_next_sign_in(desk: Desk) -> None:
    person = desk.join()
    admin = desk.requester("user:4711")
    with desk.db.write() as tx:
        directory.remove_factor(tx, EVERY, person.user.id, admin)
    assert desk.session(person.sessions[0]) is None
    begun = desk.password(person.user.email)
    assert begun is not None
    assert not isinstance(begun, SignedIn)
    assert begun.attempt.step == "set_up"
    assert begun.attempt.factor_removed_by == "user:4711"
    assert begun.attempt.factor_removed_at == admin.now
    with pytest.raises(NotFound):
        desk.check(begun.secret, person.recovery_codes[0])
    new = desk.seed(person.user.id)
    done = sessions_of_set_up(desk, begun.secret, desk.code(new))
    assert done.session.user.has_second_factor
    again = desk.password(person.user.email)
    assert not isinstance(again, SignedIn)
    assert again is not None
    assert again.attempt.factor_removed_by is None


def sessions_of_set_up(desk: Desk, attempt: str, code: str) -> SignedIn:
    done = set_up_factor(desk.db, desk.visitor(), KEY, attempt=attempt, code=code)
    assert done is not None
    return done
