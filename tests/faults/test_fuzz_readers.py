"""The readers of what others wrote, fuzzed: rows, a report or a refusal by a known code, and no value in what is said."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from frontdesk.eligibility import parse_member
from frontdesk.errors import Invalid
from frontdesk.files.model import REPORT_CODES
from frontdesk.formats.model import FILE_FAULTS, FileMode, Format, Unreadable
from frontdesk.invitations.reports import parse_report, read_message_id, split_mailbox
from frontdesk.mapping.model import Row, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import FileMapping, parse_mapping
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from frontdesk.mapping.x12 import MappingNeeded, X12Options
from tests.faults import fuzz_seeds as seeds
from tests.faults.fuzzing import changed, changes, fuzz
from tests.formats.reading import IDENTIFY, Pieces
from tests.formats.test_any_bytes import CANARY
from tests.formats.workbooks import raw_workbook

TODAY = "2026-11-22"
MAPPING = parse_mapping({"834": IDENTIFY})


def unless_refused(reading: Callable[[], object]) -> None:
    """A refusal has a known code, and a sentence without a value."""
    refusals = []
    try:
        reading()
    except Unreadable as error:
        refusals.append(error)
    assert all(error.code in FILE_FAULTS and CANARY not in error.detail for error in refusals)


def read_all(
    content: bytes, format_: Format | None = None, mapping: FileMapping = MAPPING, size: int = 4096
) -> None:
    pieces = Pieces(content[at : at + size] for at in range(0, len(content), size))
    options = X12Options(FileMode.FULL, b"secret")
    header, rows = open_unread(pieces, format_, "utf-8", mapping, x12=options)
    places = []
    for row in read_rows(rows):
        places.append(row.place)
        check_row(row)
    assert len(places) == len(set(places))
    if header.format is not Format.X12:  # there, dependents wait for their subscriber
        assert places == sorted(places)


def check_row(row: Row) -> None:
    assert {fault.code for fault in row.faults} <= set(REPORT_CODES)
    record = parse_member(row.values, today=TODAY, lenient=True)
    assert not any(CANARY in fault.message for fault in (*row.faults, *record.faults))


def test_csv() -> None:
    def check(seed: bytes, wanted: Any, between: bytes, format_: Format | None, size: int) -> None:
        content = changed(seed, wanted, between=between)
        unless_refused(lambda: read_all(content, format_, size=size))
        unless_refused(lambda: suggest_mapping(io.BytesIO(content), today=TODAY))

    between, format_ = st.sampled_from([b"", b",\n", b"\n", b'"']), st.sampled_from([None, Format.CSV])
    inputs = st.sampled_from(seeds.CSV_SEEDS), changes(seeds.CSV_TOKENS), between, format_
    fuzz(check, *inputs, st.integers(1, 5000), examples=30)


def test_834() -> None:
    def check(seed: bytes, wanted: Any, between: bytes, size: int) -> None:
        unless_refused(lambda: read_all(changed(seed, wanted, between=between), Format.X12, size=size))

    between = st.sampled_from([b"", b"~", b"~*", b"~*:"])
    inputs = st.sampled_from(seeds.X12_SEEDS), changes(seeds.X12_TOKENS), between, st.integers(1, 5000)
    fuzz(check, *inputs, examples=60)


def test_workbooks() -> None:
    """A process of its own reads each, so these are few."""
    parts = {
        "xl/workbook.xml": None,
        "xl/_rels/workbook.xml.rels": None,
        "xl/worksheets/sheet1.xml": None,
        "xl/styles.xml": seeds.STYLES_OR_STRINGS,
        "xl/sharedStrings.xml": seeds.STYLES_OR_STRINGS,
    }

    def check(sheet: str, part: str, wanted: Any, between: bytes) -> None:
        if part:
            good = parts[part] or part_of(raw_workbook(sheet), part)
            content = raw_workbook(sheet, {part: changed(good, wanted, between=between)})
        else:
            content = changed(seeds.BOOK, wanted)
        unless_refused(lambda: read_all(content, Format.XLSX))

    inputs = st.sampled_from(seeds.SHEETS), st.sampled_from(["", *parts]), changes(seeds.XML_TOKENS)
    fuzz(check, *inputs, st.sampled_from([b"", b"<>", b'"']), examples=6)


def part_of(raw: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as package:
        return package.read(name)


def test_mappings() -> None:
    usable = 0

    def check(body: dict[str, Any], seed: bytes) -> None:
        nonlocal usable
        try:
            mapping = parse_mapping(body)
        except Invalid as refusal:
            told = json.dumps([fault.serialize() for fault in refusal.faults])
        else:
            told, usable = "[{}]", usable + 1
            with suppress(MappingNeeded):
                unless_refused(lambda: read_all(seed, mapping=mapping))
        assert json.loads(told)

    contents = st.sampled_from([seeds.CSV_SEEDS[0], seeds.CSV_SEEDS[2], seeds.X12_SEEDS[1]])
    fuzz(check, seeds.MAPPINGS, contents, examples=30)
    assert usable


def test_delivery_reports() -> None:
    def check(seed: bytes, wanted: Any, between: bytes) -> None:
        content = changed(seed, wanted, between=between)
        messages = list(split_mailbox(io.BytesIO(content)))
        assert sum(map(len, messages)) <= len(content)
        for report in filter(None, map(parse_report, [content, *messages])):
            assert read_message_id(f"<{report.message_id}>") == report.message_id

    inputs = st.sampled_from(seeds.BOUNCES), changes(seeds.MAIL_TOKENS)
    fuzz(check, *inputs, st.sampled_from([b"", b"\n", b"\n:; ="]), examples=80)
