"""Content as it arrives: kept in memory up to 1 MiB, then stored as a part, so that memory stays small
at any size. `actions.Upload` stores that of a file, `drafts.steps.DraftUpload` that of a draft.
"""

import hashlib
import zlib
from abc import ABC, abstractmethod

from frontdesk import codes, usage
from frontdesk.db import Database, Tx
from frontdesk.errors import Fault, Invalid

PART_BYTES = 1024 * 1024
MOST_BYTES = 4096 * 1024 * 1024  # of an account's files that arrive, wait or run; so of its drafts


class ContentUpload(ABC):
    """Stores content part by part. Only one thread at a time may use it."""

    def __init__(self, db: Database, account_id: int) -> None:
        self._db = db
        self.account_id = account_id
        self._buffer = bytearray()
        self._parts = 0
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def write(self, data: bytes) -> bool:
        """Keep the data in memory. True if it is time to call `flush`."""
        self._buffer += data
        self.size_bytes += len(data)
        return len(self._buffer) >= PART_BYTES

    def flush(self) -> None:
        """Store the buffered data as one part. Raises TooManyBytes; the upload has to be discarded."""
        part = bytes(self._buffer)
        self._buffer.clear()
        self._digest.update(part)
        # before the transaction: SQLite's other writers wait for its end
        packed = zlib.compress(part, 1)
        usage.count(self._db.engine, self.account_id, files=len(part))
        with self._db.write() as tx:
            self._store_part(tx, self._parts, packed)
        self._parts += 1

    @abstractmethod
    def _store_part(self, tx: Tx, number: int, packed: bytes) -> None:
        """Store a part, counted from 0. Raises TooManyBytes."""

    @abstractmethod
    def discard(self) -> None:
        """Delete what was stored: the content can't become complete, or is stored already."""

    def _complete(self) -> str:
        """Store what is left in memory; the SHA-256 of the content, in hexadecimal digits. Raises
        Invalid: `empty`, TooManyBytes.
        """
        if not self.size_bytes:
            raise Invalid([Fault("body", codes.faults.EMPTY, "must not be empty")])
        if self._buffer:
            self.flush()
        return self._digest.hexdigest()
