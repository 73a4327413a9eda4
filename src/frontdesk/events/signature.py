"""Signatures of webhooks by Standard Webhooks 1.0, made by its library, and their secrets.

A secret is derived from FRONTDESK_LINK_SECRET and a random salt that is stored with the endpoint,
so a copy of the database alone signs nothing (docs/security.md).
"""

import hmac
import secrets
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook


def new_salt() -> str:
    return secrets.token_hex(32)


def derive_secret(link_secret: str, salt: str) -> bytes:
    """The 32 bytes that sign the webhooks of the endpoint with this salt."""
    return hmac.digest(link_secret.encode(), b"webhook " + salt.encode(), "sha256")


def secret_text(secret: bytes) -> str:
    return "whsec_" + b64encode(secret).decode()


def signed_headers(
    secrets_: Sequence[bytes], *, event_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """The three headers of a webhook. `timestamp` is in seconds since 1970, `body` is UTF-8.

    Each secret signs, so that the receiver can change from one to the next.
    """
    text = body.decode()
    signed_at = datetime.fromtimestamp(timestamp, UTC)  # the library takes any time as one of UTC
    signatures = [Webhook(secret).sign(event_id, signed_at, text) for secret in secrets_]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
