"""Second factors: codes of an authenticator (RFC 6238, by pyotp) and recovery codes.

A seed is derived from FRONTDESK_LINK_SECRET and a random salt that is stored with the user, as the
secrets of webhooks are: a copy of the database alone makes no code. Another link secret makes every
second factor useless; recovery codes stay good.
"""

import hmac
import re
import secrets
from base64 import b32encode
from datetime import datetime
from typing import NamedTuple

import segno
from pyotp import TOTP

from frontdesk.access.callers import digest
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.users import store
from frontdesk.users.model import FactorOffer, NotFresh, Session

STEP_SECONDS = 30
STEPS_BESIDE = (0, -1, 1)  # clocks of phones differ, and typing takes time
SEED_BYTES = 20  # those of SHA-1, which every authenticator knows
RECOVERY_CODES = 10
RECOVERY_BYTES = 15  # 120 bits: 24 letters and digits of base32
_CODE = re.compile("[0-9]{6}")
_RECOVERY_CODE = re.compile("[A-Z2-7]{24}")
_LONGEST_TYPED = 64


class FactorKey(NamedTuple):
    """What seeds are derived from, and the name that an authenticator shows.

    `link_secret` is FRONTDESK_LINK_SECRET; `issuer` is the product and the installation's host.
    """

    link_secret: str
    issuer: str


def offered_factor(tx: Tx, key: FactorKey, user_id: int) -> FactorOffer:
    """The second factor that the user is setting up: the same at each call until it is confirmed.
    Reads only. Raises NotFound (`second factor`) if none is being set up.
    """
    found = store.find_credentials(tx, user_id)
    if found is None or found.offered_salt is None:
        raise NotFound("second factor", "No second factor is being set up.")
    code = _totp(key.link_secret, found.offered_salt)
    uri = code.provisioning_uri(name=found.user.email, issuer_name=key.issuer)
    image = segno.make_qr(uri, error="m")
    # No style of its own: the pages' policy allows none.
    svg = image.svg_inline(
        scale=4, border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None
    )
    seed = code.secret
    groups = [seed[place : place + 4] for place in range(0, len(seed), 4)]
    return FactorOffer(" ".join(groups), uri, svg)


def offer_factor(tx: Tx, session: Session, requester: Requester) -> None:
    """Begin to set up another second factor for the user of the session. The present one stays in
    force until `sessions.change_factor` confirms the new one. Raises NotFresh.
    """
    if not session.is_fresh(requester.now):
        raise NotFresh
    new_offer(tx, session.user.id)


def new_offer(tx: Tx, user_id: int) -> None:
    """A salt for a second factor that is being set up; the offer before it ends."""
    store.change_user(tx, user_id, offered_salt=secrets.token_hex(32))


def count_recovery_codes(tx: Tx, user_id: int) -> int:
    """How many recovery codes the user has left."""
    return store.count_recovery_codes(tx, user_id)


def accept_code(tx: Tx, key: FactorKey, user: store.Credentials, code: str, now: datetime) -> bool:
    """Whether the code is one of the user's authenticator, or a recovery code. It is used up then:
    it counts once, also in two processes.
    """
    typed = _typed(code)
    if _CODE.fullmatch(typed):
        return user.factor_salt is not None and _accept_step(
            tx, key, user.user.id, user.factor_salt, typed, now
        )
    if _RECOVERY_CODE.fullmatch(typed):
        return store.use_recovery_code(tx, user.user.id, digest(typed))
    return False


def is_recovery_code(code: str) -> bool:
    """Whether the text has the form of a recovery code."""
    return _RECOVERY_CODE.fullmatch(_typed(code)) is not None


def accept_offer(
    tx: Tx, key: FactorKey, user: store.Credentials, code: str, now: datetime
) -> tuple[str, ...] | None:
    """If the code is one of the second factor that the user is setting up, it is the user's from
    now on: returns ten new recovery codes. None for a wrong code.
    """
    typed = _typed(code)
    salt = user.offered_salt
    if salt is None or not _CODE.fullmatch(typed):
        return None
    step = _step_of(key.link_secret, salt, typed, now)
    if step is None:
        return None
    changes = {"factor_salt": salt, "offered_salt": None, "factor_step": step}
    changes |= {"factor_removed_at": None, "factor_removed_by": None}
    store.change_user(tx, user.user.id, **changes)
    return new_recovery_codes(tx, user.user.id)


def new_recovery_codes(tx: Tx, user_id: int) -> tuple[str, ...]:
    """Ten new codes, in groups of four; the old ones end."""
    made = [b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode() for _ in range(RECOVERY_CODES)]
    store.replace_recovery_codes(tx, user_id, [digest(code) for code in made])
    return tuple("-".join(re.findall("....", code)) for code in made)


def remove(tx: Tx, user_id: int, requester: Requester) -> None:
    """The user has no second factor any more, and sets one up at the next sign-in."""
    changes = {"factor_salt": None, "offered_salt": None, "factor_step": None}
    removal = {"factor_removed_at": requester.now, "factor_removed_by": requester.actor}
    store.change_user(tx, user_id, **changes, **removal)
    store.replace_recovery_codes(tx, user_id, [])


def _typed(code: str) -> str:
    """The code without the spaces and hyphens that people type or paste."""
    return re.sub(r"[\s-]", "", code[:_LONGEST_TYPED]).upper()


def _accept_step(tx: Tx, key: FactorKey, user_id: int, salt: str, code: str, now: datetime) -> bool:
    step = _step_of(key.link_secret, salt, code, now)
    return step is not None and store.use_step(tx, user_id, step)


def _step_of(link_secret: str, salt: str, code: str, now: datetime) -> int | None:
    """The step of 30 s whose code this is, of those around now."""
    totp = _totp(link_secret, salt)
    present = int(now.timestamp()) // STEP_SECONDS
    found = None
    for beside in STEPS_BESIDE:  # all of them, so that the time reveals nothing
        if hmac.compare_digest(totp.generate_otp(present + beside), code):
            found = present + beside if found is None else found
    return found


def _totp(link_secret: str, salt: str) -> TOTP:
    seed = hmac.digest(link_secret.encode(), b"second factor " + salt.encode(), "sha256")
    return TOTP(b32encode(seed[:SEED_BYTES]).decode())
