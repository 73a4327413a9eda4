"""`frontdesk serve` with less patience for silent processes: `python -m tests.faults.watched_server
--host H --port P --workers N --worker|--no-worker`, in serving processes that hang when they are
asked to (tests/faults/hanging_server.py).
"""

import sys
import tempfile
from dataclasses import replace

from frontdesk.cli.serve import WORKER, listening_sockets, serving_program
from frontdesk.log_output import LogOutput
from frontdesk.processes import Supervisor

SILENT_SECONDS = 8.0  # a busy machine may keep a process waiting for some seconds


def main() -> None:
    _, host, _, port, _, workers, worker = sys.argv[1:]
    count = int(workers)
    programs = []
    for listener in listening_sockets(host, int(port), count):
        program = serving_program(listener, count)
        command = tuple(
            "tests.faults.hanging_server" if word == "frontdesk.server" else word
            for word in program.command
        )
        programs.append(replace(program, command=command, silent_seconds=SILENT_SECONDS))
    first_command = (*programs[0].command, "--check")
    if worker == "--worker":
        programs.append(replace(WORKER, silent_seconds=SILENT_SECONDS))
    log = LogOutput(sys.stdout)
    with tempfile.TemporaryDirectory() as folder:
        variables = {"FRONTDESK_METRICS": folder}
        Supervisor(programs, log, first_command=first_command, variables=variables).run()
    log.finish()


if __name__ == "__main__":
    main()
