"""The bytes of a file, unpacked, and as text: decoded, in lines of bounded length, in constant memory."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from frontdesk.files.model import Unreadable

if TYPE_CHECKING:
    from _typeshed import SupportsRead, WriteableBuffer

# No record can be longer than a request body may be.
LONGEST_LINE = 64 * 1024
LARGEST_CONTENT = 16 * 1024**3
# Lists of members shrink 5 to 40 times. Only content that is large enough to do harm is checked.
LARGEST_RATIO, RATIO_COUNTS_FROM = 200, 1024**2

# Encodings are declared, never guessed: guesses are wrong for short names, and the error stays unseen.
_AS_NAMED = (
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "ascii",
    "cp1252",
    "iso8859-1",
    "iso8859-15",
    "cp437",
    "cp850",
    "mac-roman",
)
ENCODINGS = {"utf-8": "utf-8-sig"} | {name: name for name in _AS_NAMED}

# A byte order mark tells the encoding, whatever was declared: no other text begins with these bytes.
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

_BLOCK = 64 * 1024
GZIP_MAGIC, ZIP_MAGIC, OLE_MAGIC = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def known_encoding(name: str) -> str:
    """The name in ENCODINGS of a declared encoding. Raises Unreadable."""
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        known = ""
    if known not in ENCODINGS:
        message = f"The encoding is not one of those that are read: {', '.join(sorted(ENCODINGS))}."
        raise Unreadable("unknown_encoding", message)
    return known


def codec_of(start: bytes, encoding: str) -> str:
    """The codec for text that begins with these bytes: that of its byte order mark, else the one of the known encoding."""
    found = (codec for mark, codec in _MARKS.items() if start.startswith(mark))
    return next(found, ENCODINGS[encoding])


class Source:
    """One file as text. Bytes that are not in the encoding are found when their line is read. Raises Unreadable."""

    def __init__(self, content: io.BufferedReader, encoding: str) -> None:
        codec = codec_of(content.peek(4), known_encoding(encoding))
        self.encoding = codec.removesuffix("-sig")
        if codec == "utf-16" and codec_of(content.peek(4), "ascii") != codec:
            message = "The file has no byte order mark. Declare its encoding as utf-16-le or utf-16-be, or add the mark."
            raise Unreadable("wrong_encoding", message)
        self._text = io.TextIOWrapper(content, codec, errors="surrogateescape", newline="")

    def lines(self) -> Iterator[str]:
        """Every line with its end, as the file has it. Raises Unreadable naming the line."""
        readline, number = self._text.readline, 0
        try:
            while line := readline(LONGEST_LINE):
                number += 1
                if len(line) >= LONGEST_LINE:
                    message = f"longer than {LONGEST_LINE:,} characters, which no member needs"
                    raise Unreadable("line_too_long", message, place=number, unit="Line")
                if not line.isascii():
                    self.check(line, place=number, unit="Line")
                yield line
        except UnicodeDecodeError:
            raise self._ends_within_a_letter() from None

    def block(self) -> str:
        """The next block of text, "" at the end. The caller checks what is not ASCII with `check`."""
        try:
            return self._text.read(_BLOCK)
        except UnicodeDecodeError:
            raise self._ends_within_a_letter() from None

    def _ends_within_a_letter(self) -> Unreadable:
        """Replaces the decoder's own error, which holds the bytes."""
        message = f"The file is not written in {self.encoding}: it ends within a letter."
        return Unreadable("wrong_encoding", message)

    def check(self, text: str, *, place: int, unit: str) -> None:
        """Raises Unreadable when the text holds bytes that the encoding has no letter for."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            message = f"not written in {self.encoding}; declare the encoding of the file, such as cp1252"
            raise Unreadable("wrong_encoding", message, place=place, unit=unit) from None


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
    return io.BufferedReader(raw, _BLOCK)


class _Bounded(io.RawIOBase):
    """The caller's stream, up to LARGEST_CONTENT bytes. Closing this reader leaves that stream open."""

    what_is_large = "is larger"

    def __init__(self, stream: "SupportsRead[bytes]") -> None:
        self._stream = stream
        self.size = 0

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
        return data


class _Gunzip(_Bounded):
    """Unpacks gzip as it is read, a block at a time at most."""

    what_is_large = "unpacks to more"

    def __init__(self, packed: io.BufferedReader, bounded: _Bounded) -> None:
        super().__init__(gzip.GzipFile(fileobj=packed))
        self._packed = bounded

    def some(self, size: int) -> bytes:
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
