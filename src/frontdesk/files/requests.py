"""What callers ask of files beside the file itself: a list, a safe retry; and how an account wants its files treated."""

from dataclasses import dataclass
from typing import NamedTuple

from frontdesk.files.model import FileState, NewFile


class Retry(NamedTuple):
    """What makes an upload safe to repeat: the caller's key for it, and what the caller says of the file."""

    key: str
    new: NewFile


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files to list: the newest first, `limit` of them, of those with an id below `before_id`. None is any."""

    account_id: int | None
    limit: int
    plan_id: int | None = None
    state: FileState | None = None
    sha256: str | None = None
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How files of an account are treated. With `reopen_absent`, a later full file that lists a member without an expiry_date
    opens its access again, if the member was ended only because a full file omitted it. With `second_approver`, the client or
    person that handed a held file in can't approve it."""

    account_id: int
    reopen_absent: bool = True
    second_approver: bool = False
