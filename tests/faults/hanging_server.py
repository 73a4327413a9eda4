"""A serving process whose event loop hangs, for as long as is asked, when it parses a member with
such a first name.
"""

import time
from typing import Any

from frontdesk.api import eligibility
from frontdesk.server import main

ENDLESSLY = "Endlessly"  # an endless computation
FOR_SECONDS = "For five seconds"
MODULE: Any = eligibility
_parse = MODULE.parse_member


def hang(body: Any, *others: Any, **options: Any) -> Any:
    until = {ENDLESSLY: float("inf"), FOR_SECONDS: time.monotonic() + 5.0}.get(
        body.get("first_name"), 0.0
    )
    while time.monotonic() < until:
        pass
    return _parse(body, *others, **options)


if __name__ == "__main__":
    MODULE.parse_member = hang  # in this process only: the tests import its words
    main()
