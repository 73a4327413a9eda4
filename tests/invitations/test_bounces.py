"""Bounces and complaints as they come by mail, in the forms that mail systems give them."""

import io

import pytest

from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import LARGEST_BYTES, parse_report, split_mailbox
from tests.invitations.bounces import HEADERS, ID, STATUS, bounce, status


@pytest.mark.parametrize(
    ("raw", "event", "code"),
    [
        (bounce(), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(kind="message/rfc822", original=HEADERS + "\nBody\n"), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(kind="message/global-headers"), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(status_kind="message/global-delivery-status"), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(status=status("Failed (no such user)", "5.1.1 (bad mailbox)")), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(status=status("failed", "4.4.7")), ReportEvent.BOUNCED, "4.4.7"),
        (bounce(status=status("failed", "nonsense")), ReportEvent.BOUNCED, None),
        (bounce(status=status("delivered", "2.0.0")), ReportEvent.DELIVERED, "2.0.0"),
        (bounce(status=status("relayed", "2.0.0")), ReportEvent.DELIVERED, "2.0.0"),
        (bounce(status=status("delayed", "4.4.1")), ReportEvent.DELAYED, "4.4.1"),
        (bounce().replace(b"\n", b"\r\n"), ReportEvent.BOUNCED, "5.1.1"),
        (bounce(original="", head=f"In-Reply-To: <{ID}>\n"), ReportEvent.BOUNCED, "5.1.1"),
        (
            bounce(status=status("delivered", "2.0.0")
                   + "\nFinal-Recipient: rfc822; y\nAction: failed\nStatus: 5.2.1\n"),
            ReportEvent.BOUNCED,
            "5.2.1",
        ),
    ],
)  # fmt: skip
def test_a_bounce_tells_what_became_of_our_mail(
    raw: bytes, event: ReportEvent, code: str | None
) -> None:
    assert parse_report(raw) == DeliveryReport(ID, event, code)


def test_a_report_that_the_library_cannot_write_again_is_none() -> None:
    """A form feed ends a line to one half of the library and not to the other; the fuzzer found it."""
    for letter in "\v\f\x1c\x1d\x1e":
        assert parse_report(bounce(status=STATUS.replace("\nAction", letter + "Action"))) is None


@pytest.mark.parametrize(
    ("kind", "is_complaint"), [("abuse", True), ("fraud", True), ("not-spam", False)]
)
def test_a_feedback_report_is_a_complaint_unless_it_takes_one_back(
    kind: str, *, is_complaint: bool
) -> None:
    raw = bounce(
        report="feedback-report",
        status_kind="message/feedback-report",
        status=f"Feedback-Type: {kind}\nUser-Agent: x/1\nVersion: 1\n",
        kind="message/rfc822",
    )
    assert parse_report(raw) == (
        DeliveryReport(ID, ReportEvent.COMPLAINED) if is_complaint else None
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        (
            b"From: robin@example.com\nSubject: Out of office\n"
            b"In-Reply-To: <abc123@mail.example.com>\n\nI am away.\n"
        ),
        bounce(original="Subject: no id\n"),
        bounce(original="Message-ID: <a@b> <c@d>\n"),
        bounce(original=f"Message-ID: <{'a' * 300}@b>\n"),
        bounce(status="nonsense"),
        bounce(status_kind="text/plain"),
        bounce(status=status("exploded", "5.1.1")),
        bounce().replace(b'boundary="b"', b""),
        bounce().replace(b"multipart/report", b"multipart/mixed"),
    ],
)
def test_other_mail_is_no_report(raw: bytes) -> None:
    assert parse_report(raw) is None


def test_the_report_of_the_mail_itself_is_read_and_not_one_inside_it() -> None:
    inner = bounce(original="Message-ID: <other@mail.example.com>\n").decode()
    raw = bounce(kind="message/rfc822", original=HEADERS + "\n" + inner)
    assert parse_report(raw) == DeliveryReport(ID, ReportEvent.BOUNCED, "5.1.1")


def test_a_mailbox_is_split_at_its_from_lines_and_a_pipe_brings_one_message() -> None:
    one = bounce()
    two = bounce(original="Message-ID: <other@mail.example.com>\n")
    mbox = (
        b"From x@y Mon Jan  1 00:00:00 2026\n"
        + one
        + b"\nFrom x@y Mon Jan  1 00:00:00 2026\n"
        + two
    )
    ids = [
        report.message_id
        for raw in split_mailbox(io.BytesIO(mbox))
        if (report := parse_report(raw))
    ]
    assert ids == [ID, "other@mail.example.com"]
    assert list(split_mailbox(io.BytesIO(one))) == [one]
    assert list(split_mailbox(io.BytesIO(b""))) == []
    assert list(split_mailbox(io.BytesIO(b"\n\n"))) == []


def test_a_from_inside_a_message_splits_nothing() -> None:
    text = b"Subject: x\n\nDear all,\nFrom here on it is fine.\n\n>From the start, too.\n"
    assert list(split_mailbox(io.BytesIO(text))) == [text.replace(b">From", b"From")]


def test_of_a_huge_message_only_the_beginning_is_kept() -> None:
    huge = bounce() + b"x" * 70 * 40_000
    lines = huge + b"\n" + (b"y" * 70 + b"\n") * 40_000
    [kept] = split_mailbox(io.BytesIO(lines))
    assert len(kept) < LARGEST_BYTES + 3_000_000
