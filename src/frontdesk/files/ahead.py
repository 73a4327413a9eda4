"""Taking items from an iterator in a thread, a few ahead of their use: reading goes on while the database writes."""

import threading
from collections.abc import Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

Item = TypeVar("Item")

_LOOK_SECONDS = 0.1


class _End:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ahead(items: Iterator[Item], *, depth: int = 2) -> Iterator[Item]:
    """The items in order, and at the end what the iterator raised. The thread ends when the consumer stops early."""
    queue: Queue[Item | _End] = Queue(depth)
    stopping = threading.Event()
    thread = threading.Thread(target=_take, args=(items, queue, stopping), name="ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stopping.set()
        while thread.is_alive():
            try:
                queue.get(timeout=_LOOK_SECONDS)
            except Empty:
                continue
        thread.join()


def _take(items: Iterator[Item], queue: "Queue[Item | _End]", stopping: threading.Event) -> None:
    try:
        for item in items:
            if not _put(queue, item, stopping):
                return
    except BaseException as error:  # noqa: BLE001  # the consumer is told
        _put(queue, _End(error), stopping)
    else:
        _put(queue, _End(), stopping)


def _put(queue: "Queue[Item | _End]", item: Item | _End, stopping: threading.Event) -> bool:
    while not stopping.is_set():
        try:
            queue.put(item, timeout=_LOOK_SECONDS)
        except Full:
            continue
        return True
    return False
