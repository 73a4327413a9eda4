"""The two links of a message: register and unsubscribe.

The token of a link is HMAC-SHA256 over the Message-ID with FRONTDESK_LINK_SECRET, which is kept outside the database
(docs/decisions/0035). So a second copy of a message carries the same links, though the database holds only hashes of their
tokens.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit, urlunsplit

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import insert_missing
from frontdesk.invitations import store
from frontdesk.invitations.model import LinkPurpose, LinkTarget, LinkTokens
from frontdesk.invitations.tables import invitation_links

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64url


def derive_tokens(link_secret: str, message_id: str) -> LinkTokens:
    """The tokens of the message with this Message-ID; the same each time."""
    # No purpose holds a space, so no two pairs of purpose and Message-ID are the same text.
    digests = (
        hmac.digest(link_secret.encode(), f"{purpose} {message_id}".encode(), "sha256")
        for purpose in ("registration", "unsubscribe")
    )
    return LinkTokens(*(base64.urlsafe_b64encode(raw).rstrip(b"=").decode() for raw in digests))


def issue_tokens(
    tx: Tx, message_ids: Mapping[int, str], *, link_secret: str, now: datetime
) -> dict[int, LinkTokens]:
    """The tokens of these messages (Message-IDs by invitation id), with their hashes stored so that the links work.

    Runs in the transaction that claims the invitations, before anything leaves. Stored tokens stay as they are.
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
    insert_missing(tx, invitation_links, rows)
    return tokens


def find_link_target(tx: Tx, purpose: LinkPurpose, token: str) -> LinkTarget | None:
    """What the link with this token belongs to; None for a token that was never issued for the purpose."""
    return store.find_link_target(tx, purpose, digest(token)) if _TOKEN.fullmatch(token) else None


def registration_link(*, base_url: str, registration_url: str | None, token: str) -> str:
    """The account's own page with the token as `invitation`; without one, our page, which can lead on to it later."""
    if registration_url is None:
        return f"{base_url}/register/{token}"
    parts = urlsplit(registration_url)
    # What is there stays as it is; a character that no URL may hold is encoded, so that it can't end the link early.
    query = "&".join(part for part in (parts.query, f"invitation={token}") if part)
    return quote(urlunsplit(parts._replace(query=query)), safe="/:?#[]@!$&'()*+,;=%-._~")


def digest(token: str) -> str:
    """The hash by which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
