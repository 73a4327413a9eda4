"""Calls of Amazon SES, SendGrid and Postmark: the events as their documentation shows them, signed
with keys of the tests.
"""

import asyncio
import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from frontdesk.app import App
from frontdesk.config import Config, read_config
from frontdesk.db import Database
from frontdesk.errors import Unavailable
from frontdesk.invitations.message import derive_token
from frontdesk.invitations.model import InvitationState
from frontdesk.invitations.provider_events import _BY_TYPE
from frontdesk.operator import email_events
from tests.cli.conftest import CommandLine
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.invitations.mails import mailed, state_of, suppressed
from tests.patience import in_event_loop

SECRET = "0123456789abcdef" * 4
TOPIC = "arn:aws:sns:eu-west-1:123456789012:bounces"
CERTIFICATE = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
SUBSCRIBE = (
    f"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={TOPIC}&"
    "Token=2336412f37fb687f"
)
RSA = rsa.generate_private_key(65537, 2048)
ECDSA = ec.generate_private_key(ec.SECP256R1())
DER = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
KEY = base64.b64encode(ECDSA.public_key().public_bytes(*DER)).decode()
SIGNERS = {"ses": TOPIC, "sendgrid": KEY, "postmark": ""}


def certificate(host: str = "sns.amazonaws.com") -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    today = NOW.replace(tzinfo=None)
    builder = x509.CertificateBuilder(name, name, RSA.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - timedelta(days=9000)).not_valid_after(
        today + timedelta(days=9000)
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
    )
    return builder.sign(RSA, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def config(database_url: str) -> Config:
    said = {"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_BASE_URL": "https://api.example.com"}
    return read_config(said | {"FRONTDESK_LINK_SECRET": SECRET})


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was read of SNS."""
    addresses: list[str] = []

    def fetch(url: str) -> bytes:
        if not email_events._OF_SNS.fullmatch(url):
            raise ValueError
        addresses.append(url)
        return certificate()

    monkeypatch.setattr(email_events, "fetch", fetch)
    return addresses


def path_of(provider: str, signer: str | None = None) -> str:
    signer = SIGNERS[provider] if signer is None else signer
    token = derive_token(SECRET, provider, signer)
    return f"/operator/v1/email-events/{provider}/{token}"


def sns(
    message: str, *, kind: str = "Notification", version: str = "2", **changed: str
) -> dict[str, str]:
    """A message as SNS signs it: the names in the order of their bytes, each with its value, a line
    each.
    """
    body = {
        "Type": kind,
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": message,
    }
    body |= {
        "Timestamp": "2026-11-24T01:00:00.000Z",
        "SignatureVersion": version,
        "SigningCertURL": CERTIFICATE,
    }
    body |= (
        {"Subject": "Amazon SES"}
        if kind == "Notification"
        else {"Token": "2336412f37fb687f", "SubscribeURL": SUBSCRIBE}
    )
    body |= changed
    signed = sorted(set(body) - {"SignatureVersion", "SigningCertURL"})
    text = "".join(f"{name}\n{body[name]}\n" for name in signed)
    digest = hashes.SHA1() if version == "1" else hashes.SHA256()  # noqa: S303 - what version 1 is
    body["Signature"] = base64.b64encode(
        RSA.sign(text.encode(), padding.PKCS1v15(), digest)
    ).decode()
    return body


def ses(message_id: str, kind: str, **more: Any) -> dict[str, Any]:
    headers = [
        {"name": "From", "value": "care@example.com"},
        {"name": "Message-ID", "value": f"<{message_id}>"},
    ]
    mail = {
        "messageId": "00000138111222aa-33322211",
        "destination": ["x@example.com"],
        "headers": headers,
    }
    return {"notificationType": kind, "mail": mail} | more


def bounce(kind: str, subtype: str, status: str = "5.1.1") -> dict[str, Any]:
    recipient = {
        "emailAddress": "x@example.com",
        "status": status,
        "diagnosticCode": "smtp; 550 x@example.com",
    }
    return {
        "bounce": {"bounceType": kind, "bounceSubType": subtype, "bouncedRecipients": [recipient]}
    }


def sendgrid(message_id: str, kind: str, **more: Any) -> dict[str, Any]:
    named = {"message_id": message_id} if kind == "spamreport" else {"smtp-id": f"<{message_id}>"}
    return (
        {"email": "x@example.com", "timestamp": 1513299569, "event": kind, "sg_event_id": "e"}
        | named
        | more
    )


def postmark(message_id: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "RecordType": kind,
        "MessageID": "883953f4",
        "Metadata": {"message-id": message_id},
        "Email": "x@example.com",
    } | more


def call(api: Api, provider: str, event: Any, **options: Any) -> Any:
    """The provider's call with the event, signed as it signs."""
    content = json.dumps(event).encode() + b"\r\n"
    headers = {"Accept": "text/html"}
    if provider == "ses":
        body = sns(json.dumps(event), version=options.pop("version", "2"))
        content = json.dumps(body).encode()
        headers = {"Content-Type": "text/plain; charset=UTF-8"}
    if provider == "sendgrid":
        content = json.dumps(event if isinstance(event, list) else [event]).encode() + b"\r\n"
        at = str(int(NOW.timestamp()) - options.pop("age", 0))
        signature = base64.b64encode(
            ECDSA.sign(at.encode() + content, ec.ECDSA(hashes.SHA256()))
        ).decode()
        headers["X-Twilio-Email-Event-Webhook-Signature"] = signature
        headers["X-Twilio-Email-Event-Webhook-Timestamp"] = at
    signer = {"signer": SIGNERS[provider]} if SIGNERS[provider] else None
    sent = {"content": content, "headers": headers, "params": signer} | options
    return api.as_(None).request("POST", path_of(provider), **sent)


AMBIGUOUS = InvitationState.AMBIGUOUS
SENT = InvitationState.SENT
FAILED = InvitationState.FAILED
HARD = "hard_bounce"
COMPLAINT = "complaint"
Make = Callable[[str], dict[str, Any]]
# The provider, its event, the state of an invitation that was ambiguous before, and why its address
# is suppressed.
EVENTS: list[tuple[str, Make, InvitationState, str | None]] = [
    ("ses", lambda id_: ses(id_, "Bounce", **bounce("Permanent", "General")), FAILED, HARD),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Permanent", "General", "5.7.1")),
        FAILED,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Transient", "MailboxFull", "5.2.2")),
        FAILED,
        None,
    ),
    ("ses", lambda id_: ses(id_, "Bounce", **bounce("Transient", "General", "")), AMBIGUOUS, None),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Transient", "General", "4.0.0")),
        AMBIGUOUS,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Transient", "General", "5.1.1")),
        FAILED,
        HARD,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Transient", "General", "5.1.8")),
        FAILED,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Transient", "General", "4.4.7")),
        FAILED,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Undetermined", "Undetermined", "5.1.1")),
        FAILED,
        HARD,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Undetermined", "Undetermined", "5.2.2")),
        FAILED,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Bounce", **bounce("Undetermined", "Undetermined", "")),
        FAILED,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Complaint", complaint={"complaintFeedbackType": "abuse"}),
        SENT,
        COMPLAINT,
    ),
    (
        "ses",
        lambda id_: ses(id_, "Complaint", complaint={"complaintFeedbackType": "not-spam"}),
        AMBIGUOUS,
        None,
    ),
    ("ses", lambda id_: ses(id_, "Complaint", complaint={}), SENT, COMPLAINT),
    (
        "ses",
        lambda id_: ses(id_, "x", notificationType=None, eventType="Delivery", delivery={}),
        SENT,
        None,
    ),
    (
        "ses",
        lambda id_: ses(id_, "x", notificationType=None, eventType="Open", open={}),
        AMBIGUOUS,
        None,
    ),
    ("sendgrid", lambda id_: sendgrid(id_, "bounce", type="bounce", status="5.1.1"), FAILED, HARD),
    (
        "sendgrid",
        lambda id_: sendgrid(id_, "bounce", type="bounce", status="not a status"),
        FAILED,
        HARD,
    ),
    ("sendgrid", lambda id_: sendgrid(id_, "bounce", type="blocked", status="5.1.1"), FAILED, None),
    ("sendgrid", lambda id_: sendgrid(id_, "dropped", reason="Bounced Address"), FAILED, None),
    (
        "sendgrid",
        lambda id_: sendgrid(id_, "deferred", response="400 try again later"),
        AMBIGUOUS,
        None,
    ),
    ("sendgrid", lambda id_: sendgrid(id_, "spamreport"), SENT, COMPLAINT),
    ("sendgrid", lambda id_: sendgrid(id_, "delivered", response="250 OK"), SENT, None),
    ("sendgrid", lambda id_: sendgrid(id_, "group_resubscribe"), AMBIGUOUS, None),
    ("postmark", lambda id_: postmark(id_, "Bounce", Type="HardBounce", TypeCode=1), FAILED, HARD),
    (
        "postmark",
        lambda id_: postmark(id_, "Bounce", Type="SoftBounce", TypeCode=4096),
        FAILED,
        None,
    ),
    (
        "postmark",
        lambda id_: postmark(id_, "Bounce", Type="AutoResponder", TypeCode=64),
        AMBIGUOUS,
        None,
    ),
    ("postmark", lambda id_: postmark(id_, "SpamComplaint", Type="SpamComplaint"), SENT, COMPLAINT),
    ("postmark", lambda id_: postmark(id_, "Delivery"), SENT, None),
    (
        "postmark",
        lambda id_: postmark(id_, "SubscriptionChange", SuppressSending=True),
        AMBIGUOUS,
        None,
    ),
]


def test_each_providers_events_become_reports_and_count_once(
    api: Api, db: Database, customer: Customer, fetched: list[str]
) -> None:
    mails = [
        mailed(api, db, customer, number=number, state=AMBIGUOUS, losses=1)
        for number in range(len(EVENTS))
    ]
    for again in (False, True):
        for mail, (provider, make, state, _) in zip(mails, EVENTS, strict=True):
            answer = call(api, provider, make(mail.message_id))
            result = {"known" if again else "applied": 1} if state is not AMBIGUOUS else {}
            assert (answer.status_code, answer.json()) == (200, result), (provider, make(""))
        assert [state_of(db, mail) for mail in mails] == [state for _, _, state, _ in EVENTS]
        reasons = {
            mail.address: each[3] for mail, each in zip(mails, EVENTS, strict=True) if each[3]
        }
        assert suppressed(db) == reasons
    assert "x@example.com" not in api.log.getvalue()
    assert path_of("postmark").rpartition("/")[2] not in api.log.getvalue()


def test_the_page_names_every_type() -> None:
    page = (Path(__file__).parents[2] / "docs/deliverability.md").read_text()
    assert [key for key in _BY_TYPE if not all(word in page for word in key.split())] == []


def test_sendgrid_sends_many_at_once_and_a_foreign_message_is_unknown(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    events: list[Any] = [sendgrid(f"nobody-{n}@example.com", "delivered") for n in range(600)]
    events += [
        sendgrid(mail.message_id, "spamreport"),
        sendgrid("", "bounce"),
        [],
        "x",
        {"event": {}},
        {"event": "new"},
    ]
    answer = call(api, "sendgrid", events)
    assert (answer.status_code, answer.json()) == (
        200,
        {"unknown": 600, "applied": 1, "invalid": 1},
    )
    assert suppressed(db) == {mail.address: COMPLAINT}


def test_version_1_of_sns_is_taken_and_a_sentence_of_ses_is_ignored(
    api: Api, fetched: list[str]
) -> None:
    answer = call(api, "ses", ses("a@b", "Delivery"), version="1")
    assert (answer.status_code, answer.json()) == (200, {"unknown": 1})
    words = "Successfully validated SNS topic for Amazon SES event publishing."
    answer = call(api, "ses", None, content=json.dumps(sns(words)))
    assert (answer.status_code, answer.json()) == (200, {})
    assert fetched == [CERTIFICATE, CERTIFICATE]


def test_a_subscription_is_confirmed_once_it_is_genuine(api: Api, fetched: list[str]) -> None:
    sent = sns("You have chosen to subscribe.", kind="SubscriptionConfirmation")
    assert call(api, "ses", None, content=json.dumps(sent | {"Token": "x"})).status_code == 401
    assert fetched == [CERTIFICATE]
    assert call(api, "ses", None, content=json.dumps(sent)).status_code == 200
    assert fetched == [CERTIFICATE, CERTIFICATE, SUBSCRIBE]
    # no provider sends these
    odd = [sns('{"mail": null}'), sns('{"mail": {"headers": [7]}}'), sns("{")]
    assert {call(api, "ses", None, content=json.dumps(each)).status_code for each in odd} == {401}
    del fetched[3:]
    ended = sns("You have unsubscribed.", kind="UnsubscribeConfirmation")
    assert call(api, "ses", None, content=json.dumps(ended)).status_code == 200
    assert fetched[3:] == [CERTIFICATE]


FOREIGN = "arn:aws:sns:eu-west-1:210987654321:bounces"
HOSTS = [
    "sns.eu-west-1.amazonaws.com.example.net",
    "sns.eu-west-1.example.com",
    "sns.x.y.amazonaws.com",
    "a@sns.x.amazonaws.com",
    # Buckets of S3 that anybody can have.
    "sns.s3.amazonaws.com",
    "sns.s3-eu-west-1.amazonaws.com",
    "sns.s3-website-eu-west-1.amazonaws.com",
    "sns.s3-accesspoint.amazonaws.com",
    "sns.eu-west-1.amazonaws.com:8443",
    "sns.eu-west-1.amazonaws.com.cn",
    "sns.cn-north-1.amazonaws.com",
]
REGIONS = ["eu-west-1", "us-gov-west-1", "ap-southeast-7", "mx-central-1"]
EVENT = json.dumps(ses("mail-1@mail.example.com", "Complaint"))
FORGED = [
    sns(EVENT) | {"Message": EVENT.replace("mail-1", "mail-2")},
    sns(EVENT, TopicArn=FOREIGN),
    sns(EVENT) | {"SignatureVersion": "3"},
    sns(EVENT) | {"Signature": "A"},
    *(
        sns(EVENT, SigningCertURL=CERTIFICATE.replace("sns.eu-west-1.amazonaws.com", host))
        for host in HOSTS
    ),
    # What SNS says at such an address is up to whoever wrote the address.
    *(
        sns(EVENT, SigningCertURL=CERTIFICATE.replace("/Simple", query))
        for query in ("/?Action=X&A=/Simple", "/a/Simple")
    ),
    sns(EVENT, SigningCertURL=CERTIFICATE.replace("https", "http")),
    sns(EVENT, kind="SubscriptionConfirmation", SubscribeURL="https://127.0.0.1/"),
    json.loads(EVENT),
    [],
    "x",
    None,
    {"SignatureVersion": {}},
    sns(EVENT) | {"SigningCertURL": 7},
]


def test_what_sns_did_not_sign_for_the_topic_is_refused(
    api: Api, db: Database, customer: Customer, fetched: list[str]
) -> None:
    mailed(api, db, customer)
    for forged in FORGED:
        answer = call(api, "ses", None, content=json.dumps(forged))
        assert (answer.status_code, answer.json()["title"]) == (401, "No valid access token")
    assert set(fetched) <= {CERTIFICATE}
    assert suppressed(db) == {}


@pytest.mark.parametrize(
    "host",
    [*(f"sns.{region}.amazonaws.com" for region in REGIONS), "sns.cn-north-1.amazonaws.com.cn"],
)
def test_sns_is_asked_in_each_region_that_it_has(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(name: str, **_: Any) -> None:
        asked.append(name)
        raise OSError

    monkeypatch.setattr(
        email_events,
        "HTTPSConnection",
        lambda name, **_: mock.Mock(request=lambda *_: refuse(name)),
    )
    with pytest.raises(Unavailable):
        email_events.fetch.__wrapped__(
            f"https://{host}/SimpleNotificationService-0123456789abcdef.pem"
        )
    assert asked == [host]


@in_event_loop
async def test_while_sns_is_silent_the_threads_of_others_are_free(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(email_events, "fetch", lambda _: answers.wait(60) and certificate())
    request: Any = mock.Mock(
        path_parameters={"provider": "ses", "token": derive_token(SECRET, "ses", TOPIC)},
        query_pairs=[("signer", TOPIC)],
        body=mock.AsyncMock(return_value=json.dumps(sns("A test.")).encode()),
        header=mock.Mock(return_value=None),
    )
    calls = [
        asyncio.create_task(email_events.receive_from_provider(app, request)) for _ in range(40)
    ]
    try:
        await asyncio.sleep(0.1)
        # The limit of requests is asked for in such a thread.
        assert await asyncio.wait_for(asyncio.to_thread(int), 10) == 0
        assert not [call for call in calls if call.done()]
    finally:
        answers.set()
    assert {call.status for call in await asyncio.gather(*calls)} == {200}


def test_what_sendgrid_did_not_sign_lately_is_refused(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    event = sendgrid(mail.message_id, "spamreport")
    name = "X-Twilio-Email-Event-Webhook-"
    wrong = [
        {},
        {f"{name}Signature": "A", f"{name}Timestamp": "x"},
        {f"{name}Signature": "MEUC", f"{name}Timestamp": "1"},
        {f"{name}Signature": "MEUC", f"{name}Timestamp": "9" * 400},
    ]
    options: list[dict[str, Any]] = [
        *({"headers": headers} for headers in wrong),
        {"age": 90_001},
        {"content": b"[]"},
    ]
    for each in options:
        assert call(api, "sendgrid", event, **each).status_code == 401
    assert suppressed(db) == {}
    assert call(api, "sendgrid", event, age=86_400).json() == {"applied": 1}


def test_an_address_that_was_not_made_here_is_not_there(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    event = postmark(mail.message_id, "SpamComplaint")
    stranger = api.as_(None)
    paths = [
        *(
            path_of("postmark")[:-43] + token
            for token in ("x" * 43, "ö", "%00", derive_token("", "postmark", ""))
        ),
        path_of("postmark").replace("postmark", "ses"),
        path_of("postmark") + "?signer=x",
        path_of("ses"),
        path_of("ses") + "?signer=" + FOREIGN,
        # What the reader of a mail knows: its Message-ID, and the token of its link.
        f"/operator/v1/email-events/registration/{derive_token(SECRET, 'registration', 'a@b')}?signer=a@b",
        f"/operator/v1/email-events/registration%20a@b/{derive_token(SECRET, 'registration', 'a@b')}",
    ]
    assert [stranger.post(path, event).status_code for path in paths] == [404] * len(paths)
    large = stranger.request("POST", path_of("postmark"), content=b"[" + b" " * 1024 * 1024)
    broken = stranger.request("POST", path_of("postmark"), content=b"{")
    deep = stranger.request("POST", path_of("postmark"), content=b"[" * 100_000)
    assert [each.status_code for each in (large, broken, deep)] == [413, 401, 401]
    assert suppressed(db) == {}


def test_without_a_link_secret_no_address_is_there(
    api: Api, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        app, "config", read_config({"FRONTDESK_DATABASE_URL": app.config.database_url})
    )
    path = f"/operator/v1/email-events/postmark/{derive_token('', 'postmark', '')}"
    assert api.as_(None).post(path, {}).status_code == 404


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[bytes]]:
    """A server with a certificate for SNS's name, which leads to it. Gives the answers for
    `answers`, then none.
    """
    file = tmp_path / "sns.pem"
    key = RSA.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(certificate("sns.eu-west-1.amazonaws.com") + key)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    listener = socket.create_server(("127.0.0.1", 0))
    answers = list[bytes]()
    place = (socket.AF_INET, socket.SOCK_STREAM, 0, "", listener.getsockname())
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [place])

    def serve() -> None:
        while True:
            connected, _ = listener.accept()
            with closing(connected):
                if not answers:
                    return
                try:
                    with context.wrap_socket(connected, server_side=True) as encrypted:
                        encrypted.recv(65536)
                        encrypted.sendall(answers.pop(0))
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    email_events.fetch.cache_clear()
    yield answers
    answers.clear()
    with socket.create_connection(listener.getsockname()):
        thread.join()
    listener.close()
    email_events.fetch.cache_clear()


def test_sns_is_asked_over_tls_by_its_own_name_and_its_certificate_is_kept(
    amazon: list[bytes],
) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    amazon += [b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", redirect, b"nonsense\r\n\r\n"]
    for _ in range(3):
        with pytest.raises(Unavailable):
            email_events.fetch(CERTIFICATE)
    amazon.append(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100_000)
    assert [len(email_events.fetch(CERTIFICATE)) for _ in range(2)] == [64 * 1024] * 2
    amazon.append(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(Unavailable):  # the server's certificate has another name
        email_events.fetch(CERTIFICATE.replace("eu-west-1", "us-east-1"))


def test_the_command_shows_the_address_that_is_taken() -> None:
    cli = CommandLine("sqlite:////nowhere/frontdesk.db")
    said: dict[str, Any] = {"link_secret": SECRET, "base_url": "https://api.example.com"}
    for provider, signer in SIGNERS.items():
        words = ("bounces", "address", provider, *(["--signer", signer] if signer else []))
        url = urlsplit(cli.json(*words, **said)["url"])
        assert (url.path, parse_qs(url.query).get("signer", [""])) == (path_of(provider), [signer])
    for words in (("ses",), ("postmark", "--signer", "x"), ("sendgrid",)):
        assert "give --signer for ses and sendgrid" in cli.refused(
            "bounces", "address", *words, **said
        )
    assert "Set FRONTDESK_LINK_SECRET" in cli.refused("bounces", "address", "postmark")
    assert "mailgun" in cli.refused("bounces", "address", "mailgun", status=2, **said)
