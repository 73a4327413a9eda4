"""A known row is not parsed again, so code that may come to read a row in another way has to be
noticed.

`row_meaning.json` has a digest of the code of each module that decides what a row means, and the
version of the rules that it belongs to. Comments, docstrings and the form of the code count for
nothing.
"""

import ast
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from grimp import build_graph

from frontdesk.eligibility import meaning
from frontdesk.eligibility.fields import FIELDS
from frontdesk.files.check import check_file
from frontdesk.files.claims import claim_next
from frontdesk.files.load import parse_rows
from tests.files.loading import ON_SQLITE, Desk, csv_of, lines_of, row
from tests.formats.reading import MEMBER, file_834
from tests.formats.workbooks import workbook

RECORDED = Path(__file__).with_name("row_meaning.json")
RENEW = "FRONTDESK_TEST_RENEW"
PACKAGE = Path(__file__).parents[2] / "src"
# Rows are opened here, their values are read there; what these import takes part. The others parse
# what both have found, or leave it out by its digest.
ENTRANCES = ("frontdesk.mapping.opening", "frontdesk.eligibility.fields")
BESIDE = {"frontdesk.workbooks", "frontdesk.files.load", "frontdesk.files.row_digests"}
# They carry rows, files and errors, and read no text of a row; nor does the table of codes.
CARRIERS = {
    *(
        "frontdesk.errors",
        "frontdesk.idempotency.model",
        "frontdesk.invitations.model",
        "frontdesk.eligibility.meaning",
    ),
    *(
        "frontdesk.files.check",
        "frontdesk.files.claims",
        "frontdesk.files.families",
        "frontdesk.files.model",
    ),
    *(
        "frontdesk.files.store",
        "frontdesk.files.row_store",
        "frontdesk.eligibility.store",
        "frontdesk.plans.store",
        "frontdesk.plans.model",
    ),
    # They say what day it is for the file.
    *(
        "frontdesk.clock",
        "frontdesk.access.accounts",
        "frontdesk.access.model",
        "frontdesk.access.store",
    ),
}

# A value that is read as it is, one that is changed, one that is dropped or refused, of each kind
# of field.
ODD: list[dict[str, Any]] = [
    {},
    {"first_name": "  Zoe\u0308 "},
    {"first_name": ""},
    {"last_name": "O\u2019Neil\u200b"},
    {"middle_name": "x" * 300},
    {"dob": "1980-02-30"},
    {"dob": "1980-02-03T00:00:00Z"},
    {"dob": "1980-02-03T05:00:00Z"},
    {"dob": "02/03/1980"},
    {"gender": "F"},
    {"gender": "other"},
    {"email": "Robin@Example.COM"},
    {"email": "no address"},
    {"phone": "(617) 555-0100"},
    {"phone": "12"},
    {"zipcode": "2134"},
    {"zipcode": "021341234"},
    {"zipcode": "x"},
    {"state": "Massachusetts"},
    {"state": "Nowhere"},
    {"effective_date": "2026-13-01"},
    {"expiry_date": "2025-01-01"},
    {"expiry_date": "null"},
    {"member_id": ""},
    {"external_id": ""},
    {"external_id": " E 1 "},
    {"subscriber_relationship": "Dependent"},
    {"relationship_code_hipaa": "1"},
    {"relationship_code_hipaa": "99"},
    {"invite_immediately": "true"},
    {"city": "Bos\tton"},
]
COLUMNS = [*row(0), *dict.fromkeys(name for odd in ODD for name in odd if name not in row(0))]
TYPED: list[dict[str, Any]] = [
    {"zipcode": 2134},
    {"dob": None},
    {"invite_immediately": True},
    {"metadata": {"b": "1", "a": 2}},
    {"metadata": []},
]
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


DATED: list[dict[str, Any]] = [
    {"zipcode": 2134},
    {"dob": date(1980, 2, 3)},
    {"invite_immediately": True},
]


def rows_of(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [row(number) | odd for number, odd in enumerate(ODD)] + [
        row(50 + number) | odd for number, odd in enumerate(more)
    ]


LOOPS = [MEMBER.replace(*pair).replace("FAMILY1", f"FAMILY{n}") for n, pair in enumerate(SEGMENTS)]
CONTENTS: dict[str, bytes] = {
    "csv": csv_of(rows_of(), COLUMNS),
    "csv by rules": csv_of(rows_of(), COLUMNS),
    "json": lines_of(rows_of(*TYPED)),
    "xlsx by rules": workbook(
        [COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows_of(*DATED))]
    ),
    "834": file_834(*LOOPS).encode(),
}


@cache
def guarded_modules() -> frozenset[str]:
    """The modules that decide what a row means."""
    graph = build_graph("frontdesk")
    found = {*ENTRANCES, *BESIDE}
    for entrance in ENTRANCES:
        found |= graph.find_upstream_modules(entrance)
    tables = {name for name in found if name.startswith("frontdesk.codes")}
    return frozenset(found - tables - CARRIERS)


def path_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def digest_of(module: str) -> str:
    """A digest of what the module does: its syntax tree without docstrings, places and empty parts,
    which versions of Python write in different ways.
    """
    tree = ast.parse(path_of(module).read_text())
    return blake2b(repr(outline(tree)).encode(), digest_size=8).hexdigest()


def outline(node: object) -> object:
    if isinstance(node, list):
        return [outline(each) for each in node if not is_text(each)]
    if not isinstance(node, ast.AST):
        return node
    parts = {name: outline(value) for name, value in ast.iter_fields(node)}
    return type(node).__name__, [
        (name, part) for name, part in parts.items() if part not in (None, [])
    ]


def is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_code_that_decides_what_a_row_means_has_not_changed_unnoticed() -> None:
    found = {module: digest_of(module) for module in sorted(guarded_modules())}
    if os.environ.get(RENEW):
        RECORDED.write_text(
            json.dumps({"version": meaning.RULES_VERSION, "modules": found}, indent=1) + "\n"
        )
    recorded = json.loads(RECORDED.read_text())
    before = recorded["modules"]
    changed = sorted(
        name for name in found.keys() | before.keys() if found.get(name) != before.get(name)
    )
    renew = f"{RENEW}=1 .venv/bin/pytest -n 0 tests/files/{Path(__file__).name}"
    assert (changed, meaning.RULES_VERSION) == ([], recorded["version"]), (
        f"The code of {', '.join(changed) or 'no module'} has changed. If any text of a row may "
        "now be read in another way, raise RULES_VERSION (eligibility/meaning.py): "
        f"every row is then parsed once more. In any case renew the digests: {renew}"
    )


def test_a_changed_rule_has_another_digest_and_a_changed_comment_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "before": 'LIMIT = 5\n\ndef read(text):\n    """Read."""\n    return text[:LIMIT]\n',
        "commented": 'LIMIT = 5  # why\n\n\ndef read(text):\n    """Read it."""\n\n    return text[:LIMIT]\n',
        "changed": 'LIMIT = 6\n\ndef read(text):\n    """Read."""\n    return text[:LIMIT]\n',
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    assert digest_of("before") == digest_of("commented") != digest_of("changed")


@contextmanager
def running_modules() -> Iterator[set[str]]:
    """The modules of the package of which a function runs meanwhile, in any thread."""
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("frontdesk."):
            modules.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@ON_SQLITE
@pytest.mark.parametrize("kind", CONTENTS)
def test_no_other_module_takes_part_in_the_reading_of_a_row(desk: Desk, kind: str) -> None:
    file = desk.hand_in(CONTENTS[kind], mapping=RULES if kind.endswith("by rules") else None)
    claim = claim_next(desk.db, desk.clock, desk.options, only=file.id)
    assert claim is not None
    check = replace(check_file(claim), contradictory=frozenset(), apart=())
    with running_modules() as modules:
        rows = [item for chunk in parse_rows(claim, check, lambda: None) for item in chunk]
    assert len(rows) >= 20
    database = {name for name in modules if name.startswith("frontdesk.db.")}
    assert modules - database - CARRIERS <= guarded_modules()
    assert "frontdesk.eligibility.fields" in modules


def test_each_property_of_a_field_changes_the_meaning_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    field = FIELDS["city"]
    kind = field.kind
    kinds = [
        replace(kind, schema={}),
        replace(kind, length=7),
        replace(kind, storage=FIELDS["metadata"].kind.storage),
        replace(kind, plain_length=7),
        replace(kind, from_text=str),
    ]
    others = [
        replace(field, name="town"),
        replace(field, required=True),
        replace(field, unique=True),
    ]
    others += [replace(field, kind=other) for other in kinds]
    found = {meaning.row_meaning()}
    for other in others:
        monkeypatch.setattr("frontdesk.eligibility.meaning.FIELDS", {**FIELDS, "city": other})
        found.add(meaning.row_meaning())
        monkeypatch.undo()
    monkeypatch.setattr(
        "frontdesk.eligibility.meaning.FIELDS",
        {**FIELDS, "nickname": replace(field, name="nickname")},
    )
    found.add(meaning.row_meaning())
    monkeypatch.undo()
    monkeypatch.setattr(meaning, "RULES_VERSION", 0)
    found.add(meaning.row_meaning())
    assert len(found) == len(others) + 3
