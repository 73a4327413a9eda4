"""The content of a file as text: decoded, in lines of bounded length, in constant memory."""

import codecs
import io
from collections.abc import Iterator
from itertools import chain

from frontdesk.files.model import Unreadable

# No record can be longer than a request body may be.
LONGEST_LINE = 64 * 1024
# A worker stops only between two rows, when others have their turn or the file was cancelled. So what holds no row is bounded.
LARGEST_GAP, LARGEST_GAPS = 256 * 1024, 16 * 1024**2

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

    def check(self, text: str, *, place: int, unit: str) -> None:
        """Raises Unreadable when the text holds bytes that the encoding has no letter for."""
        if not _is_encodable(text):
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
