"""Whatever is sent: rows or Unreadable, the same in any pieces, and nothing of it in what is said."""

import csv
import gzip
import io
import random
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.eligibility.fields import read_external_id, read_external_ids
from frontdesk.formats.model import Format, Unreadable
from frontdesk.mapping.model import Row, UnreadRows, read_loops, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from frontdesk.sandbox.sample_files import SAMPLE_FORMATS
from tests.faults.callers import times
from tests.formats.reading import Pieces, file_834, rows_of, rows_of_stream
from tests.formats.samples import CANARY, SAMPLES

COUNT = times(150, long=1_200_000)


TOKENS = [b'"', b"\n", b"~", b"*", b"\0", b"\xff", b",", b"\\", b"{", b"ISA", b"INS*"]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with a few of the accidents that happen to files."""
    raw = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(raw) + 1)
        length = chance.randint(0, 40)
        end = at + length * chance.randint(0, 1)
        raw[at:end] = chance.choice(
            [b"", chance.choice(TOKENS), raw[at : at + length], chance.randbytes(length)]
        )
    return bytes(raw)


def verdict(stream: Pieces, format_: Format | None) -> tuple[list[Row], str]:
    rows: list[Row] = []
    try:
        rows.extend(rows_of_stream(stream, format_=format_))
    except Unreadable as error:
        code = error.code
        said = error.detail
    else:
        return rows, ""
    assert code in codes.of(Where.FILE)
    assert CANARY not in said
    return rows, code


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("format_", SAMPLE_FORMATS)
def test_damaged_files_are_read_or_refused(format_: Format, is_packed: bool) -> None:
    chance = random.Random(11)
    for _ in range(COUNT):
        whole = gzip.compress(SAMPLES[format_], 1) if is_packed else SAMPLES[format_]
        rows, _ = verdict(Pieces([damaged(whole, chance)]), format_)
        faults = [fault for row in rows for fault in row.faults]
        assert {fault.code for fault in faults} <= set(codes.of(Where.ROW))
        assert not any(CANARY in fault.message for fault in faults)


@pytest.mark.parametrize("format_", SAMPLE_FORMATS)
def test_how_the_stream_is_cut_into_pieces_does_not_matter(format_: Format) -> None:
    content = SAMPLES[format_]
    for size in (1, 2, 3, 7, 105, 106, 107):
        pieces = (content[at : at + size] for at in range(0, len(content), size))
        rows, code = verdict(Pieces(pieces), None)
        assert (rows, code) == (rows_of(content), "")
        places = [row.place for row in rows]
        assert places == sorted(set(places))


odd_letters = st.text(st.sampled_from("ab 1é\u200b\x1c\x00\x0b\u2028,;\t|'\"\n\r\\N"), max_size=6)
texts = odd_letters | st.text(st.characters(codec="utf-8"), max_size=20)
tables = st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=6)


@example([["1", "", r"\N"]], ",", csv.QUOTE_ALL)
@settings(max_examples=COUNT, deadline=None, derandomize=True)
@given(tables, st.sampled_from(",;\t|"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_rows_are_those_of_pythons_csv_reader(
    table: list[list[str]], delimiter: str, quoting: Literal[0, 1]
) -> None:
    page = io.StringIO(newline="")
    names = ("external_id", "city", "county")
    csv.writer(page, delimiter=delimiter, quoting=quoting).writerows([names, *table])
    cells = list(csv.reader(io.StringIO(page.getvalue(), newline=""), delimiter=delimiter))[1:]
    expected = [
        {
            name: None if cell == r"\N" else cell
            for name, cell in zip(names, row, strict=True)
            if cell.strip()
        }
        for row in cells
        if any(map(str.strip, row))
    ]
    for rule in ({}, {"fields": {"external_id": {"column": "external_id", "pad": 2}}}):
        mapping = parse_mapping({"delimiter": delimiter} | rule)
        _, rows = open_unread(io.BytesIO(page.getvalue().encode()), Format.CSV, "utf-8", mapping)
        with suppress(Unreadable):  # all cells are blank
            items = list(read_loops(rows))
            keys: list[Any] = [
                key
                for item in items
                for key in (
                    item.keys if isinstance(item, UnreadRows) else [item.values.get("external_id")]
                )
            ]
            found = list(read_rows(items))
            assert [*map(read_external_id, keys)] == [
                read_external_id(row.values.get("external_id")) for row in found
            ]
            assert [*read_external_ids(keys)] == [*map(read_external_id, keys)]
            assert [row.place for row in found] == sorted({row.place for row in found})
            if not rule:
                assert [row.values for row in found] == expected


@settings(max_examples=COUNT, deadline=None, database=None)
@given(st.text(st.characters(exclude_characters="*~\r\n", codec="utf-8"), max_size=40))
def test_any_text_is_carried_by_an_834_as_it_is(name: str) -> None:
    [row] = rows_of(file_834().replace("Robin", name))
    assert row.values.get("first_name", "") == name.strip()
