"""Calls of Amazon SES, Postmark and SendGrid (docs/deliverability.md): whether one is genuine, and
what its events report.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import orjson

from frontdesk.mail.status import read_status

MailProvider = Literal["ses", "sendgrid", "postmark"]
# and purposes of tokens: a link's token opens no address of theirs
PROVIDERS = get_args(MailProvider)
OLDEST_SECONDS = 90_000  # SendGrid repeats for 24 hours, and an event that comes twice counts once
_SIGNED_BY_SNS = (
    "Message",
    "MessageId",
    "Subject",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
)
# Other addresses of SNS answer with words of the caller, such as a certificate of its own.
_CERTIFICATE = re.compile(r"https://[^/]+/SimpleNotificationService-[0-9a-f]+\.pem")

# Ours by the providers' types and subtypes. The status of a bounce decides on the address, unless
# the bounce is `passing`. A transient bounce of SES without another word is left out, unless its
# status is final (`_by_status`): it may be an absence note.
_MEANINGS = {
    "bounced": ("Bounce Permanent", "Bounce HardBounce", "Bounce BadEmailAddress", "bounce"),
    "passing": (
        "Bounce Transient MailboxFull",
        "Bounce Transient MessageTooLarge",
        "Bounce Transient ContentRejected",
        "Reject",
        "Bounce Transient AttachmentRejected",
        "Bounce SoftBounce",
        "Bounce DnsError",
        "Bounce Blocked",
        "Bounce SpamNotification",
        "Bounce DMARCPolicy",
        "Bounce VirusNotification",
        "Bounce ManuallyDeactivated",
        "bounce blocked",
        "dropped",
    ),
    "complained": ("Complaint", "SpamComplaint", "spamreport"),
    "delivered": ("Delivery", "delivered"),
    "": ("Complaint not-spam",),
}
_BY_TYPE = {key: meaning for meaning, keys in _MEANINGS.items() for key in keys}
_EXPIRED = "4.4.7"
_TYPE = "eventType notificationType RecordType event"
_SUBTYPE = "bounce.bounceType complaint.complaintFeedbackType Type type"


def read_events(body: object) -> Iterator[dict[str, object]]:
    """The events that report something, in the form of `POST /operator/v1/email-events`."""
    for event in body if isinstance(body, list) else [body]:
        words = [_first(event, paths) for paths in (_TYPE, _SUBTYPE, "bounce.bounceSubType")]
        keys = (" ".join(words[:count]) for count in (3, 2, 1))
        status = read_status(_first(event, "bounce.bouncedRecipients.status status"))
        kind = next((_BY_TYPE[key] for key in keys if key in _BY_TYPE), "")
        if kind := _by_status(_first(event, "bounce.bounceType"), status) or kind:
            report = (
                {"event": "bounced", "permanent": False} if kind == "passing" else {"event": kind}
            )
            report["message_id"] = _first(event, "message_id Metadata.message-id smtp-id")
            yield report | {"status": status}


def _by_status(bounce_type: str, status: str | None) -> str:
    """The meaning of a bounce of SES whose type says less than its status; "" of any other.

    SES calls an unknown mailbox or domain transient, where the receiver gave no final code for it,
    and so what it has tried until it expired (4.4.7).
    """
    if bounce_type == "Undetermined":
        return "passing" if status is None else "bounced"
    is_final = status is not None and (status == _EXPIRED or status.startswith("5.1."))
    return "bounced" if bounce_type == "Transient" and is_final else ""


def _first(event: object, paths: str) -> str:
    """The first text at one of the dotted paths, or "". Of an array its first value counts: a mail
    has one recipient.
    """
    for path in paths.split():
        value = event
        for name in path.split("."):
            value = value[0] if isinstance(value, list) and value else value
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return ""


def read_sns(body: Any, topic: str, fetch: Callable[[str], bytes]) -> object:
    """The event in a message of SNS, None in one without. `fetch` reads an address of SNS, which
    also confirms a subscription.

    Raises ValueError, TypeError, KeyError and InvalidSignature unless SNS has signed the message
    for the topic.
    """
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.x509 import load_pem_x509_certificate

    digest = {"1": hashes.SHA1(), "2": hashes.SHA256()}[body["SignatureVersion"]]  # noqa: S303 - what version 1 is
    signed = "".join(f"{name}\n{body[name]}\n" for name in _SIGNED_BY_SNS if name in body)
    if body["TopicArn"] != topic or not _CERTIFICATE.fullmatch(body["SigningCertURL"]):
        raise ValueError
    key: Any = load_pem_x509_certificate(fetch(body["SigningCertURL"])).public_key()
    key.verify(b64decode(body["Signature"]), signed.encode(), PKCS1v15(), digest)
    if body["Type"] == "SubscriptionConfirmation":
        fetch(body["SubscribeURL"])
    # A test of SES is a sentence.
    if body["Type"] != "Notification" or not body["Message"].startswith("{"):
        return None
    event = orjson.loads(body["Message"])
    headers = {
        each["name"].lower(): each["value"] for each in event.get("mail", {}).get("headers", ())
    }
    return event | {"message_id": headers.get("message-id")}


def check_sendgrid(raw: bytes, key: str, headers: Sequence[str], now: datetime) -> None:
    """Raises ValueError, TypeError and InvalidSignature unless SendGrid has signed the call lately,
    by the headers.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    signature, signed_at = headers
    if int(signed_at) < now.timestamp() - OLDEST_SECONDS:
        raise ValueError
    loaded: Any = load_der_public_key(b64decode(key))
    loaded.verify(b64decode(signature), signed_at.encode() + raw, ECDSA(SHA256()))
