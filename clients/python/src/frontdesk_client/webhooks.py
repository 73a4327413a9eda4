"""Verify webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com)."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from time import time
from typing import Any

from frontdesk_client.errors import BadSignature

TOLERANCE_SECONDS = 300


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Iterable[str],
    *,
    now: float | None = None,
) -> dict[str, Any]:
    """The event of a webhook: `type`, `timestamp`, `data`. `body` is the raw body, before any JSON
    parser.

    Give both secrets while one replaces the other. A message may come more than once with the same
    `webhook-id`: keep the ids of the messages that you have handled. Raises BadSignature: no secret
    has signed it, or its timestamp is more than five minutes away. Raises ValueError for a secret
    that has not the form `whsec_…`.
    """
    keys = [key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    values = {name.lower(): value for name, value in headers.items()}
    id_ = values.get("webhook-id", "")
    timestamp = values.get("webhook-timestamp", "")
    if not id_ or not (timestamp.isascii() and timestamp.isdecimal()):
        raise BadSignature("The headers webhook-id and webhook-timestamp are missing or malformed.")
    if abs((time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        raise BadSignature("The webhook-timestamp is more than five minutes away from this clock.")
    signed = f"{id_}.{timestamp}.".encode() + body
    expected = [b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    sent = [
        signature.encode()
        for version, _, signature in (
            part.partition(",") for part in values.get("webhook-signature", "").split()
        )
        if version == "v1"
    ]
    # Every pair is compared, so that the time does not tell which one fits.
    if not any([hmac.compare_digest(one, other) for one in expected for other in sent]):  # noqa: C419
        raise BadSignature("No signature of the message is by one of the secrets.")
    event = json.loads(body)
    if not isinstance(event, dict):
        raise BadSignature("The message is not a JSON object.")
    return event


def key_of(secret: str) -> bytes:
    """The key of a secret `whsec_…`. Raises ValueError."""
    try:
        key = b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("The secret of a webhook is whsec_ and base64.")
    return key
