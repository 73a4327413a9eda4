"""The users: find, list, change roles, end."""

from collections.abc import Collection, Iterable
from datetime import datetime

from frontdesk import codes
from frontdesk.access.accounts import get_client
from frontdesk.audit import Requester
from frontdesk.audit.actors import user_id_of
from frontdesk.clock import find_time_zone
from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.errors import Conflict, Fault, Invalid, NotFound
from frontdesk.reach import EVERY, Reach
from frontdesk.users import factors, store
from frontdesk.users.model import EndedUser, NoLongerManager, Right, Role, User, UserState
from frontdesk.users.names import read_name
from frontdesk.users.roles import check_roles
from frontdesk.users.trail import record, record_own

PAGE = 50
LAST = 2**62  # an id after those of all users
# Who looks after the users of a home: nobody gives up the own role of these.
_MANAGERS = (Role.ADMIN, Role.OPERATOR)


def get_user(tx: Tx, reach: Reach, user_id: int) -> User:
    """The user, also an ended one. Raises NotFound, also for a user outside the reach. A user of
    the installation is within EVERY only.
    """
    found = store.find_credentials(tx, user_id)
    if found is None or not reach.covers(found.user.account_id):
        raise NotFound("user")
    return found.user


def list_users(tx: Tx, reach: Reach, *, with_ended: bool = False) -> list[User]:
    """The users of the account within reach, by e-mail; with EVERY all users."""
    return store.list_users(tx, reach, with_ended=with_ended)


def count_by_account(tx: Tx, account_ids: Collection[int], *, most: int) -> dict[int, int]:
    """How many users of each account have not ended, `most` at most."""
    return store.count_by_account(tx, account_ids, most=most)


def list_home(
    tx: Tx,
    account_id: int | None,
    *,
    with_ended: bool = False,
    before_id: int = LAST,
    limit: int = PAGE,
) -> list[User]:
    """A page of the users of one home, the newest first: those of the account, or with None those of
    the installation.
    """
    return store.list_home(tx, account_id, with_ended=with_ended, before_id=before_id, limit=limit)


def get_of_home(tx: Tx, account_id: int | None, user_id: int) -> User:
    """The user of this home, also an ended one. Raises NotFound, also for a user of another home: an
    operator looks after users of an account at the command line only.
    """
    found = store.find_credentials(tx, user_id)
    if found is None or found.user.account_id != account_id:
        raise NotFound("user")
    return found.user


def find_users(tx: Tx, user_ids: Collection[int]) -> dict[int, User]:
    """Users by id, ended ones too: the names behind actors of the trail."""
    return {user.id: user for user in store.find_users(tx, user_ids)}


def users_with(tx: Tx, right: Right, account_id: int) -> list[User]:
    """The users of the account with this right, by e-mail: who may approve, for instance."""
    users = store.list_users(tx, Reach.of(account_id), with_ended=False)
    return [user for user in users if user.may(right, account_id)]


def change_roles(
    tx: Tx,
    reach: Reach,
    user_id: int,
    roles: Collection[Role],
    requester: Requester,
    *,
    named_accounts: Collection[int] | None = None,
) -> User:
    """Give the user exactly these roles; one that stays keeps its time. The user's sessions end, and so
    do links for others of a user who manages users no more.

    Raises NotFound; Invalid for roles that don't fit; Conflict (`own_user`) for one's own role admin or
    operator, and NoLongerManager: so whoever takes these roles away keeps one.
    """
    user = _locked(tx, reach, user_id)
    _refuse_former_manager(tx, user, requester)
    if any(role in user.roles and role not in roles for role in _MANAGERS):
        refuse_own(user, requester, "Another user has to take this role from you.")
    check_roles(tx, user.account_id, roles, named_accounts)
    times = {role: user.roles.get(role, requester.now) for role in roles}
    named = None if named_accounts is None else sorted(named_accounts)
    store.change_user(tx, user_id, roles=store.role_times(times), named_accounts=named)
    store.delete_sessions(tx, user_id)
    if not any(role in roles for role in _MANAGERS):
        store.delete_links_by(tx, user.actor)
    detail: dict[str, object] = {"roles": sorted(roles), "before": sorted(user.roles)}
    if named is not None:
        detail["accounts"] = named
    record(tx, requester, "user.roles_changed", user, **detail)
    return get_user(tx, reach, user_id)


def end_user(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> EndedUser:
    """End a user for good, with sessions, browsers and links, also those for others. Tells the clients
    whose secret the user has seen. Raises NotFound, Conflict (`own_user`), NoLongerManager.
    """
    user = _locked(tx, reach, user_id)
    _refuse_former_manager(tx, user, requester)
    refuse_own(user, requester, "Another user has to end you.")
    changes = dict.fromkeys(("password_hash", "factor_salt", "offered_salt", "factor_step"))
    store.change_user(tx, user_id, state=UserState.ENDED, ended_at=requester.now, **changes)
    store.forget_user(tx, user_id)
    store.delete_links_by(tx, user.actor)
    seen = clients_seen(tx, user_id)
    record(tx, requester, "user.ended", user, client_ids=list(seen))
    return EndedUser(get_user(tx, reach, user_id), seen)


def remove_factor(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> User:
    """Remove a lost second factor and its recovery codes; the user sets up another at the next
    sign-in, which says who removed it. The user's sessions end. Raises NotFound, Conflict
    (`own_user`). The door asks for a fresh second factor first.
    """
    user = _locked(tx, reach, user_id)
    refuse_own(user, requester, "Change your own second factor on the page of your own settings.")
    factors.remove(tx, user_id, requester)
    store.delete_sessions(tx, user_id)
    record(tx, requester, "user.factor_removed", user)
    return get_user(tx, reach, user_id)


def change_own(
    tx: Tx, user: User, requester: Requester, *, name: str, time_zone: str | None
) -> None:
    """Change one's own name and time zone. Raises Invalid."""
    if time_zone is not None and find_time_zone(time_zone) is None:
        rule = "must be a time zone by its name, such as America/New_York"
        raise Invalid([Fault("time_zone", codes.operators.UNKNOWN_TIME_ZONE, rule)])
    store.change_user(tx, user.id, name=read_name(name), time_zone=time_zone)
    record_own(tx, requester, "user.changed", user)


def clients_seen(tx: Tx, user_id: int) -> tuple[str, ...]:
    """The public ids of the clients whose secret the user was shown, and that still have a secret of
    that time or before: roll those when the user ends.
    """
    return tuple(store.clients_seen(tx, user_id))


def note_secret_seen(tx: Tx, user_id: int, client_id: str, *, now: datetime) -> None:
    """Note that the user was shown a secret of this API client (its public client_id). Raises
    NotFound.
    """
    store.note_secret_seen(tx, user_id, get_client(tx, EVERY, client_id).id, now)


def secret_seen_by(tx: Tx, client_id: str) -> dict[int, datetime]:
    """The ids of the users who were shown a secret of the client, with the last time. Raises
    NotFound.
    """
    return store.users_who_saw(tx, get_client(tx, EVERY, client_id).id)


def delete_expired(tx: Tx, before: datetime, *, unseen_since: datetime) -> int:
    """Delete links, sign-ins and sessions that ended before a time, and browsers that were not seen
    since another. Returns their number; there may be more.
    """
    return store.delete_expired(tx, before, unseen_since=unseen_since)


def delete_ended(tx: Tx, user_ids: Iterable[int]) -> None:
    """Delete users who ended, for good; the trail keeps their ids."""
    store.delete_users(tx, user_ids)


def refuse_own(user: User, requester: Requester, remedy: str) -> None:
    """Raises Conflict (`own_user`) if the requester is the user."""
    if requester.actor == user.actor:
        raise Conflict(remedy, code=codes.operators.OWN_USER)


def _refuse_former_manager(tx: Tx, user: User, requester: Requester) -> None:
    """Raises NoLongerManager if the requester is a user who manages no users any more. The door has
    looked at the session before this transaction, and two admins could end each other at once.
    """
    user_id = user_id_of(requester.actor)
    if user_id is None:
        return
    lock_name(tx, f"managers of users of {user.account_id}")
    found = store.find_credentials(tx, user_id)
    is_there = found is not None and found.user.state is not UserState.ENDED
    if found is None or not is_there or not any(role in found.user.roles for role in _MANAGERS):
        raise NoLongerManager


def _locked(tx: Tx, reach: Reach, user_id: int) -> User:
    """The user, locked. Raises NotFound, also for an ended one."""
    get_user(tx, reach, user_id)
    store.lock_user(tx, user_id)
    user = get_user(tx, reach, user_id)
    if user.state is UserState.ENDED:
        raise NotFound("user", "The user has ended.")
    return user
