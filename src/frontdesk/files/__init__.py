"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, and undone. Types: files.model."""

from frontdesk.files.content import Upload, forget_unfinished
from frontdesk.files.jobs import (
    approve_file,
    begin_file,
    cancel_file,
    get_file,
    get_mapping,
    list_files,
    set_mapping,
    undo_file,
)
from frontdesk.files.load import RunOptions
from frontdesk.files.report import report_csv, report_json_lines
from frontdesk.files.run import run_next
from frontdesk.files.serialize import file_body, summary

__all__ = [
    "RunOptions",
    "Upload",
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
