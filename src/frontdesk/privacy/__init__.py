"""Personal data: erasure, export, legal holds, retention (docs/erasure.md)."""

from frontdesk.privacy.store import find_holds as find_holds
from frontdesk.privacy.store import find_place_of as find_place_of
from frontdesk.privacy.store import has_pruned as has_pruned
from frontdesk.privacy.store import last_pruning as last_pruning
from frontdesk.privacy.store import report_rows_of as report_rows_of
