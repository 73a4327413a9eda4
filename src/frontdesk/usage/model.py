"""Usage of storage by account: the bytes of a day, the quotas, and the refusal of an account that
has used one up.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from frontdesk import codes
from frontdesk.errors import RateLimited

GIB = 1024**3
# A first load of a million members stores 1 GiB (docs/operator.md); a day with a wrong load, its
# undo and another load 4 GiB.
STORED_BYTES_PER_DAY = 16 * GIB
# A full 834 of a million members has 1 GiB; a day of trials sends it many times.
FILE_BYTES_PER_DAY = 64 * GIB
# Reads of members, and changes other than of members, leave an audit entry each. They go on until
# the account has stored so many times its quota.
TRAIL_FACTOR = 2


class Usage(NamedTuple):
    """Bytes that were added to the database: the history of members with the audit trail and the
    reports of files, stored answers, and files as they were sent.
    """

    history_bytes: int = 0
    answer_bytes: int = 0
    file_bytes: int = 0

    @property
    def stored_bytes(self) -> int:
        """What stays after the day: files are deleted once they have ended."""
        return self.history_bytes + self.answer_bytes


@dataclass(frozen=True, slots=True)
class Quota:
    """The bytes that an account may add in a day (UTC)."""

    account_id: int
    stored_bytes_per_day: int = STORED_BYTES_PER_DAY
    file_bytes_per_day: int = FILE_BYTES_PER_DAY

    def is_used_up_by(self, usage: Usage) -> bool:
        stored_left = self.stored_bytes_per_day - usage.stored_bytes
        files_left = self.file_bytes_per_day - usage.file_bytes
        return stored_left <= 0 or files_left <= 0

    def ends_trail_at(self, usage: Usage) -> bool:
        """Whether the account may add no audit entry any more."""
        return usage.stored_bytes >= TRAIL_FACTOR * self.stored_bytes_per_day


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """The usage of an account today, and since the oldest day that is kept."""

    account_id: int
    today: Usage
    kept: Usage


NO_CLIENT = 0  # in place of a client's id


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """What the requests of a client cost, in microseconds: of the event loops, and of transactions."""

    client: int
    account_id: int | None
    requests: int
    loop_us: int
    database_us: int


class StorageUsedUp(RateLimited):
    """The account has added as many bytes as it may in a day (UTC)."""

    def __init__(self, now: datetime) -> None:
        midnight = (now.astimezone(UTC) + timedelta(days=1)).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        detail = (
            "The account has stored as many bytes as it may in a day. Try again tomorrow (UTC), "
            "or ask the operator for a larger quota."
        )
        seconds = int((midnight - now).total_seconds()) + 1
        super().__init__(
            detail, retry_after_seconds=seconds, fault=("body", codes.faults.STORAGE_USED_UP)
        )
