"""A file that is held because it would cut off everybody."""

from typing import Any

from frontdesk.files.model import EligibilityFile
from tests.files.loading import COLUMNS, Desk, csv_of, row

TODAY = "2026-11-20"


def hold_file(desk: Desk, number: int = 30, **changes: Any) -> EligibilityFile:
    """A file that would end the access of this many people today. `changes` are of each row."""
    desk.load(csv_of(row(n, **changes) for n in range(number)))
    ends = [row(n, expiry_date=TODAY, **changes) for n in range(number)]
    content = csv_of(ends, (*COLUMNS, "expiry_date"))
    held = desk.load(content, file_name="gold-11-28.csv")
    assert held.state == "held"
    return held


def path_of(file: EligibilityFile) -> str:
    return f"/console/accounts/{file.account_id}/files/{file.id}"
