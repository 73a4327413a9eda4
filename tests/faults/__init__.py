"""What happens when processes, databases and connections die; one file per kind of fault.

A run of the suite is short; with FRONTDESK_FAULTS=long (`make faults`) every count is `LONG` times as large.
"""

import os

LONG = 40 if os.environ.get("FRONTDESK_FAULTS") == "long" else 1
