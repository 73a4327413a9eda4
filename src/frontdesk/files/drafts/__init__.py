"""Uploads by steps: the file, its plan and mode, its columns, a dry run, and then it is applied."""

from frontdesk.files.drafts.store import applied_file as applied_file
from frontdesk.files.drafts.store import content_part as content_part
from frontdesk.files.drafts.store import unfinished_drafts as unfinished_drafts
