"""Work in steps: a generator that yields now and then, so that a worker looks up while it waits for a process that reads.

The worker then sees that it was told to stop, that the file was cancelled, or that files of other accounts wait for their turn.
"""

import os
import select
import time
from collections.abc import Generator
from contextlib import closing
from typing import IO, TypeVar

LOOK_SECONDS = 1.0

Result = TypeVar("Result")
Value = TypeVar("Value")
Steps = Generator[None, None, Result]


def run_through(steps: Steps[Result]) -> Result:
    """The result, for a caller that has nothing else to do."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def yielding(value: Value, steps: Steps[Result]) -> Generator[Value, None, Result]:
    """The steps, each with this value."""
    with closing(steps):
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: Result = end.value
                return result
            yield value


class LookOut:
    """`is_due()` is True once LOOK_SECONDS have passed since it last was; waiting counts."""

    def __init__(self) -> None:
        self._at = time.monotonic() + LOOK_SECONDS

    @property
    def seconds_left(self) -> float:
        return max(self._at - time.monotonic(), 0.0)

    def is_due(self) -> bool:
        if self.seconds_left:
            return False
        self._at = time.monotonic() + LOOK_SECONDS
        return True


class ChildPipe:
    """Reads blocks that a child process writes, each behind its length in four bytes. Nothing else may read the stream."""

    LENGTH_BYTES = 4

    def __init__(self, stream: IO[bytes]) -> None:
        self._fd, self._poll, self._look = stream.fileno(), select.poll(), LookOut()
        self._poll.register(self._fd, select.POLLIN)

    def read_block(self) -> Steps[bytes | None]:
        """The next block; None if the child has ended within one."""
        head = yield from self._read(self.LENGTH_BYTES)
        length = int.from_bytes(head, "big")
        content = yield from self._read(length)
        return content if len(head) == self.LENGTH_BYTES and len(content) == length else None

    def _read(self, size: int) -> Steps[bytes]:
        """So many bytes, fewer at the end of the stream."""
        content = bytearray()
        while len(content) < size:
            if self._look.is_due():
                yield
            if not self._poll.poll(self._look.seconds_left * 1000):
                continue
            if not (piece := os.read(self._fd, size - len(content))):
                break
            content += piece
        return bytes(content)
