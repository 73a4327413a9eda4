"""Files that nobody should send: a clear sentence that names the place, and no more is read of them than it takes."""

import gzip
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat

import pytest

from frontdesk.formats.model import FILE_FAULTS, Format
from frontdesk.formats.source import LONGEST_LINE
from frontdesk.mapping.model import ROW_FAULTS
from tests.formats.reading import HEADER, ISA, Pieces, codes, file_834, read, refused, rows_of_stream

CANARY = "Canary-Person"
PACKED_LINE = gzip.compress(b"1" * 60_000 + b"\n")
PERSON = f"1,2,{CANARY},é\n"


def drain(stream: Pieces, *, format_: Format | None = None) -> None:
    deque(rows_of_stream(stream, format_=format_), maxlen=0)


FILES: list[tuple[str, bytes, str, str]] = [
    ("empty", b"", "empty", "The file is empty."),
    ("only a mark", b"\xef\xbb\xbf", "empty", "The file is empty."),
    ("packed nothing", gzip.compress(b""), "empty", "The file is empty."),
    ("header only", HEADER.encode(), "no_rows", "The file has a header and no row below it."),
    ("header and blanks", (HEADER + "\n,,,\n\n").encode(), "no_rows", "The file has a header"),
    ("no header", PERSON.encode(), "no_header", "Row 1: the first rows name no field"),
    ("zeros", b"\0" * 100, "not_text", "The file is binary data"),
    ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not_text", "The file is an image"),
    ("half an array", b' [\n{"external_id": "1"}', "cut_off", "The JSON array has no end."),
    ("Latin-1", (HEADER + PERSON).encode("latin-1"), "wrong_encoding", "Line 2: not written in utf-8; declare"),
    ("half of UTF-16", (HEADER + PERSON).encode("utf-16")[:-1], "wrong_encoding", "The file is not written in utf-16"),
    ("Latin-1 in 834", file_834().replace("Robin", "Zoë").encode("latin-1"), "wrong_encoding", "Segment 11: "),
    ("half a gzip", gzip.compress((HEADER + PERSON * 99).encode())[:-20], "cut_off", "The compressed file ends"),
    ("a gzip's head", gzip.compress(b"x")[:6], "cut_off", "The compressed file ends in the middle."),
    ("damaged gzip", gzip.compress(b"x")[:10] + b"\xff" * 50, "not_gzip", "The compressed data of the file"),
    ("wrong checksum", gzip.compress(HEADER.encode())[:-8] + b"\0" * 8, "not_gzip", "The compressed data"),
    ("a long cell", (HEADER + "1,2," + "x" * 70_000).encode(), "line_too_long", "Line 2: longer than 65,536"),
    ("a long header", b"external_id," * 10_000, "line_too_long", "Line 1: "),
    ("ISA cut off", ISA[:50].encode(), "cut_off", "Segment 1: the file ends within the ISA"),
    ("an unpacked bomb", gzip.compress(b"external_id\n" + (b"1" * 60_000 + b"\n") * 300), "zip_bomb", "The file unp"),
    ("a long gzip name", gzip.compress(b"")[:3] + b"\x08" + bytes(6) + b"n" * 2**21, "cut_off", "The compressed file ends"),
    ("many gzip members", gzip.compress(b"external_id\n") + PACKED_LINE * 300, "zip_bomb", "The file unpacks to"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "code", "sentence"), FILES, ids=[file[0] for file in FILES])
def test_it_is_refused_with_a_sentence_that_names_the_place_and_no_value(
    name: str, content: bytes, code: str, sentence: str
) -> None:
    found, said = refused(lambda: read(content))
    assert (found, said[: len(sentence)]) == (code, sentence)
    assert CANARY not in said


@pytest.mark.parametrize("encoding", ["rot13", "utf-7", "unicode_escape", "nonsense", "", "a\0b"])
def test_an_encoding_that_is_not_read_is_refused_whatever_is_in_the_file(encoding: str) -> None:
    assert refused(lambda: read(HEADER, encoding=encoding))[0] == "unknown_encoding"


def test_text_that_ends_within_a_letter_is_refused_without_its_bytes() -> None:
    content = (HEADER + PERSON).encode("utf-16")[:-1]
    code, sentence = refused(lambda: read(content, encoding="utf-16", format_=Format.CSV))
    assert code == "wrong_encoding"
    assert CANARY not in sentence


def test_a_wrong_column_count_in_row_700001_refuses_that_row_alone() -> None:
    good = b"1\n" * 1000
    pieces = chain([b"external_id\n"], repeat(good, 699), [good[:-2], b"1,2\n", good])
    rows = rows_of_stream(Pieces(pieces))
    bad = [(row.place, codes(row)) for row in rows if row.faults]
    assert bad == [(700_001, [("row", "wrong_column_count")])]


def packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)


ENDLESS: list[tuple[str, Format, Callable[[], Iterator[bytes]], str]] = [
    ("a line", Format.CSV, lambda: chain([b"external_id\n"], repeat(b"x" * 4096)), "line_too_long"),
    ("a header", Format.CSV, lambda: repeat(b"x" * 4096), "line_too_long"),
    ("a line", Format.JSON_LINES, lambda: chain([b'{"a": "'], repeat(b"x" * 4096)), "line_too_long"),
    ("a segment", Format.X12, lambda: chain([ISA.encode()], repeat(b"x" * 4096)), "line_too_long"),
    (
        "a member",
        Format.X12,
        lambda: chain([file_834().partition("N3*")[0].encode()], repeat(b"REF*17*1~" * 999)),
        "line_too_long",
    ),
    ("blanks before ISA", Format.X12, lambda: repeat(b" " * 4096), "line_too_long"),
    ("a quoted cell", Format.CSV, lambda: chain([b'external_id\n1,"'], repeat(b"x\n" * 2048)), "rows_run_together"),
    (
        "quoted cells in one row",
        Format.CSV,
        lambda: chain([b'external_id\n1,"'], cycle([b'x\n","y' * 99])),
        "rows_run_together",
    ),
    ("a packed line", Format.CSV, lambda: packed(chain([b"external_id\n"], repeat(b"x" * 4096))), "line_too_long"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "format_", "pieces", "code"), ENDLESS, ids=[f"{case[0]}-{case[1]}" for case in ENDLESS]
)
def test_what_never_ends_is_refused_after_a_few_blocks(
    what: str, format_: Format, pieces: Callable[[], Iterator[bytes]], code: str
) -> None:
    stream = Pieces(pieces())
    found, _ = refused(lambda: drain(stream, format_=format_))
    assert found == code
    assert stream.taken < 20 * LONGEST_LINE


def test_every_code_has_its_sentence() -> None:
    used = {file[2] for file in FILES} | {case[3] for case in ENDLESS}
    assert used <= set(FILE_FAULTS)
    assert not set(FILE_FAULTS) & set(ROW_FAULTS)
