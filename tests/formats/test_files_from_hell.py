"""What the first bytes tell, and files that nobody should send: a clear sentence that names the
place, and no more is read of them than it takes.
"""

import gzip
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat

import pytest

from frontdesk.formats.model import Format
from frontdesk.formats.source import (
    LONGEST_LINE,
    MEDIA_TYPES,
    START_BYTES,
    UnsupportedContent,
    check_start,
    detect_content,
)
from tests.formats.reading import (
    HEADER,
    ISA,
    Pieces,
    file_834,
    read,
    refused,
    rows_of,
    rows_of_stream,
)

CANARY = "Canary-Person"


def contradiction(media_type: str, start: bytes) -> str:
    try:
        check_start(start, encoding="utf-8", media_type=media_type)
    except UnsupportedContent as error:
        return error.detail
    return ""


# Exports that often call themselves .xls.
OTHER_TABLES = (
    b'<?xml version="1.0"?>\n<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
    b"\xef\xbb\xbf\n<HTML><body><table><tr><td>Employee ID</td></tr>",
    b"<table border=1><tr><th>external_id</th></tr>",
    b"ID;PWXL;N;E\n",
    b"{\\rtf1\\ansi",
)
CONTENTS: list[tuple[bytes, Format | None]] = [
    (HEADER.encode(), Format.CSV),
    (HEADER.encode("utf-16"), Format.CSV),
    (b"[Confidential] members\n" + HEADER.encode(), Format.CSV),
    (b"{Draft}\n" + HEADER.encode(), Format.CSV),
    (b"ISAAC,Sample\n", Format.CSV),
    (b' \xef\xbb\xbf{"external_id": "1"}', Format.JSON_LINES),
    (b'\xef\xbb\xbf\n{"external_id": "1"}', Format.JSON_LINES),
    (b'[\n  {"external_id": "1"}', Format.JSON),
    (file_834().encode(), Format.X12),
    (b"ST*834*0001*005010X220A1~", Format.X12),
    (b"ST,834\n", Format.CSV),
    (b"PK\x03\x04\x14\x00", Format.XLSX),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
    (b"%PDF-1.7", None),
    (b"ID;Prenom;Nom\n", Format.CSV),
    *((start, None) for start in OTHER_TABLES),
    (b"\x89PNG\r\n", None),
    (b"\x00\x01\x02", None),
]


@pytest.mark.parametrize(("start", "format_"), CONTENTS)
def test_the_format_is_recognised_packed_or_not(start: bytes, format_: Format | None) -> None:
    assert detect_content(start).format is format_
    assert detect_content(gzip.compress(start)[:START_BYTES]).format is format_


def test_a_type_takes_the_contents_that_it_may_have() -> None:
    starts = {format_: start for start, format_ in CONTENTS if format_ is not None}
    for media_type, formats in MEDIA_TYPES.items():
        taken = {
            format_ for format_, start in starts.items() if not contradiction(media_type, start)
        }
        assert taken == formats, media_type


def test_what_no_type_takes_is_left_to_the_reader_where_nothing_is_declared() -> None:
    for media_type in ("", "application/octet-stream", "application/x-www-form-urlencoded"):
        assert contradiction(media_type, b"%PDF-1.7") == ""
    assert refused(lambda: rows_of(b"%PDF-1.7"))[0] == "not_text"


@pytest.mark.parametrize("content", OTHER_TABLES)
def test_a_table_that_is_no_workbook_is_refused_with_what_to_do(content: bytes) -> None:
    code, said = refused(lambda: rows_of(content))
    assert (code, said.endswith("Save it as .xlsx or as CSV.")) == ("not_workbook", True)
    assert contradiction("application/vnd.ms-excel", content)


def test_the_sentence_names_both_and_nothing_that_was_sent() -> None:
    assert contradiction("application/json", b"external_id,city\n") == (
        "The Content-Type says application/json, and the content looks like CSV."
    )
    said = contradiction("text/csv", b"PK\x03\x04 Canary")
    assert said.endswith("looks like an Excel workbook (.xlsx) or another ZIP archive.")
    strange = contradiction("image/<b>é" + "x" * 999, HEADER.encode())
    assert strange.startswith("The Content-Type says image/?b??xxx")
    assert len(strange) < 250


ZOE = HEADER + "1,2,Zoë,Sample\n"
UTF_16_BARE = [(ZOE.encode(codec), codec) for codec in ("utf-16-le", "utf-16-be")]


def test_a_byte_order_mark_wins_over_the_declared_encoding() -> None:
    declared = ("utf-8", "cp1252", "utf-16", "utf-16-le", "ascii")
    marked = [(ZOE.encode(codec), name) for codec in ("utf-16", "utf-8-sig") for name in declared]
    for raw, encoding in [*marked, (b"\xfe\xff" + ZOE.encode("utf-16-be"), "utf-8")]:
        assert rows_of(raw, encoding=encoding)[0].values["first_name"] == "Zoë"


@pytest.mark.parametrize(("raw", "codec"), UTF_16_BARE)
def test_utf_16_without_a_mark_needs_its_order(raw: bytes, codec: str) -> None:
    assert rows_of(raw, encoding=codec)[0].values["first_name"] == "Zoë"
    code, sentence = refused(lambda: rows_of(raw, encoding="utf-16"))
    assert (code, "utf-16-le" in sentence) == ("wrong_encoding", True)


PACKED_LINE = gzip.compress(b"1" * 60_000 + b"\n")
PERSON = f"1,2,{CANARY},é\n"


FILES: list[tuple[str, bytes, str, str]] = [
    ("empty", b"", "empty", "The file is empty."),
    ("only a mark", b"\xef\xbb\xbf", "empty", "The file is empty."),
    ("packed nothing", gzip.compress(b""), "empty", "The file is empty."),
    ("header only", HEADER.encode(), "no_rows", "The file has a header and no row below it."),
    ("header and blanks", (HEADER + "\n,,,\n\n").encode(), "no_rows", "The file has a header"),
    ("zeros", b"\0" * 100, "not_text", "The file is binary data"),
    (
        "Latin-1",
        (HEADER + PERSON).encode("latin-1"),
        "wrong_encoding",
        "Line 2: not written in utf-8; declare",
    ),
    (
        "half of UTF-16",
        (HEADER + PERSON).encode("utf-16")[:-1],
        "wrong_encoding",
        "The file is not written in utf-16",
    ),
    (
        "half of a pair",
        b"\xff\xfe" + (HEADER + "1,\ud800A,3,4\n").encode("utf-16-le", "surrogatepass"),
        "wrong_encoding",
        "",
    ),
    (
        "Latin-1 in 834",
        file_834().replace("Robin", "Zoë").encode("latin-1"),
        "wrong_encoding",
        "Segment 11: ",
    ),
    (
        "half a gzip",
        gzip.compress((HEADER + PERSON * 99).encode())[:-20],
        "cut_off",
        "The compressed file ends",
    ),
    (
        "a gzip's head",
        gzip.compress(b"x")[:6],
        "cut_off",
        "The compressed file ends in the middle.",
    ),
    (
        "damaged gzip",
        gzip.compress(b"x")[:10] + b"\xff" * 50,
        "not_gzip",
        "The compressed data of the file",
    ),
    (
        "wrong checksum",
        gzip.compress(HEADER.encode())[:-8] + b"\0" * 8,
        "not_gzip",
        "The compressed data",
    ),
    (
        "a long cell",
        (HEADER + "1,2," + "x" * 70_000).encode(),
        "line_too_long",
        "Line 2: longer than 65,536",
    ),
    (
        "an unpacked bomb",
        gzip.compress(b"external_id\n" + (b"1" * 60_000 + b"\n") * 300),
        "zip_bomb",
        "The file unp",
    ),
    (
        "a long gzip name",
        gzip.compress(b"")[:3] + b"\x08" + bytes(6) + b"n" * 2**21,
        "cut_off",
        "The compressed file ends",
    ),
    (
        "many gzip members",
        gzip.compress(b"external_id\n") + PACKED_LINE * 300,
        "zip_bomb",
        "The file unpacks to",
    ),
]


@pytest.mark.parametrize(
    ("what", "content", "code", "sentence"), FILES, ids=[file[0] for file in FILES]
)
def test_it_is_refused_with_its_place(what: str, content: bytes, code: str, sentence: str) -> None:
    found, said = refused(lambda: read(content))
    assert (found, said[: len(sentence)]) == (code, sentence)
    assert CANARY not in said


@pytest.mark.parametrize("encoding", ["rot13", "unicode_escape", "nonsense", "", "a\0b"])
def test_an_encoding_that_is_not_read_is_refused_whatever_is_in_the_file(encoding: str) -> None:
    assert refused(lambda: read(HEADER, encoding=encoding))[0] == "unknown_encoding"


def packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)


MEMBER_BEGUN = file_834().partition("N3*")[0].encode()
CELL_BEGUN = b'external_id\n1,"'
BLOCK = b"x" * 4096
ENDLESS: list[tuple[str, Format, Callable[[], Iterator[bytes]], str]] = [
    ("a line", Format.CSV, lambda: chain([b"external_id\n"], repeat(BLOCK)), "line_too_long"),
    ("a header", Format.CSV, lambda: repeat(BLOCK), "line_too_long"),
    ("a line", Format.JSON_LINES, lambda: chain([b'{"a": "'], repeat(BLOCK)), "line_too_long"),
    ("a segment", Format.X12, lambda: chain([ISA.encode()], repeat(BLOCK)), "line_too_long"),
    (
        "a member",
        Format.X12,
        lambda: chain([MEMBER_BEGUN], repeat(b"REF*17*1~" * 999)),
        "line_too_long",
    ),
    ("blanks before ISA", Format.X12, lambda: repeat(b" " * 4096), "line_too_long"),
    (
        "a quoted cell",
        Format.CSV,
        lambda: chain([CELL_BEGUN], repeat(b"x\n" * 2048)),
        "rows_run_together",
    ),
    (
        "quoted cells",
        Format.CSV,
        lambda: chain([CELL_BEGUN], cycle([b'x\n","y' * 99])),
        "rows_run_together",
    ),
    (
        "a packed line",
        Format.CSV,
        lambda: packed(chain([b"external_id\n"], repeat(BLOCK))),
        "line_too_long",
    ),
]


@pytest.mark.parametrize(("what", "format_", "pieces", "code"), ENDLESS)
def test_what_never_ends_is_refused_after_a_few_blocks(
    what: str, format_: Format, pieces: Callable[[], Iterator[bytes]], code: str
) -> None:
    stream = Pieces(pieces())
    found, _ = refused(lambda: deque(rows_of_stream(stream, format_=format_), maxlen=0))
    assert found == code
    assert stream.taken < 20 * LONGEST_LINE
