"""What an upload sends: a file by its path, bytes, a binary stream, or records. It can be sent
again after a failure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol, TypeAlias, cast

PIECE_BYTES = 64 * 1024

Progress: TypeAlias = Callable[[int, "int | None"], object]


class BinaryStream(Protocol):
    """What is read by `read(size)` until it is empty: an open file, a pipe, a response of another
    service.
    """

    def read(self, size: int, /) -> bytes: ...


Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryStream | Iterable[Mapping[str, Any]]"


class Content:
    """The body of an upload. Use it in a `with` block, which closes only what it has opened."""

    def __init__(self, source: Source, progress: Progress | None = None) -> None:
        self._progress = progress
        self._is_ours = True
        self.is_records = False
        self._stream: BinaryStream
        if isinstance(source, bytes):
            self._stream = BytesIO(source)
        elif isinstance(source, str | os.PathLike):
            self._stream = Path(source).open("rb")  # noqa: SIM115 - closed by __exit__
        elif hasattr(source, "read"):
            self._stream = cast("BinaryStream", source)
            self._is_ours = False
        elif isinstance(source, Mapping):
            raise TypeError("A single record is not a file: give a list of records.")
        else:
            self._stream = as_json_lines(source)
            self.is_records = True
        self._start = self._position()
        self.size = self._rest()

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        close = getattr(self._stream, "close", None)
        if self._is_ours and close is not None:
            close()

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be sent again: a pipe can't."""
        return self._start is not None

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the beginning, and no more than `size`, if that is known: a file may grow
        while it is sent. Raises ValueError if it became shorter.
        """
        if self._start is not None:
            self._seek(self._start, os.SEEK_SET)
        sent = 0
        while data := self._stream.read(self._next_size(sent)):
            sent += len(data)
            yield data
            if self._progress is not None:
                self._progress(sent, self.size)
        if self.size is not None and sent < self.size:
            raise ValueError(
                "The file became shorter while it was sent. Nothing of it is loaded; send it again."
            )

    def _next_size(self, sent: int) -> int:
        return PIECE_BYTES if self.size is None else min(PIECE_BYTES, self.size - sent)

    def _position(self) -> int | None:
        """Where the stream stands, or None if it can't go back."""
        seekable = getattr(self._stream, "seekable", None)
        return self._seek(0, os.SEEK_CUR) if seekable is not None and seekable() else None

    def _rest(self) -> int | None:
        return None if self._start is None else self._seek(0, os.SEEK_END) - self._start

    def _seek(self, offset: int, whence: int) -> int:
        stream: Any = self._stream
        stream.seek(offset, whence)
        return int(stream.tell())


def as_json_lines(records: Iterable[Mapping[str, Any]]) -> IO[bytes]:
    """The records as JSON lines, in a temporary file without a name."""
    kept = TemporaryFile()  # noqa: SIM115 - Content closes it
    try:
        for record in records:
            kept.write(as_json(dict(record)) + b"\n")
    except BaseException:
        kept.close()
        raise
    kept.seek(0)
    return kept


def as_json(value: object) -> bytes:
    """JSON in UTF-8. A date is written as YYYY-MM-DD. Raises ValueError for NaN, TypeError for what
    JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=as_text).encode()


def as_text(value: object) -> str:
    if isinstance(value, date):  # a datetime too
        return value.isoformat()
    raise TypeError(f"A value of the type {type(value).__name__} can't be sent.")
