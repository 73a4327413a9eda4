"""Speaking to a relay: where it fails decides whether a message can have left."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk.config import parse_relay
from frontdesk.mail.model import AnswerLost, MailSession, RelayRefused
from frontdesk.mail.smtp import SmtpMailer, SmtpTimeouts
from tests.mail.certificate import CERTIFICATE, KEY, certificate_with_key
from tests.mail.relay import Relay, message, one_fault

PATIENT = SmtpTimeouts(
    connect=10, greeting=10, command=10, data=10, content=10, verdict=10, goodbye=10
)
SHORT = dict.fromkeys(("greeting", "command", "data", "content", "verdict", "goodbye"), 0.4)
IMPATIENT = SmtpTimeouts(connect=10, **SHORT)

Outcome = tuple[str, str, bool | None, int | None]


def attempt(relay: Relay, url: str = "smtp://127.0.0.1:{port}", **options: Any) -> Outcome:
    """One message sent; what became of it: (kind, stage, permanent, code)."""
    mailer = SmtpMailer(
        parse_relay(url.format(port=relay.port)), **({"timeouts": PATIENT} | options)
    )
    session = mailer.open()
    try:
        session.offer(message())
        return ("accepted", "", None, session.finish()[0])
    except RelayRefused as refused:
        return ("refused", refused.stage, refused.permanent, refused.code)
    except AnswerLost:
        return LOST
    finally:
        session.close()


@contextmanager
def connected(relay: Relay) -> Iterator[MailSession]:
    session = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay.port}"), timeouts=PATIENT).open()
    yield session
    session.close()


def send(session: MailSession, number: int) -> None:
    session.offer(message(number))
    session.finish()


def for_now(stage: str, code: int | None = None) -> Outcome:
    return ("refused", stage, False, code)


LOST = ("lost", "content", None, None)
ACCEPTED = ("accepted", "", None, 250)

FAULTS: dict[tuple[str, str], tuple[Outcome, int]] = {
    ("greeting", "drop"): (for_now("greeting"), 0),
    ("greeting", "5yz"): (
        for_now("greeting", 554),
        0,
    ),  # the relay's state, not this message's fault
    ("greeting", "long"): (for_now("greeting"), 0),
    ("ehlo", "drop"): (for_now("hello"), 0),
    ("ehlo", "5yz"): (ACCEPTED, 1),  # an old relay: HELO will do
    ("mail", "4yz"): (for_now("sender", 451), 0),
    ("mail", "5yz"): (("refused", "sender", True, 554), 0),
    ("mail", "drop"): (for_now("sender"), 0),
    ("mail", "garbage"): (for_now("sender"), 0),
    ("rcpt", "4yz"): (for_now("recipient", 451), 0),
    ("rcpt", "5yz"): (("refused", "recipient", True, 554), 0),
    ("rcpt", "silent"): (for_now("recipient"), 0),
    ("data", "4yz"): (for_now("data", 451), 0),
    ("data", "5yz"): (("refused", "data", True, 554), 0),
    ("data", "drop"): (for_now("data"), 0),
    ("data", "go on and drop"): (LOST, 0),
    ("content", "4yz"): (for_now("content", 451), 0),
    ("content", "5yz"): (("refused", "content", True, 554), 0),
    ("content", "421"): (for_now("content", 421), 0),
    ("content", "slow"): (ACCEPTED, 1),
    ("content", "take and drop"): (LOST, 1),
    ("content", "take and silent"): (LOST, 1),
    ("content", "take and garbage"): (LOST, 1),
}


@pytest.mark.parametrize(("step", "fault"), FAULTS, ids=lambda part: str(part).replace(" ", "-"))
def test_a_failure_is_definite_until_the_content_is_out_and_then_ambiguous(
    step: str, fault: str
) -> None:
    with Relay(one_fault(step, fault)) as relay:
        outcome = attempt(relay, timeouts=IMPATIENT if "silent" in fault else PATIENT)
        assert (outcome, relay.taken.total()) == FAULTS[step, fault]


def test_nobody_there_is_a_definite_failure() -> None:
    with Relay() as relay:
        pass
    with connected(relay) as session, pytest.raises(RelayRefused) as caught:
        session.offer(message())
    assert (caught.value.stage, caught.value.is_about_message) == ("connect", False)
    assert caught.value.cause == "ConnectionRefusedError"


def test_an_address_is_told_to_the_relay_in_brackets() -> None:
    said = {
        "mail.example": "mail.example",
        "192.0.2.7": "[192.0.2.7]",
        "2001:db8::7": "[IPv6:2001:db8::7]",
    }
    with Relay() as relay:
        for name in said:
            assert attempt(relay, hello_name=name) == ACCEPTED
    assert relay.hellos == [*said.values()]


def test_a_connection_is_used_again_also_after_a_refusal_until_the_relay_closes_it() -> None:
    with Relay(one_fault("rcpt", "4yz", times=1)) as relay, connected(relay) as session:
        with pytest.raises(RelayRefused):
            session.offer(message(1))
        for number in (2, 3):
            send(session, number)
        session.offer(message(4))
        session.abandon()
        send(session, 5)
        assert relay.connections == 1
        relay.plan = one_fault("mail", "drop", times=1)
        send(session, 6)
        assert relay.connections == 2
    assert sorted(relay.taken) == [f"{n}@frontdesk.example" for n in (2, 3, 5, 6)]


@pytest.mark.parametrize(
    ("step", "is_about_message"),
    [
        ("mail", [False, False, False]),
        ("rcpt", [False, True, False]),
        ("data", [False, True, False]),
    ],
)
def test_a_login_wanted_for_one_recipient_is_no_fault_of_the_relay(
    step: str, is_about_message: list[bool]
) -> None:
    """On the same connection: a new one has to earn its trust anew. And never for good: a login can
    be mended.
    """
    with Relay() as relay, connected(relay) as session:
        found = []
        for number in range(3):
            if number == 2:
                session.close()
            relay.plan = one_fault(step, "530", times=1)
            with pytest.raises(RelayRefused) as caught:
                send(session, number)
            found.append((caught.value.is_about_message, caught.value.code, caught.value.permanent))
            send(session, number + 10)
        assert relay.connections == 2
        assert found == [(mine, 530, False) for mine in is_about_message]


def test_an_address_that_the_relay_cannot_carry_fails_for_good() -> None:
    with Relay(takes_utf8=False) as relay, connected(relay) as session:
        send(session, 1)
        with pytest.raises(RelayRefused) as caught:
            session.offer(message(2, recipient="zoë@example.com"))
        assert (caught.value.stage, caught.value.permanent, caught.value.code) == (
            "recipient",
            True,
            None,
        )
        send(session, 3)
        assert (relay.connections, relay.taken.total()) == (1, 2)


def test_dots_at_the_beginning_of_lines_arrive_as_they_were() -> None:
    content = b"Message-ID: <x@y>\r\n\r\n.\r\n..\r\n.hidden\r\nend\r\n"
    with Relay() as relay, connected(relay) as session:
        session.offer(message(content=content))
        session.finish()
    assert relay.contents == [content]


@pytest.fixture
def server_side(tmp_path: Path) -> ssl.SSLContext:
    (tmp_path / "certificate.pem").write_text(CERTIFICATE + KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem")
    return context


def test_starttls_with_a_certificate_and_a_password(server_side: ssl.SSLContext) -> None:
    trusting = ssl.create_default_context(cadata=CERTIFICATE)
    with Relay(tls=server_side, password="pass word") as relay:
        url = "smtp://user:{password}@localhost:{{port}}?tls=required"
        assert attempt(relay, url.format(password="pass%20word"), context=trusting) == ACCEPTED
        assert (
            attempt(relay, url.format(password="wrong"), context=trusting)[:3]
            == for_now("login")[:3]
        )


def test_an_untrusted_certificate_ends_it_before_anything_is_said(
    server_side: ssl.SSLContext,
) -> None:
    for tls in (server_side, None):  # as without STARTTLS
        with Relay(tls=tls, password="secret") as relay:
            assert attempt(relay, "smtp://user:secret@localhost:{port}?tls=required") == for_now(
                "starttls"
            )


CERTIFICATES: dict[str, tuple[dict[str, Any], bool]] = {
    "certificate_unknown_ca": ({}, False),
    "certificate_wrong_name": ({"name": "other.example"}, True),
    "certificate_expired": ({"begins": -9, "ends": -1}, True),
    "certificate_not_yet_valid": ({"begins": 1, "ends": 9}, True),
}


@pytest.mark.parametrize("cause", CERTIFICATES)
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_faults_of_a_relays_certificate_are_told_apart(
    tmp_path: Path, cause: str, scheme: str
) -> None:
    options, is_trusted = CERTIFICATES[cause]
    path = tmp_path / "relay.pem"
    path.write_bytes(certificate_with_key(**options))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    trusting = ssl.create_default_context(cafile=str(path) if is_trusted else None)
    with Relay(tls=server, is_tls_from_the_start=scheme == "smtps") as relay:
        required = "?tls=required" if scheme == "smtp" else ""
        url = f"{scheme}://localhost:{relay.port}{required}"
        session = SmtpMailer(parse_relay(url), timeouts=PATIENT, context=trusting).open()
        with pytest.raises(RelayRefused) as caught:
            session.offer(message())
    stage = "connect" if scheme == "smtps" else "starttls"
    assert (caught.value.stage, caught.value.cause) == (stage, cause)


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("smtp://relay.example", ("relay.example", 587, "required")),
        ("smtps://relay.example", ("relay.example", 465, "implicit")),
        ("smtp://127.0.0.1:2525", ("127.0.0.1", 2525, "off")),
        ("smtp://relay.example:25?tls=off", ("relay.example", 25, "off")),
    ],
)
def test_the_address_of_a_relay_says_how_it_is_spoken_to(
    url: str, shape: tuple[str, int, str]
) -> None:
    relay = parse_relay(url)
    assert (relay.host, relay.port, relay.tls) == shape


@pytest.mark.parametrize(
    "url",
    ["http://relay.example", "relay.example", "smtp://", "smtp://h:99999", "smtp://h/path",
     "smtp://h?tls=maybe", "smtp://h?x=1", "smtps://h?tls=off", "smtp://user:secret@h?tls=off"],
)  # fmt: skip
def test_what_is_no_relay_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_relay(url)
    assert "secret" not in str(caught.value)


def test_a_relay_never_shows_its_password() -> None:
    assert "secret" not in repr(parse_relay("smtps://user:secret@relay.example"))
