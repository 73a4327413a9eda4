"""The content of a file as text: unpacked if it is gzip, decoded, in lines of bounded length, in constant memory."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from frontdesk.formats.model import Unreadable

if TYPE_CHECKING:
    from _typeshed import SupportsRead, WriteableBuffer

LARGEST_CONTENT = 16 * 1024**3
# Lists of members shrink 5 to 40 times. Only content that is large enough to do harm is checked.
LARGEST_RATIO, RATIO_COUNTS_FROM = 200, 1024**2
GZIP_MAGIC, ZIP_MAGIC, OLE_MAGIC = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PACKED_FOR_NOTHING = 1024**2  # of gzip that unpacks to nothing: names of files, and empty files
# No record can be longer than a request body may be.
LONGEST_LINE = 64 * 1024
# A worker stops only between two rows, when others have their turn or the file was cancelled. So what holds no row is bounded.
LARGEST_GAP, LARGEST_GAPS = 256 * 1024, 16 * 1024**2

# Encodings are declared, never guessed: guesses are wrong for short names, and the error stays unseen.
_AS_NAMED = "utf-8-sig utf-16 utf-16-le utf-16-be ascii cp1252 iso8859-1 iso8859-15 cp437 cp850 mac-roman"
ENCODINGS = {"utf-8": "utf-8-sig"} | {name: name for name in _AS_NAMED.split()}

# A byte order mark tells the encoding, whatever was declared: no other text begins with these bytes.
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

_BLOCK = BLOCK_BYTES = 64 * 1024
# What `str.splitlines` takes for the end of a line besides "\r" and "\n".
_OTHER_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


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
    """One file as text. Bytes that are not in the encoding are found when their line is read. Raises Unreadable.

    Of the text, LARGEST_GAPS may hold no item; what is not more than LARGEST_GAP at a time does not count.
    """

    def __init__(self, content: io.BufferedReader, encoding: str) -> None:
        codec = codec_of(content.peek(4), known_encoding(encoding))
        self.encoding = codec.removesuffix("-sig")
        if codec == "utf-16" and codec_of(content.peek(4), "ascii") != codec:
            message = "The file has no byte order mark. Declare its encoding as utf-16-le or utf-16-be, or add the mark."
            raise Unreadable("wrong_encoding", message)
        self._content, self._decoder = content, codecs.getincrementaldecoder(codec)("surrogateescape")
        self._has_item, self._gap, self._gaps = False, 0, 0

    def lines(self) -> Iterator[str]:
        """Every line with its end, as the file has it. Raises Unreadable naming the line."""
        return chain.from_iterable(self.line_blocks())

    def line_blocks(self) -> Iterator[list[str]]:
        """As `lines`, some hundred at a time."""
        number, rest = 0, ""
        while block := self.block():
            self._has_item = not block.isspace()
            lines = _split_lines(rest + block)
            # The last line may go on in the next block, and "\r" may be the half of its end.
            rest = "" if lines[-1].endswith("\n") else lines.pop()
            whole = lines if len(rest) < LONGEST_LINE else [*lines, rest]
            for good in self._checked(whole, number):
                yield good
                number += len(good)
        if rest:
            yield from self._checked([rest], number)

    def _checked(self, lines: list[str], before: int) -> Iterator[list[str]]:
        """The lines, if there are any. Raises Unreadable after those above a bad one."""
        if max(map(len, lines), default=0) >= LONGEST_LINE or not _is_encodable("".join(lines)):
            for number, line in enumerate(lines, before + 1):
                if len(line) >= LONGEST_LINE or not _is_encodable(line):
                    if number > before + 1:
                        yield lines[: number - before - 1]
                    raise self._bad_line(line, number)
        if lines:
            yield lines

    def _bad_line(self, line: str, number: int) -> Unreadable:
        if len(line) < LONGEST_LINE:
            return self._wrong_encoding(number, "Line")
        message = f"longer than {LONGEST_LINE:,} characters, which no member needs"
        return Unreadable("line_too_long", message, place=number, unit="Line")

    def block(self) -> str:
        """The next block of text, "" at the end. The caller checks what is not ASCII with `check`."""
        while True:
            data = self._content.read(_BLOCK)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:  # it holds the bytes
                message = f"The file is not written in {self.encoding}: it ends within a letter."
                raise Unreadable("wrong_encoding", message) from None
            if text or not data:
                self._watch_gaps(len(text))
                return text

    def found_item(self) -> None:
        """A row begins in this block, or may."""
        self._has_item = True

    def _watch_gaps(self, letters: int) -> None:
        self._gap = 0 if self._has_item else self._gap + letters
        self._has_item = False
        if self._gap > LARGEST_GAP:
            self._gaps += letters
        if self._gaps > LARGEST_GAPS:
            message = f"More than {LARGEST_GAPS:,} characters of the file hold no row. Delete what is blank or no member."
            raise Unreadable("too_sparse", message)

    def can_read(self, text: str) -> bool:
        """False for text with bytes that the encoding has no letter for."""
        return _is_encodable(text)

    def check(self, text: str, *, place: int, unit: str) -> None:
        """Raises Unreadable when the text can't be read."""
        if not self.can_read(text):
            raise self._wrong_encoding(place, unit)

    def _wrong_encoding(self, place: int, unit: str) -> Unreadable:
        message = f"not written in {self.encoding}; declare the encoding of the file, such as cp1252"
        return Unreadable("wrong_encoding", message, place=place, unit=unit)


def _is_encodable(text: str) -> bool:
    """False if the text holds bytes that its encoding has no letter for."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _split_lines(text: str) -> list[str]:
    """The lines with their ends, which are those of a text file. `splitlines` knows more of them, and is ten times as fast."""
    if any(map(text.__contains__, _OTHER_ENDS)):
        return io.StringIO(text, newline="").readlines()
    return text.splitlines(keepends=True)


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
