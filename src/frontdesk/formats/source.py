"""The content of a file: recognised by its first bytes, unpacked if it is gzip, and decoded, in
lines of bounded length and in constant memory (docs/file-formats.md).
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from frontdesk import codes
from frontdesk.codes import Kind
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.formats.model import Format, Unreadable

if TYPE_CHECKING:
    from _typeshed import SupportsRead, WriteableBuffer

START_BYTES = 4096  # are enough to recognise a file
LARGEST_CONTENT = 16 * 1024**3
# Lists of members shrink 5 to 40 times. Only content that is large enough to do harm is checked.
LARGEST_RATIO = 200
RATIO_COUNTS_FROM = 1024**2
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# No record can be longer than a request body may be.
LONGEST_LINE = 64 * 1024
_BLOCK = _BUFFER = 64 * 1024
_UNREADABLE = re.compile("[\ud800-\udfff]")  # the decoder's marks for bytes that are no letters
# What `str.splitlines` takes for the end of a line besides "\r" and "\n".
_OTHER_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"

# Encodings are declared, never guessed: guesses from short names are often wrong, and the error
# stays unnoticed.
_AS_NAMED = (
    "utf-8-sig utf-16 utf-16-le utf-16-be ascii cp1252 iso8859-1 iso8859-15 cp437 cp850 mac-roman"
)
ENCODINGS = {"utf-8": "utf-8-sig"} | {name: name for name in _AS_NAMED.split()}
# A byte order mark overrides a declared encoding: no other text begins with these bytes.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_ANYTHING = frozenset(Format)
_TEXTS = _ANYTHING - {Format.XLSX}
_XLSX = frozenset({Format.XLSX})
# The formats of each media type. Browsers on Windows send CSVs as workbooks; curl's default type is
# a form.
_MEDIA_TYPES = {
    "application/octet-stream binary/octet-stream application/x-www-form-urlencoded": _ANYTHING,
    "application/gzip application/x-gzip": _ANYTHING,
    "text/plain": _TEXTS,
    "text/csv application/csv text/tab-separated-values": {Format.CSV},
    "application/json": {Format.JSON, Format.JSON_LINES},
    "application/jsonl application/x-jsonlines application/x-ndjson": {Format.JSON_LINES},
    "application/edi-x12 application/x12": {Format.X12},
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": _XLSX,
    "application/vnd.ms-excel.sheet.macroenabled.12": _XLSX,
    "application/vnd.ms-excel": {Format.XLSX, Format.CSV},
}
MEDIA_TYPES = {"": _ANYTHING} | {
    name: frozenset(formats) for names, formats in _MEDIA_TYPES.items() for name in names.split()
}


class UnsupportedContent(FrontdeskError, kind=Kind.UNSUPPORTED_MEDIA_TYPE):
    """The content contradicts its declared type; the message names both."""


class DetectedContent(NamedTuple):
    """The kind of the content by its first bytes. `format` is None for kinds that are not read,
    `name` is for messages.
    """

    format: Format | None
    name: str

    @property
    def is_workbook(self) -> bool:
        """True also for kinds of workbooks that are not read."""
        return self.format is Format.XLSX or self is _OLD_WORKBOOK


_OLD_WORKBOOK = DetectedContent(None, "an older Excel workbook (.xls), or one with a password")
_OTHER_TABLE = DetectedContent(None, "a web page, XML or a document, whatever its name")
_BINARY = DetectedContent(None, "binary data")
_CSV = DetectedContent(Format.CSV, "CSV")
_MAGICS = {
    ZIP_MAGIC: DetectedContent(Format.XLSX, "an Excel workbook (.xlsx) or another ZIP archive"),
    OLE_MAGIC: _OLD_WORKBOOK,
    b"%PDF-": DetectedContent(None, "PDF"),
    b"\x89PNG": DetectedContent(None, "an image"),
    b"\xff\xd8\xff": DetectedContent(None, "an image"),
}
_TEXT_STARTS = {
    DetectedContent(Format.X12, "X12"): re.compile(
        r"ISA(?!\w)|isa\W[0-9 ]{2}\W|GS[*|]BE[*|]|ST[*|]834[*|]"
    ),
    DetectedContent(Format.JSON_LINES, "JSON lines"): re.compile(r'\{\s*(?:["}]|$)'),
    DetectedContent(Format.JSON, "a JSON array"): re.compile(r"\[\s*(?:[{\]]|$)"),
    # Kinds of exports that have the name .xls: a web page, XML, a symbolic link file, a document.
    _OTHER_TABLE: re.compile(
        r"(?i:<(?:\?xml|!doctype|html|head|meta|body|style|table)\b|ID;P(?:WXL|SCALC)|\{\\rtf)"
    ),
}
# Controls that texts don't have. A few stand in damaged texts: their rows are refused one by one.
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f]")
_TEXT_PER_CONTROL = 10


def detect_content(start: bytes, encoding: str = "utf-8") -> DetectedContent:
    """The kind of content that begins with these bytes, packed or not. Other text is CSV."""
    if start.startswith(GZIP_MAGIC):
        packed = start
        start = b""
        with suppress(zlib.error):  # the reader tells that it is damaged
            start = zlib.decompressobj(wbits=31).decompress(packed, START_BYTES)
    start = start[:START_BYTES]
    text = codecs.decode(start, _codec_of(start, encoding), "ignore").lstrip("\ufeff \t\r\n")
    known = [content for magic, content in _MAGICS.items() if start.startswith(magic)]
    known += [content for content, pattern in _TEXT_STARTS.items() if pattern.match(text)]
    is_binary = len(_CONTROL.findall(text)) * _TEXT_PER_CONTROL > len(text)
    return next(iter(known), _BINARY if is_binary else _CSV)


def check_start(
    start: bytes,
    *,
    encoding: str,
    media_type: str = "",
    format: Format | None = None,  # noqa: A002
) -> None:
    """Refuse a file by its first START_BYTES, before any of it is stored. With a `format` the media
    type does not count.

    `media_type` has no parameters, and is in lower case. Raises Invalid for an empty file (`empty`)
    and an encoding that is not read (`unknown_encoding`), UnsupportedContent for a type that the
    content contradicts.
    """
    try:
        known = known_encoding(encoding)
    except Unreadable as error:
        raise Invalid([Fault("encoding", codes.faults.UNKNOWN_ENCODING, error.detail)]) from None
    if not start:
        raise Invalid([Fault("body", codes.faults.EMPTY, "must be a file; it is empty")])
    found = detect_content(start, known)
    if format is None:
        shown = re.sub("[^a-z0-9.+/-]", "?", media_type[:80])
        allowed = MEDIA_TYPES.get(media_type, frozenset())
        declared = f"Content-Type says {shown}"
    else:
        allowed = _XLSX if format is Format.XLSX else _TEXTS
        declared = f"format is {format}"
    if found.format not in allowed and not (found.format is None and allowed == _ANYTHING):
        hint = "" if allowed else " The type is none that eligibility files have."
        raise UnsupportedContent(f"The {declared}, and the content looks like {found.name}.{hint}")


def known_encoding(name: str) -> str:
    """The name in ENCODINGS of a declared encoding. Raises Unreadable."""
    known = ""
    with suppress(LookupError, ValueError):
        known = codecs.lookup(name).name
    if known not in ENCODINGS:
        message = f"The encoding is not one of those that are read: {', '.join(sorted(ENCODINGS))}."
        raise Unreadable(codes.files.UNKNOWN_ENCODING, message)
    return known


def _codec_of(start: bytes, encoding: str) -> str:
    """The codec for text that begins with these bytes: that of its byte order mark, else the one of
    the known encoding.
    """
    found = (codec for mark, codec in _MARKS.items() if start.startswith(mark))
    return next(found, ENCODINGS[encoding])


class Source:
    """One file as text. Bytes that are not in the encoding are found when their line is read.
    Raises Unreadable.
    """

    def __init__(
        self, content: io.BufferedReader, encoding: str, *, block_bytes: int = _BLOCK
    ) -> None:
        """`block_bytes` are read and split into lines at a time."""
        self._block_bytes = block_bytes
        codec = _codec_of(content.peek(4), known_encoding(encoding))
        self.encoding = codec.removesuffix("-sig")
        if codec == "utf-16" and _codec_of(content.peek(4), "ascii") != codec:
            message = (
                "The file has no byte order mark. Declare its encoding as utf-16-le or utf-16-be, "
                "or add the mark."
            )
            raise Unreadable(codes.files.WRONG_ENCODING, message)
        self._content = content
        self._decoder = codecs.getincrementaldecoder(codec)("surrogateescape")

    def line_blocks(self) -> Iterator[list[str]]:
        """The lines with their ends, as the file has them, some hundred at a time. Raises
        Unreadable naming the line.
        """
        number = 0
        rest = ""
        is_end = False
        while not is_end:
            block = self.block()
            lines = _split_lines(rest + block)
            is_end = not block
            # The last line may go on in the next block, and "\r" may be the half of its end.
            rest = "" if is_end or lines[-1].endswith("\n") else lines.pop()
            self._check_lines([*lines, rest], number)
            number += len(lines)
            if lines:
                yield lines

    def _check_lines(self, lines: list[str], before: int) -> None:
        if max(map(len, lines)) < LONGEST_LINE and is_readable("".join(lines)):
            return
        for number, line in enumerate(lines, before + 1):
            if len(line) >= LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters, which no member needs"
                raise Unreadable(codes.files.LINE_TOO_LONG, message, place=number, unit="Line")
            self.check(line, place=number, unit="Line")

    def block(self) -> str:
        """The next block of text, "" at the end. The caller checks what is not ASCII with `check`."""
        while True:
            data = self._content.read(self._block_bytes)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:  # it holds the bytes
                message = f"The file is not written in {self.encoding}: it ends within a letter."
                raise Unreadable(codes.files.WRONG_ENCODING, message) from None
            if text or not data:
                return text

    def check(self, text: str, *, place: int, unit: str) -> None:
        """Raises Unreadable when the text can't be read."""
        if not is_readable(text):
            message = (
                f"not written in {self.encoding}; declare the encoding of the file, such as cp1252"
            )
            raise Unreadable(codes.files.WRONG_ENCODING, message, place=place, unit=unit)


def is_readable(text: str) -> bool:
    """False if the text holds bytes that its encoding has no letter for."""
    return text.isascii() or _UNREADABLE.search(text) is None


def _split_lines(text: str) -> list[str]:
    """The lines with their ends, which are those of a text file. `splitlines` knows more of them,
    and is ten times as fast.
    """
    if any(map(text.__contains__, _OTHER_ENDS)):
        return io.StringIO(text, newline="").readlines()
    return text.splitlines(keepends=True)


def open_source(
    stream: "SupportsRead[bytes]",
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
) -> tuple[io.BufferedReader, Source | None, Format]:
    """The content, unpacked if it is gzip; the content as text (None for a workbook); its format:
    as given, else by the content. Raises Unreadable.
    """
    packed = _BoundedContent(stream)
    content: io.BufferedReader = io.BufferedReader(packed, _BUFFER)
    if content.peek(2)[:2] == GZIP_MAGIC:
        content = io.BufferedReader(
            _BoundedContent(gzip.GzipFile(fileobj=content), packed), _BUFFER
        )
    if not content.peek(1):
        raise Unreadable(codes.files.EMPTY, "The file is empty.")
    found = detect_content(content.peek(1), known_encoding(encoding))
    if format is Format.XLSX or found.is_workbook:
        return content, None, Format.XLSX
    chosen = format or found.format
    if chosen is None and found is _OTHER_TABLE:
        raise Unreadable(
            codes.files.NOT_WORKBOOK, f"The file is {found.name}. Save it as .xlsx or as CSV."
        )
    if chosen is None:
        raise Unreadable(codes.files.NOT_TEXT, f"The file is {found.name}, and no text.")
    return content, Source(content, encoding), chosen


class _BoundedContent(io.RawIOBase):
    """The stream, up to LARGEST_CONTENT bytes; closing this reader leaves the stream open. With
    `packed`, it unpacks that, to not too much for the bytes that are read of it.
    """

    def __init__(
        self, stream: "SupportsRead[bytes]", packed: "_BoundedContent | None" = None
    ) -> None:
        self._stream = stream
        self._packed = packed
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill the buffer as far as there is data, so that the first block is enough to find the
        format.
        """
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view) and (data := self._some(len(view) - filled)):
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _some(self, size: int) -> bytes:
        """At most `size` bytes, none at the end."""
        try:
            data = self._stream.read(size)
        except EOFError:
            raise Unreadable(
                codes.files.CUT_OFF, "The compressed file ends in the middle."
            ) from None
        except (gzip.BadGzipFile, zlib.error):
            raise Unreadable(
                codes.files.NOT_GZIP, "The compressed data of the file is damaged."
            ) from None
        self.size += len(data)
        if self.size > LARGEST_CONTENT:
            how = "is larger" if self._packed is None else "unpacks to more"
            raise Unreadable(
                codes.files.TOO_LARGE, f"The file {how} than {LARGEST_CONTENT:,} bytes."
            )
        if self._packed and self.size > max(RATIO_COUNTS_FROM, LARGEST_RATIO * self._packed.size):
            most = f"more than {LARGEST_RATIO} times its size"
            raise Unreadable(
                codes.files.ZIP_BOMB, f"The file unpacks to {most}: no list of members does."
            )
        return data
