"""A worker's log: lines of JSON with ids, counts and codes, never an address or a text."""

import json
import sys
from typing import TextIO

from frontdesk.clock import stored_time, system_clock
from frontdesk.log_output import LogOutput


class WorkerLog:
    """Events, each a line that is written at once."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = LogOutput(sys.stdout if output is None else output)

    def write(self, event: str, **values: float | str | None) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._output.put([json.dumps(line) + "\n"])
