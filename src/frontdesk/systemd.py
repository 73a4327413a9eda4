"""Messages to systemd from a service of `Type=notify` (sd_notify(3)): ready, alive, stopping.
Elsewhere nothing is sent. And the sockets that systemd hands over (sd_listen_fds(3)).
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

SEND_SECONDS = 1.0  # at most; a signal handler sends, too
FIRST_SOCKET = 3


def sockets_of_systemd(variables: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """The sockets that a socket unit hands to this process. The variables are removed: children
    have none.
    """
    count = variables.pop("LISTEN_FDS", "")
    process = variables.pop("LISTEN_PID", "")
    variables.pop("LISTEN_FDNAMES", "")
    if process != str(os.getpid()) or not count.isdecimal():
        return []
    return [
        socket.socket(fileno=number) for number in range(FIRST_SOCKET, FIRST_SOCKET + int(count))
    ]


class ServiceManager:
    """The systemd that started this process, as the variables NOTIFY_SOCKET and WATCHDOG_USEC
    describe it.

    The variables are removed: systemd listens to the main process only, and its children are no
    services.
    """

    def __init__(self, variables: MutableMapping[str, str] = os.environ) -> None:
        address = variables.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        microseconds = variables.pop("WATCHDOG_USEC", "")
        process = variables.pop("WATCHDOG_PID", "")
        is_watched = (
            bool(address) and microseconds.isdecimal() and process in ("", str(os.getpid()))
        )
        # 0: nothing watches
        self.beat_seconds = int(microseconds) / 2_000_000 if is_watched else 0.0
        self._is_ready = False

    def beat(self) -> None:
        """Say that the process is ready; in later calls that it is alive. Call it once in
        `beat_seconds`, or more often.
        """
        if not self._is_ready:
            self._is_ready = True
            self._send(b"READY=1")
        elif self.beat_seconds:
            self._send(b"WATCHDOG=1")

    def stopping(self) -> None:
        self._send(b"STOPPING=1")

    def _send(self, message: bytes) -> None:
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.settimeout(SEND_SECONDS)
                line.sendto(message, self._address)
