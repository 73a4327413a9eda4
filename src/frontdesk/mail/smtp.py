"""A session with a relay over SMTP, step by step, so that it is always known whether a message can
have left.
"""

import contextlib
import re
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NoReturn

from frontdesk.config import Relay
from frontdesk.mail.model import (
    RELAY_WORDS,
    SHUT_DOWN,
    AnswerLost,
    CertificateFault,
    MailMessage,
    RelayRefused,
    RelayReply,
)

# of a reply
_MAX_LINES = 100
_MAX_LINE_LENGTH = 2000
# RFC 5321 4.2: three digits, then a space (the last line), a hyphen (more follow) or nothing.
_REPLY_LINE = re.compile(rb"([0-9]{3})([ -]|$)(.*)", re.DOTALL)
# By OpenSSL's X509_V_ERR_ number (x509_vfy.h).
_CERTIFICATE_FAULTS = {
    9: CertificateFault.NOT_YET_VALID,
    10: CertificateFault.EXPIRED,
    **dict.fromkeys((2, 18, 19, 20, 21), CertificateFault.UNKNOWN_CA),
    **dict.fromkeys((62, 64), CertificateFault.WRONG_NAME),
}


@dataclass(frozen=True, slots=True)
class SmtpTimeouts:
    """How long each step may take, in seconds: RFC 5321 4.5.3.2."""

    connect: float = 60.0
    greeting: float = 300.0
    command: float = 300.0
    data: float = 120.0
    content: float = 180.0
    verdict: float = 600.0
    goodbye: float = 5.0

    def of_stage(self, stage: str) -> float:
        """The stage's own limit, or that of a command."""
        return float(getattr(self, stage, self.command))


@dataclass(frozen=True)
class SmtpMailer:
    """Opens sessions with one relay. `context` is the TLS context: by default the system's
    certificates, verified.
    """

    relay: Relay
    hello_name: str | None = None
    timeouts: SmtpTimeouts = field(default_factory=SmtpTimeouts)
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def open(self) -> "SmtpSession":
        return SmtpSession(self)


class SmtpSession:
    """A MailSession over one connection, which is made when it is needed and used for one message
    after another.
    """

    def __init__(self, mailer: SmtpMailer) -> None:
        self._mailer = mailer
        self._timeouts = mailer.timeouts
        self._client = _SmtpClient(mailer.hello_name)
        self._message: MailMessage | None = None
        self._trusted = False

    def offer(self, message: MailMessage) -> None:
        if self._client.sock is not None:
            try:
                self._send_envelope(message)
            except RelayRefused as refused:
                # A relay may end a connection that was idle. Nothing has been sent, so a new
                # connection is tried.
                if refused.permanent or refused.code not in (None, SHUT_DOWN):
                    raise
            else:
                return
        self._connect()
        self._send_envelope(message)

    def finish(self) -> RelayReply:
        client = self._client
        message = self._message
        self._message = None
        if message is None:
            raise RelayRefused("data", permanent=False)
        self._step("data", lambda: client.docmd("DATA"), accept=(354,))
        try:
            client.set_deadline(self._timeouts.content)
            client.send(_data_content(message.content))
            client.set_deadline(self._timeouts.verdict)
            code, text = client.getreply()
        except (OSError, smtplib.SMTPException):
            client.close()
            raise AnswerLost from None
        if 200 <= code < 300:
            self._trusted = True
            return code, _words(text)
        if not 400 <= code < 600:
            client.close()
            raise AnswerLost
        return self._refuse("content", code, text)

    def abandon(self) -> None:
        self._message = None
        self._reset()

    def close(self) -> None:
        if self._client.sock is not None:
            self._client.set_deadline(self._timeouts.goodbye)
            with contextlib.suppress(OSError, smtplib.SMTPException):
                self._client.quit()
            self._client.close()

    def probe(self) -> None:
        """Everything before a message, as the relay's address asks for it: EHLO, STARTTLS, AUTH;
        RSET. Raises RelayRefused.
        """
        self._connect()
        self._step("reset", self._client.rset)
        self.close()

    def _connect(self) -> None:
        relay = self._mailer.relay
        context = self._mailer.context
        client = self._client = _SmtpClient(self._mailer.hello_name)
        self._trusted = False
        with self._definite("connect"):
            client.dial(relay, context if relay.tls == "implicit" else None)
        self._step("greeting", client.getreply, accept=(220,))
        with self._definite("hello"):
            client.ehlo_or_helo_if_needed()
        if relay.tls == "required":
            self._step("starttls", lambda: client.start_tls(context), accept=(220,))
            with self._definite("hello"):
                client.ehlo_or_helo_if_needed()
        if relay.user is not None:
            with self._definite("login"):
                client.login(relay.user, relay.password)

    def _send_envelope(self, message: MailMessage) -> None:
        """MAIL and RCPT."""
        client = self._client
        options = _mail_options(client, message)
        self._step("sender", lambda: client.mail(message.sender, options))
        self._step("recipient", lambda: client.rcpt(message.recipient))
        self._message = message

    def _step(
        self,
        stage: str,
        command: Callable[[], tuple[int, bytes]],
        *,
        accept: Collection[int] = (250, 251),
    ) -> None:
        """One command before the content. Raises RelayRefused unless the reply code is one of
        `accept`.
        """
        with self._definite(stage):
            code, text = command()
        if code not in accept:
            self._refuse(stage, code, text)

    def _refuse(self, stage: str, code: int, text: bytes) -> NoReturn:
        """Raise RelayRefused for a reply. The connection stays open if the relay still follows the
        protocol.
        """
        in_step = stage in ("sender", "recipient", "data", "content") and 400 <= code < 600
        if in_step and code != SHUT_DOWN:
            self._reset()
        else:
            self._client.close()
        known = code if 200 <= code < 600 else None
        permanent = in_step and 500 <= code < 600
        raise RelayRefused(
            stage, permanent=permanent, code=known, trusted=self._trusted, words=_words(text)
        )

    def _reset(self) -> None:
        """Forget the envelope; end the connection if the relay does not confirm that."""
        if self._client.sock is not None:
            self._client.set_deadline(self._timeouts.goodbye)
            with contextlib.suppress(OSError, smtplib.SMTPException):
                if self._client.rset()[0] == 250:
                    return
            self._client.close()

    @contextlib.contextmanager
    def _definite(self, stage: str) -> Iterator[None]:
        """None of the content has been sent here: any failure means that the message was not taken."""
        self._client.set_deadline(self._timeouts.of_stage(stage))
        try:
            yield
        except (OSError, smtplib.SMTPException, ValueError) as error:
            self._client.close()
            code = getattr(error, "smtp_code", None)
            known = code if isinstance(code, int) and 400 <= code < 600 else None
            cause = _cause(error)
            words = _words(getattr(error, "smtp_error", b""))
            raise RelayRefused(
                stage, permanent=False, code=known, cause=cause, words=words
            ) from None


class _SmtpClient(smtplib.SMTP):
    """smtplib's commands with strict replies and one deadline for a whole step; smtplib limits each
    read by itself.
    """

    def __init__(self, hello_name: str | None) -> None:
        super().__init__(local_hostname=_ehlo_name(hello_name))
        self._deadline = 0.0
        self._unread = b""
        self._relay_host = ""

    def dial(self, relay: Relay, context: ssl.SSLContext | None) -> None:
        """Connect; with TLS from the start if there is a `context`."""
        self._relay_host = relay.host
        self.sock = socket.create_connection(
            (relay.host, relay.port), self._deadline - time.monotonic()
        )
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._start_encryption(context)

    def set_deadline(self, seconds: float) -> None:
        """The commands that follow must end within this time."""
        self._deadline = time.monotonic() + seconds

    def send(self, s: Any) -> None:
        self._socket().sendall(s.encode(self.command_encoding) if isinstance(s, str) else s)

    def getreply(self) -> tuple[int, bytes]:
        """A reply's code and text; the code is -1 for what is no SMTP reply. Raises OSError,
        SMTPServerDisconnected.
        """
        lines: list[bytes] = []
        while len(lines) < _MAX_LINES and (found := _REPLY_LINE.fullmatch(self._line())):
            code, separator, text = found.groups()
            lines.append(text)
            if separator != b"-":
                return int(code), b"\n".join(lines)
        return -1, b""

    def start_tls(self, context: ssl.SSLContext) -> tuple[int, bytes]:
        if not self.has_extn("starttls"):
            raise smtplib.SMTPNotSupportedError("no STARTTLS")
        code, text = self.docmd("STARTTLS")
        if code == 220:
            # What came in the clear after the answer is not part of the encrypted session
            # (CVE-2021-38371 and its kin).
            if self._unread:
                raise smtplib.SMTPServerDisconnected("text before the handshake")
            self._start_encryption(context)
            self.helo_resp = self.ehlo_resp = None
            self.esmtp_features = {}
            self.does_esmtp = False
        return code, text

    def _start_encryption(self, context: ssl.SSLContext) -> None:
        self.sock = context.wrap_socket(self._socket(), server_hostname=self._relay_host)

    def _line(self) -> bytes:
        while b"\n" not in self._unread:
            if len(self._unread) > _MAX_LINE_LENGTH:
                return b"?"  # no reply is so long
            more = self._socket().recv(4096)
            if not more:
                raise smtplib.SMTPServerDisconnected("closed by the relay")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line.rstrip(b"\r")

    def _socket(self) -> socket.socket:
        """The connection, with what is left until the deadline as its timeout. Raises TimeoutError
        when nothing is left.
        """
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("not connected")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)
        return self.sock


def _mail_options(client: _SmtpClient, message: MailMessage) -> list[str]:
    """The extensions that MAIL names. Raises RelayRefused for an address that this relay can't
    carry.
    """
    options = [f"SIZE={len(message.content)}"] if client.has_extn("size") else []
    if not message.content.isascii() and client.has_extn("8bitmime"):
        options.append("BODY=8BITMIME")
    client.command_encoding = "ascii"
    if not (message.sender + message.recipient).isascii():
        if not client.has_extn("smtputf8"):
            raise RelayRefused("recipient", permanent=True)
        options.append("SMTPUTF8")
        client.command_encoding = "utf-8"
    return options


def _cause(error: Exception) -> str:
    """The kind of the error; of a certificate that is not good, what is wrong with it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATE_FAULTS.get(error.verify_code, CertificateFault.OTHER)
    return type(error).__name__


def _words(text: bytes | str) -> str | None:
    """The words of a reply in one line, without what a terminal would obey."""
    decoded = text.decode(errors="replace") if isinstance(text, bytes) else text
    printable = "".join(each if each.isprintable() else " " for each in decoded)
    return " ".join(printable.split())[:RELAY_WORDS] or None


def _ehlo_name(name: str | None) -> str:
    """What EHLO says: a host's name, or an address in the brackets that RFC 5321 4.1.3 wants around
    one.
    """
    try:
        address = ip_address(name or "")
    except ValueError:
        return name or "frontdesk.invalid"
    return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"


def _data_content(content: bytes) -> bytes:
    """The content as DATA sends it: every leading dot doubled, a single dot at the end (RFC 5321
    4.5.2).
    """
    lines = (b"." + line if line.startswith(b".") else line for line in content.splitlines())
    return b"".join(line + b"\r\n" for line in lines) + b".\r\n"
