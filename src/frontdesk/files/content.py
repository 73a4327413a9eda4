"""A file's content in the database: taken in piece by piece, given out as a stream; it reads nothing of what it carries.

In the database any worker on any host finds it, and it is gone with the file's end: nothing lies about in a folder.
"""

import hashlib
import io
import zlib
from datetime import datetime, timedelta
from typing import Any, BinaryIO, cast

from frontdesk.db import Database
from frontdesk.files import store
from frontdesk.files.jobs import get_file, record_deed
from frontdesk.files.model import EligibilityFile, FileState, Requester

PART_BYTES = 1024 * 1024
FORGOTTEN_AFTER = timedelta(days=1)


class Upload:
    """Takes the content of a file that is being received. Each full piece is stored by itself, so memory stays small."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db = db
        self._file = file
        self._piece = bytearray()
        self._parts = 0
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether `store` has a whole piece to write."""
        return len(self._piece) >= PART_BYTES

    def take(self, data: bytes) -> None:
        """Keep the data; call `store` when the piece is full."""
        self._piece += data
        self.size_bytes += len(data)

    def store(self) -> None:
        """Write what was taken, as one piece."""
        piece = bytes(self._piece)
        self._piece.clear()
        self._digest.update(piece)
        with self._db.write() as tx:
            store.insert_part(tx, self._file.id, self._parts, zlib.compress(piece, 1))
        self._parts += 1

    def finish(self, asked: Requester) -> EligibilityFile:
        """The content is complete: the file waits for a worker."""
        if self._piece:
            self.store()
        changes = {
            "state": FileState.WAITING.value,
            "size_bytes": self.size_bytes,
            "sha256": self._digest.hexdigest(),
        }
        with self._db.write() as tx:
            store.change_state(tx, self._file.id, (FileState.RECEIVING,), changes)
            record_deed(tx, "file.received", self._file, asked, size_bytes=self.size_bytes)
            return get_file(tx, self._file.id, account_id=None)

    def abandon(self) -> None:
        """The content will never be complete: nothing of it stays."""
        with self._db.write() as tx:
            store.delete_file(tx, self._file.id)


def forget_unfinished(db: Database, now: datetime) -> None:
    """Delete what was left of uploads that broke off with the process that took them."""
    before = now - FORGOTTEN_AFTER
    if db.ask(lambda tx: store.unfinished_uploads(tx, before)):
        with db.write() as tx:
            for file_id in store.unfinished_uploads(tx, before):
                store.delete_file(tx, file_id)


def open_content(db: Database, file_id: int) -> BinaryIO:
    """The content as a stream that holds one piece at a time."""
    return cast(BinaryIO, io.BufferedReader(_PartsReader(db, file_id), 256 * 1024))


class _PartsReader(io.RawIOBase):
    def __init__(self, db: Database, file_id: int) -> None:
        self._db = db
        self._file_id = file_id
        self._number = 0
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            number = self._number
            part = self._db.ask(lambda tx: store.find_part(tx, self._file_id, number))
            if part is None:
                return 0
            self._number += 1
            self._left = memoryview(zlib.decompress(part))
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
