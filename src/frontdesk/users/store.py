"""The SQL of users, their links, factors, sessions and browsers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, delete, func, insert, select, text, update

from frontdesk.access.model import AccountState
from frontdesk.access.tables import accounts, api_clients, client_secrets
from frontdesk.db import Tx
from frontdesk.db.sets import SameKey, count_by_key
from frontdesk.reach import Reach
from frontdesk.text import stored_time
from frontdesk.users.model import NewUser, Role, Session, User, UserInvitation, UserState
from frontdesk.users.tables import (
    client_secrets_seen,
    known_browsers,
    password_resets,
    recovery_codes,
    sessions,
    sign_in_attempts,
    used_forms,
    user_invitations,
    users,
)

MOST_DELETED = 1000  # rows of a kind, in one transaction of the retention

Row = RowMapping | Mapping[str, Any]

_u = users.c
_s = sessions.c
# As text: a partial index is used for that only.
_IS_ACTIVE = text("users.state = 'active'")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a user proves to be one with, and whether the user can sign in now: neither the user
    nor the account has ended or waits.
    """

    user: User
    password_hash: str | None
    factor_salt: str | None
    offered_salt: str | None
    factor_step: int | None
    factor_removed_at: datetime | None
    factor_removed_by: str | None
    is_admitted: bool


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session with its user's credentials, and its wrong codes since the last right one."""

    session: Session
    wrong_codes: int
    credentials: Credentials


_OF_USER = [column.label(f"user_{column.name}") for column in users.c]
_CREDENTIALS = (
    select(*_OF_USER, accounts.c.state.label("account_state"))
    .select_from(users)
    .join(accounts, SameKey(accounts.c.id, _u.account_id), isouter=True)
)
_OF_SESSION = [column.label(f"session_{column.name}") for column in sessions.c]
_SESSIONS_WITH_USERS = sessions.join(users, SameKey(_u.id, _s.user_id)).join(
    accounts, SameKey(accounts.c.id, _u.account_id), isouter=True
)
_STORED_SESSION = select(
    *_OF_SESSION, *_OF_USER, accounts.c.state.label("account_state")
).select_from(_SESSIONS_WITH_USERS)


def _user(row: Row) -> User:
    named = row["user_named_accounts"]
    roles = {Role(role): datetime.fromisoformat(at) for role, at in row["user_roles"].items()}
    return User(
        id=row["user_id"],
        email=row["user_email"],
        name=row["user_name"],
        account_id=row["user_account_id"],
        named_accounts=None if named is None else frozenset(named),
        roles=roles,
        time_zone=row["user_time_zone"],
        state=row["user_state"],
        has_second_factor=row["user_factor_salt"] is not None,
        is_demo=row["user_is_demo"],
        invited_by=row["user_invited_by"],
        created_at=row["user_created_at"],
        last_signed_in_at=row["user_last_signed_in_at"],
        ended_at=row["user_ended_at"],
    )


def _credentials(row: Row) -> Credentials:
    user = _user(row)
    is_working = row["account_state"] in (None, AccountState.ACTIVE)
    return Credentials(
        user=user,
        password_hash=row["user_password_hash"],
        factor_salt=row["user_factor_salt"],
        offered_salt=row["user_offered_salt"],
        factor_step=row["user_factor_step"],
        factor_removed_at=row["user_factor_removed_at"],
        factor_removed_by=row["user_factor_removed_by"],
        is_admitted=user.state is UserState.ACTIVE and is_working,
    )


def role_times(roles: Mapping[Role, datetime]) -> dict[str, str]:
    """Roles as the column has them."""
    return {str(role): stored_time(at) for role, at in sorted(roles.items())}


def insert_user(
    tx: Tx,
    new: NewUser,
    *,
    name: str,
    password_hash: str,
    invited_by: tuple[str, datetime],
    is_demo: bool = False,
) -> int:
    """A new user, `invited_by` an actor, who has the roles since the time beside it; returns the
    id.
    """
    actor, now = invited_by
    row = {
        "account_id": new.account_id,
        "email": new.email,
        "name": name,
        "roles": role_times(dict.fromkeys(new.roles, now)),
        "named_accounts": None if new.named_accounts is None else sorted(new.named_accounts),
        "state": UserState.ACTIVE,
        "is_demo": is_demo,
        "password_hash": password_hash,
        "invited_by": actor,
        "created_at": now,
    }
    return int(tx.execute(insert(users).values(row).returning(_u.id)).scalar_one())


def change_user(tx: Tx, user_id: int, **changes: object) -> None:
    """Change columns of the user."""
    tx.execute(update(users).where(_u.id == user_id).values(changes))


def lock_user(tx: Tx, user_id: int) -> None:
    """Other changes of the user, its sessions and its sign-ins wait until this transaction ends."""
    tx.execute(select(_u.id).where(_u.id == user_id).with_for_update(key_share=True))


def find_credentials(tx: Tx, user_id: int) -> Credentials | None:
    row = tx.execute(_CREDENTIALS.where(_u.id == user_id)).mappings().first()
    return None if row is None else _credentials(row)


def find_by_email(tx: Tx, email: str) -> Credentials | None:
    """The user who signs in by this e-mail, folded; none who has ended."""
    row = tx.execute(_CREDENTIALS.where(_u.email == email, _IS_ACTIVE)).mappings().first()
    return None if row is None else _credentials(row)


def list_users(tx: Tx, reach: Reach, *, with_ended: bool) -> list[User]:
    """The users within reach, by e-mail."""
    query = _CREDENTIALS.order_by(_u.email, _u.id)
    if reach.account_id is not None:
        query = query.where(_u.account_id == reach.account_id)
    if not with_ended:
        query = query.where(_IS_ACTIVE)
    return [_credentials(row).user for row in tx.execute(query).mappings()]


def list_home(
    tx: Tx, account_id: int | None, *, with_ended: bool, before_id: int, limit: int
) -> list[User]:
    """The users of one home before an id, the newest first: those of the account, or with None those
    of the installation.
    """
    query = _CREDENTIALS.where((_u.account_id == account_id) & (_u.id < before_id))
    if not with_ended:
        query = query.where(_IS_ACTIVE)
    query = query.order_by(_u.id.desc()).limit(limit)
    return [_credentials(row).user for row in tx.execute(query).mappings()]


def find_users(tx: Tx, user_ids: Collection[int]) -> list[User]:
    query = _CREDENTIALS.where(_u.id.in_(sorted(user_ids)))
    return [_credentials(row).user for row in tx.execute(query).mappings()]


def count_by_account(tx: Tx, account_ids: Collection[int], *, most: int) -> dict[int, int]:
    """How many users of each account have not ended, `most` at most."""
    rows = "FROM users WHERE account_id = :key AND state = 'active'"
    return count_by_key(tx, rows, account_ids, most=most)


def count_users(tx: Tx, account_id: int | None) -> int:
    """The users of the account, or of the installation, who have not ended, and its invitations."""
    found = 0
    for table in (users, user_invitations):
        query = select(func.count()).select_from(table).where(table.c.account_id == account_id)
        if table is users:
            query = query.where(_IS_ACTIVE)
        found += int(tx.execute(query).scalar_one())
    return found


def use_step(tx: Tx, user_id: int, step: int) -> bool:
    """Store the step of a code; False if this step, or a later one, was used before."""
    is_new = _u.factor_step.is_(None) | (_u.factor_step < step)
    mine = (_u.id == user_id) & is_new
    return tx.execute(update(users).where(mine).values(factor_step=step)).rowcount == 1


def replace_recovery_codes(tx: Tx, user_id: int, hashes: Sequence[bytes]) -> None:
    tx.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))
    if hashes:
        rows = [{"user_id": user_id, "code_hash": each} for each in hashes]
        tx.execute(insert(recovery_codes), rows)


def use_recovery_code(tx: Tx, user_id: int, code_hash: bytes) -> bool:
    """True if the user had this code; it has none of it any more."""
    columns = recovery_codes.c
    mine = (columns.user_id == user_id) & (columns.code_hash == code_hash)
    return tx.execute(delete(recovery_codes).where(mine)).rowcount == 1


def count_recovery_codes(tx: Tx, user_id: int) -> int:
    query = select(func.count()).where(recovery_codes.c.user_id == user_id)
    return int(tx.execute(query).scalar_one())


def insert_invitation(
    tx: Tx, new: NewUser, *, secret_hash: bytes, invited_by: str, times: tuple[datetime, datetime]
) -> int:
    """`times`: from when and until when it can be used. It replaces an invitation of the same
    e-mail into the same account.
    """
    created_at, expires_at = times
    columns = user_invitations.c
    same = (columns.email == new.email) & (columns.account_id == new.account_id)
    tx.execute(delete(user_invitations).where(same))
    row = {
        "secret_hash": secret_hash,
        "account_id": new.account_id,
        "email": new.email,
        "roles": sorted(new.roles),
        "named_accounts": None if new.named_accounts is None else sorted(new.named_accounts),
        "invited_by": invited_by,
        "created_at": created_at,
        "expires_at": expires_at,
    }
    statement = insert(user_invitations).values(row).returning(columns.id)
    return int(tx.execute(statement).scalar_one())


def _invitation(row: RowMapping) -> UserInvitation:
    named = row["named_accounts"]
    new = NewUser(
        row["email"],
        row["account_id"],
        frozenset(map(Role, row["roles"])),
        None if named is None else frozenset(named),
    )
    return UserInvitation(row["id"], new, row["invited_by"], row["created_at"], row["expires_at"])


def list_invitations(tx: Tx, reach: Reach, *, now: datetime) -> list[UserInvitation]:
    """Those within reach that can be used; the newest first."""
    columns = user_invitations.c
    query = select(user_invitations).where(columns.expires_at > now).order_by(columns.id.desc())
    if reach.account_id is not None:
        query = query.where(columns.account_id == reach.account_id)
    return [_invitation(row) for row in tx.execute(query).mappings()]


def list_invitations_of_home(
    tx: Tx, account_id: int | None, *, now: datetime, before_id: int, limit: int
) -> list[UserInvitation]:
    """Those into one home that can be used, before an id; the newest first."""
    columns = user_invitations.c
    mine = (columns.account_id == account_id) & (columns.id < before_id)
    query = select(user_invitations).where(mine, columns.expires_at > now)
    query = query.order_by(columns.id.desc()).limit(limit)
    return [_invitation(row) for row in tx.execute(query).mappings()]


def find_invitation(tx: Tx, secret_hash: bytes) -> UserInvitation | None:
    query = select(user_invitations).where(user_invitations.c.secret_hash == secret_hash)
    row = tx.execute(query).mappings().first()
    return None if row is None else _invitation(row)


def get_invitation(tx: Tx, invitation_id: int) -> UserInvitation | None:
    query = select(user_invitations).where(user_invitations.c.id == invitation_id)
    row = tx.execute(query).mappings().first()
    return None if row is None else _invitation(row)


def delete_invitation(tx: Tx, invitation_id: int) -> bool:
    """False if it is gone already."""
    mine = user_invitations.c.id == invitation_id
    return tx.execute(delete(user_invitations).where(mine)).rowcount == 1


def replace_reset(
    tx: Tx, user_id: int, *, secret_hash: bytes, made_by: str, times: tuple[datetime, datetime]
) -> None:
    """`times`: from when and until when it can be used."""
    tx.execute(delete(password_resets).where(password_resets.c.user_id == user_id))
    created_at, expires_at = times
    row = {"user_id": user_id, "secret_hash": secret_hash, "made_by": made_by}
    row |= {"created_at": created_at, "expires_at": expires_at}
    tx.execute(insert(password_resets).values(row))


def delete_links_by(tx: Tx, actor: str) -> None:
    """Delete the invitations and the resets that the user has made for others."""
    tx.execute(delete(user_invitations).where(user_invitations.c.invited_by == actor))
    tx.execute(delete(password_resets).where(password_resets.c.made_by == actor))


def find_reset(tx: Tx, secret_hash: bytes, now: datetime) -> int | None:
    """The user of the reset."""
    columns = password_resets.c
    mine = (columns.secret_hash == secret_hash) & (columns.expires_at > now)
    return tx.execute(select(columns.user_id).where(mine)).scalar()


def delete_reset(tx: Tx, secret_hash: bytes) -> bool:
    """False if it is gone already."""
    mine = password_resets.c.secret_hash == secret_hash
    return tx.execute(delete(password_resets).where(mine)).rowcount == 1


def insert_attempt(
    tx: Tx, user_id: int, *, secret_hash: bytes, created_at: datetime, expires_at: datetime
) -> None:
    """It ends the user's earlier ones that have expired."""
    columns = sign_in_attempts.c
    over = (columns.user_id == user_id) & (columns.expires_at <= created_at)
    tx.execute(delete(sign_in_attempts).where(over))
    row = {"secret_hash": secret_hash, "user_id": user_id, "wrong_codes": 0}
    times = {"created_at": created_at, "expires_at": expires_at}
    tx.execute(insert(sign_in_attempts).values(row | times))


def find_attempt(tx: Tx, secret_hash: bytes, now: datetime) -> tuple[int, int, datetime] | None:
    """The user, the number of wrong codes and the end of a sign-in that has not ended."""
    columns = sign_in_attempts.c
    mine = (columns.secret_hash == secret_hash) & (columns.expires_at > now)
    row = tx.execute(select(columns.user_id, columns.wrong_codes, columns.expires_at).where(mine))
    found = row.first()
    return None if found is None else (found[0], found[1], found[2])


def change_attempt(tx: Tx, secret_hash: bytes, wrong_codes: int) -> None:
    mine = sign_in_attempts.c.secret_hash == secret_hash
    tx.execute(update(sign_in_attempts).where(mine).values(wrong_codes=wrong_codes))


def delete_attempt(tx: Tx, secret_hash: bytes) -> None:
    tx.execute(delete(sign_in_attempts).where(sign_in_attempts.c.secret_hash == secret_hash))


def insert_session(tx: Tx, row: Mapping[str, Any], *, most: int) -> int:
    """The id of the new session. The user's oldest ends if there are `most` already."""
    mine = _s.user_id == row["user_id"]
    newest = select(_s.id).where(mine).order_by(_s.user_id.desc(), _s.id.desc()).offset(most - 1)
    beyond = list(tx.execute(newest).scalars())
    tx.execute(delete(sessions).where(_s.id.in_(beyond)))
    return int(tx.execute(insert(sessions).values(dict(row)).returning(_s.id)).scalar_one())


def _stored_session(row: Row) -> StoredSession:
    found = _credentials(row)
    session = Session(
        id=row["session_id"],
        user=found.user,
        created_at=row["session_created_at"],
        last_used_at=row["session_last_used_at"],
        ends_at=row["session_ends_at"],
        factor_at=row["session_factor_at"],
    )
    return StoredSession(session, row["session_wrong_codes"], found)


def find_session(tx: Tx, secret_hash: bytes) -> StoredSession | None:
    """The session; it may have ended by time."""
    row = tx.execute(_STORED_SESSION.where(_s.secret_hash == secret_hash)).mappings().first()
    return None if row is None else _stored_session(row)


def find_sessions(tx: Tx, secret_hashes: Collection[bytes]) -> dict[bytes, StoredSession]:
    """What `find_session` answers, by the hash; those that are not stored are missing."""
    query = _STORED_SESSION.where(_s.secret_hash.in_(sorted(secret_hashes)))
    rows = tx.execute(query).mappings()
    return {row["session_secret_hash"]: _stored_session(row) for row in rows}


def list_sessions(tx: Tx, user_id: int) -> list[Session]:
    """The newest first; some may have ended by time."""
    query = _STORED_SESSION.where(_s.user_id == user_id).order_by(_s.user_id.desc(), _s.id.desc())
    return [_stored_session(row).session for row in tx.execute(query).mappings()]


def change_session(tx: Tx, session_id: int, **changes: object) -> None:
    tx.execute(update(sessions).where(_s.id == session_id).values(changes))


def note_session_use(tx: Tx, session_id: int, now: datetime) -> None:
    """Never moves the last use back."""
    mine = (_s.id == session_id) & (_s.last_used_at < now)
    tx.execute(update(sessions).where(mine).values(last_used_at=now))


def delete_session(tx: Tx, user_id: int, session_id: int) -> bool:
    mine = (_s.id == session_id) & (_s.user_id == user_id)
    return tx.execute(delete(sessions).where(mine)).rowcount == 1


def delete_sessions(tx: Tx, user_id: int, *, but: int | None = None) -> int:
    """End the user's sessions and sign-ins under way, `but` one session; returns how many sessions
    there were.
    """
    tx.execute(delete(sign_in_attempts).where(sign_in_attempts.c.user_id == user_id))
    mine = _s.user_id == user_id
    if but is not None:
        mine &= _s.id != but
    return tx.execute(delete(sessions).where(mine)).rowcount


def is_known_browser(tx: Tx, secret_hash: bytes, user_id: int) -> bool:
    columns = known_browsers.c
    mine = (columns.secret_hash == secret_hash) & (columns.user_id == user_id)
    return tx.execute(select(columns.user_id).where(mine)).first() is not None


def renew_browser(
    tx: Tx, user_id: int, *, old_hash: bytes | None, new_hash: bytes, now: datetime, most: int
) -> None:
    """The browser has signed the user in. All users of the old secret are known by the new one. Of
    the user's browsers the `most` seen last stay.
    """
    columns = known_browsers.c
    if old_hash is not None:
        same = columns.secret_hash == old_hash
        tx.execute(delete(known_browsers).where(same, columns.user_id == user_id))
        tx.execute(update(known_browsers).where(same).values(secret_hash=new_hash))
    row = {"secret_hash": new_hash, "user_id": user_id, "seen_at": now}
    tx.execute(insert(known_browsers).values(row))
    mine = columns.user_id == user_id
    query = (
        select(columns.secret_hash)
        .where(mine)
        .order_by(columns.user_id.desc(), columns.seen_at.desc())
        .offset(most)
    )
    beyond = list(tx.execute(query).scalars())
    tx.execute(delete(known_browsers).where(mine, columns.secret_hash.in_(beyond)))


def forget_user(tx: Tx, user_id: int) -> None:
    """Delete what lets the user in: sessions, sign-ins, browsers, recovery codes, a reset; and which
    forms have shown a secret.
    """
    delete_sessions(tx, user_id)
    for table in (known_browsers, recovery_codes, password_resets, used_forms):
        tx.execute(delete(table).where(table.c.user_id == user_id))


def use_form(tx: Tx, user_id: int, number_hash: bytes, now: datetime) -> bool:
    """Note that the form has shown a secret; False if it had already. The user's row is locked."""
    columns = used_forms.c
    mine = (columns.user_id == user_id) & (columns.number_hash == number_hash)
    if tx.execute(select(columns.user_id).where(mine)).first() is not None:
        return False
    row = {"user_id": user_id, "number_hash": number_hash, "used_at": now}
    tx.execute(insert(used_forms).values(row))
    return True


def note_secret_seen(tx: Tx, user_id: int, client: int, now: datetime) -> None:
    columns = client_secrets_seen.c
    mine = (columns.user_id == user_id) & (columns.api_client_id == client)
    if tx.execute(update(client_secrets_seen).where(mine).values(seen_at=now)).rowcount == 0:
        row = {"user_id": user_id, "api_client_id": client, "seen_at": now}
        tx.execute(insert(client_secrets_seen).values(row))


def clients_seen(tx: Tx, user_id: int) -> list[str]:
    """The public ids of the clients whose secret the user was shown, and that still have a secret of
    that time or before.
    """
    known = select(client_secrets.c.id).where(
        SameKey(client_secrets.c.api_client_id, client_secrets_seen.c.api_client_id),
        client_secrets.c.revoked_at.is_(None),
        client_secrets.c.created_at <= client_secrets_seen.c.seen_at,
    )
    query = (
        select(api_clients.c.client_id)
        .select_from(client_secrets_seen)
        .join(api_clients, SameKey(api_clients.c.id, client_secrets_seen.c.api_client_id))
        .where(
            client_secrets_seen.c.user_id == user_id, known.correlate(client_secrets_seen).exists()
        )
    )
    return list(tx.execute(query.order_by(api_clients.c.id)).scalars())


def users_who_saw(tx: Tx, client: int) -> dict[int, datetime]:
    columns = client_secrets_seen.c
    query = select(columns.user_id, columns.seen_at).where(columns.api_client_id == client)
    return {int(user_id): seen_at for user_id, seen_at in tx.execute(query)}


def delete_expired(tx: Tx, before: datetime, *, unseen_since: datetime) -> int:
    """Delete what has expired before a time, 1000 rows of a kind at most: invitations, resets,
    sign-ins, sessions; and before another time browsers that have signed no one in since, and the
    numbers of forms.
    """
    ends = (
        (user_invitations.c.id, user_invitations.c.expires_at, before),
        (password_resets.c.user_id, password_resets.c.expires_at, before),
        (sign_in_attempts.c.secret_hash, sign_in_attempts.c.expires_at, before),
        (sessions.c.id, sessions.c.ends_at, before),
        (known_browsers.c.secret_hash, known_browsers.c.seen_at, unseen_since),
        (used_forms.c.number_hash, used_forms.c.used_at, unseen_since),
    )
    count = 0
    for row_key, end, limit in ends:
        old = tx.execute(select(row_key).where(end < limit).limit(MOST_DELETED)).scalars().all()
        over = row_key.in_(old) & (end < limit)
        count += tx.execute(delete(row_key.table).where(over)).rowcount
    return count


def delete_users(tx: Tx, user_ids: Iterable[int]) -> None:
    """Delete ended users, and which secrets they saw."""
    ids = sorted(user_ids)
    tx.execute(delete(client_secrets_seen).where(client_secrets_seen.c.user_id.in_(ids)))
    tx.execute(delete(users).where(_u.id.in_(ids)))
