"""What the first bytes tell, and which types they contradict."""

import gzip

import pytest

from frontdesk.formats.model import Format
from frontdesk.formats.source import MEDIA_TYPES, START_BYTES, UnsupportedContent, check_start, detect_content
from tests.formats.reading import HEADER, file_834, refused, rows_of


def contradiction(media_type: str, start: bytes) -> str | None:
    try:
        check_start(start, encoding="utf-8", media_type=media_type)
    except UnsupportedContent as error:
        return error.detail
    return None


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
    (b"{\n", Format.JSON_LINES),
    (b'[\n  {"external_id": "1"}', Format.JSON),
    (b"[]", Format.JSON),
    (file_834().encode(), Format.X12),
    (b"ST*834*0001*005010X220A1~", Format.X12),
    (b"GS*BE*SENDER*RECEIVER*", Format.X12),
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
        taken = {format_ for format_, start in starts.items() if contradiction(media_type, start) is None}
        assert taken == formats, media_type


def test_what_no_type_takes_is_left_to_the_reader_where_nothing_is_declared() -> None:
    for media_type in ("", "application/octet-stream", "application/x-www-form-urlencoded"):
        assert contradiction(media_type, b"%PDF-1.7") is None
    assert refused(lambda: rows_of(b"%PDF-1.7"))[0] == "not_text"


@pytest.mark.parametrize("content", OTHER_TABLES)
def test_a_table_that_is_no_workbook_is_refused_with_what_to_do(content: bytes) -> None:
    code, said = refused(lambda: rows_of(content))
    assert (code, said.endswith("Save it as .xlsx or as CSV.")) == ("not_workbook", True)
    assert contradiction("application/vnd.ms-excel", content) is not None


def test_the_sentence_names_both_and_nothing_that_was_sent() -> None:
    said = contradiction("text/csv", b"PK\x03\x04 Canary")
    assert (
        said
        == "The Content-Type says text/csv, and the content looks like an Excel workbook (.xlsx) or another ZIP archive."
    )
    assert contradiction("application/json", b"external_id,city\n") == (
        "The Content-Type says application/json, and the content looks like CSV."
    )
    strange = contradiction("image/<b>é" + "x" * 999, HEADER.encode())
    assert strange is not None
    assert strange.startswith("The Content-Type says image/?b??xxx")
    assert len(strange) < 250


def test_a_byte_order_mark_goes_before_what_was_declared() -> None:
    content = HEADER + "1,2,Zoë,Sample\n"
    for codec in ("utf-16", "utf-8-sig"):
        for declared in ("utf-8", "cp1252", "utf-16", "utf-16-le", "ascii"):
            assert rows_of(content.encode(codec), encoding=declared)[0].values["first_name"] == "Zoë"
    big = b"\xfe\xff" + content.encode("utf-16-be")
    assert rows_of(big)[0].values["first_name"] == "Zoë"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_needs_its_order_of_bytes(codec: str) -> None:
    content = (HEADER + "1,2,Zoë,Sample\n").encode(codec)
    assert rows_of(content, encoding=codec)[0].values["first_name"] == "Zoë"
    code, sentence = refused(lambda: rows_of(content, encoding="utf-16"))
    assert (code, "utf-16-le" in sentence) == ("wrong_encoding", True)


def test_half_a_surrogate_pair_is_no_letter() -> None:
    content = b"\xff\xfe" + HEADER.encode("utf-16-le") + b"\x00\xd8A\x00,\x002\x00,\x003\x00,\x004\x00\n\x00"
    assert refused(lambda: rows_of(content))[0] == "wrong_encoding"
