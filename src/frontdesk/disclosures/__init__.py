"""What people at the console learn of a person: whether a caller's words agree with the record, the
record itself once it is opened for a reason, and who has looked.

Each step is in the audit trail. The table `disclosures` has those of the last hour, by which the
limits are counted over all users and processes. The types are in `model`.
"""

from frontdesk.disclosures.checks import check_answer as check_answer
from frontdesk.disclosures.covered import read_covered as read_covered
from frontdesk.disclosures.file_names import find_names_opening as find_names_opening
from frontdesk.disclosures.file_names import open_names as open_names
from frontdesk.disclosures.file_names import read_names as read_names
from frontdesk.disclosures.looks import list_entries_about as list_entries_about
from frontdesk.disclosures.opened import find_opening as find_opening
from frontdesk.disclosures.opened import open_record as open_record
from frontdesk.disclosures.opened import read_opened as read_opened
from frontdesk.disclosures.searches import find_search as find_search
from frontdesk.disclosures.searches import search as search
