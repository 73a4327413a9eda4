"""What a caught mail is, as stored and as a person reads it."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class CaughtMessage(NamedTuple):
    """A mail as it would have left; the fields are the columns of its table. `content` is RFC 5322 bytes."""

    id: int
    message_id: str
    sender: str
    recipient: str
    outcome: str
    content: bytes
    caught_at: datetime


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """All headers, decoded, and the two parts; `text` is "" and `html` None where there is none."""

    headers: tuple[tuple[str, str], ...]
    text: str
    html: str | None

    @property
    def subject(self) -> str:
        return next((value for name, value in self.headers if name == "Subject"), "")
