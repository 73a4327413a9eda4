"""Writes a mail as bytes (RFC 5322): headers, a text part and an HTML part.

The headers are written here and not by the email package: a library that parses and folds them again can be made to take a
name for a header of its own (CVE-2024-6923).
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from email.utils import quote

from email_validator import validate_email

LINE_LENGTH = 78
_WORD_BYTES = 39  # of text in one encoded word, so that a line has at most 76 characters (RFC 2047)

_PRINTABLE = re.compile(r"[ -~]+")
_SPECIALS = frozenset(' <>(),;:\\"[]')


def mail_bytes(headers: Sequence[tuple[str, str]], *, text: str, html: str | None, seed: str) -> bytes:
    """The mail, with CRLF line ends. The same arguments give the same bytes: `seed` determines the boundary of the parts.

    Raises ValueError for a header that holds a control character.
    """
    head = "".join(f"{name}: {_checked(value)}\r\n" for name, value in headers)
    return head.encode() + b"MIME-Version: 1.0\r\n" + _body(text, html, seed)


def mailbox(name: str | None, address: str) -> str:
    """Name and address for a header. The name is quoted, or encoded when it has more than ASCII or looks encoded itself."""
    if not name:
        return mailable(address)
    phrase = f'"{quote(name)}"' if _is_plain(name) else _encoded_words(name)
    space = " " if len(phrase) + len(address) < LINE_LENGTH - 10 else "\r\n "
    return f"{phrase}{space}<{mailable(address)}>"


def unstructured(text: str) -> str:
    """Free text of a header, folded where it has to be."""
    return text if _is_plain(text) else _encoded_words(text)


def mailable(address: str) -> str:
    """The address for SMTP: the domain in ASCII, the local part unchanged; it may need SMTPUTF8 of the relay.

    Raises ValueError (email-validator's error is one) for anything else.
    """
    if address.isascii():
        if not _PRINTABLE.fullmatch(address) or _SPECIALS & set(address) or address.count("@") != 1:
            raise ValueError("not an address that can be mailed")
        return address
    found = validate_email(address, check_deliverability=False, globally_deliverable=False)
    return found.ascii_email or f"{found.local_part}@{found.ascii_domain}"


def _body(text: str, html: str | None, seed: str) -> bytes:
    if html is None:
        return _part("text/plain", text)
    # No line of a quoted-printable part can hold "=_", so the boundary stands nowhere else.
    boundary = b"=_" + hashlib.sha256(seed.encode()).hexdigest()[:24].encode()
    parts = (_part("text/plain", text), _part("text/html", html))
    head = b'Content-Type: multipart/alternative; boundary="%s"\r\n\r\n' % boundary
    return head + b"".join(b"--%s\r\n%s" % (boundary, part) for part in parts) + b"--%s--\r\n" % boundary


def _part(content_type: str, content: str) -> bytes:
    lines = content.strip("\r\n").replace("\r\n", "\n").replace("\r", "\n")
    encoded = binascii.b2a_qp(lines.encode("utf-8", "replace"), istext=True).replace(b"\n", b"\r\n")
    head = f"Content-Type: {content_type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable"
    return head.encode() + b"\r\n\r\n" + encoded + b"\r\n"


def _is_plain(text: str) -> bool:
    """Whether the text fits one header line as it is and does not look like encoded words."""
    return len(text) <= LINE_LENGTH - 10 and _PRINTABLE.fullmatch(text) is not None and "=?" not in text


def _encoded_words(text: str) -> str:
    """Encoded words of whole characters (RFC 2047), a line each."""
    chunks, chunk = [], b""
    for character in text:
        encoded = character.encode("utf-8", "replace")
        if len(chunk) + len(encoded) > _WORD_BYTES:
            chunks.append(chunk)
            chunk = b""
        chunk += encoded
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(chunk).decode()}?=" for chunk in (*chunks, chunk))


def _checked(value: str) -> str:
    """The last check before the wire: no line end or control character except our own folding."""
    if not value.replace("\r\n ", "").isprintable():
        raise ValueError("a header with a control character")
    return value
