"""A form with a file as it streams (multipart/form-data, RFC 7578): the fields first, then one file, in
constant memory at any size. python-multipart finds the parts; what they may be is decided here.
"""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from frontdesk.codes import Kind
from frontdesk.errors import Malformed
from frontdesk.web.request import BODY_LIMIT_BYTES, CLOSE, Request
from frontdesk.web.response import HttpError

MULTIPART = "multipart/form-data"
MOST_FIELDS = 50
FIELDS_LIMIT_BYTES = BODY_LIMIT_BYTES  # of all before the file: fields and the headers of parts
MOST_HEADERS = 8  # of a part
LONGEST_HEADER = 4096
# Of a refused file that a user sends: more is not read to show its reason.
MOST_REST_BYTES = 4 * 1024**3
REST_SECONDS = 600.0

# The parser would log each mistake of a sender, who is told of it in the answer.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

_FOLDERS = re.compile(r"[/\\]")


class FormWithFile:
    """A form whose file comes last. Call `read_fields` first; then `file_name` is None for a form
    without a file, and "" where the sender has chosen none; else `file` gives its content.
    """

    def __init__(self, request: Request, *, largest_file: int) -> None:
        """Raises Malformed without a boundary. The file may have `largest_file` bytes."""
        _, options = parse_options_header(request.header(b"content-type"))
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise Malformed("The form can't be read: its type names no boundary.")
        self.file_name: str | None = None
        self._request = request
        # The sizes are counted here: a body that is too large is refused after its fields were checked,
        # and its rest can be read.
        self._pieces = request.body_pieces(sys.maxsize)
        self._largest_file = largest_file
        self._fields: dict[str, str] = {}
        self._parts = 0
        self._size_before_file = 0
        self._file_size = 0
        self._has_ended = False
        # Of the part that is being read.
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._disposition: bytes | None = None
        self._field_name = ""
        self._field = bytearray()
        self._file_data: list[bytes] = []
        self._fault_of_file: Malformed | HttpError | None = None
        self._parser = self._make_parser(boundary)

    def _make_parser(self, boundary: bytes) -> MultipartParser:
        try:
            return MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_header_name,
                    "on_header_value": self._add_header_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
                max_header_count=MOST_HEADERS,
                max_header_size=LONGEST_HEADER,
            )
        except FormParserError:
            raise Malformed("The form can't be read: its boundary is too long.") from None

    async def read_fields(self) -> dict[str, str]:
        """The fields before the file, by name; of a repeated one the last. Nothing of the file has been
        looked at then. Raises Malformed; HttpError `too_large`, `timeout`, and `malformed` for a form
        that broke off.
        """
        read = 0
        with self._request.arriving():
            async for piece in self._pieces:
                read += len(piece)
                self._parse_fields(piece)
                if self.file_name is not None or self._has_ended:
                    return self._fields
                if read > FIELDS_LIMIT_BYTES:  # also where no part begins at all
                    raise _too_many_fields()
        raise _broke_off()

    async def file(self) -> AsyncIterator[bytes]:
        """The file, piece by piece. Raises as `read_fields` does; the file is whole only if all pieces
        were given without an error. One that is declared too large is refused before it is read.
        """
        if (self._request.declared_length or 0) > self._largest_file + FIELDS_LIMIT_BYTES:
            raise self._too_large()
        if self._fault_of_file is not None:
            raise self._fault_of_file
        if piece := self._take_data():
            yield piece
        async for received in self._pieces:
            self._parse(received)
            if piece := self._take_data():
                yield piece
        if not self._has_ended:
            raise _broke_off()

    async def skip_rest(self, *, is_signed_in: bool) -> None:
        """Read what is left and let it go: browsers, and proxies that do not buffer, show the answer to
        a body that was sent to its end. Of a user at the pace of an upload, up to MOST_REST_BYTES and
        REST_SECONDS; of a stranger as long as a small body may take.
        """
        left = MOST_REST_BYTES
        arriving = nullcontext() if is_signed_in else self._request.arriving()
        with suppress(HttpError, TimeoutError), arriving:
            async with asyncio.timeout(REST_SECONDS):
                async for piece in self._pieces:
                    left -= len(piece)
                    if left < 0:
                        return

    def _parse_fields(self, piece: bytes) -> None:
        """Raises Malformed, HttpError for what comes before the file. What is wrong with the file, whose
        beginning this piece may have, is for `file`: a caller checks the fields first.
        """
        try:
            self._parse(piece)
        except (Malformed, HttpError) as error:
            if self.file_name is None:
                raise
            self._fault_of_file = error

    def _parse(self, piece: bytes) -> None:
        """Raises Malformed, HttpError."""
        try:
            self._parser.write(piece)
        except FormParserError:
            raise Malformed("The form can't be read.") from None

    def _take_data(self) -> bytes:
        data = b"".join(self._file_data)
        self._file_data.clear()
        return data

    def _begin_part(self) -> None:
        if self.file_name is not None:
            raise Malformed("A form takes one file, and nothing comes after it.")
        self._parts += 1
        if self._parts > MOST_FIELDS:
            raise _too_many_fields()
        self._disposition = None
        self._field.clear()

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._count_before_file(end - start)
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._count_before_file(end - start)
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            if self._disposition is not None:
                raise Malformed("The form can't be read: a field has two names.")
            self._disposition = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _end_headers(self) -> None:
        kind, options = parse_options_header((self._disposition or b"").decode("latin-1"))
        if kind != b"form-data" or b"name" not in options:
            raise Malformed("The form can't be read: a field has no name.")
        self._field_name = _decoded(options[b"name"])
        if b"filename" in options:
            self.file_name = clean_file_name(options[b"filename"])

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self.file_name is None:
            self._count_before_file(end - start)
            self._field += data[start:end]
            return
        self._file_size += end - start
        if self._file_size > self._largest_file:
            raise self._too_large()
        self._file_data.append(data[start:end])

    def _too_large(self) -> HttpError:
        detail = f"The file may have {self._largest_file:,} bytes at most."
        return HttpError(Kind.TOO_LARGE, detail, CLOSE)

    def _end_part(self) -> None:
        if self.file_name is None:
            self._fields[self._field_name] = _decoded(self._field)

    def _end(self) -> None:
        self._has_ended = True

    def _count_before_file(self, size: int) -> None:
        self._size_before_file += size
        if self._size_before_file > FIELDS_LIMIT_BYTES:
            raise _too_many_fields()


def clean_file_name(sent: bytes) -> str:
    """The name without the folders that some browsers send, and without characters that can't be
    shown, such as controls and those that turn the direction of writing.
    """
    name = _FOLDERS.split(sent.decode("utf-8", "replace"))[-1]
    return "".join(letter for letter in name if letter.isprintable()).strip()


def _decoded(sent: bytes | bytearray) -> str:
    """Raises Malformed."""
    try:
        return sent.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("The form can't be read: it is not in UTF-8.") from None


def _too_many_fields() -> HttpError:
    detail = f"A form may have {MOST_FIELDS} fields and {FIELDS_LIMIT_BYTES} bytes before its file."
    return HttpError(Kind.TOO_LARGE, detail, CLOSE)


def _broke_off() -> HttpError:
    return HttpError(Kind.MALFORMED, "The form broke off before its end.", CLOSE)
