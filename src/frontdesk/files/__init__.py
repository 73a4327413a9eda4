"""Eligibility files: checked, loaded by the chunk through `enrol`, reported row by row, undone.
Types are in `model`, what people do in `actions`, what a worker does in `run`. These are what
callers need of the store.
"""

from frontdesk.files.store import count_in_state as count_in_state
from frontdesk.files.store import count_unfinished as count_unfinished
from frontdesk.files.store import get_file_settings as get_file_settings
from frontdesk.files.store import list_mappings as list_mappings
from frontdesk.files.store import set_file_settings as set_file_settings
from frontdesk.files.store import unfinished_files as unfinished_files
