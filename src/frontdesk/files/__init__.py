"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, and undone."""

from frontdesk.files.content import Upload, forget_unfinished
from frontdesk.files.jobs import (
    Asked,
    EligibilityFile,
    FileState,
    NewFile,
    WrongState,
    approve_file,
    begin_file,
    cancel_file,
    get_file,
    get_mapping,
    list_files,
    set_mapping,
    undo_file,
)
from frontdesk.files.load import Turn
from frontdesk.files.report import report_csv, report_json_lines
from frontdesk.files.rows import FileMode, Format
from frontdesk.files.shown import file_body, summary
from frontdesk.files.work import run_next

__all__ = [
    "Asked",
    "EligibilityFile",
    "FileMode",
    "FileState",
    "Format",
    "NewFile",
    "Turn",
    "Upload",
    "WrongState",
    "approve_file",
    "begin_file",
    "cancel_file",
    "file_body",
    "forget_unfinished",
    "get_file",
    "get_mapping",
    "list_files",
    "report_csv",
    "report_json_lines",
    "run_next",
    "set_mapping",
    "summary",
    "undo_file",
]
