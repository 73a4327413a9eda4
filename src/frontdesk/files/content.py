"""The content of a file in the database, in parts: taken in as it arrives, given out as rows.

Any worker on any host finds it there, and it is deleted when the file has ended.
"""

import hashlib
import hmac
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from frontdesk.audit.model import Requester
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.eligibility import row_digest_key
from frontdesk.errors import Fault, Invalid
from frontdesk.files import store
from frontdesk.files.actions import record_audit
from frontdesk.files.model import EligibilityFile, FileQuota, FileState, NewFile, TooManyBytes
from frontdesk.mapping.model import FileHeader, ReadItem
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.x12 import X12Options

PART_BYTES = 1024 * 1024
ABANDONED_AFTER = timedelta(days=1)


class Upload:
    """Stores the content of a file part by part, so that memory stays small. With a quota, what the account's files have
    together is bounded while the content arrives."""

    def __init__(self, db: Database, file: EligibilityFile, quota: FileQuota | None = None) -> None:
        self._db = db
        self._file = file
        self._quota = quota
        self._buffer = bytearray()
        self._parts = 0
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    @property
    def has_full_part(self) -> bool:
        """True if it is time to call `flush`."""
        return len(self._buffer) >= PART_BYTES

    def write(self, data: bytes) -> None:
        """Keep the data in memory until `flush`."""
        self._buffer += data
        self.size_bytes += len(data)

    def flush(self) -> None:
        """Store the buffered data as one part. Raises TooManyBytes; the upload has to be discarded."""
        part = bytes(self._buffer)
        self._buffer.clear()
        self._digest.update(part)
        with self._db.write() as tx:
            store.insert_part(tx, self._file.id, self._parts, zlib.compress(part, 1))
            if self._quota is not None:
                store.change_file(tx, self._file.id, size_bytes=self.size_bytes)
                if store.find_backlog(tx, self._file.account_id)[1] > self._quota.size_bytes:
                    raise TooManyBytes(self._quota.size_bytes)
        self._parts += 1

    def finish(self, requester: Requester, new: NewFile | None = None) -> EligibilityFile:
        """Complete the content; the file then waits for a worker.

        If an earlier upload brought a file with the idempotency key of `new`, that one is the answer, and this one is gone.
        Raises Invalid: `empty`, `idempotency_key_reused`; the upload has to be discarded.
        """
        if not self.size_bytes:
            raise Invalid([Fault("body", "empty", "must not be empty")])
        if self._buffer:
            self.flush()
        file = write_alone(self._db, lambda tx: self._finish(tx, requester, new))
        if file.id != self._file.id:
            self.discard()
        return file

    def _finish(self, tx: Tx, requester: Requester, new: NewFile | None) -> EligibilityFile:
        file, size = self._file, self.size_bytes
        changes = {"sha256": self._digest.hexdigest()}
        if new is not None and new.idempotency_key is not None:
            said = repr((changes["sha256"], new)).encode("utf-8", "surrogatepass")
            digest = hashlib.sha256(said).hexdigest()
            found = store.find_by_idempotency_key(tx, file.account_id, new.idempotency_key)
            if found is not None and found.idempotency_digest != digest:
                message = "was sent before, with another file or other parameters"
                raise Invalid([Fault("Idempotency-Key", "idempotency_key_reused", message)])
            if found is not None:
                return found
            changes |= {"idempotency_key": new.idempotency_key, "idempotency_digest": digest}
        record_audit(tx, "file.received", file, requester, size_bytes=size)
        return store.change_file(tx, file.id, state=FileState.WAITING, size_bytes=size, **changes)

    def discard(self) -> None:
        """Delete the file: its content will never be complete, or is there already."""
        delete_content(self._db, self._file.id)
        write_alone(self._db, partial(store.delete_file, file_id=self._file.id))


def delete_content(db: Database, file_id: int) -> None:
    """Delete the content of a file that needs it no more, some of it at a time so that others can write. Raises Unavailable."""
    while write_alone(db, partial(store.delete_parts, file_id=file_id)):
        pass


def delete_left_content(db: Database, now: datetime) -> None:
    """Delete the content of ended files that is left (of large ones that were cancelled, or after a kill), and uploads that
    broke off more than a day ago, with the process that received them. Raises Unavailable."""
    for file_id in db.ask(store.ended_files_with_parts):
        delete_content(db, file_id)
    for file_id in db.ask(lambda tx: store.unfinished_uploads(tx, now - ABANDONED_AFTER)):
        delete_content(db, file_id)
        write_alone(db, partial(store.delete_file, file_id=file_id))


class _StoredContent:
    """The content as a stream that holds one part at a time. `read` calls `go_on` and raises what it raises."""

    def __init__(self, db: Database, file_id: int, go_on: Callable[[], None]) -> None:
        self._db, self._file_id, self._go_on = db, file_id, go_on
        self._parts = 0
        self._left = memoryview(b"")

    def read(self, size: int = PART_BYTES, /) -> bytes:
        """At most `size` bytes, none at the end."""
        self._go_on()
        if not self._left:
            part = self._db.ask(lambda tx: store.find_part(tx, self._file_id, self._parts))
            self._left = memoryview(b"" if part is None else zlib.decompress(part))
            self._parts += 1
        data, self._left = self._left[:size], self._left[size:]
        return bytes(data)


def open_rows(
    db: Database, file: EligibilityFile, go_on: Callable[[], None], *, apart: Sequence[int] = ()
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The stored file's header and rows, from its beginning (open_unread). Calls `go_on` before each row, and while there is
    none. Raises Unreadable, here or from the rows."""
    content, mapping = _StoredContent(db, file.id, go_on), parse_mapping(file.mapping or {})
    # The account's secret for hashes in its 834s, which stays the same.
    secret = hmac.digest(db.ask(row_digest_key), f"834 of account {file.account_id}".encode(), "sha256")
    x12 = X12Options(file.asked_mode, secret, apart)
    encoding = file.encoding or "utf-8"
    header, items = open_unread(content, file.format, encoding, mapping, x12=x12, go_on=go_on)
    return header, _going_on(items, go_on)


def _going_on(items: Iterable[ReadItem], go_on: Callable[[], None]) -> Iterator[ReadItem]:
    for item in items:
        go_on()
        yield item
