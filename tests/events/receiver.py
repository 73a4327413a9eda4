"""A program that receives webhooks, as an integrator would write it: a real HTTP server on
loopback.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from sqlalchemy import text
from standardwebhooks import Webhook

from frontdesk.db import Database


def set_verified(db: Database, endpoint_id: int) -> None:
    """As if the endpoint had answered the test of its address."""
    with db.write() as tx:
        verified = (
            "UPDATE webhook_endpoints SET state = 'active', unverified_since = NULL WHERE id = :id"
        )
        tx.execute(text(verified), {"id": endpoint_id})


class Delivered(NamedTuple):
    """A webhook as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    def verify(self, secret: str) -> Any:
        """The content, by the library of Standard Webhooks. Raises WebhookVerificationError."""
        return Webhook(secret).verify(self.body, self.headers)


class Receiver:
    """Answers each webhook by `answer`, the status that it returns or a whole answer."""

    def __init__(self) -> None:
        self.received: list[Delivered] = []
        self.answer: Callable[[Delivered], int | bytes] = lambda _: 204
        self.url = ""

    @property
    def ids(self) -> list[str]:
        return [each.headers["webhook-id"] for each in self.received]

    def wait_for(self, count: int, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while len(self.received) < count and time.monotonic() < until:
            time.sleep(0.005)
        assert len(self.received) >= count


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            if len(body) < int(headers["content-length"]):  # its sender was killed
                self.close_connection = True
                return
            found = Delivered(self.path, headers, body)
            receiver.received.append(found)
            answer = receiver.answer(found)
            if isinstance(answer, bytes):
                self.wfile.write(answer)
                self.close_connection = True
                return
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            if 300 <= answer < 400:
                self.send_header("Location", receiver.url + "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
