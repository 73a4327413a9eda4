"""The serving processes: started, started again when one ends by itself, stopped; it knows nothing of what they serve."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from frontdesk.clock import stored_time, system_clock
from frontdesk.log_output import LogOutput

STOP_SECONDS = 3

# A process that ends sooner than this has not started well. So many in a row for each there should be are no accident.
EARLY_SECONDS = 5.0
MOST_EARLY_ENDS = 5
PAUSE_SECONDS = 0.5
LOOK_SECONDS = 1.0


class Server(Granian):  # type: ignore[misc,valid-type]
    """Granian's processes, kept by a rule of our own.

    Granian itself ends the whole server when one process dies, or, told to start it again, when one dies twice in 5.5 s;
    and it says so in a log that is not JSON.
    """

    def __init__(self, *arguments: Any, on_stop: Callable[[], None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._on_stop = on_stop
        self._log = LogOutput(sys.stdout)
        self._early_ends = 0
        self.gave_up = False

    def signal_handler_interrupt(self, *arguments: Any, **options: Any) -> None:
        self._on_stop()
        for worker in self.wrks:
            with suppress(ProcessLookupError):
                os.kill(worker.inner.pid, signal.SIGUSR2)  # no wait for the database may outlast the stop
        super().signal_handler_interrupt(*arguments, **options)

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        while not self.interrupt_signal and not self.gave_up:
            if self.reload_signal:
                self._reload(spawn_target, target_loader)
            for index, process in enumerate(list(self.wrks)):
                if not process.is_alive() and not self.interrupt_signal:
                    self._replace(index, process, spawn_target, target_loader)
            self.main_loop_interrupt.wait(
                LOOK_SECONDS
            )  # what ends a process sets it; the look is for what is missed
            self.main_loop_interrupt.clear()
        self.interrupt_children.clear()  # granian's own verdict; `gave_up` is ours

    def _replace(self, index: int, process: Any, *how: Any) -> None:
        age = time.monotonic() - process.birth
        self._say("serving_process_ended", pid=process.inner.pid, **_way(process.inner.exitcode))
        self._early_ends = self._early_ends + 1 if age < EARLY_SECONDS else 0
        if self._early_ends >= MOST_EARLY_ENDS * self.workers:
            self._say("serving_gave_up", ended_early=self._early_ends)
            self._on_stop()
            self.gave_up = True
            return
        if self._early_ends > 1:
            time.sleep(PAUSE_SECONDS)
        self._respawn_workers([index], *how)
        self._say("serving_process_started", pid=self.wrks[index].inner.pid)

    def _say(self, event: str, **values: object) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._log.put([json.dumps(line) + "\n"])


def run_server(address: str, port: int, workers: int, *, on_stop: Callable[[], None]) -> bool:
    """Serve until told to stop; False when the processes could not be kept running.

    Granian gets the limits that it lacks by default: it cuts callers that send their headers slowly. `on_stop` is called
    before it waits for the requests under way.
    """
    server = Server(
        "frontdesk.asgi:make_asgi",
        on_stop=on_stop,
        factory=True,
        address=address,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=5000, max_buffer_size=32768),
        websockets=False,
        workers_kill_timeout=STOP_SECONDS,
        log_enabled=False,
    )
    server.serve()
    return not server.gave_up


def _way(exit_code: int | None) -> dict[str, object]:
    """How a process ended, in words of the log."""
    if exit_code is not None and exit_code < 0:
        names = {one.value: one.name for one in signal.Signals}
        return {"status": None, "signal": names.get(-exit_code, str(-exit_code))}
    return {"status": exit_code, "signal": None}
