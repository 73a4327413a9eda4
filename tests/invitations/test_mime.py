"""The bytes of a mail: whatever the names hold, the headers stay the ones that were written."""

import email
import email.policy
from email.header import decode_header
from email.message import EmailMessage
from email.parser import BytesParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.invitations.message import mail_bytes, mailable, mailbox, unstructured

names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=255
)
HEADERS = ["From", "Subject", "MIME-Version", "Content-Type"]
HOSTILE = [
    "=?utf-8?q?x=0d=0aBcc:_victim=40example.com?=",
    "Gold =?utf-8?b?DQpCY2M6IHZpY3RpbUBleGFtcGxlLmNvbQ==?= plan",
    'Quote " and \\ and <angle@example.com>, other@example.com',
    "ÄÖÜ 漢字 🩺" * 10,
    "long " * 50 + "name",
]


def read(raw: bytes, policy: email.policy.Policy = email.policy.default) -> EmailMessage:
    message = BytesParser(policy=policy).parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def mail(name: str) -> bytes:
    headers = [("From", mailbox(name, "care@example.com")), ("Subject", unstructured(name))]
    return mail_bytes(headers, text=name, html=f"<p>{name}", seed="seed")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_makes_a_header_of_its_own(name: str) -> None:
    message = read(mail(name))
    assert message.keys() == HEADERS
    assert message["Subject"] == name.strip()
    [sender] = message["From"].addresses
    assert sender.addr_spec == "care@example.com"
    shown = decode_header(email.message_from_bytes(mail(name))["From"])[0][0]
    assert name.strip() == (shown.decode() if isinstance(shown, bytes) else sender.display_name)


@given(names)
def test_headers_are_short_ascii_lines_that_stay_the_same(name: str) -> None:
    raw = mail(name)
    head = raw.partition(b"\r\n\r\n")[0]
    assert head.isascii()
    assert all(len(line) <= 78 for line in head.split(b"\r\n"))
    assert read(raw).keys() == HEADERS
    assert read(read(raw, email.policy.SMTP).as_bytes()).keys() == HEADERS


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=2000))
def test_every_line_is_short_and_ends_in_crlf(text: str) -> None:
    raw = mail_bytes([("To", "a@example.com")], text=text, html=text, seed="x")
    assert raw.endswith(b"\r\n")
    assert not set(b"\r\n") & set(raw.replace(b"\r\n", b""))
    assert all(len(line) <= 100 for line in raw.split(b"\r\n"))
    assert raw.isascii()


def test_parts_come_out_as_they_went_in() -> None:
    text = "One\n\nFrom here on\n.\nZwölf =20 Zeichen  \n" + "x" * 500
    message = read(mail_bytes([("To", "a@example.com")], text=text, html="<p>ü</p>", seed="x"))
    plain, html = (part.get_content().replace("\r\n", "\n") for part in message.iter_parts())
    assert (plain.rstrip("\n"), html.strip()) == (text, "<p>ü</p>")
    assert message.get_content_type() == "multipart/alternative"


@pytest.mark.parametrize("value", ["a\r\nBcc: b@example.com", "a\nb", "a\rb", "a\0b", "a\r\n\r\nb"])
def test_a_header_with_a_line_end_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        mail_bytes([("To", value)], text="x", html=None, seed="x")


@pytest.mark.parametrize(
    "address",
    [
        "a b@example.com",
        "nobody",
        "a@b@example.com",
        "<a@example.com>",
        "a,b@example.com",
        "a\n@b.example",
    ],
)
def test_addresses_are_mailable_with_an_ascii_domain(address: str) -> None:
    assert mailable("röbin@bücher.example") == "röbin@xn--bcher-kva.example"
    with pytest.raises(ValueError):  # noqa: PT011 - the library has an error of its own
        mailable(address)
