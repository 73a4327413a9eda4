"""Bounces as mail systems send them."""

ID = "abc123@mail.example.com"
HEADERS = f"From: care@example.com\nMessage-ID: <{ID}>\nSubject: x\n"


def status(action: str, code: str) -> str:
    return (
        f"Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; x@example.net\nAction: {action}\n"
        f"Status: {code}\n"
    )


STATUS = status("failed", "5.1.1")


def bounce(
    *,
    status: str = STATUS,
    original: str = HEADERS,
    kind: str = "text/rfc822-headers",
    report: str = "delivery-status",
    head: str = "",
    status_kind: str = "message/delivery-status",
) -> bytes:
    parts = {
        "text/plain": "Your message could not be delivered.",
        status_kind: status,
        kind: original,
    }
    body = "".join(f"--b\nContent-Type: {each}\n\n{content}\n" for each, content in parts.items())
    return f"""\
From: MAILER-DAEMON@mx.example.net
To: mail@example.com
{head}MIME-Version: 1.0
Content-Type: multipart/report; report-type={report}; boundary="b"

{body}--b--
""".encode()
