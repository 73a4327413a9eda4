"""What each role allows, and where."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from frontdesk.db import Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Invalid, NotFound
from frontdesk.reach import EVERY, Reach
from frontdesk.users import directory, links, sessions
from frontdesk.users.model import RIGHTS, NewUser, NoLongerManager, Right, Role, User, UserState
from tests.factories import NOW
from tests.users.conftest import Desk

# The table of docs/console.md, row by row: v(iewer) e(ditor) (ap)p(rover) a(dmin) s(upport)
# o(perator) (audito)r.
TABLE = {
    Right.FILES_READ: "vepaso",
    Right.FILES_WRITE: "e",
    Right.FILE_NAMES: "ep",
    Right.APPROVE: "p",
    Right.PEOPLE_FIND: "epsr",
    Right.PEOPLE_CHECK: "eps",
    Right.RECORD_OPEN: "eps",
    Right.RECORD_CHANGE: "e",
    Right.EMAIL_CHANGE: "es",
    Right.INVITATION_SEND: "es",
    Right.ACCOUNT_MANAGE: "a",
    Right.SYSTEM: "o",
    Right.TRAIL: "ar",
}
LETTERS = dict(zip(Role, "vepasor", strict=True))
OWN = 7
OTHER = 8


def a_user(role: Role, account_id: int | None = None, named: frozenset[int] | None = None) -> User:
    return User(
        id=1, email="a@example.org", name="Ana", account_id=account_id, named_accounts=named,
        roles={role: NOW}, time_zone=None, state="active", has_second_factor=True,  # type: ignore[arg-type]
        is_demo=False, invited_by="cli:a", created_at=NOW, last_signed_in_at=None, ended_at=None,
    )  # fmt: skip


def test_each_role_has_the_rights_of_the_table_and_no_other() -> None:
    assert set(TABLE) == set(Right)
    for right, letters in TABLE.items():
        for role in Role:
            assert (right in RIGHTS[role]) is (LETTERS[role] in letters), (right, role)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.APPROVER, Role.ADMIN])
def test_a_role_of_an_account_reaches_that_account_only(role: Role) -> None:
    user = a_user(role, OWN)
    for right in Right:
        assert user.may(right, OWN) is (right in RIGHTS[role])
        assert not user.may(right, OTHER)
        assert not user.may(right, None)
    assert (user.reaches(OWN), user.reaches(OTHER), user.reaches(None)) == (True, False, False)


def test_support_reaches_named_accounts_or_every_one() -> None:
    named = a_user(Role.SUPPORT, named=frozenset({OWN}))
    assert named.may(Right.RECORD_OPEN, OWN)
    assert not named.may(Right.RECORD_OPEN, OTHER)
    assert not named.may(Right.RECORD_OPEN, None)
    every = a_user(Role.SUPPORT)
    assert every.may(Right.RECORD_OPEN, OWN)
    assert every.may(Right.RECORD_OPEN, None)
    assert not every.may(Right.RECORD_CHANGE, OWN)


def test_operators_and_auditors_are_of_the_installation() -> None:
    assert a_user(Role.OPERATOR).may(Right.SYSTEM, None)
    assert a_user(Role.OPERATOR).may(Right.FILES_READ, OWN)
    assert not a_user(Role.OPERATOR).may(Right.PEOPLE_FIND, OWN)
    assert a_user(Role.AUDITOR).may(Right.TRAIL, None)
    assert not a_user(Role.AUDITOR).may(Right.PEOPLE_CHECK, OWN)


@pytest.mark.parametrize(
    ("of_account", "roles", "named", "field"),
    [
        (True, {Role.OPERATOR}, None, "roles"),
        (True, {Role.EDITOR, Role.SUPPORT}, None, "roles"),
        (True, set(), None, "roles"),
        (False, {Role.VIEWER}, None, "roles"),
        (False, {Role.OPERATOR, Role.ADMIN}, None, "roles"),
        (False, {Role.OPERATOR}, {1}, "accounts"),
        (False, {Role.SUPPORT}, set(), "accounts"),
        (True, {Role.EDITOR}, {1}, "accounts"),
    ],
)
def test_roles_that_do_not_fit_are_refused(
    desk: Desk, of_account: bool, roles: set[Role], named: set[int] | None, field: str
) -> None:
    account_id = desk.customer.account_id if of_account else None
    accounts = None if named is None else frozenset(named)
    new = NewUser("ana@example.org", account_id, frozenset(roles), accounts)
    with desk.db.write() as tx, pytest.raises(Invalid) as refused:
        links.invite_user(tx, new, desk.requester())
    assert [(fault.field, fault.code) for fault in refused.value.faults] == [(field, "wrong_roles")]


def test_support_of_named_accounts_joins_with_them(desk: Desk) -> None:
    named = frozenset({desk.customer.account_id})
    new = NewUser("sam@example.org", None, frozenset({Role.SUPPORT}), named)
    with desk.db.write() as tx:
        link = links.invite_user(tx, new, desk.requester())
    user = desk.accept(link.secret).attempt.user
    assert (user.named_accounts, user.account_id) == (named, None)
    unknown = NewUser("sam@example.org", None, frozenset({Role.SUPPORT}), frozenset({4711}))
    with desk.db.write() as tx, pytest.raises(NotFound):
        links.invite_user(tx, unknown, desk.requester())


def test_a_role_that_stays_keeps_its_time_and_a_change_ends_the_sessions(desk: Desk) -> None:
    person = desk.join("ana@example.org", Role.EDITOR)
    joined = person.user.roles[Role.EDITOR]
    desk.clock.advance(3600)
    secret = desk.sign_in(person).secret
    with desk.db.write() as tx:
        both = {Role.EDITOR, Role.APPROVER}
        changed = directory.change_roles(tx, EVERY, person.user.id, both, desk.requester())
    assert changed.roles == {Role.EDITOR: joined, Role.APPROVER: desk.clock()}
    assert changed.held_since(Right.FILE_NAMES) == joined
    assert changed.held_since(Right.APPROVE) == desk.clock()
    assert changed.held_since(Right.SYSTEM) is None
    assert desk.session(secret) is None
    [approver] = desk.db.ask(
        lambda tx: directory.users_with(tx, Right.APPROVE, desk.customer.account_id)
    )
    assert approver.id == person.user.id
    assert (
        desk.db.ask(
            lambda tx: directory.users_with(tx, Right.ACCOUNT_MANAGE, desk.customer.account_id)
        )
        == []
    )


@pytest.mark.parametrize("ends", [False, True])
def test_links_that_a_user_has_made_end_with_the_role(desk: Desk, ends: bool) -> None:
    admin = desk.join("ana@example.org", Role.ADMIN).user
    other = desk.join("tom@example.org").user
    new = NewUser("own@example.org", desk.customer.account_id, frozenset({Role.ADMIN}))
    me = desk.requester(admin.actor)
    with desk.db.write() as tx:
        invited = links.invite_user(tx, new, me).secret
        reset = links.make_reset_link(tx, EVERY, other.id, me).secret
        directory.change_roles(tx, EVERY, admin.id, {Role.ADMIN, Role.VIEWER}, desk.requester())
        assert links.user_of_reset(tx, reset, now=desk.clock()) == other
        if ends:
            directory.end_user(tx, EVERY, admin.id, desk.requester())
        else:
            directory.change_roles(tx, EVERY, admin.id, {Role.VIEWER}, desk.requester())
        with pytest.raises(NotFound):
            links.user_of_reset(tx, reset, now=desk.clock())
        with pytest.raises(NotFound):
            links.invitation_of(tx, invited, now=desk.clock())


@pytest.mark.parametrize("ends", [False, True])
def test_of_two_admins_who_end_each_other_at_one_time_one_stays(desk: Desk, ends: bool) -> None:
    ids = [desk.join(f"{name}@example.org", Role.ADMIN).user.id for name in ("ana", "tom")]
    meet = Barrier(2)

    def take(mine: int, other: int) -> bool:
        requester = desk.requester(f"user:{mine}")

        def work(tx: Tx) -> None:
            with suppress(BrokenBarrierError):
                meet.wait(0.2)  # both are in a transaction, where the database allows it
            if ends:
                directory.end_user(tx, EVERY, other, requester)
            else:
                directory.change_roles(tx, EVERY, other, {Role.VIEWER}, requester)

        try:
            write_alone(desk.db, work)
        except NoLongerManager:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(take, ids, reversed(ids)))
    assert sorted(done) == [False, True]
    managers = [each for each in map(desk.user, ids) if Role.ADMIN in each.roles]
    assert [each.id for each in managers if each.state is UserState.ACTIVE] == [
        ids[done.index(True)]
    ]


def test_a_user_of_another_account_or_of_the_installation_is_an_unknown_one(desk: Desk) -> None:
    person = desk.join()
    operator = desk.join("op@example.org", Role.OPERATOR, of_installation=True)
    own = Reach.of(desk.customer.account_id)
    elsewhere = Reach.of(desk.customer.account_id + 1)
    me = desk.requester()
    acts: list[Callable[[Tx, Reach, int], object]] = [
        directory.get_user,
        lambda tx, reach, user: directory.change_roles(tx, reach, user, {Role.ADMIN}, me),
        lambda tx, reach, user: directory.end_user(tx, reach, user, me),
        lambda tx, reach, user: directory.remove_factor(tx, reach, user, me),
        lambda tx, reach, user: links.make_reset_link(tx, reach, user, me),
        lambda tx, reach, user: sessions.end_sessions(tx, reach, user, me),
    ]
    with desk.db.write() as tx:
        assert directory.get_user(tx, own, person.user.id).id == person.user.id
        for reach, of in ((elsewhere, person), (own, operator)):
            for act in acts:
                with pytest.raises(NotFound):
                    act(tx, reach, of.user.id)
        assert [each.id for each in directory.list_users(tx, own)] == [person.user.id]
        assert directory.list_users(tx, elsewhere) == []
        assert len(directory.list_users(tx, EVERY)) == 2
