"""Readers of eligibility files: `open_unread` gives the header and the rows of a file of any format, in constant memory."""

from frontdesk.files.readers.opening import open_source, open_unread, with_addresses
from frontdesk.files.readers.x12 import MappingNeeded, X12Options

__all__ = ["MappingNeeded", "X12Options", "open_source", "open_unread", "with_addresses"]
