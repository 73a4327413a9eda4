"""The steps of a sign-in: the password, the second factor, the session."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyotp import TOTP

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.db import Database, open_database
from frontdesk.errors import NotFound, RateLimited
from frontdesk.reach import EVERY
from frontdesk.users import directory, factors, passwords, sign_in, store
from frontdesk.users.model import ATTEMPT_TIME, AttemptBegun, SignedIn, SignInStep
from tests.users.conftest import ADDRESS, KEY, PASSWORD, Desk


def test_a_password_and_a_code_open_a_session(desk: Desk) -> None:
    person = desk.join()
    begun = desk.password("  ANA@Example.org ")
    assert isinstance(begun, AttemptBegun)
    assert begun.attempt.step is SignInStep.SECOND_FACTOR
    done = desk.check(begun.secret, desk.code(person.totp))
    assert done is not None
    assert done.recovery_codes == ()
    found = desk.live(done.secret)
    assert found == done.session
    assert (found.user.id, found.factor_at) == (person.user.id, desk.clock())
    assert desk.user(person.user.id).last_signed_in_at == desk.clock()
    with pytest.raises(NotFound):
        desk.check(begun.secret, desk.code(person.totp))


def test_each_step_has_a_secret_of_its_own(desk: Desk) -> None:
    person = desk.join()
    first = desk.attempt(person)
    done = desk.check(first, desk.code(person.totp))
    assert done is not None
    again = desk.sign_in(person)
    secrets = {first, done.secret, again.secret, *person.sessions, person.browser or ""}
    assert len(secrets) == 5, "two of the sessions are in the list of the person"
    assert desk.session(first) is None, "the secret of the attempt is none of a session"
    confirmed = desk.confirm(again.secret, desk.code(person.totp))
    assert confirmed is not None
    assert confirmed.secret not in secrets
    assert desk.session(again.secret) is None
    assert desk.live(confirmed.secret).id == again.session.id


def test_no_answer_says_what_was_wrong(desk: Desk) -> None:
    person = desk.join()
    ended = desk.join("ended@example.org")
    with desk.db.write() as tx:
        directory.end_user(tx, EVERY, ended.user.id, desk.requester())
    for email in ("ana@example.org", "ended@example.org", "nobody@example.org", "", "\0"):
        assert desk.password(email, "wrong password") is None
    assert desk.password("ended@example.org") is None
    with desk.db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=desk.clock())
    assert desk.password(person.user.email) is None


def test_five_wrong_codes_end_the_attempt(desk: Desk) -> None:
    person = desk.join()
    attempt = desk.attempt(person)
    for wrong in ("000000", "", "x" * 5000, "AAAA-BBBB-CCCC-DDDD-EEEE-FFFF"):
        assert desk.check(attempt, wrong) is None
        assert desk.db.ask(lambda tx: sign_in.attempt_of(tx, attempt, now=desk.clock()))
    assert desk.check(attempt, "111111") is None
    assert desk.db.ask(lambda tx: sign_in.attempt_of(tx, attempt, now=desk.clock())) is None
    with pytest.raises(NotFound):
        desk.check(attempt, desk.code(person.totp))


def test_an_attempt_ends_after_a_quarter_of_an_hour_and_with_its_user(desk: Desk) -> None:
    person = desk.join()
    attempt = desk.attempt(person)
    desk.clock.advance(ATTEMPT_TIME.total_seconds())
    with pytest.raises(NotFound):
        desk.check(attempt, desk.code(person.totp))
    attempt = desk.attempt(person)
    with desk.db.write() as tx:
        directory.end_user(tx, EVERY, person.user.id, desk.requester())
    with pytest.raises(NotFound):
        desk.check(attempt, desk.code(person.totp))


def test_a_code_counts_within_a_step_of_its_time(desk: Desk) -> None:
    person = desk.join()
    desk.clock.advance(600)
    for beside, is_right in ((-90, False), (60, False), (-30, True), (0, True), (30, True)):
        shown = TOTP(person.totp.secret).at(int(desk.clock().timestamp()) + beside)
        done = desk.check(desk.attempt(person), shown)
        assert (done is not None) is is_right, beside


def test_a_code_counts_once(desk: Desk) -> None:
    person = desk.join()
    code = desk.code(person.totp)
    assert desk.check(desk.attempt(person), code) is not None
    assert desk.check(desk.attempt(person), code) is None
    earlier = person.totp.at(int(desk.clock().timestamp()) - factors.STEP_SECONDS)
    assert desk.check(desk.attempt(person), earlier) is None, "the code of a step before"
    assert desk.check(desk.attempt(person), desk.code(person.totp)) is not None


@pytest.fixture
def other(db: Database, database_url: str) -> Iterator[Database]:
    """The database as another process has it."""
    opened = open_database(database_url)
    yield opened
    opened.close()


def at_once(desk: Desk, other: Database, attempts: list[str], code: str) -> list[SignedIn]:
    def check(attempt: tuple[int, str]) -> SignedIn | None:
        number, secret = attempt
        db = other if number % 2 else desk.db
        return sign_in.check_code(db, desk.visitor(), KEY, attempt=secret, code=code)

    with ThreadPoolExecutor(4) as threads:
        return [each for each in threads.map(check, enumerate(attempts)) if each is not None]


def test_a_code_counts_once_in_two_processes_at_once(desk: Desk, other: Database) -> None:
    person = desk.join()
    for _ in range(3):
        attempts = [desk.attempt(person) for _ in range(4)]
        assert len(at_once(desk, other, attempts, desk.code(person.totp))) == 1


def test_a_recovery_code_counts_once_in_two_processes_at_once(desk: Desk, other: Database) -> None:
    person = desk.join()
    for code in person.recovery_codes[:2]:
        attempts = [desk.attempt(person) for _ in range(4)]
        assert len(at_once(desk, other, attempts, code)) == 1


def test_ten_recovery_codes_of_120_bits_sign_in_once_each(desk: Desk) -> None:
    person = desk.join()
    assert len(set(person.recovery_codes)) == 10
    for number, code in enumerate(person.recovery_codes, 1):
        assert len(code.replace("-", "")) * 5 == 120
        typed = code.lower().replace("-", " ") if number % 2 else code
        assert desk.check(desk.attempt(person), typed) is not None
        left = desk.db.ask(lambda tx: factors.count_recovery_codes(tx, person.user.id))
        assert left == 10 - number
    assert desk.check(desk.attempt(person), person.recovery_codes[0]) is None
    assert desk.trail().count("user.recovery_code_used") == 10


def test_a_recovery_code_of_another_user_is_a_wrong_one(desk: Desk) -> None:
    other_user = desk.join("tom@example.org")
    person = desk.join()
    assert desk.check(desk.attempt(person), other_user.recovery_codes[0]) is None
    assert desk.check(desk.attempt(person), desk.code(other_user.totp)) is None


class Guesser:
    """Somebody who tries passwords for a user."""

    def __init__(self, desk: Desk, email: str) -> None:
        self.desk = desk
        self.email = email

    def fail(self, times: int, *, address: str = ADDRESS, browser: str | None = None) -> None:
        for _ in range(times):
            found = self.desk.password(self.email, "wrong", address=address, browser=browser)
            assert found is None

    def is_limited(
        self, *, address: str = ADDRESS, password: str = "wrong", browser: str | None = None
    ) -> int:
        """The seconds to wait; 0 if the password is looked at."""
        try:
            self.desk.password(self.email, password, address=address, browser=browser)
        except RateLimited as limited:
            return limited.retry_after_seconds
        return 0


@pytest.fixture
def guesser(desk: Desk) -> Guesser:
    return Guesser(desk, desk.join().user.email)


def test_after_ten_failures_at_a_network_the_password_is_not_looked_at(guesser: Guesser) -> None:
    guesser.fail(10, address="2001:db8::1")
    assert guesser.is_limited(address="2001:db8::2", password=PASSWORD) == 300
    guesser.desk.clock.advance(299)
    assert guesser.is_limited(address="2001:db8::2", password=PASSWORD) == 1
    guesser.desk.clock.advance(1)
    assert not guesser.is_limited(address="2001:db8::2", password=PASSWORD)


def test_a_right_password_is_no_failure(guesser: Guesser) -> None:
    for _ in range(25):
        assert not guesser.is_limited(password=PASSWORD)


def test_twenty_failures_over_all_networks_limit_a_user_for_an_hour(guesser: Guesser) -> None:
    for n in range(5):
        guesser.fail(4, address=f"203.0.113.{n}")
    assert guesser.is_limited(address="198.51.100.7", password=PASSWORD) == 3600
    guesser.desk.clock.advance(3599)
    assert guesser.is_limited(address="198.51.100.7", password=PASSWORD) == 1
    guesser.desk.clock.advance(1)
    assert not guesser.is_limited(address="198.51.100.7", password=PASSWORD)


def test_an_unknown_e_mail_is_limited_as_a_user_is(guesser: Guesser) -> None:
    stranger = Guesser(guesser.desk, "nobody@example.org")
    for n in range(5):
        stranger.fail(4, address=f"203.0.113.{n}")
    assert stranger.is_limited(address="198.51.100.7") == 3600


def test_a_network_that_tries_many_users_is_stopped_for_all(guesser: Guesser) -> None:
    for n in range(30):
        Guesser(guesser.desk, f"user-{n}@example.org").fail(1)
    assert guesser.is_limited(password=PASSWORD) == 300
    assert not guesser.is_limited(address="198.51.100.7", password=PASSWORD)


def test_a_browser_that_has_signed_the_user_in_is_not_locked_out_by_strangers(desk: Desk) -> None:
    person = desk.join()
    guesser = Guesser(desk, person.user.email)
    for n in range(5):
        guesser.fail(4, address=f"203.0.113.{n}")
    home = "198.51.100.7"
    assert guesser.is_limited(address=home, password=PASSWORD)
    assert guesser.is_limited(address=home, password=PASSWORD, browser="invented")
    assert not guesser.is_limited(address=home, password=PASSWORD, browser=person.browser)
    for n in range(5):
        guesser.fail(4, address=f"192.0.2.{n}", browser=person.browser)
    limited = guesser.is_limited(address=home, password=PASSWORD, browser=person.browser)
    assert limited == 3600, "the browser has a count of its own"


def test_a_browser_of_another_user_is_no_known_one(desk: Desk) -> None:
    tom = desk.join("tom@example.org")
    guesser = Guesser(desk, desk.join().user.email)
    for n in range(5):
        guesser.fail(4, address=f"203.0.113.{n}")
    assert guesser.is_limited(address="198.51.100.7", password=PASSWORD, browser=tom.browser)


def test_a_browser_has_another_secret_after_each_sign_in(desk: Desk) -> None:
    """A secret that a stranger planted in the browser must not become a known one."""
    tom = desk.join("tom@example.org")
    ana = desk.join("ana@example.org")
    planted = tom.browser
    ana.browser = planted
    desk.sign_in(ana)
    assert ana.browser != planted
    for person in (tom, ana):
        guesser = Guesser(desk, person.user.email)
        for n in range(5):
            guesser.fail(4, address=f"203.0.{person.user.id}.{n}")
        assert guesser.is_limited(address="198.51.100.7", browser=planted)
        assert not guesser.is_limited(address="198.51.100.8", browser=ana.browser)


def test_wrong_codes_count_as_failures_of_the_user(desk: Desk) -> None:
    """Else five codes of each of many attempts could be guessed."""
    person = desk.join()
    for n in range(5):
        attempt = desk.attempt(person, address=f"203.0.113.{n}")
        for guess in range(4):
            address = f"203.0.113.{n}"
            assert desk.check(attempt, f"00000{guess}", address=address) is None
    with pytest.raises(RateLimited):
        desk.attempt(person, address="198.51.100.7")


def test_guesses_of_two_processes_at_once_find_no_more_room(desk: Desk, other: Database) -> None:
    desk.join()

    def guess(number: int) -> bool:
        db = other if number % 2 else desk.db
        try:
            found = sign_in.check_password(
                db, desk.visitor(), email="ana@example.org", password="wrong"
            )
        except RateLimited:
            return False
        return found is None

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(guess, range(24))) == 10


def test_the_trail_has_refusals_until_the_limit_and_no_e_mail(guesser: Guesser) -> None:
    desk = guesser.desk
    guesser.fail(10)
    assert guesser.is_limited()
    stranger = Guesser(desk, "nobody@example.org")
    stranger.fail(1)
    actions = desk.trail()
    assert actions.count("user.sign_in_refused") == 11
    assert actions.count("user.sign_in_limited") == 1
    query = "SELECT actor, detail FROM audit_entries"
    rows = desk.db.ask(lambda tx: [str(row) for row in tx.exec_driver_sql(query)])
    assert not [row for row in rows if "example.org" in row]
    assert [row for row in rows if "unknown" in row]


@pytest.mark.parametrize("change", ["end", "password"])
def test_another_password_or_an_end_meanwhile_stops_the_sign_in(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    user_id = desk.join().user.id
    matches = passwords.matches

    def change_first(password: str, password_hash: str | None) -> bool:
        with desk.db.write() as tx:
            if change == "end":
                directory.end_user(tx, EVERY, user_id, desk.requester())
            else:
                store.change_user(tx, user_id, password_hash="another")
        return matches(password, password_hash)

    monkeypatch.setattr(passwords, "matches", change_first)
    assert desk.password("ana@example.org") is None
