"""Users of the console live through a day of an installation (tests/db/day.py)."""

from datetime import timedelta

from frontdesk import access
from frontdesk.access import accounts
from frontdesk.access.model import NewClient, Scope
from frontdesk.disclosures.weekly import list_weekly_looks
from frontdesk.reach import EVERY, Reach
from frontdesk.users import clients, delete_expired, directory, factors, links, once, sessions
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import NewUser, Right, Role
from tests.users.conftest import KEY, PASSWORD, Desk

NEW_PASSWORD = "another-horse-and-cart"


def use_console(desk: Desk, number: int) -> None:
    """An admin joins, signs in, shows a secret, and changes what is the admin's own; another user
    is invited, looked after and ended.
    """
    admin = desk.join(f"admin-{number}@example.org", Role.ADMIN, Role.APPROVER)
    desk.sign_in(admin)
    assert desk.password(admin.user.email, "wrong") is None
    attempt = desk.attempt(admin)
    assert desk.check(attempt, "000000") is None
    signed_in = desk.check(attempt, admin.recovery_codes[0])
    assert signed_in is not None
    assert desk.confirm(signed_in.secret, "000000") is None
    confirmed = desk.confirm(signed_in.secret, desk.code(admin.totp))
    assert confirmed is not None
    changed = sessions.change_password(
        desk.db, desk.visitor(), session=confirmed.secret, present=PASSWORD, new=NEW_PASSWORD
    )
    assert changed is not None
    desk.clock.advance(61)
    found = desk.session(changed.secret)
    assert found is not None
    assert desk.session(changed.secret, is_use=False) is not None
    me = desk.requester(admin.user.actor)
    with desk.db.write() as tx:
        sessions.renew_recovery_codes(tx, found, me)
        factors.offer_factor(tx, found, me)
        directory.change_own(tx, admin.user, me, name="Ana", time_zone=None)
        for _ in range(2):
            directory.note_secret_seen(tx, admin.user.id, desk.customer.client_id, now=desk.clock())
        once.use_form(tx, admin.user.id, once.new_number(), now=desk.clock())
        assert admin.user.id in directory.secret_seen_by(tx, desk.customer.client_id)
    code = desk.code(desk.seed(admin.user.id))
    done = sessions.change_factor(desk.db, desk.visitor(), KEY, session=changed.secret, code=code)
    assert done is not None
    with desk.db.write() as tx:
        assert sessions.list_sessions(tx, admin.user.id, now=desk.clock())
        sessions.end_session(tx, admin.user.id, done.session.id, me)
    _look_after_another(desk, number)
    with desk.db.write() as tx:
        ended = directory.end_user(tx, EVERY, admin.user.id, desk.requester())
        assert ended.client_ids == (desk.customer.client_id,)
        later = desk.clock() + timedelta(days=1)
        delete_expired(tx, later, unseen_since=desk.clock() - timedelta(days=1))


def _look_after_another(desk: Desk, number: int) -> None:
    own = Reach.of(desk.customer.account_id)
    _change_a_client(desk, own)
    other = desk.join(f"other-{number}@example.org")
    now = desk.clock()
    admin = desk.requester()
    desk.invite(f"left-{number}@example.org", Role.VIEWER)
    with desk.db.write() as tx:
        account_id = desk.customer.account_id
        assert directory.list_home(tx, account_id)
        assert access.list_live_clients(tx, own)
        assert access.list_revoked_clients(tx, account_id, limit=20)
        assert directory.list_home(tx, None) == []
        assert links.list_invitations_of_home(tx, account_id, now=now, before_id=2**62, limit=50)
        for reach in (own, EVERY):
            assert len(directory.list_users(tx, reach)) >= 2
            assert links.list_invitations(tx, reach, now=now)
        [waiting, *_] = links.list_invitations(tx, own, now=now)
        links.withdraw_invitation(tx, own, waiting.id, admin)
        assert directory.find_users(tx, [other.user.id])
        assert directory.users_with(tx, Right.FILE_NAMES, desk.customer.account_id)
        directory.change_roles(tx, own, other.user.id, {Role.VIEWER}, admin)
        link = links.make_reset_link(tx, own, other.user.id, admin)
    links.reset_password(desk.db, desk.visitor(), secret=link.secret, password=NEW_PASSWORD)
    with desk.db.write() as tx:
        directory.remove_factor(tx, own, other.user.id, admin)
        sessions.end_sessions(tx, own, other.user.id, admin)
        sessions.end_sessions_of_account(tx, desk.customer.account_id)
        directory.end_user(tx, own, other.user.id, admin)
        directory.delete_ended(tx, [other.user.id])
    new = NewUser("demo@example.org", desk.customer.account_id, frozenset({Role.VIEWER}))
    _, password = create_demo_user(desk.db, new, name="Demo", now=now)
    assert desk.password("demo@example.org", password) is not None


def _change_a_client(desk: Desk, own: Reach) -> None:
    admin = desk.requester()
    with desk.db.write() as tx:
        new = NewClient(desk.customer.account_id, "Upload", {Scope.CUSTOMER})
        client_id = clients.create(tx, new, admin).client.client_id
        clients.rotate(tx, own, client_id, admin)
        [_, first] = accounts.list_secrets(tx, own, client_id)
        accounts.last_uses(tx, [accounts.get_client(tx, own, client_id)])
        clients.end_secret(tx, own, client_id, first.id, admin)
        clients.end_tokens(tx, own, client_id, admin)
        clients.revoke(tx, own, client_id, admin)
        list_weekly_looks(tx, desk.customer.account_id, now=desk.clock())
