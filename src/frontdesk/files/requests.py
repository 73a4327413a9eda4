"""What callers ask of files beside the file itself: a list, a safe retry; how an account wants its files treated, and how many
of them it may have."""

from dataclasses import dataclass
from typing import NamedTuple

from frontdesk.errors import Fault, FrontdeskError, RateLimited
from frontdesk.files.model import FileState, NewFile

RETRY_AFTER_SECONDS = 60


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


class FileQuota(NamedTuple):
    """How many files of an account, and bytes of them, may arrive, wait or run at a time."""

    files: int
    size_bytes: int


class TooManyFiles(RateLimited, kind="rate_limited"):
    """The account has as many files waiting as it may have."""

    def __init__(self, most: int) -> None:
        detail = f"The account has {most} files that wait or run; send this one when some of them have ended."
        super().__init__(detail, retry_after_seconds=RETRY_AFTER_SECONDS)
        self.faults = (Fault("body", "too_many_files", detail),)


class TooManyBytes(FrontdeskError, kind="too_large"):
    """The files of the account that wait have as many bytes as they may have."""

    def __init__(self, most: int) -> None:
        detail = f"The account's files that wait or run may have {most} bytes together; send this one when some have ended."
        super().__init__(detail)
        self.faults = (Fault("body", "too_many_bytes", detail),)
