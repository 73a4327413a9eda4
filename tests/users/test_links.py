"""Invitations of users, resets of passwords, and the end of a user."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

import pytest

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.errors import Conflict, Invalid, NotFound, Suspended
from frontdesk.reach import EVERY, Reach
from frontdesk.users import directory, factors, links, sign_in
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import AttemptBegun, NewUser, Role, SignedIn, SignInStep, UserState
from tests.factories import make_customer
from tests.users.conftest import KEY, PASSWORD, Desk

NEW_PASSWORD = "another-horse-and-cart"


def test_an_invited_user_chooses_a_password_and_sets_up_a_second_factor(desk: Desk) -> None:
    secret = desk.invite("Ana@Example.org", Role.EDITOR, Role.APPROVER)
    shown = desk.db.ask(lambda tx: links.invitation_of(tx, secret, now=desk.clock()))
    assert (shown.new.email, shown.invited_by) == ("ana@example.org", "cli:operator")
    begun = desk.accept(secret)
    user = begun.attempt.user
    assert begun.attempt.step is SignInStep.SET_UP
    assert (user.account_id, user.email) == (desk.customer.account_id, "ana@example.org")
    assert user.roles == {Role.EDITOR: desk.clock(), Role.APPROVER: desk.clock()}
    assert (user.invited_by, user.name) == ("cli:operator", "Ana Ruiz")
    totp = desk.seed(user.id)
    wrong = sign_in.set_up_factor(desk.db, desk.visitor(), KEY, attempt=begun.secret, code="000000")
    assert wrong is None
    code = desk.code(totp)
    done = sign_in.set_up_factor(desk.db, desk.visitor(), KEY, attempt=begun.secret, code=code)
    assert done is not None
    assert len(done.recovery_codes) == 10
    assert desk.session(done.secret) is not None
    with pytest.raises(NotFound):
        desk.seed(user.id)
    trail = ["user.invited", "user.joined", "user.sign_in_refused", "user.factor_set_up"]
    assert desk.trail() == [*trail, "user.signed_in"]


def test_who_left_before_the_second_factor_sets_up_another_one_at_the_next_sign_in(
    desk: Desk,
) -> None:
    user = desk.accept(desk.invite("ana@example.org", Role.EDITOR)).attempt.user
    seen = desk.seed(user.id).secret
    begun = desk.password("ana@example.org")
    assert isinstance(begun, AttemptBegun)
    assert begun.attempt.step is SignInStep.SET_UP
    assert desk.seed(user.id).secret != seen, "somebody may have seen the first one"
    with pytest.raises(NotFound):
        desk.check(begun.secret, "000000")


def test_the_seed_is_derived_from_the_link_secret_and_shown_in_three_forms(desk: Desk) -> None:
    user = desk.accept(desk.invite("ana@example.org", Role.EDITOR)).attempt.user
    offer = desk.db.ask(lambda tx: factors.offered_factor(tx, KEY, user.id))
    seed = offer.seed.replace(" ", "")
    uri = urlsplit(offer.uri)
    assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
    asked = parse_qs(uri.query)
    assert (asked["secret"], asked["issuer"]) == ([seed], [KEY.issuer])
    svg = ET.fromstring(offer.qr_svg)  # noqa: S314  # made here
    assert svg.tag == "svg"
    assert "style" not in offer.qr_svg
    other = factors.FactorKey("another link secret", KEY.issuer)
    elsewhere = desk.db.ask(lambda tx: factors.offered_factor(tx, other, user.id))
    assert elsewhere.seed != offer.seed
    stored = desk.db.ask(lambda tx: str(tx.exec_driver_sql("SELECT * FROM users").all()))
    assert seed not in stored


def test_an_invitation_is_good_for_72_hours(desk: Desk) -> None:
    secret = desk.invite("ana@example.org", Role.EDITOR)
    desk.clock.advance(72 * 3600)
    with pytest.raises(NotFound):
        desk.accept(secret)
    with pytest.raises(NotFound):
        desk.accept("invented")
    secret = desk.invite("ana@example.org", Role.EDITOR)
    desk.clock.advance(72 * 3600 - 1)
    assert desk.accept(secret)


def test_an_invitation_makes_one_user_also_when_it_is_used_twice_at_once(desk: Desk) -> None:
    secret = desk.invite("ana@example.org", Role.EDITOR)

    def accept(_: int) -> bool:
        try:
            return bool(desk.accept(secret))
        except NotFound:
            return False

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(accept, range(3))) == 1
    assert len(desk.db.ask(lambda tx: directory.list_users(tx, EVERY))) == 1


def test_only_the_holder_of_the_link_learns_that_an_e_mail_is_taken(desk: Desk) -> None:
    desk.join("ana@example.org")
    other = make_customer(desk.db, name="Other")
    new = NewUser("ana@example.org", other.account_id, frozenset({Role.ADMIN}))
    with desk.db.write() as tx:
        link = links.invite_user(tx, new, desk.requester())
    with pytest.raises(Conflict) as taken:
        desk.accept(link.secret)
    assert taken.value.code == "email_taken"


def test_a_newer_invitation_replaces_the_older_one_of_the_account(desk: Desk) -> None:
    first = desk.invite("ana@example.org", Role.EDITOR)
    second = desk.invite("ana@example.org", Role.VIEWER)
    with pytest.raises(NotFound):
        desk.accept(first)
    assert set(desk.accept(second).attempt.user.roles) == {Role.VIEWER}


def test_invitations_are_listed_and_withdrawn_within_reach(desk: Desk) -> None:
    secret = desk.invite("ana@example.org", Role.EDITOR)
    desk.invite("op@example.org", Role.OPERATOR, of_installation=True)
    own = Reach.of(desk.customer.account_id)
    other = Reach.of(desk.customer.account_id + 1)
    now = desk.clock()
    with desk.db.write() as tx:
        assert len(links.list_invitations(tx, EVERY, now=now)) == 2
        assert links.list_invitations(tx, other, now=now) == []
        assert links.list_invitations(tx, own, now=now + timedelta(hours=72)) == []
        [found] = links.list_invitations(tx, own, now=now)
        with pytest.raises(NotFound):
            links.withdraw_invitation(tx, other, found.id, desk.requester())
        links.withdraw_invitation(tx, own, found.id, desk.requester())
        with pytest.raises(NotFound):
            links.withdraw_invitation(tx, own, found.id, desk.requester())
    with pytest.raises(NotFound):
        desk.accept(secret)


@pytest.mark.parametrize("email", ["", "ana", "ana@", "ana@b@example.org", "a\0@b.org", "x" * 999])
def test_a_malformed_e_mail_is_refused(desk: Desk, email: str) -> None:
    with pytest.raises(Invalid) as refused:
        desk.invite(email, Role.EDITOR)
    assert [fault.field for fault in refused.value.faults] == ["email"]


def test_a_name_or_a_password_that_breaks_a_rule_leaves_the_link_good(desk: Desk) -> None:
    secret = desk.invite("ana@example.org", Role.EDITOR)
    for name, password in (("", PASSWORD), ("x" * 101, PASSWORD), ("Ana", "examplehealth1")):
        with pytest.raises(Invalid):
            links.accept_invitation(
                desk.db, desk.visitor(), secret=secret, name=name, password=password
            )
    assert desk.accept(secret)


def test_nobody_joins_an_account_that_waits_or_has_too_many(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = desk.invite("ana@example.org", Role.EDITOR)
    with desk.db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=desk.clock())
    with pytest.raises(Suspended):
        desk.accept(secret)
    with pytest.raises(Suspended):
        desk.invite("tom@example.org", Role.EDITOR)
    with desk.db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.ACTIVE, now=desk.clock())
    monkeypatch.setattr(links, "MOST_USERS", 2)
    desk.accept(secret)
    desk.invite("tom@example.org", Role.EDITOR)
    with pytest.raises(Invalid):
        desk.invite("mia@example.org", Role.EDITOR)
    desk.invite("op@example.org", Role.OPERATOR, of_installation=True)


def test_a_reset_link_changes_the_password_once_and_keeps_the_second_factor(desk: Desk) -> None:
    person = desk.join()
    with desk.db.write() as tx:
        link = links.make_reset_link(tx, EVERY, person.user.id, desk.requester("user:4711"))
    desk.clock.advance(1200)
    assert desk.session(person.sessions[0]) is not None
    asked = desk.db.ask(lambda tx: links.user_of_reset(tx, link.secret, now=desk.clock()))
    assert asked.id == person.user.id
    with pytest.raises(Invalid):
        links.reset_password(desk.db, desk.visitor(), secret=link.secret, password="short")
    done = links.reset_password(desk.db, desk.visitor(), secret=link.secret, password=NEW_PASSWORD)
    assert done.id == person.user.id
    assert desk.session(person.sessions[0]) is None
    with pytest.raises(NotFound):
        links.reset_password(desk.db, desk.visitor(), secret=link.secret, password=PASSWORD)
    assert desk.password(person.user.email, PASSWORD) is None
    person.password = NEW_PASSWORD
    begun = desk.password(person.user.email, NEW_PASSWORD)
    assert isinstance(begun, AttemptBegun)
    assert begun.attempt.step is SignInStep.SECOND_FACTOR
    assert desk.sign_in(person)


def test_a_reset_link_ends_after_an_hour_with_a_newer_one_and_with_the_user(desk: Desk) -> None:
    person = desk.join()

    def make() -> str:
        with desk.db.write() as tx:
            return links.make_reset_link(tx, EVERY, person.user.id, desk.requester()).secret

    def is_good(secret: str) -> bool:
        try:
            desk.db.ask(lambda tx: links.user_of_reset(tx, secret, now=desk.clock()))
        except NotFound:
            return False
        return True

    first = make()
    second = make()
    assert (is_good(first), is_good(second)) == (False, True)
    desk.clock.advance(3600)
    assert not is_good(second)
    third = make()
    with desk.db.write() as tx:
        directory.end_user(tx, EVERY, person.user.id, desk.requester())
    assert not is_good(third)


def test_nobody_resets_ends_or_removes_the_factor_of_oneself(desk: Desk) -> None:
    person = desk.join("ana@example.org", Role.ADMIN)
    me = desk.requester(person.user.actor)
    with desk.db.write() as tx:
        for act in (links.make_reset_link, directory.end_user, directory.remove_factor):
            with pytest.raises(Conflict) as refused:
                act(tx, EVERY, person.user.id, me)
            assert refused.value.code == "own_user"


def test_an_ended_user_is_gone_and_the_secrets_that_the_user_saw_are_told(desk: Desk) -> None:
    person = desk.join("ana@example.org", Role.ADMIN)
    client_id = desk.customer.client_id
    with desk.db.write() as tx:
        directory.note_secret_seen(tx, person.user.id, client_id, now=desk.clock())
        desk.clock.advance(60)
        directory.note_secret_seen(tx, person.user.id, client_id, now=desk.clock())
        assert directory.secret_seen_by(tx, client_id) == {person.user.id: desk.clock()}
        ended = directory.end_user(tx, EVERY, person.user.id, desk.requester())
    assert ended.client_ids == (client_id,)
    assert (ended.user.state, ended.user.ended_at) == (UserState.ENDED, desk.clock())
    assert desk.session(person.sessions[0]) is None
    assert desk.db.ask(lambda tx: directory.list_users(tx, EVERY)) == []
    both = desk.db.ask(lambda tx: directory.list_users(tx, EVERY, with_ended=True))
    assert [user.id for user in both] == [person.user.id]
    assert desk.db.ask(lambda tx: directory.find_users(tx, [person.user.id, 99])) == {
        person.user.id: ended.user
    }
    with desk.db.write() as tx, pytest.raises(NotFound):
        directory.end_user(tx, EVERY, person.user.id, desk.requester())
    again = desk.join("ana@example.org")
    assert again.user.id != person.user.id, "the e-mail is free, the id stays that of the trail"


def test_a_user_changes_the_own_name_and_time_zone(desk: Desk) -> None:
    person = desk.join()
    me = desk.requester(person.user.actor)
    with desk.db.write() as tx:
        zone = "America/New_York"
        directory.change_own(tx, person.user, me, name="Ana R.", time_zone=zone)
        with pytest.raises(Invalid):
            directory.change_own(tx, person.user, me, name="Ana", time_zone="EST5")
        with pytest.raises(Invalid):
            directory.change_own(tx, person.user, me, name=" ", time_zone=None)
    found = desk.user(person.user.id)
    assert (found.name, found.time_zone) == ("Ana R.", "America/New_York")


def test_a_demo_user_signs_in_by_a_random_password_alone(desk: Desk) -> None:
    new = NewUser("demo@example.org", desk.customer.account_id, frozenset({Role.EDITOR}))
    user, password = create_demo_user(desk.db, new, name="Demo", now=desk.clock())
    done = desk.password("demo@example.org", password)
    assert isinstance(done, SignedIn)
    desk.clock.advance(3600 / 4)
    assert desk.live(done.secret).is_fresh(desk.clock()), "a demo user has no factor to give"
    same, other = create_demo_user(desk.db, new, name="Demo", now=desk.clock())
    assert (same.id, other == password) == (user.id, False)
    assert desk.password("demo@example.org", password) is None
    assert desk.session(done.secret) is None
    desk.join("real@example.org")
    real = NewUser("real@example.org", desk.customer.account_id, frozenset({Role.EDITOR}))
    with pytest.raises(Conflict):
        create_demo_user(desk.db, real, name="Demo", now=desk.clock())
