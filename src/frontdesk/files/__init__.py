"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, undone. Types are in `model`."""

from frontdesk.files.actions import (
    accept_mapping,
    approve_file,
    begin_file,
    cancel_file,
    delete_mapping,
    find_files,
    get_file,
    get_mapping,
    save_mapping,
    serialize_mapping,
    undo_file,
)
from frontdesk.files.claims import RunOptions
from frontdesk.files.content import Upload, delete_left_content
from frontdesk.files.report import read_report, serialize_file, summary
from frontdesk.files.run import FileTurns, run_next
from frontdesk.files.store import (
    delete_chunk,
    forget_members,
    forget_packed_digests,
    get_file_settings,
    list_mappings,
    rows_of_member,
    set_file_settings,
    unfinished_files,
)

__all__ = [
    "FileTurns",
    "RunOptions",
    "Upload",
    "accept_mapping",
    "approve_file",
    "begin_file",
    "cancel_file",
    "delete_chunk",
    "delete_left_content",
    "delete_mapping",
    "find_files",
    "forget_members",
    "forget_packed_digests",
    "get_file",
    "get_file_settings",
    "get_mapping",
    "list_mappings",
    "read_report",
    "rows_of_member",
    "run_next",
    "save_mapping",
    "serialize_file",
    "serialize_mapping",
    "set_file_settings",
    "summary",
    "undo_file",
    "unfinished_files",
]
