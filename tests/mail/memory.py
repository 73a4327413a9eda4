"""A mailer that keeps the messages it accepts, for tests and benchmarks."""

import threading
from collections.abc import Callable

from frontdesk.mail.model import MailMessage, MailSession, RelayReply

# Told the step ("offer" or "finish") and the message; raises RelayRefused or AnswerLost to be a
# relay with a fault.
FaultInjector = Callable[[str, MailMessage], None]


class MemoryMailer:
    """`messages` are those it has accepted, in order. `keep` false only counts them."""

    def __init__(self, fault: FaultInjector | None = None, *, keep: bool = True) -> None:
        self.messages: list[MailMessage] = []
        self.accepted = 0
        self.fault = fault
        self.keep = keep
        self.lock = threading.Lock()

    def open(self) -> MailSession:
        return _MemorySession(self)


class _MemorySession:
    def __init__(self, mailer: MemoryMailer) -> None:
        self._mailer = mailer
        self._message: MailMessage | None = None

    def offer(self, message: MailMessage) -> None:
        if self._mailer.fault is not None:
            self._mailer.fault("offer", message)
        self._message = message

    def finish(self) -> RelayReply:
        message = self._message
        self._message = None
        if message is None:
            raise RuntimeError("finish() without offer()")
        mailer = self._mailer
        if mailer.fault is not None:
            mailer.fault("finish", message)
        with mailer.lock:
            mailer.accepted += 1
            if mailer.keep:
                mailer.messages.append(message)
        return 250, None

    def abandon(self) -> None:
        self._message = None

    def close(self) -> None:
        pass


def failing(step: str, error: Exception, *, recipient: str | None = None) -> FaultInjector:
    """A relay that fails at one step: for this recipient, or for each."""

    def fault(at: str, message: MailMessage) -> None:
        if at == step and recipient in (None, message.recipient):
            raise error

    return fault
