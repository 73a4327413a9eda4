"""A receiver of webhooks that answers with bytes, whatever they are, and ends connections as it is
told.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import NamedTuple

GOOD = b"HTTP/1.1 204 No Content\r\n\r\n"


class Ending(Enum):
    """What becomes of the connection after an answer."""

    KEPT = "kept"
    CLOSED = "closed"
    RESET = "reset"


class Answer(NamedTuple):
    content: bytes
    ending: Ending = Ending.KEPT


class RawReceiver:
    """Answers the n-th webhook, from 0, by `answer`. `bodies` are those that arrived; `connections`
    how many were made.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.connections = 0
        self.url = ""
        self.answer: Callable[[int], Answer] = lambda _: Answer(GOOD)

    def serve(self, connected: socket.socket) -> None:
        self.connections += 1
        with connected, suppress(OSError):
            while (body := _read_request(connected)) is not None:
                self.bodies.append(body)
                content, ending = self.answer(len(self.bodies) - 1)
                connected.sendall(content)
                if ending is Ending.RESET:
                    # Closing with unsent bytes thrown away sends RST.
                    connected.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                if ending is not Ending.KEPT:
                    return


def _read_request(connected: socket.socket) -> bytes | None:
    """The body of the next request; None at the end of the connection."""
    read = connected.makefile("rb", buffering=0)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = read.read(1)
        if not byte:
            return None
        head += byte
    lines = head.lower().split(b"\r\n")
    [length] = [
        int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")
    ]
    body = b""
    while len(body) < length:
        body += read.read(length - len(body)) or b""
    return body


@contextmanager
def answering_raw() -> Iterator[RawReceiver]:
    receiver = RawReceiver()
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver.url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connected, _ = server.accept()
                    threading.Thread(target=receiver.serve, args=(connected,), daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
