"""Calls of Amazon SES, Postmark and SendGrid (docs/deliverability.md): whether one is genuine, and what its events report."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import orjson

from frontdesk.invitations.reports import read_status

# What the token in a called address vouches for besides the provider: the topic of SES, the verification key of SendGrid.
SIGNERS = {
    "ses": re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}"),
    "postmark": re.compile(""),
    "sendgrid": re.compile(r"[A-Za-z0-9+/]{100,400}={0,2}"),
}
OLDEST_SECONDS = 90_000  # SendGrid repeats for 24 hours, and an event that comes twice counts once
_SIGNED_BY_SNS = ("Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")

# What an event says by its type and subtypes: ours, and whether a bounce is permanent (None: its status decides).
# A transient bounce of SES without another word is left out: it may be an absence note.
_MEANINGS = {
    ("bounced", None): "Bounce Permanent,Bounce HardBounce,Bounce BadEmailAddress,bounce",
    (
        "bounced",
        False,
    ): "Bounce Transient MailboxFull,Bounce Transient MessageTooLarge,Bounce Transient ContentRejected,Reject,"
    "Bounce Transient AttachmentRejected,Bounce SoftBounce,Bounce DnsError,Bounce Blocked,Bounce SpamNotification,"
    "Bounce DMARCPolicy,Bounce VirusNotification,Bounce ManuallyDeactivated,bounce blocked,dropped",
    ("complained", None): "Complaint,SpamComplaint,spamreport",
    ("delivered", None): "Delivery,delivered",
    (None, None): "Complaint not-spam",
}
_BY_TYPE = {key: meaning for meaning, keys in _MEANINGS.items() for key in keys.split(",")}
# Where the providers name things, as dotted paths.
_TYPE = "eventType notificationType RecordType event"
_SUBTYPE = "bounce.bounceType complaint.complaintFeedbackType Type type"
_STATUS = "bounce.bouncedRecipients.status status"
_MESSAGE_ID = "mail.headers.value Metadata.message-id message_id smtp-id"


def read_events(body: object) -> Iterator[dict[str, object]]:
    """The events that report something, in the form of `POST /operator/v1/email-events`."""
    for event in body if isinstance(body, list) else [body]:
        words = [_first(event, paths) for paths in (_TYPE, _SUBTYPE, "bounce.bounceSubType")]
        keys = (" ".join(words[:count]) for count in (3, 2, 1))
        kind, permanent = next((_BY_TYPE[key] for key in keys if key in _BY_TYPE), (None, None))
        if kind is not None:
            report = {"message_id": _first(event, _MESSAGE_ID), "status": read_status(_first(event, _STATUS))}
            yield {**report, "event": kind, "permanent": permanent}


def _first(event: object, paths: str) -> str:
    """The first text at one of the dotted paths, or "". Of an array, in its first object, or in that of the header Message-ID."""
    for path in paths.split():
        value = event
        for name in path.split("."):
            some = [
                each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)
            ]
            named = (each for each in some if str(each.get("name", "Message-ID")).lower() == "message-id")
            value = next(named, {}).get(name)
        if isinstance(value, str):
            return value
    return ""


def read_sns(body: Any, topic: str, fetch: Callable[[str], bytes]) -> object:
    """The event in a message of SNS, None in one without. `fetch` reads an address of SNS, which also confirms a subscription.

    Raises ValueError, TypeError, KeyError and InvalidSignature unless SNS has signed the message for the topic.
    """
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.x509 import load_pem_x509_certificate

    digest = {"1": hashes.SHA1(), "2": hashes.SHA256()}[body["SignatureVersion"]]  # noqa: S303 - what version 1 is
    signed = "".join(f"{name}\n{body[name]}\n" for name in _SIGNED_BY_SNS if name in body)
    if body["TopicArn"] != topic:
        raise ValueError
    key: Any = load_pem_x509_certificate(fetch(body["SigningCertURL"])).public_key()
    key.verify(b64decode(body["Signature"]), signed.encode(), PKCS1v15(), digest)
    if body["Type"] == "SubscriptionConfirmation":
        fetch(body["SubscribeURL"])
    is_event = body["Type"] == "Notification" and body["Message"].startswith(
        "{"
    )  # a test of SES is a sentence
    return orjson.loads(body["Message"]) if is_event else None


def check_sendgrid(raw: bytes, key: str, headers: Sequence[str], now: datetime) -> None:
    """Raises ValueError, TypeError and InvalidSignature unless SendGrid has signed the call lately, by the headers."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    signature, signed_at = headers
    if now.timestamp() - int(signed_at) > OLDEST_SECONDS:
        raise ValueError
    loaded: Any = load_der_public_key(b64decode(key))
    loaded.verify(b64decode(signature), signed_at.encode() + raw, ECDSA(SHA256()))
