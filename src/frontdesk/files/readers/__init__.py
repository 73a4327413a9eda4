"""Readers of eligibility files: `open_file` gives the header and the rows of a file of any format, in constant memory."""

from frontdesk.files.readers.opening import open_file, open_unread

__all__ = ["open_file", "open_unread"]
