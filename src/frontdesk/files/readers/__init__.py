"""Readers of eligibility files: `open_file` gives the head and the rows of a file of any format, in constant memory."""

from frontdesk.files.readers.opening import Checked, check_file, open_file

__all__ = ["Checked", "check_file", "open_file"]
