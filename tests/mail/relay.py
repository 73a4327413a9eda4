"""A relay that misbehaves when it is told to, at any step, and remembers what it took; built on
aiosmtpd.
"""

import asyncio
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from itertools import repeat
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from frontdesk.mail.model import MailMessage
from tests.patience import PATIENCE_SECONDS

# At which step, and what then: see Misbehaving and Taking.handle_DATA.
Fault = str
Plan = Callable[[str], Fault | None]

SILENCE_SECONDS = 30.0
REPLIES = {
    "4yz": "451 try later",
    "5yz": "554 no",
    "421": "421 closing",
    "530": "530 log in first",
    "garbage": "?? what",
    "long": "250-" + "x" * 50_000,
}


@dataclass
class Relay:
    """Serves on a free port of 127.0.0.1 from a thread. `plan(step)` says how to misbehave at the
    next such step.

    `taken` counts the copies it has taken responsibility for, by Message-ID.
    """

    plan: Plan = field(default=lambda _step: None)
    slow_seconds: float = 0.2
    tls: ssl.SSLContext | None = None
    is_tls_from_the_start: bool = False
    password: str | None = None
    takes_utf8: bool = True  # whether it offers SMTPUTF8

    def __post_init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.recipients: list[str] = []
        self.contents: list[bytes] = []
        self.hellos: list[str] = []
        self.connections = 0
        self.port = 0
        self._sessions: list[Misbehaving] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        listening = self._loop.create_server(
            self.session, "127.0.0.1", 0, ssl=self.tls if self.is_tls_from_the_start else None
        )
        self._server = self._loop.run_until_complete(listening)
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._server.close()
        self._loop.run_until_complete(self._end_sessions())
        self._loop.close()

    def session(self) -> "Misbehaving":
        self.connections += 1
        options: dict[str, Any] = {
            "loop": self._loop,
            "hostname": "relay.example",
            "tls_context": self.tls,
        }
        options["enable_SMTPUTF8"] = self.takes_utf8
        if self.password is not None:
            options |= {"authenticator": self._authenticate, "auth_require_tls": False}
        session = Misbehaving(self, Taking(self), **options)
        self._sessions.append(session)
        return session

    def _authenticate(self, *arguments: Any) -> AuthResult:
        given = arguments[-1]
        good = isinstance(given, LoginPassword) and given.password == (self.password or "").encode()
        return AuthResult(success=good)

    async def _end_sessions(self) -> None:
        """Connections that are still open are cut, so that nothing of them is left to the next
        test.
        """
        for session in self._sessions:
            if isinstance(session.transport, asyncio.WriteTransport):
                session.transport.abort()
        others = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)


class Taking:
    """The end of DATA: takes the message, or not, and answers, or not."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    async def handle_DATA(  # noqa: N802
        self, server: "Misbehaving", _session: Session, envelope: Envelope
    ) -> str:
        fault = self._relay.plan("content") or ""
        if fault in ("", "slow") or fault.startswith("take and "):
            content = envelope.original_content or b""
            message_id = str(message_from_bytes(content)["Message-ID"]).strip("<>")
            self._relay.taken[message_id] += 1
            self._relay.contents.append(content)
            self._relay.recipients += envelope.rcpt_tos
        fault = fault.removeprefix("take and ")
        await server.stall(fault)
        return REPLIES.get(fault, "250 taken")


class Misbehaving(SMTP):
    """aiosmtpd's session with a fault before the proper answer of a step."""

    def __init__(self, relay: Relay, handler: Taking, **options: Any) -> None:
        self._relay = relay
        self._greeted = False
        super().__init__(handler, **options)

    async def push(self, status: Any) -> None:
        if not self._greeted:
            self._greeted = True
            if await self._misbehave("greeting"):
                return
        await super().push(status)

    async def smtp_EHLO(self, hostname: str) -> None:  # noqa: N802
        self._relay.hellos.append(hostname)
        if not await self._misbehave("ehlo"):
            await super().smtp_EHLO(hostname)

    async def smtp_MAIL(self, arg: str | None) -> None:  # noqa: N802
        if not await self._misbehave("mail"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg: str | None) -> None:  # noqa: N802
        if not await self._misbehave("rcpt"):
            await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        if not await self._misbehave("data"):
            await super().smtp_DATA(arg)

    async def smtp_RSET(self, arg: str) -> None:  # noqa: N802
        if not await self._misbehave("rset"):
            await super().smtp_RSET(arg)

    async def _misbehave(self, step: str) -> bool:
        """Whether the step has been dealt with."""
        fault = self._relay.plan(step)
        if fault is None:
            return False
        if fault == "go on and drop":
            await super().push("354 go on")
        elif fault in REPLIES:
            await super().push(REPLIES[fault])
        await self.stall(fault.removeprefix("go on and "))
        return fault != "slow"

    async def stall(self, fault: Fault) -> None:
        """Wait or close the connection, where the fault is one of these."""
        await asyncio.sleep(
            {"slow": self._relay.slow_seconds, "silent": SILENCE_SECONDS}.get(fault, 0)
        )
        if fault in ("drop", "silent") and isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


def one_fault(step: str, fault: Fault, *, times: int = 10**9) -> Plan:
    """The fault at this step, so many times."""
    faults = repeat(fault, times)
    return lambda at: next(faults, None) if at == step else None


def message(number: int = 1, **changes: Any) -> MailMessage:
    id_ = f"{number}@frontdesk.example"
    head = f"From: a@example.com\r\nTo: b@example.com\r\nMessage-ID: <{id_}>\r\n\r\nHello\r\n"
    return replace(MailMessage("a@example.com", "b@example.com", id_, head.encode()), **changes)
