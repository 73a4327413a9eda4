"""The readers of what others wrote, fuzzed: rows, a report or a refusal by a known code, and no
value in what is said.
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from operator import or_
from typing import Any

from hypothesis import strategies as st

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Invalid
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.invitations.reports import parse_report, read_message_id, split_mailbox
from frontdesk.mapping.model import Row, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import (
    ROW_RULE_PARTS,
    RULE_PARTS,
    SECTION_834,
    FileMapping,
    parse_mapping,
)
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from frontdesk.mapping.x12 import MappingNeeded, X12Options
from tests.faults.fuzzing import changed, changes, fuzz
from tests.files.exports import excel_export, hr_export, synthea
from tests.formats.reading import IDENTIFY, MEMBER, Pieces, file_834, interchange, transaction
from tests.formats.samples import CANARY, SAMPLES
from tests.formats.workbooks import GOOD, HEADER, cell, raw_workbook, workbook
from tests.invitations.bounces import bounce

TODAY = "2026-11-22"
MAPPING = parse_mapping({"834": IDENTIFY})

CSV_SEEDS = [SAMPLES[Format.CSV], *(made()[:1500] for made in (synthea, hr_export, excel_export))]
CSV_TOKENS = [
    b'"\n"',
    b'","',
    b'"a""b"',
    b"sep=;\n",
    *(name.encode() for name in list(FIELDS)[:12]),
]

DEPENDENT = (
    MEMBER.replace("INS*Y*18", "INS*N*19").replace("Robin", "Kim").replace("REF*17*01", "REF*17*02")
)
X12_SEEDS = [
    SAMPLES[Format.X12],
    file_834(MEMBER, DEPENDENT).encode(),
    file_834(MEMBER, purpose="4").encode(),
    interchange(transaction(MEMBER), transaction(DEPENDENT, control="0002")).encode(),
]
X12_TOKENS = b"""
    ISA*00 GS*BE ST*834*0001 SE*3*0001 GE*1*3 IEA*1*000000007 INS*Y*18*024*28*A***FT INS*N*01 REF*0F*
    REF*17* NM1*IL*1* NM1*74*1* DMG*D8* HD*030**HLT HD*024**DEN DTP*348*D8* DTP*349*D8*
    DTP*348*RD8*20260101-20261231 BGN*00* N4* PER*IP** LX*1 LS*2700 COB*P QTY*TO*1
""".split()

A_DAY = cell("B9", "2026-01-01", 't="d"')
SHEETS = [
    GOOD,
    GOOD.replace('r="1"', "").replace('r="2"', ""),
    GOOD.replace("</sheetData>", f'<row r="9">{A_DAY}{cell("C9", "45000.5")}</row></sheetData>'),
]
BOOK = workbook([HEADER, ["E1", "Robin", CANARY, 2134, "1977-01-11", True]])
STYLES_OR_STRINGS = b'<x xmlns="y"><cellXfs><xf numFmtId="14"/></cellXfs><si><t>A</t></si></x>'
XML_TOKENS = b"""
    r="A1048576" t="s" t="e" t="inlineStr" <row> <c> <v>-1</v> </sheetData> <is><t>x</t></is>
    <row/> <mergeCell/>
""".split()

_OTHERS = "plan", "Last Name", "REF*0F", "", "\0", CANARY, "a" * 300
_NAMES = st.sampled_from([*FIELDS, *RULE_PARTS, *ROW_RULE_PARTS, SECTION_834, *_OTHERS])
_WORDS = b"""
    MM/DD/YYYY YYYYMMDD D.M.YY YY first last comma hashed plain compare full strict lenient ;
    REF*17 full_name 9999-12-31 own_reference subscriber person_code NM109 HLT REF*0F+REF*17 REF*17+HD03 all
""".decode().split()
_TEXTS = st.text(max_size=40) | _NAMES | st.sampled_from(_WORDS)
_LEAVES = st.none() | st.booleans() | st.integers(-5, 120) | st.floats() | _TEXTS
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=10,
)


def _objects(
    names: Iterable[str], values: st.SearchStrategy[Any] = _JSON
) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from([*names]), values, max_size=4)


_COLUMNS = st.sampled_from(["external_id", "Last Name", "Zip"]) | _NAMES
_PARTS = {
    "columns": st.dictionaries(_COLUMNS, _NAMES, max_size=6),
    "fields": _objects([*FIELDS, "plan"], _objects(RULE_PARTS)) | _JSON,
    "skip": st.lists(_objects(ROW_RULE_PARTS), max_size=3) | _JSON,
    SECTION_834: _objects(["coverages", "ssn", "verify", "counts", "x"]),
}
_ANY_PARTS = _objects([part.name for part in fields(FileMapping)])
MAPPINGS = st.builds(or_, _ANY_PARTS, st.fixed_dictionaries({}, optional=_PARTS))

ABUSE = "feedback-report"
BOUNCES = [
    bounce(),
    bounce(kind="message/rfc822").replace(b"\n", b"\r\n"),
    bounce(
        report=ABUSE, status_kind=f"message/{ABUSE}", status="Feedback-Type: abuse\nVersion: 1\n"
    ),
    bounce(status_kind="message/global-delivery-status", head="In-Reply-To: <a@b.example>\n"),
]
MAIL_TOKENS = [
    *(
        b"--b\n",
        b"--b--\n",
        b"\n\n",
        b"Content-Type: ",
        b"multipart/report; boundary=",
        b"message/rfc822\n\n",
        b"charset=\0",
    ),
    *(
        b"boundary*0*=utf-8''%FF",
        b"Content-Transfer-Encoding: base64\n",
        b"charset=unknown-8bit",
        b"Message-ID: <a@b>\n",
    ),
    *(
        b"Status: 5.1.1\n",
        b"Action: failed\n",
        b"From x\n",
        b"\nFrom ",
        b">From ",
        b"; a*=''",
        b"(",
        b"<",
        b">",
    ),
    b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 30,
]


def unless_refused(reading: Callable[[], object]) -> None:
    """A refusal has a known code, and a sentence without a value."""
    refusals = []
    try:
        reading()
    except Unreadable as error:
        refusals.append(error)
    assert all(
        error.code in codes.of(Where.FILE) and CANARY not in error.detail for error in refusals
    )


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
    assert {fault.code for fault in row.faults} <= set(codes.of(Where.ROW))
    record = parse_member(row.values, today=TODAY, lenient=True)
    assert not any(CANARY in fault.message for fault in (*row.faults, *record.faults))


def test_csv() -> None:
    def check(seed: bytes, wanted: Any, between: bytes, format_: Format | None, size: int) -> None:
        content = changed(seed, wanted, between=between)
        unless_refused(lambda: read_all(content, format_, size=size))
        unless_refused(lambda: suggest_mapping(io.BytesIO(content), today=TODAY))

    between = st.sampled_from([b"", b",\n", b"\n", b'"'])
    format_ = st.sampled_from([None, Format.CSV])
    inputs = st.sampled_from(CSV_SEEDS), changes(CSV_TOKENS), between, format_
    fuzz(check, *inputs, st.integers(1, 5000), examples=30)


def test_834() -> None:
    def check(seed: bytes, wanted: Any, between: bytes, size: int) -> None:
        unless_refused(
            lambda: read_all(changed(seed, wanted, between=between), Format.X12, size=size)
        )

    between = st.sampled_from([b"", b"~", b"~*", b"~*:"])
    inputs = st.sampled_from(X12_SEEDS), changes(X12_TOKENS), between, st.integers(1, 5000)
    fuzz(check, *inputs, examples=60)


def test_workbooks() -> None:
    """A process of its own reads each, so these are few."""
    parts = {
        "xl/workbook.xml": None,
        "xl/_rels/workbook.xml.rels": None,
        "xl/worksheets/sheet1.xml": None,
        "xl/styles.xml": STYLES_OR_STRINGS,
        "xl/sharedStrings.xml": STYLES_OR_STRINGS,
    }

    def check(sheet: str, part: str, wanted: Any, between: bytes) -> None:
        if part:
            with zipfile.ZipFile(io.BytesIO(raw_workbook(sheet))) as package:
                good = parts[part] or package.read(part)
            content = raw_workbook(sheet, {part: changed(good, wanted, between=between)})
        else:
            content = changed(BOOK, wanted)
        unless_refused(lambda: read_all(content, Format.XLSX))

    inputs = st.sampled_from(SHEETS), st.sampled_from(["", *parts]), changes(XML_TOKENS)
    fuzz(check, *inputs, st.sampled_from([b"", b"<>", b'"']), examples=6)


def test_mappings() -> None:
    usable = 0

    def check(body: dict[str, Any], seed: bytes) -> None:
        nonlocal usable
        try:
            mapping = parse_mapping(body)
        except Invalid as refusal:
            told = json.dumps([fault.serialize() for fault in refusal.faults])
        else:
            told = "[{}]"
            usable = usable + 1
            with suppress(MappingNeeded):
                unless_refused(lambda: read_all(seed, mapping=mapping))
        assert json.loads(told)

    contents = st.sampled_from([CSV_SEEDS[0], CSV_SEEDS[2], X12_SEEDS[1]])
    fuzz(check, MAPPINGS, contents, examples=30)
    assert usable


def test_delivery_reports() -> None:
    def check(seed: bytes, wanted: Any, between: bytes) -> None:
        content = changed(seed, wanted, between=between)
        messages = list(split_mailbox(io.BytesIO(content)))
        assert sum(map(len, messages)) <= len(content)
        for report in filter(None, map(parse_report, [content, *messages])):
            assert read_message_id(f"<{report.message_id}>") == report.message_id

    inputs = st.sampled_from(BOUNCES), changes(MAIL_TOKENS)
    fuzz(check, *inputs, st.sampled_from([b"", b"\n", b"\n:; ="]), examples=80)
