"""A relay spoken to over SMTP, step by step, so that it is always known whether a message can have left; no queue is here."""

import contextlib
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, NoReturn

from frontdesk.mail.model import AnswerLost, MailMessage, MailSession, RelayRefused
from frontdesk.relay import Relay

_MOST_LINES, _LONGEST_LINE = 100, 2000
_GARBAGE = -1
_SHUT_DOWN = 421


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


class SmtpMailer:
    """Opens conversations with one relay. `context` is the TLS context: by default the system's certificates, verified."""

    def __init__(
        self,
        relay: Relay,
        *,
        hello_name: str | None = None,
        patience: SmtpTimeouts | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._relay = relay
        self._hello_name = hello_name
        self._patience = patience or SmtpTimeouts()
        self._context = context or ssl.create_default_context()

    def open(self) -> MailSession:
        return SmtpSession(self._relay, self._patience, self._context, self._hello_name)


class SmtpSession:
    """One connection, made when it is needed and used for one message after another."""

    def __init__(
        self, relay: Relay, patience: SmtpTimeouts, context: ssl.SSLContext, hello_name: str | None
    ) -> None:
        self._relay = relay
        self._patience = patience
        self._context = context
        self._hello_name = hello_name
        self._client: _Client | None = None
        self._letter: MailMessage | None = None
        self._trusted = False

    def offer(self, letter: MailMessage) -> None:
        if self._client is not None:
            try:
                self._address(letter)
            except RelayRefused as refused:
                # A relay may end a connection that was idle; nothing has been sent, so a fresh one may be tried.
                if refused.code is not None and refused.code != _SHUT_DOWN:
                    raise
                self._drop()
            else:
                return
        self._connect()
        self._address(letter)

    def finish(self) -> int:
        client, letter = self._client, self._letter
        self._letter = None
        if client is None or letter is None:
            raise RelayRefused("data", permanent=False)
        client.within(self._patience.data)
        with self._definite("data"):
            code, _ = client.docmd("DATA")
        if code != 354:
            self._refuse("data", code)
        try:
            client.within(self._patience.content)
            client.send(_stuffed(letter.content))
            client.within(self._patience.verdict)
            code, _ = client.getreply()
        except (OSError, smtplib.SMTPException):
            self._drop()
            raise AnswerLost from None
        if 200 <= code < 300:
            self._trusted = True
            return code
        if not 400 <= code < 600:
            self._drop()
            raise AnswerLost
        return self._refuse("content", code)

    def abandon(self) -> None:
        self._letter = None
        self._reset()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                client.within(self._patience.goodbye)
                client.quit()
            client.close()

    def _connect(self) -> None:
        relay, patience = self._relay, self._patience
        client = _Client(self._hello_name)
        self._client, self._trusted = client, False
        with self._definite("connect"):
            client.dial(relay, patience.connect, self._context if relay.tls == "implicit" else None)
        client.within(patience.greeting)
        with self._definite("greeting"):
            code, _ = client.getreply()
        if code != 220:
            self._refuse("greeting", code)
        client.within(patience.command)
        self._greet("hello")
        if relay.tls == "required":
            with self._definite("starttls"):
                code, _ = client.starttls(context=self._context)
            if code != 220:
                self._refuse("starttls", code)
            self._greet("hello")
        if relay.user is not None:
            client.within(patience.command)
            with self._definite("login"):
                client.login(relay.user, relay.password or "")

    def _greet(self, stage: str) -> None:
        client = self._client
        if client is not None:
            with self._definite(stage):
                client.ehlo_or_helo_if_needed()

    def _address(self, letter: MailMessage) -> None:
        """MAIL and RCPT."""
        client = self._client
        if client is None:
            raise RelayRefused("connect", permanent=False)
        options = self._options(client, letter)
        steps: tuple[tuple[str, Callable[[], tuple[int, bytes]]], ...] = (
            ("sender", lambda: client.mail(letter.sender, options)),
            ("recipient", lambda: client.rcpt(letter.recipient)),
        )
        for stage, step in steps:
            client.within(self._patience.command)
            with self._definite(stage):
                code, _ = step()
            if code not in (250, 251):
                self._refuse(stage, code)
        self._letter = letter

    def _options(self, client: "_Client", letter: MailMessage) -> list[str]:
        options = [f"SIZE={len(letter.content)}"] if client.has_extn("size") else []
        if not letter.content.isascii() and client.has_extn("8bitmime"):
            options.append("BODY=8BITMIME")
        if not (letter.sender + letter.recipient).isascii():
            if not client.has_extn("smtputf8"):
                raise RelayRefused("recipient", permanent=True)  # this relay can't carry such an address
            options.append("SMTPUTF8")
            client.command_encoding = "utf-8"
        else:
            client.command_encoding = "ascii"
        return options

    def _refuse(self, stage: str, code: int) -> NoReturn:
        """Raise Refused for a reply that is no acceptance; the connection stays if the relay is still in step with us."""
        in_step = stage in ("sender", "recipient", "data", "content") and 400 <= code < 600
        if in_step and code != _SHUT_DOWN:
            self._reset()
        else:
            self._drop()
        known = code if 200 <= code < 600 else None
        permanent = in_step and 500 <= code < 600
        raise RelayRefused(stage, permanent=permanent, code=known, trusted=self._trusted)

    def _reset(self) -> None:
        client = self._client
        if client is not None:
            client.within(self._patience.goodbye)
            try:
                code, _ = client.rset()
            except (OSError, smtplib.SMTPException):
                code = _GARBAGE
            if code != 250:
                self._drop()

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @contextlib.contextmanager
    def _definite(self, stage: str) -> Iterator[None]:
        """Nothing of the message has been handed over here: any failure means that it was not taken."""
        try:
            yield
        except (OSError, smtplib.SMTPException, ValueError) as error:
            self._drop()
            code = getattr(error, "smtp_code", None)
            known = code if isinstance(code, int) and 400 <= code < 600 else None
            cause = type(error).__name__
            raise RelayRefused(stage, permanent=False, code=known, cause=cause) from None


class _Client(smtplib.SMTP):
    """smtplib's commands, with a deadline over each step instead of one wait after another, and strict replies."""

    def __init__(self, hello_name: str | None) -> None:
        super().__init__(local_hostname=_hello(hello_name))
        self._until = 0.0
        self._rest = b""

    def dial(self, relay: Relay, seconds: float, context: ssl.SSLContext | None) -> None:
        self._host = relay.host
        self.within(seconds)
        self.sock = socket.create_connection((relay.host, relay.port), seconds)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.sock.settimeout(self._left())
            self.sock = context.wrap_socket(self.sock, server_hostname=relay.host)

    def within(self, seconds: float) -> None:
        """What follows has to be done in this time."""
        self._until = time.monotonic() + seconds

    def send(self, s: Any) -> None:
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("not connected")
        self.sock.settimeout(self._left())
        self.sock.sendall(s.encode(self.command_encoding) if isinstance(s, str) else s)

    def getreply(self) -> tuple[int, bytes]:
        """A reply's code and text; the code is -1 for what is no SMTP reply. Raises OSError, SMTPServerDisconnected."""
        lines: list[bytes] = []
        for _ in range(_MOST_LINES):
            line = self._line()
            code = line[:3]
            # RFC 5321 4.2: three digits, then a space (the last line), a hyphen (more follow) or nothing.
            if not (code.isdigit() and code.isascii() and line[3:4] in (b"", b" ", b"-")):
                return _GARBAGE, b""
            lines.append(line[4:])
            if line[3:4] != b"-":
                return int(code), b"\n".join(lines)
        return _GARBAGE, b""

    def starttls(self, *, context: ssl.SSLContext | None = None) -> tuple[int, bytes]:  # type: ignore[override]
        # What came in the clear after the answer is not part of the encrypted talk (CVE-2021-38371 and its kin).
        self.ehlo_or_helo_if_needed()
        if not self.has_extn("starttls"):
            raise smtplib.SMTPNotSupportedError("no STARTTLS")
        code, text = self.docmd("STARTTLS")
        if code == 220:
            if self._rest:
                raise smtplib.SMTPServerDisconnected("text before the handshake")
            if self.sock is None or context is None:
                raise smtplib.SMTPServerDisconnected("not connected")
            self.sock.settimeout(self._left())
            self.sock = context.wrap_socket(self.sock, server_hostname=self._host)
            self.helo_resp = self.ehlo_resp = None
            self.esmtp_features = {}
            self.does_esmtp = False
        return code, text

    def close(self) -> None:
        self._rest = b""
        super().close()

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > _LONGEST_LINE:
                return b"?"  # no reply is so long
            if self.sock is None:
                raise smtplib.SMTPServerDisconnected("not connected")
            self.sock.settimeout(self._left())
            more = self.sock.recv(4096)
            if not more:
                raise smtplib.SMTPServerDisconnected("closed by the relay")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.rstrip(b"\r")

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _hello(name: str | None) -> str:
    """What EHLO says: a host's name, or an address in the brackets that RFC 5321 4.1.3 wants around one."""
    try:
        address = ip_address(name or "")
    except ValueError:
        return name or "frontdesk.invalid"
    return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"


def _stuffed(content: bytes) -> bytes:
    """The content as DATA wants it: every leading dot doubled, a single dot at the end (RFC 5321 4.5.2)."""
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return b"".join((b"." + line if line[:1] == b"." else line) + b"\r\n" for line in lines) + b".\r\n"
