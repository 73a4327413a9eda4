"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, undone. Types are in `model`."""

from frontdesk.files.claims import RunOptions
from frontdesk.files.content import Upload, delete_left_content
from frontdesk.files.jobs import (
    accept_mapping,
    approve_file,
    begin_file,
    cancel_file,
    find_files,
    get_file,
    undo_file,
)
from frontdesk.files.mappings import delete_mapping, get_mapping, save_mapping, serialize_mapping
from frontdesk.files.report import report_csv, report_json_lines, serialize_file, summary
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
from frontdesk.formats.source import MEDIA_TYPES, START_BYTES, check_start, detect_content
from frontdesk.mapping.suggest.suggestion import serialize_suggestion, suggest_apart, suggest_mapping

__all__ = [
    "MEDIA_TYPES",
    "START_BYTES",
    "FileTurns",
    "RunOptions",
    "Upload",
    "accept_mapping",
    "approve_file",
    "begin_file",
    "cancel_file",
    "check_start",
    "delete_chunk",
    "delete_left_content",
    "delete_mapping",
    "detect_content",
    "find_files",
    "forget_members",
    "forget_packed_digests",
    "get_file",
    "get_file_settings",
    "get_mapping",
    "list_mappings",
    "report_csv",
    "report_json_lines",
    "rows_of_member",
    "run_next",
    "save_mapping",
    "serialize_file",
    "serialize_mapping",
    "serialize_suggestion",
    "set_file_settings",
    "suggest_apart",
    "suggest_mapping",
    "summary",
    "undo_file",
    "unfinished_files",
]
