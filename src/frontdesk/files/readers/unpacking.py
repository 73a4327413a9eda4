"""The bytes of a file as it was sent, unpacked if they are gzip, in constant memory."""

import gzip
import io
import zlib
from typing import TYPE_CHECKING

from frontdesk.files.model import Unreadable

if TYPE_CHECKING:
    from _typeshed import SupportsRead, WriteableBuffer

LARGEST_CONTENT = 16 * 1024**3
# Lists of members shrink 5 to 40 times. Only content that is large enough to do harm is checked.
LARGEST_RATIO, RATIO_COUNTS_FROM = 200, 1024**2
GZIP_MAGIC, ZIP_MAGIC, OLE_MAGIC = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
BLOCK_BYTES = 64 * 1024
PACKED_FOR_NOTHING = 1024**2  # of gzip that unpacks to nothing: names of files, and empty files


def open_content(stream: "SupportsRead[bytes]") -> io.BufferedReader:
    """The stream's bytes, unpacked if they are gzip, whatever the file's name. Raises Unreadable."""
    bounded = _Bounded(stream)
    content = _buffered(bounded)
    if content.peek(2)[:2] == GZIP_MAGIC:
        content = _buffered(_Gunzip(content, bounded))
    if not content.peek(1):
        raise Unreadable("empty", "The file is empty.")
    return content


def _buffered(raw: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(raw, BLOCK_BYTES)


class _Bounded(io.RawIOBase):
    """The caller's stream, up to LARGEST_CONTENT bytes; `most` is where it must end for now. Closing this reader leaves the
    stream open."""

    what_is_large = "is larger"

    def __init__(self, stream: "SupportsRead[bytes]") -> None:
        self._stream = stream
        self.size, self.most = 0, LARGEST_CONTENT

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill the buffer as far as there is data, so that the first block is enough to find the format."""
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view) and (data := self.some(len(view) - filled)):
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def some(self, size: int) -> bytes:
        """At most `size` bytes, none at the end."""
        data = self._stream.read(size)
        self.size += len(data)
        if self.size > LARGEST_CONTENT:
            raise Unreadable("too_large", f"The file {self.what_is_large} than {LARGEST_CONTENT:,} bytes.")
        if self.size > self.most:
            message = f"More than {PACKED_FOR_NOTHING:,} bytes of the compressed file unpack to nothing."
            raise Unreadable("not_gzip", message)
        return data


class _Gunzip(_Bounded):
    """Unpacks gzip as it is read, a block at a time at most."""

    what_is_large = "unpacks to more"

    def __init__(self, packed: io.BufferedReader, bounded: _Bounded) -> None:
        super().__init__(gzip.GzipFile(fileobj=packed))
        self._packed = bounded

    def some(self, size: int) -> bytes:
        self._packed.most = self._packed.size + PACKED_FOR_NOTHING
        try:
            data = super().some(size)
        except EOFError:
            raise Unreadable("cut_off", "The compressed file ends in the middle.") from None
        except (gzip.BadGzipFile, zlib.error):
            raise Unreadable("not_gzip", "The compressed data of the file is damaged.") from None
        if self.size > RATIO_COUNTS_FROM and self.size > LARGEST_RATIO * self._packed.size:
            message = (
                f"The file unpacks to more than {LARGEST_RATIO} times its size: no list of members does."
            )
            raise Unreadable("zip_bomb", message)
        return data
