"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, undone.

Types are in `model`, what people do in `actions`, what a worker does in `run`. These are what callers need of the store.
"""

from frontdesk.files.store import get_file_settings, list_mappings, set_file_settings, unfinished_files

__all__ = ["get_file_settings", "list_mappings", "set_file_settings", "unfinished_files"]
