"""Demo users of a sandbox: random passwords, no second factor. Production refuses to serve while
one exists.
"""

import secrets
from dataclasses import replace
from datetime import datetime

from frontdesk.audit import Requester
from frontdesk.codes.operators import EMAIL_TAKEN
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Conflict
from frontdesk.users import passwords, store
from frontdesk.users.emails import parse_email
from frontdesk.users.model import NewUser, User
from frontdesk.users.names import read_name
from frontdesk.users.roles import check_roles
from frontdesk.users.trail import record

PASSWORD_BYTES = 12  # 16 letters, digits and signs
INVITED_BY = "sandbox"


def create_demo_user(db: Database, new: NewUser, *, name: str, now: datetime) -> tuple[User, str]:
    """A user of a sandbox and the random password; the same e-mail again gets another password.
    Only the sandbox calls it, without a transaction. Raises Invalid.
    """
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    password_hash = passwords.hash_password(password)
    email = parse_email(new.email)

    def make(tx: Tx) -> User:
        check_roles(tx, new.account_id, new.roles, new.named_accounts)
        found = store.find_by_email(tx, email)
        if found is not None and not found.user.is_demo:
            raise Conflict("Another user signs in by this e-mail.", code=EMAIL_TAKEN)
        if found is not None:
            store.change_user(tx, found.user.id, password_hash=password_hash)
            store.delete_sessions(tx, found.user.id)
            return found.user
        user_id = store.insert_user(
            tx,
            replace(new, email=email),
            name=read_name(name),
            password_hash=password_hash,
            invited_by=(INVITED_BY, now),
            is_demo=True,
        )
        [user] = store.find_users(tx, [user_id])
        record(tx, Requester(INVITED_BY, INVITED_BY, now), "user.demo_made", user)
        return user

    return write_alone(db, make), password
