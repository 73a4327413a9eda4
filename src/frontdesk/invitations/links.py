"""The two links of an invitation, register and unsubscribe: how their tokens are made and found again; it sends nothing.

A token is HMAC-SHA256 over the Message-ID with FRONTDESK_LINK_SECRET, which is kept outside the database. So a second copy
of a mail, after the relay's answer was lost, carries the same links, though the database holds only hashes of them.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit, urlunsplit

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations import letter_store

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64url


@dataclass(frozen=True, slots=True)
class Tokens:
    """The secrets of one mail: who has them may register, or unsubscribe the address."""

    registration: str
    unsubscribe: str


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a registration link leads: the plan's name, and the account's own page when it has one."""

    plan_name: str
    registration_url: str | None


@dataclass(frozen=True, slots=True)
class Unsubscriber:
    """Whose unsubscribe link it is: one invitation, sent to this address."""

    invitation_id: int
    account_id: int
    address: str


def derive_tokens(link_secret: str, message_id: str) -> Tokens:
    """The tokens of the mail with this Message-ID; the same each time."""
    return Tokens(
        _derived(link_secret, "registration", message_id), _derived(link_secret, "unsubscribe", message_id)
    )


def give_tokens(
    tx: Tx, message_ids: Mapping[int, str], *, link_secret: str, now: datetime
) -> dict[int, Tokens]:
    """The tokens of these mails, by invitation id, and their hashes kept so that the links work.

    Called with the Message-IDs by invitation id in the transaction that claims the invitations, before anything leaves.
    Giving the same again changes nothing.
    """
    tokens = {id_: derive_tokens(link_secret, message_id) for id_, message_id in message_ids.items()}
    at = stored_time(now)
    rows = [
        {
            "registration_hash": digest(pair.registration),
            "unsubscribe_hash": digest(pair.unsubscribe),
            "message_id": message_ids[id_],
            "invitation_id": id_,
            "created_at": at,
        }
        for id_, pair in tokens.items()
    ]
    letter_store.insert_links(tx, rows)
    return tokens


def find_landing(tx: Tx, token: str) -> Landing | None:
    """What the registration token opens; None for one that was never given out."""
    row = letter_store.find_landing(tx, digest(token)) if _TOKEN.fullmatch(token) else None
    return None if row is None else Landing(row["name"], row["registration_url"])


def find_unsubscriber(tx: Tx, token: str) -> Unsubscriber | None:
    """Whom the unsubscribe token was sent to; None for one that was never given out."""
    row = letter_store.find_unsubscriber(tx, digest(token)) if _TOKEN.fullmatch(token) else None
    return None if row is None else Unsubscriber(**row)


def registration_link(*, base_url: str, registration_url: str | None, token: str) -> str:
    """The account's own page with the token as `invitation`; without one, our page, which can lead on to it later."""
    if registration_url is None:
        return f"{base_url}/register/{token}"
    parts = urlsplit(registration_url)
    # What is there stays as it is; a letter that no URL may hold is encoded, so that it can't end the link early.
    query = "&".join(part for part in (parts.query, f"invitation={token}") if part)
    return quote(urlunsplit(parts._replace(query=query)), safe="/:?#[]@!$&'()*+,;=%-._~")


def unsubscribe_link(*, base_url: str, token: str) -> str:
    return f"{base_url}/unsubscribe/{token}"


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _derived(link_secret: str, purpose: str, message_id: str) -> str:
    # No purpose holds a space, so no two pairs of purpose and Message-ID are the same text.
    mac = hmac.digest(link_secret.encode(), f"{purpose} {message_id}".encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
