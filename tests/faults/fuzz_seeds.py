"""Good input for the fuzzers, and what each format gives a meaning to."""

from collections.abc import Iterable
from dataclasses import fields
from operator import or_
from typing import Any

from hypothesis import strategies as st

from frontdesk.eligibility.fields import FIELDS
from frontdesk.formats.model import Format
from frontdesk.mapping.parser import ROW_RULE_PARTS, RULE_PARTS, SECTION_834, FileMapping
from tests.files.exports import excel_export, hr_export, synthea
from tests.formats.reading import MEMBER, file_834, interchange, transaction
from tests.formats.test_any_bytes import CANARY, SAMPLES
from tests.formats.workbooks import GOOD, HEADER, cell, workbook
from tests.invitations.test_bounces import bounce

CSV_SEEDS = [SAMPLES[Format.CSV], *(made()[:1500] for made in (synthea, hr_export, excel_export))]
CSV_TOKENS = [b'"\n"', b'","', b'"a""b"', b"sep=;\n", *(name.encode() for name in list(FIELDS)[:12])]

DEPENDENT = MEMBER.replace("INS*Y*18", "INS*N*19").replace("Robin", "Kim").replace("REF*17*01", "REF*17*02")
X12_SEEDS = [
    SAMPLES[Format.X12],
    file_834(MEMBER, DEPENDENT).encode(),
    file_834(MEMBER, purpose="4").encode(),
    interchange(transaction(MEMBER), transaction(DEPENDENT, control="0002")).encode(),
]
X12_TOKENS = b"""
    ISA*00 GS*BE ST*834*0001 SE*3*0001 GE*1*3 IEA*1*000000007 INS*Y*18*024*28*A***FT INS*N*01 REF*0F* REF*17* NM1*IL*1* NM1*74*1*
    DMG*D8* HD*030**HLT HD*024**DEN DTP*348*D8* DTP*349*D8* DTP*348*RD8*20260101-20261231 BGN*00* N4* PER*IP** LX*1 LS*2700
    COB*P QTY*TO*1
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
    r="A1048576" t="s" t="e" t="inlineStr" <row> <c> <v>-1</v> </sheetData> <is><t>x</t></is> <row/> <mergeCell/>
""".split()

_OTHERS = "plan", "Last Name", "REF*0F", "", "\0", CANARY, "a" * 300
_NAMES = st.sampled_from([*FIELDS, *RULE_PARTS, *ROW_RULE_PARTS, SECTION_834, *_OTHERS])
_WORDS = b"""
    MM/DD/YYYY YYYYMMDD D.M.YY YY first last comma hashed plain compare full strict lenient ; REF*17 full_name 9999-12-31
    own_reference subscriber person_code NM109 HLT REF*0F+REF*17 REF*17+HD03 all
""".decode().split()
_TEXTS = st.text(max_size=40) | _NAMES | st.sampled_from(_WORDS)
_LEAVES = st.none() | st.booleans() | st.integers(-5, 120) | st.floats() | _TEXTS
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=10,
)


def _objects(names: Iterable[str], values: st.SearchStrategy[Any] = _JSON) -> st.SearchStrategy[Any]:
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
    bounce(report=ABUSE, status_kind=f"message/{ABUSE}", status="Feedback-Type: abuse\nVersion: 1\n"),
    bounce(status_kind="message/global-delivery-status", head="In-Reply-To: <a@b.example>\n"),
]
MAIL_TOKENS = [
    *(b"--b\n", b"--b--\n", b"\n\n", b"Content-Type: ", b"multipart/report; boundary=", b"message/rfc822\n\n", b"charset=\0"),
    *(b"boundary*0*=utf-8''%FF", b"Content-Transfer-Encoding: base64\n", b"charset=unknown-8bit", b"Message-ID: <a@b>\n"),
    *(b"Status: 5.1.1\n", b"Action: failed\n", b"From x\n", b"\nFrom ", b">From ", b"; a*=''", b"(", b"<", b">"),
    b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 30,
]  # fmt: skip
