"""Readers of eligibility files: `open_file` gives the header and the rows of a file of any format, in constant memory."""

from frontdesk.files.readers.opening import (
    json_texts,
    open_file,
    open_unread,
    opened_source,
    opened_workbook,
    with_addresses,
)
from frontdesk.files.readers.x12 import X12Options
from frontdesk.files.readers.x12_shared import NumberIndex, SharedNumbers

__all__ = [
    "NumberIndex",
    "SharedNumbers",
    "X12Options",
    "json_texts",
    "open_file",
    "open_unread",
    "opened_source",
    "opened_workbook",
    "with_addresses",
]
