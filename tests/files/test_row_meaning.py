"""What rows of each format mean, in digests: a row that comes to mean something else must be parsed again, known or not."""

import json
import os
from dataclasses import replace
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from frontdesk.files.check import check_file
from frontdesk.files.claims import claim_next
from frontdesk.files.families import ROW_MEANING_VERSION
from frontdesk.files.load import parse_rows
from frontdesk.files.model import ChunkItem, RowOutcome
from tests.files.loading import ON_SQLITE, Desk, csv_of, lines_of, row
from tests.formats.reading import MEMBER, file_834
from tests.formats.workbooks import workbook

GOLDEN, RENEW = Path(__file__).with_name("row_meaning.json"), "FRONTDESK_TEST_RENEW"

# A value that is read as it is, one that is changed, one that is dropped or refused, of each kind of field.
ODD: list[dict[str, Any]] = [
    {}, {"first_name": "  Zoe\u0308 "}, {"first_name": ""}, {"last_name": "O\u2019Neil\u200b"}, {"middle_name": "x" * 300},
    {"dob": "1980-02-30"}, {"dob": "1980-02-03T00:00:00Z"}, {"dob": "1980-02-03T05:00:00Z"}, {"dob": "02/03/1980"},
    {"gender": "F"}, {"gender": "other"}, {"email": "Robin@Example.COM"}, {"email": "no address"}, {"phone": "(617) 555-0100"},
    {"phone": "12"}, {"zipcode": "2134"}, {"zipcode": "021341234"}, {"zipcode": "x"}, {"state": "Massachusetts"},
    {"state": "Nowhere"}, {"effective_date": "2026-13-01"}, {"expiry_date": "2025-01-01"}, {"expiry_date": "null"},
    {"member_id": ""}, {"external_id": ""}, {"external_id": " E 1 "}, {"subscriber_relationship": "Dependent"},
    {"relationship_code_hipaa": "1"}, {"relationship_code_hipaa": "99"}, {"invite_immediately": "true"}, {"city": "Bos\tton"},
]  # fmt: skip
COLUMNS = [*row(0), *dict.fromkeys(name for odd in ODD for name in odd if name not in row(0))]
TYPED: list[dict[str, Any]] = [
    {"zipcode": 2134}, {"dob": None}, {"invite_immediately": True}, {"metadata": {"b": "1", "a": 2}}, {"metadata": []},
]  # fmt: skip
RULES = {
    "columns": {"city": "county"},
    "clear": ["null"],
    "fields": {
        "zipcode": {"pad": 5},
        "dob": {"dates": ["YYYY-MM-DD", "MM/DD/YYYY"]},
        "gender": {"values": {"f": "female", "": "unknown"}},
        "member_id": {"column": ["external_id", "member_id"], "join": "-"},
        "payor_name": {"constant": "Example Mutual"},
    },
    "skip": [{"column": "state", "equals": "Nowhere"}],
}
SEGMENTS = [
    ("", ""), ("*18*", "*19*"), ("INS*Y*18*", "INS*N*01*"), ("*021*28", "*024*28"), ("*021*28", "*001*28"),
    ("*021*28", "*030*28"), ("DMG*D8*19770111*F~", ""), ("19770111", "19771311"),
    ("N4*Boston*MA*02134**CY*Suffolk~", ""), ("HD*021", "HD*024"), ("HD*021", "HD*001"), ("*HLT*", "*DEN*"),
    ("DTP*348*D8*20260101~", ""), ("DTP*348*D8*20260101~", "DTP*357*D8*20260630~"), ("DTP*348", "DTP*349"),
    ("REF*0F*FAMILY1~", ""), ("REF*17*01~", "REF*23*C1~"), ("Robin*Lee", "Robin*Lee**Jr"),
    ("*34*900000001", "*ZZ*W1"), ("PER*IP**TE*6175550100*EM*robin@example.com~", "PER*IP**HP*1~"),
    ("~N3", "~LUI*LE*en~N3"),
]  # fmt: skip


DATED: list[dict[str, Any]] = [{"zipcode": 2134}, {"dob": date(1980, 2, 3)}, {"invite_immediately": True}]


def rows_of(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [row(number) | odd for number, odd in enumerate(ODD)] + [
        row(50 + number) | odd for number, odd in enumerate(more)
    ]


LOOPS = [MEMBER.replace(*pair).replace("FAMILY1", f"FAMILY{n}") for n, pair in enumerate(SEGMENTS)]
CONTENTS: dict[str, bytes] = {
    "csv": csv_of(rows_of(), COLUMNS),
    "csv by rules": csv_of(rows_of(), COLUMNS),
    "json": lines_of(rows_of(*TYPED)),
    "xlsx by rules": workbook([COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows_of(*DATED))]),
    "834": file_834(*LOOPS).encode(),
}


def meaning_of(item: ChunkItem) -> str:
    """A digest of all that the row says, without the numbers that a database gives."""
    if isinstance(item, RowOutcome):
        told: tuple[object, ...] = (*item,)
    else:
        record = item.submission.record
        more = (record.faults, record.warnings, record.invite_immediately, item.submission.context)
        told = (item.external_id, sorted(record.given.items()), more, item.submission.action, item.warnings)
    return blake2b(repr(told).encode(), digest_size=4).hexdigest()


@ON_SQLITE
@pytest.mark.parametrize("kind", CONTENTS)
def test_a_row_means_what_it_meant_before(desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("frontdesk.db.sets.installation_key", lambda _tx: bytes(32))
    file = desk.hand_in(CONTENTS[kind], mapping=RULES if kind.endswith("by rules") else None)
    claim = claim_next(desk.db, desk.clock, desk.options, only=file.id)
    assert claim is not None
    check = replace(check_file(claim), contradictory=frozenset(), apart=())
    found = [meaning_of(item) for chunk in parse_rows(claim, check, lambda: None) for item in chunk]
    assert len(found) >= 20
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    version = ROW_MEANING_VERSION.decode()
    if os.environ.get(RENEW):
        golden = {**golden, "version": version, kind: found}
        GOLDEN.write_text(json.dumps(golden).replace('], "', '],\n"') + "\n")
    assert (golden["version"], golden[kind]) == (version, found), (
        "Rows mean something else than in the last version: raise ROW_MEANING_VERSION (files/load.py), then renew with "
        f"{RENEW}=1 .venv/bin/pytest -n 0 {Path(__file__).name}"
    )
