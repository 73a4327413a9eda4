"""A mailer that keeps what it is given: for tests and benchmarks, and where nobody is to be mailed."""

import threading
from collections.abc import Callable

from frontdesk.mail.model import MailMessage, MailSession

# Told the step ("offer" or "finish") and the letter; raises Refused or Lost to be a relay with a fault.
FaultInjector = Callable[[str, MailMessage], None]


class MemoryMailer:
    """`letters` are those it has accepted, in order. `keep` false only counts them."""

    def __init__(self, verdict: FaultInjector | None = None, *, keep: bool = True) -> None:
        self.letters: list[MailMessage] = []
        self.accepted = 0
        self.verdict = verdict
        self.keep = keep
        self.lock = threading.Lock()

    def open(self) -> MailSession:
        return _MemoryConversation(self)


class _MemoryConversation:
    def __init__(self, mailer: MemoryMailer) -> None:
        self._mailer = mailer
        self._letter: MailMessage | None = None

    def offer(self, letter: MailMessage) -> None:
        if self._mailer.verdict is not None:
            self._mailer.verdict("offer", letter)
        self._letter = letter

    def finish(self) -> int:
        letter, self._letter = self._letter, None
        if letter is None:
            raise RuntimeError("finish() without offer()")
        mailer = self._mailer
        if mailer.verdict is not None:
            mailer.verdict("finish", letter)
        with mailer.lock:
            mailer.accepted += 1
            if mailer.keep:
                mailer.letters.append(letter)
        return 250

    def abandon(self) -> None:
        self._letter = None

    def close(self) -> None:
        pass
