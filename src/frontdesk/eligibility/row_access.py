"""The terms on which the rows of a file are decided."""

from datetime import datetime
from typing import NamedTuple


class FileTerms(NamedTuple):
    """How the rows of a file are decided. `day` (`YYYY-MM-DD`) is the one for which it lists its
    members. With `may_reopen`, a row without an expiry_date opens the access of a member again that
    a full file ended, if the account allows it. With `unless_changed_since`, a row of a member is
    refused that another than the file has changed after that time.
    """

    day: str
    may_reopen: bool
    unless_changed_since: datetime | None = None
